/* signal_kernel.h -- the job of signal_kernel.cu: Gain, Noise and SpecAugment of a batch.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what is drawn (audio_transform.c,
 * tensor_transform.c, spec_augment_transform.c), who fills it (signal_device.h). */
#ifndef TRANSFORM_SIGNAL_KERNEL_H
#define TRANSFORM_SIGNAL_KERNEL_H

#include "gpu/kernel_language.h"

/* What Gain, Noise and SpecAugment draw for a sample. */
struct gain_params {
    float factor;
};
struct noise_params {
    uint64_t key;
    int32_t applied;
};
#define SPEC_MASKS 8
struct spec_mask {
    int32_t first, count;
};
struct spec_params {
    struct spec_mask freq[SPEC_MASKS], time[SPEC_MASKS]; /* of count 0: none */
};

#define SIGNAL_LANES 256 /* sums of a sample: each is of every 256th value */

struct signal_job {
    uint64_t from, to; /* samples of `elements`, one behind the other */
    uint64_t samples, elements;
    uint64_t params; /* of sample 0 */
    uint32_t params_stride;
    uint32_t rows;        /* of the grid: row y takes samples y, y + rows ... */
    uint32_t dtype;       /* Noise; enum stk_dtype: F32, F16, BF16. Others: F32 */
    uint32_t clip;        /* Gain: values end at -1 and 1 */
    float sigma;          /* Noise */
    uint32_t mean;        /* SpecAugment: masked values become the mean, not zero */
    uint64_t bands, time; /* SpecAugment */
    uint64_t sums;        /* double[samples][SIGNAL_LANES] */
    uint64_t means;       /* float[samples] */
};

#endif
