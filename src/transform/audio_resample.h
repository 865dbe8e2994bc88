/* audio_resample.h -- from one sampling rate to another, by libsoxr at high quality (SOXR_HQ).
 * Owns: a resampler owns its library's handle, kept as long as rates and channels stay the same.
 * Threads: one a resampler.   Errors: status, words.   Not here: the step Resample
 * (audio_transform.c).
 *
 * Rates are whole numbers. Frame k of the result lies at the time k / to; the result has as many
 * frames as the recording times to / from, rounded to the nearest. */
#ifndef TRANSFORM_AUDIO_RESAMPLE_H
#define TRANSFORM_AUDIO_RESAMPLE_H

#include <stdint.h>

#include "stoker/error.h"

struct audio_resampler;
STK_CHECK stk_status audio_resampler_new(struct audio_resampler **out, struct stk_error *err);
void audio_resampler_free(struct audio_resampler *resampler); /* NULL is fine */
uint64_t audio_resampler_bytes(const struct audio_resampler *resampler);

/* STK_LIMIT: one rate is more than AUDIO_RATES_APART times the other. A header that lies about its
 * rate would make a small file into hours of work. */
#define AUDIO_RATES_APART 256
STK_CHECK stk_status audio_rates_check(double from, double to, struct stk_error *err);

/* How many frames come out of `frames`. */
int64_t audio_resampled(int64_t frames, double from, double to);

/* A part of the result, made of a part of the recording: its frames [in_first, in_first + in_count)
 * become out_count, of which those from `skip` on are what was asked for. The part has enough
 * around it for the result to be that of the whole recording to 1e-5 of full scale, and begins
 * where a frame of the recording and one of the result fall on the same time. */
struct audio_part {
    int64_t in_first, in_count, out_count, skip;
};
void audio_part_find(int64_t frames, double from, double to, int64_t first, int64_t count,
                     struct audio_part *part);

/* in: (channels, in_frames) -> out: (channels, out_frames). */
struct audio_resample_job {
    double from, to;
    int32_t channels;
    const float *in;
    int64_t in_frames;
    float *out;
    int64_t out_frames; /* audio_resampled(in_frames, from, to) */
};
STK_CHECK stk_status audio_resample(struct audio_resampler *resampler,
                                    const struct audio_resample_job *job, struct stk_error *err);

#endif
