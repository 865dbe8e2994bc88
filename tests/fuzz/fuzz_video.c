/* Any bytes as a video: its header, then some frames from the start and from the middle. Without
 * the plugin there is nothing to try. */
#include <stdlib.h>

#include "codec/video_codec.h"

#define READ_MOST (1 << 20) /* bytes of frames, so that one input stays quick */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_some(struct video_decoder *decoder, const struct video_want *want, uint8_t *to)
{
    struct stk_error err = {0};
    if (video_read(decoder, want, to, &err) && !err.what[0])
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct video_decoder *decoder = NULL;
    struct stk_video_header header;
    struct stk_error err = {0};
    struct stk_bytes bytes = {data, size};
    if (video_decoder_new(&decoder, &err))
        return 0;
    if (!video_begin(decoder, &bytes, &header, &err)) {
        if (header.width < 1 || header.height < 1 || header.frames < 1)
            abort();
        int64_t frame = 3 * (int64_t)header.width * (int64_t)header.height;
        int64_t count = READ_MOST / frame < 3 ? READ_MOST / frame : 3;
        uint8_t *to = malloc((size_t)(count * frame) + 1);
        if (count) {
            read_some(decoder, &(struct video_want){0, 1, count}, to);
            read_some(decoder, &(struct video_want){header.frames / 2, 2, count}, to);
        }
        free(to);
        video_end(decoder);
    } else if (!err.what[0]) {
        abort();
    }
    video_decoder_free(decoder);
    return 0;
}
