/* transpose.h -- puts arrays into the order and byte order that the rest expects.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: parsing of headers (npy_header.h). */
#ifndef BASE_TRANSPOSE_H
#define BASE_TRANSPOSE_H

#include <stddef.h>

#include "stoker/tensor.h"

/* from: shape's elements in Fortran order; to: the same in C order. They do not overlap. */
void transpose_fortran(void *to, const void *from, const struct stk_tensor *shape);
/* Swaps the bytes of count elements in place; complex numbers by halves. */
void transpose_swap(void *data, uint64_t count, enum stk_dtype dtype);

#endif
