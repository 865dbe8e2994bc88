/* Any bytes as a recording: whole, and a part from the middle. */
#include <stdlib.h>
#include <string.h>

#include "codec/audio_codec.h"

#define READ_MOST 200000 /* samples, so that one input stays quick */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libsndfile 1.2 forgets this one when the second header of an ogg is bad. */
const char *__lsan_default_suppressions(void)
{
    return "leak:vorbis_info_init\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audio_decoder *decoder = NULL;
    struct audio_header header;
    struct stk_error err;
    struct stk_bytes bytes = {data, size};
    if (audio_decoder_new(&decoder, &err))
        return 0;
    if (!audio_begin(decoder, &bytes, &header, &err)) {
        if (header.channels < 1 || header.channels > AUDIO_MAX_CHANNELS || header.frames < 0)
            abort();
        int64_t most = READ_MOST / header.channels;
        int64_t count = header.frames < most ? header.frames : most;
        float *to = malloc((size_t)(count * header.channels + 1) * sizeof(float));
        if (audio_read(decoder, header.frames - count, count, to, &err) && !err.what[0])
            abort();
        if (audio_read(decoder, (header.frames - count) / 2, count / 2, to, &err) && !err.what[0])
            abort();
        free(to);
    } else if (!err.what[0]) {
        abort();
    }
    audio_decoder_free(decoder);
    return 0;
}
