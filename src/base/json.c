#include "base/json.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

/* A struct json is a json_t under another name: no other file sees the library. */
static const json_t *inside(const struct json *value)
{
    return (const json_t *)value;
}

static const struct json *outside(const json_t *value)
{
    return (const struct json *)value;
}

stk_status json_parse(struct json **out, const char *text, size_t len, struct stk_error *err)
{
    json_error_t error;
    *out = NULL;
    json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        stk_status status =
            json_error_code(&error) == json_error_out_of_memory ? STK_MEMORY : STK_CORRUPT;
        fail(err, status, "not valid JSON: %s (line %d)", error.text, error.line);
        fail_at(err, NULL, error.position < 0 ? STK_NOWHERE : (uint64_t)error.position);
        return status;
    }
    if (!json_is_object(root)) {
        json_decref(root);
        return fail(err, STK_CORRUPT, "JSON that is not an object");
    }
    *out = (struct json *)root;
    return STK_OK;
}

void json_free(struct json *json)
{
    json_decref((json_t *)json);
}

int json_get_u64(const struct json *json, const char *name, uint64_t *out)
{
    return json_u64(json_member(json, name), out);
}

int json_get_text(const struct json *json, const char *name, const char **out)
{
    return json_text(json_member(json, name), out);
}

/* --- values ---------------------------------------------------------------------------------- */

enum json_kind json_kind(const struct json *value)
{
    static const enum json_kind kinds[] = {
        [JSON_OBJECT] = JSON_KIND_OBJECT, [JSON_ARRAY] = JSON_KIND_LIST,
        [JSON_STRING] = JSON_KIND_TEXT,   [JSON_INTEGER] = JSON_KIND_NUMBER,
        [JSON_REAL] = JSON_KIND_NUMBER,   [JSON_TRUE] = JSON_KIND_BOOL,
        [JSON_FALSE] = JSON_KIND_BOOL,    [JSON_NULL] = JSON_KIND_NULL,
    };
    return value ? kinds[json_typeof(inside(value))] : JSON_KIND_NONE;
}

const struct json *json_member(const struct json *object, const char *name)
{
    return outside(json_object_get(inside(object), name));
}

size_t json_count(const struct json *value)
{
    return json_is_array(inside(value)) ? json_array_size(inside(value))
                                        : json_object_size(inside(value));
}

const struct json *json_item(const struct json *list, size_t number)
{
    return outside(json_array_get(inside(list), number));
}

const struct json *json_each(const struct json *object, void **cursor, const char **name)
{
    json_t *members = (json_t *)object;
    *cursor = *cursor ? json_object_iter_next(members, *cursor) : json_object_iter(members);
    *name = json_object_iter_key(*cursor);
    return outside(json_object_iter_value(*cursor));
}

int json_u64(const struct json *value, uint64_t *out)
{
    if (!json_is_integer(inside(value)) || json_integer_value(inside(value)) < 0)
        return 0;
    *out = (uint64_t)json_integer_value(inside(value));
    return 1;
}

int json_i64(const struct json *value, int64_t *out)
{
    if (!json_is_integer(inside(value)))
        return 0;
    *out = json_integer_value(inside(value));
    return 1;
}

int json_double(const struct json *value, double *out)
{
    if (!json_is_number(inside(value)))
        return 0;
    *out = json_number_value(inside(value));
    return 1;
}

int json_bool(const struct json *value, int *out)
{
    if (!json_is_boolean(inside(value)))
        return 0;
    *out = json_is_true(inside(value));
    return 1;
}

int json_text(const struct json *value, const char **out)
{
    if (!json_is_string(inside(value)))
        return 0;
    *out = json_string_value(inside(value));
    return 1;
}

/* --- writing --------------------------------------------------------------------------------- */

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

void json_add_double(struct text *text, double number)
{
    char digits[40];
    if (!isfinite(number)) {
        text_add(text, "null", 4);
        return;
    }
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof(digits), "%.*g", precision, number);
        if (strtod(digits, NULL) == number)
            break;
    }
    const char *mark = localeconv()->decimal_point; /* the locale's may be a comma, or longer */
    char *point = strstr(digits, mark);
    if (point) {
        memmove(point + 1, point + strlen(mark), strlen(point + strlen(mark)) + 1);
        *point = '.';
    }
    text_add(text, digits, strlen(digits));
}
