/* moments.h -- count, mean, variance, smallest and largest of a stream of numbers, in float64.
 * Owns: nothing.   Threads: one at a time for one struct.   Errors: none; an infinite value shows
 * as a mean or m2 that is not finite.   Not here: which values belong together (scaler.h). */
#ifndef TRANSFORM_MOMENTS_H
#define TRANSFORM_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/tensor.h"

struct moments {
    uint64_t count;  /* values that are not NaN */
    double mean, m2; /* m2: the sum of squared distances from the mean */
    double rest;     /* what the mean's last digit leaves out: the mean is mean + rest */
    double min, max; /* 0 while count is 0 */
};

/* Values of a block. Two passes over it (it is in the nearest cache by then) give its mean and m2
 * to the last digits; blocks are joined by Chan's rule. */
#define MOMENTS_BLOCK 1024

/* n <= MOMENTS_BLOCK values side by side, F32 or F64, at any address; NaN is skipped. The same bits
 * on every machine. A zeroed struct is empty. */
void moments_add(struct moments *moments, const void *values, enum stk_dtype dtype, size_t n);
/* Joins what `from` saw. */
void moments_merge(struct moments *into, const struct moments *from);

#endif
