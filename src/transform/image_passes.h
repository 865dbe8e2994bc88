/* image_passes.h -- the two passes of a resize over rows of uint8, in plain C and in vectors.
 * Owns: nothing.   Threads: any.   Errors: none.
 * Not here: tables (image_coefficients.h), the order of passes (image_resample.h).
 *
 * All sets give the same bytes: sums are whole numbers and exact. */
#ifndef TRANSFORM_IMAGE_PASSES_H
#define TRANSFORM_IMAGE_PASSES_H

#include <stdint.h>

#include "transform/image_coefficients.h"

#define PASS_SLACK 32 /* bytes behind each row of `to` that across may overwrite */

struct pass_rows {
    const uint8_t *from;
    uint8_t *to;
    int64_t from_stride, to_stride;
    int32_t count;
    int32_t width; /* pixels of a row of `from` */
    int32_t channels;
};

struct image_passes {
    /* Every row becomes table->count pixels. 13 bytes behind the last row of `from` may be read. */
    void (*across)(const struct pass_rows *rows, const struct coefficients *table);
    /* to[i] of `bytes`: the sum of output `out`'s taps over rows of `from`, which has `height`. */
    void (*down)(const uint8_t *from, int64_t stride, int32_t height,
                 const struct coefficients *table, int32_t out, int64_t bytes, uint8_t *to);
};

extern const struct image_passes image_passes_plain;
/* NULL: this processor has no such vectors. */
const struct image_passes *image_passes_avx2(void);
const struct image_passes *image_passes_vnni(void);
/* The fastest that this processor has. */
const struct image_passes *image_passes_best(void);

#endif
