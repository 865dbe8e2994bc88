#include <assert.h>
#include <soxr.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "transform/audio_resample.h"

#define CHANNELS_MAX 64

struct audio_resampler {
    soxr_t handle; /* NULL: none yet */
    double from, to;
    int32_t channels;
};

stk_status audio_resampler_new(struct audio_resampler **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    return *out ? STK_OK : fail_memory(err, sizeof **out);
}

void audio_resampler_free(struct audio_resampler *resampler)
{
    if (!resampler)
        return;
    soxr_delete(resampler->handle);
    memory_free(resampler);
}

uint64_t audio_resampler_bytes(const struct audio_resampler *resampler)
{
    return resampler ? sizeof *resampler : 0;
}

static stk_status fail_soxr(const struct audio_resample_job *job, const char *words,
                            struct stk_error *err)
{
    return fail(err, STK_UNSUPPORTED, "cannot resample %d channels from %.15g to %.15g Hz: %s",
                job->channels, job->from, job->to, soxr_strerror(words));
}

/* A handle that stands at the start of a signal. */
static stk_status make_ready(struct audio_resampler *resampler,
                             const struct audio_resample_job *job, struct stk_error *err)
{
    soxr_error_t words = NULL;
    int same = resampler->from == job->from && resampler->to == job->to &&
               resampler->channels == job->channels;
    if (resampler->handle && same) {
        words = soxr_clear(resampler->handle);
        return words ? fail_soxr(job, words, err) : STK_OK;
    }
    soxr_delete(resampler->handle);
    soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_S, SOXR_FLOAT32_S);
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    resampler->handle =
        soxr_create(job->from, job->to, (unsigned)job->channels, &words, &io, &quality, NULL);
    resampler->from = job->from;
    resampler->to = job->to;
    resampler->channels = job->channels;
    return resampler->handle ? STK_OK : fail_soxr(job, words, err);
}

stk_status audio_resample(struct audio_resampler *resampler, const struct audio_resample_job *job,
                          struct stk_error *err)
{
    const void *in[CHANNELS_MAX];
    void *out[CHANNELS_MAX];
    assert(job->channels > 0 && job->channels <= CHANNELS_MAX);
    stk_status status = make_ready(resampler, job, err);
    size_t taken = 0, made = 0, frames = (size_t)job->in_frames, wanted = (size_t)job->out_frames;
    while (!status && made < wanted) {
        size_t used = 0, got = 0;
        for (int32_t c = 0; c < job->channels; c++) {
            in[c] = job->in + (size_t)c * frames + taken;
            out[c] = job->out + (size_t)c * wanted + made;
        }
        int more = taken < frames; /* else what is inside is asked for */
        const char *words = soxr_process(resampler->handle, more ? in : NULL, frames - taken, &used,
                                         out, wanted - made, &got);
        if (words)
            status = fail_soxr(job, words, err);
        taken += used;
        made += got;
        if (!more && !got)
            break;
    }
    for (int32_t c = 0; !status && made < wanted && c < job->channels; c++)
        memset(job->out + (size_t)c * wanted + made, 0, (wanted - made) * sizeof(float));
    return status;
}
