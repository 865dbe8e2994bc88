#include "base/fail.h"
#include "codec/codec.h"

/* How many bytes a character beginning with this byte has, and the least code point that may be
 * written so (a smaller one is overlong); 0: no character begins so. */
static uint32_t text_lead(uint8_t byte, uint32_t *least)
{
    *least = byte < 0x80 ? 0 : byte < 0xe0 ? 0x80 : byte < 0xf0 ? 0x800 : 0x10000;
    if (byte < 0x80)
        return 1;
    if (byte < 0xc2 || byte > 0xf4)
        return 0;
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Bytes of the character at data, or 0 when there is none (RFC 3629: no surrogates, nothing over
 * U+10FFFF, shortest form only). */
static uint32_t text_character(const uint8_t *data, size_t len)
{
    uint32_t least;
    uint32_t count = text_lead(data[0], &least);
    if (count <= 1)
        return count;
    if (count > len)
        return 0;
    uint32_t code = data[0] & (0x7fu >> count);
    for (uint32_t i = 1; i < count; i++) {
        if ((data[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (data[i] & 0x3f);
    }
    if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return 0;
    return count;
}

static stk_status text_check(const struct stk_bytes *bytes, struct stk_error *err)
{
    for (size_t at = 0; at < bytes->len;) {
        uint32_t count = text_character(bytes->data + at, bytes->len - at);
        if (!count)
            return fail(err, STK_CORRUPT, "the text is not UTF-8 at its byte %zu", at);
        at += count;
    }
    return STK_OK;
}

static const char *const suffixes[] = {"txt", "text", "transcript", NULL};

const struct codec_ops text_codec = {
    .name = "text",
    .kind = STK_KIND_TEXT,
    .suffixes = suffixes,
    .check = text_check,
};
