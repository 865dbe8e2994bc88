#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"

#include "codec/exif.h"
#include "codec/image_format.h"

#define MARGIN 2 /* columns and rows of context: chroma is interpolated, and counts pairs */
#define GRAY 128 /* what a relaxed decode puts where the data are missing */

struct webp_state {
    const struct image_task *task;
    WebPBitstreamFeatures features;
};

static stk_status webp_open(void **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof(struct webp_state));
    return *out ? STK_OK : fail_memory(err, sizeof(struct webp_state));
}

static void webp_close(void *own)
{
    memory_free(own);
}

static uint64_t webp_held(const void *own)
{
    return sizeof *(const struct webp_state *)own;
}

static stk_status webp_fail(VP8StatusCode code, struct stk_error *err)
{
    switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return fail_memory(err, 0);
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return image_fail(err, STK_TRUNCATED, "the WebP image ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        fail(err, STK_UNSUPPORTED, "the WebP image uses a feature that libwebp does not know");
        fail_remedy(err, "store it as a plain WebP, PNG or JPEG");
        return STK_UNSUPPORTED;
    default:
        return image_fail(err, STK_CORRUPT, "the WebP image is damaged (libwebp's status %d)",
                          (int)code);
    }
}

static uint32_t webp_number(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Walks the chunks of the container: a name, a length, and that many bytes, padded to pairs. */
static int webp_orientation(const struct stk_bytes *bytes)
{
    uint64_t at = 12;
    while (checked_inside(at, 8, bytes->len)) {
        uint64_t len = webp_number(bytes->data + at + 4);
        if (!checked_inside(at + 8, len, bytes->len))
            return 0;
        if (memcmp(bytes->data + at, "EXIF", 4) == 0) {
            struct stk_bytes exif = {bytes->data + at + 8, len};
            return exif_orientation(&exif);
        }
        at += 8 + len + (len & 1);
    }
    return 0;
}

static stk_status webp_begin(void *own, const struct image_task *task, struct image_stored *stored,
                             struct stk_error *err)
{
    struct webp_state *state = own;
    state->task = task;
    VP8StatusCode code = WebPGetFeatures(task->bytes.data, task->bytes.len, &state->features);
    if (code != VP8_STATUS_OK)
        return webp_fail(code, err);
    if (state->features.has_animation) {
        fail(err, STK_UNSUPPORTED, "the WebP image is animated: it has many frames, not one");
        fail_remedy(err, "store one frame as an image, or all of them as a video");
        return STK_UNSUPPORTED;
    }
    stored->width = state->features.width;
    stored->height = state->features.height;
    stored->channels = state->features.has_alpha ? 4 : 3;
    stored->bits = 8;
    stored->orientation = webp_orientation(&task->bytes);
    return STK_OK;
}

/* Grows [*at, *at + *len) by the margin within [0, size), and to an even beginning. */
static void webp_widen(int32_t size, int32_t *at, int32_t *len)
{
    int32_t begin = *at > MARGIN ? (*at - MARGIN) & ~1 : 0;
    int32_t end = *at + *len;
    end = size - end > MARGIN ? end + MARGIN : size;
    *at = begin;
    *len = end - begin;
}

static stk_status webp_decode(struct webp_state *state, const struct image_want *wide, uint8_t *to,
                              const struct image_view *view, struct stk_error *err)
{
    const struct stk_bytes *bytes = &state->task->bytes;
    int relaxed = state->task->limits.relaxed;
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return fail(err, STK_UNSUPPORTED, "libwebp is of another version than its headers");
    size_t size = (size_t)view->stride * (size_t)wide->height;
    config.options.use_cropping = 1;
    config.options.crop_left = wide->x;
    config.options.crop_top = wide->y;
    config.options.crop_width = wide->width;
    config.options.crop_height = wide->height;
    config.output.colorspace = view->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to;
    config.output.u.RGBA.stride = (int)view->stride;
    config.output.u.RGBA.size = size;
    if (relaxed)
        memset(to, GRAY, size);
    VP8StatusCode code = WebPDecode(bytes->data, bytes->len, &config);
    WebPFreeDecBuffer(&config.output);
    if (code == VP8_STATUS_OK)
        return STK_OK;
    stk_status status = webp_fail(code, err);
    return relaxed && (status == STK_TRUNCATED || status == STK_CORRUPT) ? STK_OK : status;
}

static stk_status webp_read(void *own, const struct image_want *box, struct image_buffer *buffer,
                            struct image_view *view, struct stk_error *err)
{
    struct webp_state *state = own;
    struct image_want wide = *box;
    webp_widen(state->features.width, &wide.x, &wide.width);
    webp_widen(state->features.height, &wide.y, &wide.height);
    view->channels = box->channels == IMAGE_CHANNELS_RGBA ||
                             (box->channels == IMAGE_CHANNELS_KEEP && state->features.has_alpha)
                         ? 4
                         : 3;
    stk_status status =
        image_buffer_room(buffer, wide.width, wide.height, view->channels, &view->stride, err);
    if (!status)
        status = webp_decode(state, &wide, buffer->data, view, err);
    if (!status && image_task_is_late(state->task)) /* the library cannot be stopped midway */
        status = image_task_fail_late(state->task, err);
    if (status)
        return status;
    view->pixels = buffer->data + (box->y - wide.y) * view->stride +
                   (int64_t)(box->x - wide.x) * view->channels;
    view->width = box->width;
    view->height = box->height;
    view->x1 = box->width;
    view->y1 = box->height;
    return STK_OK;
}

const struct image_format webp_image_format = {
    .name = "webp",
    .open = webp_open,
    .close = webp_close,
    .held = webp_held,
    .begin = webp_begin,
    .read = webp_read,
};
