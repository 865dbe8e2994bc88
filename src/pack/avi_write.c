#include "pack/avi_write.h"

#include <assert.h>
#include <string.h>

#include "pack/little_endian.h"

/* Offsets in the head, and sizes of its parts: "RIFF" size "AVI " LIST(hdrl: avih, LIST(strl: strh,
 * strf)) LIST(movi ...). */
enum {
    CHUNK = 8, /* a name and a size */
    LIST_HEAD = 12,
    AVIH = 56,
    STRH = 56,
    STRF = 40,
    STRL = 4 + CHUNK + STRH + CHUNK + STRF,
    HDRL = 4 + CHUNK + AVIH + CHUNK + STRL,
    AT_AVIH = LIST_HEAD + LIST_HEAD + CHUNK,
    AT_STRH = AT_AVIH + AVIH + LIST_HEAD + CHUNK,
    AT_STRF = AT_STRH + STRH + CHUNK,
    AT_MOVI = AT_STRF + STRF,
    HEAD = AT_MOVI + LIST_HEAD,
    INDEX_ENTRY = 16
};

#define HAS_INDEX 0x10u
#define KEY_FRAME 0x10u

static uint8_t *put_name(uint8_t *to, const char *name, uint32_t size)
{
    memcpy(to, name, 4);
    little_put(to + 4, size, 4);
    return to + CHUNK;
}

static void put_avih(uint8_t *to, const struct avi_writer *writer)
{
    const struct avi_format *format = &writer->format;

    little_put(to, UINT64_C(1000000) * format->scale / format->rate, 4);
    little_put(to + 4, (uint64_t)writer->largest * format->rate / format->scale, 4);
    little_put(to + 12, HAS_INDEX, 4);
    little_put(to + 16, writer->frames, 4);
    little_put(to + 24, 1, 4); /* streams */
    little_put(to + 28, writer->largest, 4);
    little_put(to + 32, format->width, 4);
    little_put(to + 36, format->height, 4);
}

static void put_strh(uint8_t *to, const struct avi_writer *writer)
{
    memcpy(to, "vidsMJPG", 8);
    little_put(to + 20, writer->format.scale, 4);
    little_put(to + 24, writer->format.rate, 4);
    little_put(to + 32, writer->frames, 4);
    little_put(to + 36, writer->largest, 4);
    little_put(to + 40, UINT32_MAX, 4); /* quality: not said */
    little_put(to + 52, writer->format.width, 2);
    little_put(to + 54, writer->format.height, 2);
}

/* BITMAPINFOHEADER. */
static void put_strf(uint8_t *to, const struct avi_format *format)
{
    little_put(to, STRF, 4);
    little_put(to + 4, format->width, 4);
    little_put(to + 8, format->height, 4);
    little_put(to + 12, 1, 2);
    little_put(to + 14, 24, 2);
    memcpy(to + 16, "MJPG", 4);
    little_put(to + 20, (uint64_t)format->width * format->height * 3, 4);
}

/* movi: bytes of the frames' chunks; all: of the file. */
static void put_head(uint8_t head[HEAD], const struct avi_writer *writer, size_t movi, size_t all)
{
    memset(head, 0, HEAD);
    memcpy(put_name(head, "RIFF", (uint32_t)(all - CHUNK)), "AVI ", 4);
    memcpy(put_name(head + LIST_HEAD, "LIST", HDRL), "hdrl", 4);
    put_avih(put_name(head + AT_AVIH - CHUNK, "avih", AVIH), writer);
    memcpy(put_name(head + AT_AVIH + AVIH, "LIST", STRL), "strl", 4);
    put_strh(put_name(head + AT_STRH - CHUNK, "strh", STRH), writer);
    put_strf(put_name(head + AT_STRF - CHUNK, "strf", STRF), &writer->format);
    memcpy(put_name(head + AT_MOVI, "LIST", (uint32_t)(movi + 4)), "movi", 4);
}

void avi_writer_begin(struct avi_writer *writer, const struct avi_format *format, struct text *to)
{
    static const char zeros[HEAD];

    assert(format->rate && format->scale);
    writer->to = to;
    writer->format = *format;
    writer->index.len = 0;
    writer->first = to->len;
    writer->frames = writer->largest = 0;
    text_add(to, zeros, HEAD);
}

void avi_writer_begin_frame(struct avi_writer *writer)
{
    writer->frame = writer->to->len;
    text_add(writer->to, "00dc\0\0\0\0", CHUNK);
}

void avi_writer_end_frame(struct avi_writer *writer)
{
    struct text *to = writer->to;
    uint8_t entry[INDEX_ENTRY];

    if (to->failed)
        return;
    uint32_t size = (uint32_t)(to->len - writer->frame - CHUNK);
    little_put((uint8_t *)to->data + writer->frame + 4, size, 4);
    if (size % 2)
        text_add(to, "", 1);
    put_name(entry, "00dc", KEY_FRAME);
    little_put(entry + 8, writer->frame - writer->first - AT_MOVI - CHUNK, 4);
    little_put(entry + 12, size, 4);
    text_add(&writer->index, (const char *)entry, INDEX_ENTRY);
    writer->largest = size > writer->largest ? size : writer->largest;
    writer->frames++;
}

void avi_writer_end(struct avi_writer *writer)
{
    struct text *to = writer->to;
    size_t movi = to->len - writer->first - HEAD;
    uint8_t chunk[CHUNK];

    put_name(chunk, "idx1", (uint32_t)writer->index.len);
    text_add(to, (const char *)chunk, CHUNK);
    text_add(to, writer->index.data, writer->index.len);
    to->failed |= writer->index.failed;
    if (!to->failed)
        put_head((uint8_t *)to->data + writer->first, writer, movi, to->len - writer->first);
}

void avi_writer_reset(struct avi_writer *writer)
{
    text_free(&writer->index);
    *writer = (struct avi_writer){0};
}
