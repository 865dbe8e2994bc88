/* Encoded images. The first byte chooses channels, scale and strictness; the next two the box. */
#include <stdlib.h>

#include "codec/image_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every pixel of the view is there to be read, and the part asked for lies in it. */
static void look(const struct image_view *view)
{
    unsigned sum = 0;
    for (int32_t y = 0; y < view->height; y++)
        for (int32_t i = 0; i < view->width * view->channels; i++)
            sum += view->pixels[y * view->stride + i];
    int inside = view->x0 >= 0 && view->y0 >= 0 && view->x1 <= view->width &&
                 view->y1 <= view->height && view->x0 < view->x1 && view->y0 < view->y1;
    if (!inside || sum == UINT32_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image_decoder *decoder = NULL;
    struct image_header header;
    struct image_view view;
    struct stk_error err;
    if (size < 3)
        return 0;
    struct image_limits limits = {
        .max_pixels = 1 << 18, .max_scans = 20, .max_ns = 1000000000, .relaxed = data[0] >> 2 & 1};
    if (image_decoder_new(&decoder, &err))
        abort();
    for (int round = 0; round < 2; round++) { /* again with what the first left behind */
        struct stk_bytes bytes = {data + 3, size - 3};
        if (image_begin(decoder, &bytes, &limits, &header, &err))
            continue;
        struct image_want want = {.channels = (enum image_channels)(data[0] & 3)};
        want.x = header.width * (data[1] & 15) / 16;
        want.y = header.height * (data[2] & 15) / 16;
        want.width = 1 + (header.width - want.x - 1) * (data[1] >> 4) / 15;
        want.height = 1 + (header.height - want.y - 1) * (data[2] >> 4) / 15;
        want.least_width = want.least_height = data[0] >> 3;
        if (!image_read(decoder, &want, &view, &err))
            look(&view);
    }
    image_decoder_free(decoder);
    return 0;
}
