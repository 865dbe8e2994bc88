/* log_mel_kernel.h -- the job of log_mel_kernel.cu: what LogMel does before and behind cuFFT.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: who fills it (log_mel_device.h).
 *
 * A batch is `samples` of `channels` signals. Columns are counted through all signals, and a lot of
 * them is made at a time. */
#ifndef TRANSFORM_LOG_MEL_KERNEL_H
#define TRANSFORM_LOG_MEL_KERNEL_H

#include "gpu/kernel_language.h"

enum mel_pad { MEL_PAD_CONSTANT, MEL_PAD_REFLECT, MEL_PAD_EDGE };

/* Band b is the sum of weights[weights + i] * bin[first + i], i < count. */
struct mel_band {
    uint32_t first, count, weights;
};

#define MEL_LANES 256 /* largest values of a sample, each of every 256th value */

struct mel_job {
    uint64_t in;            /* float[signals][length] */
    uint64_t frames;        /* float[lot][n_fft] */
    uint64_t spectrum;      /* float[lot][bins][2] */
    uint64_t out;           /* float[signals][n_mels][columns] */
    uint64_t window;        /* float[n_fft] */
    uint64_t bands;         /* struct mel_band[n_mels] */
    uint64_t weights;       /* float[] */
    uint64_t most;          /* float[samples][MEL_LANES] */
    uint64_t least;         /* float[samples]: what lies below is cut off */
    uint64_t first;         /* the lot's first column */
    uint64_t samples, item; /* item: values of a sample of `out` */
    int64_t length;         /* of a signal */
    uint64_t columns;       /* of a signal */
    uint64_t hop;
    uint32_t n_fft, bins, n_mels;
    uint32_t side; /* values that are padded in front */
    uint32_t pad;  /* enum mel_pad */
    uint32_t rows; /* of the grid: row y takes samples y, y + rows ... */
    float power, amin, offset, top_db;
};

#endif
