/* blur_kernel.h -- the job of blur_kernel.cu: GaussianBlur of a batch's images.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: sizes and what is drawn
 * (blur_transform.c), who fills it (blur_device.h). */
#ifndef TRANSFORM_BLUR_KERNEL_H
#define TRANSFORM_BLUR_KERNEL_H

#include "gpu/kernel_language.h"

/* What GaussianBlur draws for a sample. */
struct blur_params {
    double sigma;
};

struct blur_job {
    uint64_t from, to; /* images of uint8 (height, width, channels), one behind the other */
    uint64_t between;  /* uint16_t, as many: blurred downwards, in 256ths */
    uint64_t weights;  /* float[samples][across + down] */
    uint64_t params;   /* struct blur_params of sample 0 */
    uint64_t samples, images;
    uint32_t frames; /* images of a sample */
    uint32_t rows;   /* of the grid: row y takes images y, y + rows ... */
    uint32_t params_stride;
    uint32_t width, height, channels; /* their product is below 2^31 */
    uint32_t across, down;            /* weights, an odd number, of the two passes */
    uint32_t words;                   /* rows of `from` begin at multiples of 4 */
};

#endif
