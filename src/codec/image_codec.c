#include "codec/image_codec.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#include "codec/image_format.h"
#include "codec/image_turn.h"

#define DEFAULT_PIXELS 178956970 /* twice what Pillow warns of: a bomb for it and for us */
#define DEFAULT_SCANS 500
#define DEFAULT_NS ((int64_t)10000000000)
#define SLACK 128 /* readable bytes behind the last pixel, and where a format may begin later */

static const struct image_format *const formats[] = {&jpeg_image_format, &png_image_format,
                                                     &webp_image_format};
#define FORMAT_COUNT (sizeof formats / sizeof formats[0])

/* What bytes look like by their beginning. Those with a format can be decoded. */
static const struct {
    const struct image_format *const *format; /* NULL: only known by sight */
    const char *words;
    uint32_t offset, len;
    const char *magic;
} looks[] = {
    {&formats[0], "a JPEG image", 0, 2, "\xff\xd8"},
    {&formats[1], "a PNG image", 0, 4, "\x89PNG"},
    {&formats[2], "a WebP image", 8, 4, "WEBP"},
    {NULL, "a GIF image", 0, 4, "GIF8"},
    {NULL, "a BMP image", 0, 2, "BM"},
    {NULL, "a TIFF image", 0, 4, "II*\0"},
    {NULL, "a TIFF image", 0, 4, "MM\0*"},
    {NULL, "an AVIF image", 4, 8, "ftypavif"},
    {NULL, "an HEIC image", 4, 7, "ftyphei"},
    {NULL, "a JPEG 2000 image", 4, 4, "jP  "},
    {NULL, "a JPEG XL image", 0, 2, "\xff\x0a"},
    {NULL, "a PDF document", 0, 4, "%PDF"},
    {NULL, "a zip archive", 0, 4, "PK\x03\x04"},
    {NULL, "gzip data", 0, 2, "\x1f\x8b"},
    {NULL, "zstd data", 0, 4, "\x28\xb5\x2f\xfd"},
    {NULL, "a NumPy array", 0, 6, "\x93NUMPY"},
    {NULL, "a Git LFS pointer, not the file itself", 0, 23, "version https://git-lfs"},
};

struct image_decoder {
    struct image_task task;
    const struct image_format *format; /* of the image that was begun; NULL: none */
    struct image_stored stored;
    void *states[FORMAT_COUNT]; /* made when a format is met first */
    struct image_buffer pixels; /* as decoded */
    struct image_buffer turned; /* upright, where that differs */
};

/* ---- what the formats share ---------------------------------------------------------------- */

stk_status image_buffer_room(struct image_buffer *buffer, int32_t width, int32_t height,
                             int32_t channels, int64_t *stride, struct stk_error *err)
{
    uint64_t row = ((uint64_t)width * (uint64_t)channels + 63) & ~(uint64_t)63, bytes;
    if (!checked_mul(row, (uint64_t)height, &bytes) || !checked_add(bytes, SLACK, &bytes))
        return fail_memory(err, UINT64_MAX);
    *stride = (int64_t)row;
    if (bytes <= buffer->size)
        return STK_OK;
    image_buffer_free(buffer);
    buffer->data = memory_map(bytes);
    if (!buffer->data)
        return fail_memory(err, bytes);
    buffer->size = bytes;
    return STK_OK;
}

void image_buffer_free(struct image_buffer *buffer)
{
    memory_unmap(buffer->data, buffer->size);
    *buffer = (struct image_buffer){0};
}

static int64_t thread_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int image_task_is_late(const struct image_task *task)
{
    if (task->limits.stop && atomic_load_explicit(task->limits.stop, memory_order_relaxed))
        return 1;
    /* The wall's clock is the cheap one, and never behind the thread's. */
    return clock_now() - task->began > task->limits.max_ns &&
           thread_now() - task->cpu_began > task->limits.max_ns;
}

stk_status image_task_fail_late(const struct image_task *task, struct stk_error *err)
{
    fail(err, STK_LIMIT, "decoding the image took longer than %g s",
         (double)task->limits.max_ns / 1e9);
    fail_remedy(err, "store it smaller, or as a baseline JPEG");
    return STK_LIMIT;
}

stk_status image_task_check_size(const struct image_task *task, uint64_t width, uint64_t height,
                                 struct stk_error *err)
{
    uint64_t pixels;
    if (width == 0 || height == 0)
        return image_fail(err, STK_CORRUPT, "the image is %" PRIu64 " x %" PRIu64 " pixels large",
                          width, height);
    if (width <= INT32_MAX && height <= INT32_MAX && checked_mul(width, height, &pixels) &&
        pixels <= task->limits.max_pixels)
        return STK_OK;
    fail(err, STK_LIMIT,
         "the image says it has %" PRIu64 " x %" PRIu64 " pixels; more than %" PRIu64
         " are not decoded",
         width, height, task->limits.max_pixels);
    fail_remedy(err, "store it smaller, or raise the limit of pixels");
    return STK_LIMIT;
}

stk_status image_fail(struct stk_error *err, stk_status status, const char *format, ...)
{
    char words[256];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    fail(err, status, "%s", words);
    fail_remedy(err, "get the image again from where it came, or let the loader replace bad "
                     "samples");
    return status;
}

/* ---- telling formats apart ----------------------------------------------------------------- */

static int is_page(const struct stk_bytes *bytes)
{
    static const char *const tags[] = {"<!doctype html", "<html", "<head", "<body"};
    size_t at = 0;
    while (at < bytes->len && memchr(" \t\r\n\xef\xbb\xbf", bytes->data[at], 7))
        at++;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        size_t len = strlen(tags[i]);
        if (bytes->len - at >= len && !strncasecmp((const char *)bytes->data + at, tags[i], len))
            return 1;
    }
    return 0;
}

static const char *describe(const struct stk_bytes *bytes, const struct image_format **format)
{
    *format = NULL;
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        if (!checked_inside(looks[i].offset, looks[i].len, bytes->len) ||
            memcmp(bytes->data + looks[i].offset, looks[i].magic, looks[i].len) != 0)
            continue;
        if (looks[i].format)
            *format = *looks[i].format;
        return looks[i].words;
    }
    if (is_page(bytes))
        return "an HTML page: was a download refused?";
    return "no image format known here";
}

static stk_status find_format(const struct stk_bytes *bytes, const struct image_format **format,
                              struct stk_error *err)
{
    *format = NULL;
    if (bytes->len == 0)
        return image_fail(err, STK_CORRUPT, "the image has 0 bytes");
    const char *words = describe(bytes, format);
    if (!*format)
        return image_fail(err, STK_CORRUPT,
                          "the bytes are neither JPEG, PNG nor WebP; they look like %s", words);
    if ((*format)->remedy) {
        fail(err, STK_UNSUPPORTED, "%s cannot be decoded: this build has no library for it", words);
        fail_remedy(err, "%s", (*format)->remedy);
        return STK_UNSUPPORTED;
    }
    return STK_OK;
}

const char *image_format_at(uint32_t row, const char **remedy)
{
    *remedy = row < FORMAT_COUNT ? formats[row]->remedy : NULL;
    return row < FORMAT_COUNT ? formats[row]->name : NULL;
}

/* ---- decoder ------------------------------------------------------------------------------- */

stk_status image_decoder_new(struct image_decoder **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    return *out ? STK_OK : fail_memory(err, sizeof **out);
}

void image_decoder_free(struct image_decoder *decoder)
{
    if (!decoder)
        return;
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (formats[i]->close)
            formats[i]->close(decoder->states[i]);
    image_buffer_free(&decoder->pixels);
    image_buffer_free(&decoder->turned);
    memory_free(decoder);
}

uint64_t image_decoder_bytes(const struct image_decoder *decoder)
{
    uint64_t bytes = sizeof *decoder + decoder->pixels.size + decoder->turned.size;
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        if (decoder->states[i])
            bytes += formats[i]->held(decoder->states[i]);
    return bytes;
}

static void task_init(struct image_task *task, const struct stk_bytes *bytes,
                      const struct image_limits *limits)
{
    *task = (struct image_task){.bytes = *bytes, .began = clock_now(), .cpu_began = thread_now()};
    if (limits)
        task->limits = *limits;
    if (!task->limits.max_pixels)
        task->limits.max_pixels = DEFAULT_PIXELS;
    if (!task->limits.max_scans)
        task->limits.max_scans = DEFAULT_SCANS;
    if (!task->limits.max_ns)
        task->limits.max_ns = DEFAULT_NS;
}

static size_t format_row(const struct image_format *format)
{
    size_t row = 0;
    while (formats[row] != format)
        row++;
    return row;
}

stk_status image_begin(struct image_decoder *decoder, const struct stk_bytes *bytes,
                       const struct image_limits *limits, struct image_header *header,
                       struct stk_error *err)
{
    const struct image_format *format;
    struct image_stored *stored = &decoder->stored;
    *header = (struct image_header){0};
    *stored = (struct image_stored){0};
    decoder->format = NULL;
    task_init(&decoder->task, bytes, limits);
    stk_status status = find_format(bytes, &format, err);
    if (status)
        return status;
    void **state = &decoder->states[format_row(format)];
    if (!*state)
        status = format->open(state, err);
    if (!status)
        status = format->begin(*state, &decoder->task, stored, err);
    if (!status)
        status = image_task_check_size(&decoder->task, (uint64_t)stored->width,
                                       (uint64_t)stored->height, err);
    if (status)
        return status;
    struct image_turn turn = image_turn_of(stored->orientation);
    header->format = format->name;
    header->width = turn.swap ? stored->height : stored->width;
    header->height = turn.swap ? stored->width : stored->height;
    header->channels = stored->channels;
    header->bits = stored->bits;
    decoder->format = format;
    return STK_OK;
}

static int want_is_inside(const struct image_want *want, int32_t width, int32_t height)
{
    return want->x >= 0 && want->y >= 0 && want->width > 0 && want->height > 0 &&
           want->width <= width - want->x && want->height <= height - want->y;
}

/* The same box as it is stored. */
static void want_turned(const struct image_want *want, const struct image_turn *turn,
                        const struct image_stored *stored, struct image_want *out)
{
    struct image_turn_box box = {want->x, want->y, want->width, want->height};
    image_turn_box(turn, stored->width, stored->height, &box);
    *out = *want;
    out->x = box.x;
    out->y = box.y;
    out->width = box.width;
    out->height = box.height;
    out->least_width = turn->swap ? want->least_height : want->least_width;
    out->least_height = turn->swap ? want->least_width : want->least_height;
}

/* Luminance as ITU-R 601-2 has it, in 16 bits of fraction. In place: a row shrinks, so what is
 * written lies before what is read. */
static void make_gray(struct image_view *view, uint8_t *pixels)
{
    for (int32_t y = 0; y < view->height; y++) {
        uint8_t *row = pixels + y * view->stride;
        const uint8_t *from = row;
        for (int32_t x = 0; x < view->width; x++, from += view->channels)
            row[x] =
                (uint8_t)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    }
    view->channels = 1;
}

stk_status image_read(struct image_decoder *decoder, const struct image_want *want,
                      struct image_view *view, struct stk_error *err)
{
    const struct image_format *format = decoder->format;
    const struct image_stored *stored = &decoder->stored;
    struct image_want box;
    *view = (struct image_view){0};
    decoder->format = NULL;
    if (!format)
        return fail(err, STK_USAGE, "no image was begun, or it was read already");
    struct image_turn turn = image_turn_of(stored->orientation);
    want_turned(want, &turn, stored, &box);
    if (!want_is_inside(&box, stored->width, stored->height))
        return fail(err, STK_USAGE, "the box does not lie in the image");
    stk_status status =
        format->read(decoder->states[format_row(format)], &box, &decoder->pixels, view, err);
    if (status)
        goto done;
    if (want->channels == IMAGE_CHANNELS_GRAY && view->channels != 1)
        make_gray(view, decoder->pixels.data + (view->pixels - decoder->pixels.data));
    if (image_turn_is_none(&turn))
        return STK_OK;
    struct image_view raw = *view;
    int64_t stride;
    status = image_buffer_room(&decoder->turned, turn.swap ? raw.height : raw.width,
                               turn.swap ? raw.width : raw.height, raw.channels, &stride, err);
    if (!status)
        image_turn_pixels(&turn, &raw, decoder->turned.data, stride, view);
done:
    if (status) { /* what a damaged header asked for is not kept */
        *view = (struct image_view){0};
        image_buffer_free(&decoder->pixels);
        image_buffer_free(&decoder->turned);
    }
    return status;
}
