/* affine.h -- an image turned, sheared or moved: each output pixel is looked up in the input, as
 * Pillow's Image.transform(AFFINE) does it.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: resizing (image_resample.h). */
#ifndef TRANSFORM_AFFINE_H
#define TRANSFORM_AFFINE_H

#include "transform/pixels.h"

/* Pixel (x, y) of the output is the input at
 *   (m[0] * (x + 0.5) + m[1] * (y + 0.5) + m[2], m[3] * (x + 0.5) + m[4] * (y + 0.5) + m[5]);
 * outside it is `fill`. */
struct affine {
    double m[6];
    int bilinear; /* else the nearest pixel */
    uint8_t fill[4];
};
/* out: of any size, and in's channels. */
void affine_run(const struct affine *affine, struct pixels in, struct pixels out);
/* A turn by degrees, counter-clockwise, about the point (x, y). */
void affine_turn(struct affine *affine, double degrees, double x, double y);
/* The size that shows all of an image of width x height that is turned; moves the image into its
 * middle. As Pillow's rotate(expand=True). */
void affine_expand(struct affine *affine, int64_t *width, int64_t *height);

#endif
