/* image_coefficients.h -- which pixels of a row or column make an output pixel, and how much of
 * each: the tables of a resize along one axis, as Pillow computes them.
 * Owns: nothing; tables lie in scratch memory.   Threads: any; one scratch a thread.
 * Errors: STK_MEMORY.   Not here: applying them (image_passes.h). */
#ifndef TRANSFORM_IMAGE_COEFFICIENTS_H
#define TRANSFORM_IMAGE_COEFFICIENTS_H

#include "stoker/error.h"
#include "base/scratch.h"
#include "transform/image_geometry.h"

#define COEFFICIENT_BITS                                                                           \
    22 /* a weight of 1 is 1 << 22: 8 bits of pixel, 2 of overshoot, 32 in all */
#define COEFFICIENT_HALF (1 << (COEFFICIENT_BITS - 1)) /* added, so that a sum is rounded */
#define COEFFICIENT_SPLIT                                                                          \
    11 /* weight = high << 11 | low: both fit 16 bits, and the sum is exact                        \
        */

/* Two weights side by side, as 16 bits each, for a multiply that adds pairs. */
struct weight_pair {
    int16_t high[2], low[2];
};

/* One axis of a resize: `from` pixels, of which [start, stop) become `to`, of which [first,
 * first + count) are wanted. */
struct axis {
    int32_t from;
    double start, stop;
    int32_t to, first, count;
    int mirrored; /* the last wanted one comes first */
    enum image_filter filter;
    int antialias;
};

struct coefficients {
    int32_t count;
    int32_t taps;     /* weights of each output, even; those it does not need are 0 */
    int32_t *from;    /* its first pixel; from + taps <= pixels, unless there are fewer than taps */
    int32_t *weights; /* count * taps */
    struct weight_pair *pairs; /* the same, count * taps / 2 */
};

/* The axis is copied pixel by pixel: its pixel first of `to` is pixel *offset + first. */
int axis_is_copy(const struct axis *axis, int32_t *offset);
/* Not for IMAGE_NEAREST. */
STK_CHECK stk_status coefficients_make(struct coefficients *out, const struct axis *axis,
                                       struct scratch *scratch, struct stk_error *err);
/* IMAGE_NEAREST: the pixel of each output. */
STK_CHECK stk_status nearest_make(int32_t **out, const struct axis *axis, struct scratch *scratch,
                                  struct stk_error *err);

#endif
