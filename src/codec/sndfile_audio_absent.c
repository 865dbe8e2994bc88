#include "codec/audio_codec.h"

#include <stddef.h>

#include "base/fail.h"

static stk_status fail_absent(struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "this build cannot decode audio");
    fail_remedy(err, "install libsndfile (Debian: libsndfile1-dev) and build again");
    return status;
}

stk_status audio_decoder_new(struct audio_decoder **out, struct stk_error *err)
{
    *out = NULL;
    return fail_absent(err);
}

void audio_decoder_free(struct audio_decoder *decoder)
{
    (void)decoder;
}

uint64_t audio_decoder_bytes(const struct audio_decoder *decoder)
{
    (void)decoder;
    return 0;
}

stk_status audio_begin(struct audio_decoder *decoder, const struct stk_bytes *bytes,
                       struct audio_header *header, struct stk_error *err)
{
    (void)decoder, (void)bytes;
    *header = (struct audio_header){0};
    return fail_absent(err);
}

stk_status audio_read(struct audio_decoder *decoder, int64_t first, int64_t count, float *to,
                      struct stk_error *err)
{
    (void)decoder, (void)first, (void)count, (void)to;
    return fail_absent(err);
}

void audio_end(struct audio_decoder *decoder)
{
    (void)decoder;
}
