#include "base/fail.h"
#include "codec/codec.h"

#include <string.h>

/* Whether bytes are one JSON value (RFC 8259), and NaN, Infinity and -Infinity as Python writes
 * them. base/json.h is for small objects of ours: it refuses what is legal in a user's value
 * (repeated names, a bare number). */

extern const struct codec_ops text_codec;

#define JSON_MAX_DEPTH 512

struct cursor {
    const uint8_t *begin, *at, *end;
    uint32_t depth;
};

static int json_value(struct cursor *cursor);

static void json_space(struct cursor *cursor)
{
    while (cursor->at < cursor->end && memchr(" \t\r\n", *cursor->at, 4))
        cursor->at++;
}

static int json_take(struct cursor *cursor, uint8_t byte)
{
    json_space(cursor);
    if (cursor->at == cursor->end || *cursor->at != byte)
        return 0;
    cursor->at++;
    return 1;
}

static int json_word(struct cursor *cursor, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(cursor->end - cursor->at) < len || memcmp(cursor->at, word, len))
        return 0;
    cursor->at += len;
    return 1;
}

static int json_digits(struct cursor *cursor)
{
    const uint8_t *begin = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9')
        cursor->at++;
    return cursor->at > begin;
}

static int json_number(struct cursor *cursor)
{
    json_word(cursor, "-");
    if (json_word(cursor, "Infinity"))
        return 1;
    if (!json_word(cursor, "0") && !json_digits(cursor))
        return 0;
    if (json_word(cursor, ".") && !json_digits(cursor))
        return 0;
    if (json_word(cursor, "e") || json_word(cursor, "E")) {
        if (!json_word(cursor, "+"))
            json_word(cursor, "-");
        return json_digits(cursor);
    }
    return 1;
}

static int json_escape(struct cursor *cursor)
{
    if (cursor->at == cursor->end)
        return 0;
    uint8_t byte = *cursor->at++;
    if (byte != 'u')
        return byte && strchr("\"\\/bfnrt", byte) != NULL;
    for (int i = 0; i < 4; i++, cursor->at++)
        if (cursor->at == cursor->end || !*cursor->at ||
            !strchr("0123456789abcdefABCDEF", *cursor->at))
            return 0;
    return 1;
}

static int json_string(struct cursor *cursor)
{
    if (!json_take(cursor, '"'))
        return 0;
    while (cursor->at < cursor->end && *cursor->at >= 0x20) {
        uint8_t byte = *cursor->at++;
        if (byte == '"')
            return 1;
        if (byte == '\\' && !json_escape(cursor))
            return 0;
    }
    return 0;
}

static int json_member(struct cursor *cursor)
{
    return json_string(cursor) && json_take(cursor, ':') && json_value(cursor);
}

static int json_items(struct cursor *cursor, uint8_t close, int (*item)(struct cursor *))
{
    if (json_take(cursor, close))
        return 1;
    do {
        if (!item(cursor))
            return 0;
    } while (json_take(cursor, ','));
    return json_take(cursor, close);
}

static int json_value(struct cursor *cursor)
{
    json_space(cursor);
    if (cursor->at == cursor->end || cursor->depth == JSON_MAX_DEPTH)
        return 0;
    int good;
    cursor->depth++;
    switch (*cursor->at) {
    case '{':
        cursor->at++;
        good = json_items(cursor, '}', json_member);
        break;
    case '[':
        cursor->at++;
        good = json_items(cursor, ']', json_value);
        break;
    case '"':
        good = json_string(cursor);
        break;
    default:
        good = json_word(cursor, "true") || json_word(cursor, "false") ||
               json_word(cursor, "null") || json_word(cursor, "NaN") || json_number(cursor);
    }
    cursor->depth--;
    return good;
}

static stk_status json_check(const struct stk_bytes *bytes, struct stk_error *err)
{
    stk_status status = text_codec.check(bytes, err);
    if (status)
        return status;
    struct cursor cursor = {
        .begin = bytes->data, .at = bytes->data, .end = bytes->data + bytes->len};
    int good = json_value(&cursor);
    json_space(&cursor);
    if (good && cursor.at == cursor.end)
        return STK_OK;
    return fail(err, STK_CORRUPT, "not JSON at its byte %zu", (size_t)(cursor.at - cursor.begin));
}

static const char *const suffixes[] = {"json", "jsn", NULL};

const struct codec_ops json_codec = {
    .name = "json",
    .kind = STK_KIND_JSON,
    .suffixes = suffixes,
    .check = json_check,
};
