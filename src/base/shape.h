/* shape.h -- comparing tensors' types and shapes, and saying them in words.
 * Owns: nothing.   Threads: any.   Errors: none; text too long is cut.   Not here: sizes
 * (stoker/tensor.h). */
#ifndef BASE_SHAPE_H
#define BASE_SHAPE_H

#include <stddef.h>

#include "stoker/tensor.h"

/* Not 0 when dtype, rank and every axis are equal. */
int shape_same(const struct stk_tensor *a, const struct stk_tensor *b);
/* Not 0 when they differ in nothing but the first axis. */
int shape_same_rows(const struct stk_tensor *a, const struct stk_tensor *b);
/* "float32 (2, 3)" */
void shape_text(const struct stk_tensor *shape, char *out, size_t cap);

#endif
