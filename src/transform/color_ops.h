/* color_ops.h -- changes of colour, in place, as Pillow's ImageEnhance and ImageOps define them.
 * Owns: nothing.   Threads: any.   Errors: none; sharpness wants scratch.   Not here: which of
 * them, and how much (color_transform.c, trivial_transform.c).
 *
 * A factor of 1 changes nothing, 0 is black, grey or smooth. Results are cut off at whole numbers,
 * as Pillow's are. Alpha is left alone; grey images have no saturation and no hue. */
#ifndef TRANSFORM_COLOR_OPS_H
#define TRANSFORM_COLOR_OPS_H

#include "transform/pixels.h"

void color_brightness(struct pixels image, float factor);
void color_contrast(struct pixels image, float factor);   /* against the mean of the grey image */
void color_saturation(struct pixels image, float factor); /* against each pixel's own grey */
void color_hue(struct pixels image, float turn);          /* of the colour circle: -0.5 to 0.5 */
/* Against the image smoothed by 3 x 3; the border stays. copy: as large as the image. */
void color_sharpness(struct pixels image, float factor, uint8_t *copy);
void color_posterize(struct pixels image, int bits);       /* the high bits that are kept */
void color_solarize(struct pixels image, float threshold); /* values from it on are inverted */
void color_autocontrast(struct pixels image);
void color_equalize(struct pixels image);
/* Pillow's grey of a colour, in 16 bits of fraction. */
static inline uint8_t color_grey(const uint8_t *pixel)
{
    return (uint8_t)((pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u) >> 16);
}

#endif
