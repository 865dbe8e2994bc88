#include "base/json.h"

#include <jansson.h>

#include "base/fail.h"
#include "base/memory.h"

struct json {
    json_t *root;
};

stk_status json_parse(struct json **out, const char *text, size_t len, struct stk_error *err)
{
    json_error_t error;
    *out = NULL;
    struct json *json = memory_zero(1, sizeof *json);
    if (!json)
        return fail_memory(err, sizeof *json);
    json->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (!json->root) {
        stk_status status =
            json_error_code(&error) == json_error_out_of_memory ? STK_MEMORY : STK_CORRUPT;
        json_free(json);
        fail(err, status, "not valid JSON: %s (line %d)", error.text, error.line);
        fail_at(err, NULL, error.position < 0 ? STK_NOWHERE : (uint64_t)error.position);
        return status;
    }
    if (!json_is_object(json->root)) {
        json_free(json);
        return fail(err, STK_CORRUPT, "JSON that is not an object");
    }
    *out = json;
    return STK_OK;
}

void json_free(struct json *json)
{
    if (!json)
        return;
    json_decref(json->root);
    memory_free(json);
}

int json_get_u64(const struct json *json, const char *name, uint64_t *out)
{
    const json_t *member = json_object_get(json->root, name);
    if (!json_is_integer(member) || json_integer_value(member) < 0)
        return 0;
    *out = (uint64_t)json_integer_value(member);
    return 1;
}

int json_get_text(const struct json *json, const char *name, const char **out)
{
    const json_t *member = json_object_get(json->root, name);
    if (!json_is_string(member))
        return 0;
    *out = json_string_value(member);
    return 1;
}

/* Bytes of the well-formed UTF-8 sequence at data, 0 when there is none (RFC 3629, section 4:
 * no overlong forms, no surrogates, nothing over U+10FFFF). */
static size_t utf8_length(const unsigned char *data, size_t len)
{
    unsigned char lead = data[0], low = 0x80, top = 0xbf;
    size_t want = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead > 0xf4 || want > len)
        return 0;
    if (lead == 0xe0)
        low = 0xa0;
    else if (lead == 0xed)
        top = 0x9f;
    else if (lead == 0xf0)
        low = 0x90;
    else if (lead == 0xf4)
        top = 0x8f;
    for (size_t i = 1; i < want; i++) {
        if (data[i] < low || data[i] > top)
            return 0;
        low = 0x80;
        top = 0xbf;
    }
    return want;
}

static void add_escape(struct text *text, unsigned char byte)
{
    switch (byte) {
    case '"':
        text_add(text, "\\\"", 2);
        break;
    case '\\':
        text_add(text, "\\\\", 2);
        break;
    case '\n':
        text_add(text, "\\n", 2);
        break;
    case '\t':
        text_add(text, "\\t", 2);
        break;
    default:
        text_format(text, "\\u%04x", byte);
    }
}

void json_add_string(struct text *text, const char *data, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)data;
    size_t plain = 0; /* bytes before i that wait to be copied as they are */
    text_add(text, "\"", 1);
    for (size_t i = 0; i < len;) {
        size_t sequence = utf8_length(bytes + i, len - i);
        int escape = bytes[i] < 0x20 || bytes[i] == '"' || bytes[i] == '\\';
        if (sequence && !escape) {
            plain += sequence;
            i += sequence;
            continue;
        }
        text_add(text, data + i - plain, plain);
        plain = 0;
        if (escape)
            add_escape(text, bytes[i]);
        else
            text_add(text, "\xef\xbf\xbd", 3);
        i++;
    }
    text_add(text, data + len - plain, plain);
    text_add(text, "\"", 1);
}
