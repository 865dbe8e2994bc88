/* JPEGs of which the upper rows are walked over: pixels, and whether there are any, are those of
 * libjpeg alone. The first byte chooses scale and strictness, the next two the rows. */
#include <string.h>

#include "../unit/codec/jpeg_plain.h"
#include "codec/image_codec.h"

#define MOST (1 << 18) /* pixels */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const struct image_view *view, const struct plain *plain)
{
    if (view->width != plain->width || view->height != plain->height || view->channels != 3)
        abort();
    size_t stride = 3 * (size_t)plain->width;
    for (int y = 0; y < plain->height; y++)
        if (memcmp(view->pixels + y * view->stride, plain->pixels + stride * (size_t)y, stride))
            abort();
}

/* Not every fault is the library's: it does not miss a table that never came. */
static int is_ours(const struct stk_error *err)
{
    return strstr(err->what, "it has no ") != NULL;
}

static void read_both(struct image_decoder *decoder, const struct stk_bytes *bytes,
                      const struct image_limits *limits, const uint8_t *choice)
{
    struct image_header header;
    struct image_view view;
    struct stk_error err = {0};
    if (image_begin(decoder, bytes, limits, &header, &err) || strcmp(header.format, "jpeg") != 0)
        return;
    unsigned scale = choice[0] & 2 ? 4 : 8;
    struct image_want want = {.width = header.width};
    want.y = header.height * choice[1] / 256;
    want.height = 1 + (header.height - want.y - 1) * choice[2] / 255;
    if (scale < 8) {
        want.least_width = (want.width + 1) / 2;
        want.least_height = (want.height + 1) / 2;
    }
    stk_status status = image_read(decoder, &want, &view, &err);
    if (!status && view.x1 - view.x0 != want.width) /* it was not scaled after all, or turned */
        scale = view.x1 - view.x0 == want.width / 2.0 ? 4 : 8;
    else if (!status)
        scale = 8;
    if (status == STK_LIMIT)
        return;
    int y = want.y * (int)scale / 8;
    int height = ((want.y + want.height) * (int)scale + 7) / 8 - y;
    struct plain plain;
    plain_read(&plain, bytes, !limits->relaxed, scale, y, height);
    int is_light = plain.info.jpeg_color_space == JCS_YCbCr ||
                   plain.info.jpeg_color_space == JCS_RGB ||
                   plain.info.jpeg_color_space == JCS_GRAYSCALE;
    if (is_light && !status && plain.pixels)
        compare(&view, &plain);
    else if (is_light && !status != !!plain.pixels && !(status && is_ours(&err)))
        abort();
    free(plain.pixels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t exif[4] = "Exif";
    struct image_decoder *decoder = NULL;
    if (size < 3 || memmem(data, size, exif, sizeof exif)) /* those may be turned */
        return 0;
    struct image_limits limits = {
        .max_pixels = MOST, .max_scans = 20, .max_ns = 1000000000, .relaxed = data[0] & 1};
    struct stk_bytes bytes = {data + 3, size - 3};
    if (image_decoder_new(&decoder, NULL))
        abort();
    read_both(decoder, &bytes, &limits, data);
    image_decoder_free(decoder);
    return 0;
}
