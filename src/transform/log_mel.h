/* log_mel.h -- columns of a mel spectrogram in decibels, eight at a time: window, Fourier
 * transform, power, mel bands, logarithm. Owns: nothing; tables lie in memory that the caller
 * gives.   Threads: tables are immutable once made.   Errors: none.   Not here: padding, top_db
 * (log_mel_transform.c). */
#ifndef TRANSFORM_LOG_MEL_H
#define TRANSFORM_LOG_MEL_H

#include "transform/lane_fft.h"
#include "transform/mel_filters.h"

/* A real transform of n_fft points is a complex one of half as many, put together afterwards; of an
 * odd n_fft, a complex one of all. */
struct log_mel_frame {
    uint32_t n_fft, half; /* half: points of the complex transform */
    struct lane_fft fft;
    const float *window; /* n_fft: Hann, periodic, in the middle */
    const float *roots;  /* even n_fft: (cos, -sin) of 2 pi k / n_fft, k <= half */
};

uint64_t log_mel_frame_floats(uint32_t n_fft);
void log_mel_frame_init(struct log_mel_frame *frame, uint32_t n_fft, uint32_t win_length,
                        enum lane_width width, float *memory);

/* Column t is made of in[t * hop ...]; (columns + LANES) * hop + n_fft values must be readable.
 * out: (n_mels, columns). work: log_mel_work_bytes, aligned to 64. */
struct log_mel_job {
    const float *in;
    float *out;
    int64_t hop, columns;
    float power, amin, offset; /* offset: added to the decibels */
    void *work;
};
uint64_t log_mel_work_bytes(const struct log_mel_frame *frame);
void log_mel_columns(const struct log_mel_frame *frame, const struct mel_filters *filters,
                     const struct log_mel_job *job);

#endif
