/* cast.h -- elements of one dtype -> elements of another.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: which dtypes a step takes
 * (format_transform.c).
 *
 * Values that do not fit saturate; not-a-number becomes 0 in whole numbers. A fraction is rounded
 * to the nearest whole number, a tie to the even one. Bool is 0 or 1. */
#ifndef TRANSFORM_CAST_H
#define TRANSFORM_CAST_H

#include <stdint.h>

#include "stoker/tensor.h"

enum cast_scale {
    CAST_VALUES, /* values stay what they are */
    CAST_RANGE   /* whole numbers' largest value is a float's 1, as torchvision's scale=True: floats
                    are cut, not rounded, on their way to whole numbers, of which each gets the same
                    share of 0-1; whole numbers are shifted by the bits they differ in */
};

/* Not for complex numbers. from and to are aligned to their elements and do not overlap. */
void cast_elements(const void *from, enum stk_dtype from_dtype, void *to, enum stk_dtype to_dtype,
                   enum cast_scale scale, uint64_t count);
int cast_is_float(enum stk_dtype dtype);
int cast_is_complex(enum stk_dtype dtype);

#endif
