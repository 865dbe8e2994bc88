#include <stddef.h>

#include "base/fail.h"
#include "transform/audio_resample.h"

static stk_status fail_absent(struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "this build cannot resample audio");
    fail_remedy(err, "install libsoxr (Debian: libsoxr-dev) and build again");
    return status;
}

stk_status audio_resampler_new(struct audio_resampler **out, struct stk_error *err)
{
    *out = NULL;
    return fail_absent(err);
}

void audio_resampler_free(struct audio_resampler *resampler)
{
    (void)resampler;
}

uint64_t audio_resampler_bytes(const struct audio_resampler *resampler)
{
    (void)resampler;
    return 0;
}

stk_status audio_resample(struct audio_resampler *resampler, const struct audio_resample_job *job,
                          struct stk_error *err)
{
    (void)resampler, (void)job;
    return fail_absent(err);
}
