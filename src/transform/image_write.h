/* image_write.h -- writes a row of uint8 pixels into its place: normalised, cast and laid out.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what is written (image_resample.h).
 *
 * Floats are computed as multiply, then add, each rounded: both sets give the same bits. */
#ifndef TRANSFORM_IMAGE_WRITE_H
#define TRANSFORM_IMAGE_WRITE_H

#include "transform/image_resample.h"

/* The inner loops. */
struct image_write_loops {
    /* to[i] = from[i] * multiply[i % channels] + add[i % channels] */
    void (*packed)(const struct image_writer *writer, const uint8_t *from, int64_t count,
                   int32_t channels, float *to);
    /* The same, channel c to to + c * plane. */
    void (*planar)(const struct image_writer *writer, const uint8_t *from, int32_t width,
                   int32_t channels, float *to, int64_t plane);
    void (*split)(const uint8_t *from, int32_t width, int32_t channels, uint8_t *to, int64_t plane);
    void (*half)(const float *from, int64_t count, uint16_t *to);
    void (*bfloat)(const float *from, int64_t count, uint16_t *to);
};
extern const struct image_write_loops image_write_plain;
/* The fastest that this processor has. */
const struct image_write_loops *image_write_best(void);

/* Rows of bytes go over as they are: they may be made in their place. */
int image_write_is_copy(const struct image_writer *writer, int32_t channels);
/* line: room for width * channels floats. to: the row's first element. */
void image_write_row(const struct image_write_loops *loops, const struct image_writer *writer,
                     const uint8_t *row, int32_t width, int32_t channels, float *line, void *to);

#endif
