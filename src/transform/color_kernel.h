/* color_kernel.h -- the job of color_kernel.cu: ColorJitter and Grayscale of a batch's images.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what the steps mean (color_ops.h), who
 * fills it (color_device.h). */
#ifndef TRANSFORM_COLOR_KERNEL_H
#define TRANSFORM_COLOR_KERNEL_H

#include "gpu/kernel_language.h"

enum color_jitter {
    JITTER_BRIGHTNESS,
    JITTER_CONTRAST,
    JITTER_SATURATION,
    JITTER_HUE,
    JITTER_COUNT
};

/* What ColorJitter draws for a sample. */
struct color_params {
    float factors[JITTER_COUNT]; /* hue: of the circle; 0 changes nothing. Others: 1 does not */
    uint8_t order[JITTER_COUNT];
};

#define COLOR_LANES 512 /* sums of an image: each is of every 512th group of 4 pixels */

struct color_job {
    uint64_t from, to; /* images of uint8 (pixels, channels), one behind the other */
    uint64_t pixels;   /* of an image */
    uint64_t images;
    uint32_t frames;   /* images of a sample: they have its params */
    uint32_t rows;     /* of the grid: row y takes images y, y + rows ... */
    uint32_t channels; /* 1 to 4; from 3 on the first three are colours */
    uint32_t words;    /* images begin at multiples of 4, and have a multiple of 4 pixels */
    uint32_t greys;    /* color_grey: channels that come out, 1 or 3 */
    uint32_t params_stride;
    uint64_t params; /* struct color_params of sample 0 */
    uint64_t sums;   /* uint64_t[images][COLOR_LANES]: of the grey before contrast */
    uint64_t means;  /* float[images] */
};

#endif
