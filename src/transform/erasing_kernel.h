/* erasing_kernel.h -- the job of erasing_kernel.cu: a rectangle of each sample is overwritten.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: which rectangle (erasing_transform.c),
 * the copy that it is done in (erasing_device.h). */
#ifndef TRANSFORM_ERASING_KERNEL_H
#define TRANSFORM_ERASING_KERNEL_H

#include "gpu/kernel_language.h"

/* What RandomErasing draws for a sample. */
struct erasing_params {
    int32_t x, y, width, height; /* width 0: nothing is erased */
    uint64_t key;                /* of random values */
};

#define ERASING_VALUES 4

/* Lengths and strides in elements: a sample is (clips, frames, height, width, channels) of them, in
 * whatever order. */
struct erasing_job {
    uint64_t data;
    uint64_t samples, item; /* item: of one sample */
    uint64_t clips, clip;
    uint64_t frames, frame, row, column;
    uint64_t channels, channel;
    uint64_t params;
    uint32_t params_stride;
    uint32_t rows;   /* of the grid: row y takes samples y, y + rows ... */
    uint32_t dtype;  /* enum stk_dtype: U8, F16, BF16, F32 */
    uint32_t values; /* 0: random; 1; or one a channel */
    double value[ERASING_VALUES];
};

#endif
