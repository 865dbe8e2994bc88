#include "json_out.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void add_string(FILE *stream, const uint8_t *data, size_t len);

static void begin(struct json_out *json, const char *name)
{
    if (json->separate)
        fputs(", ", json->stream);
    if (name) {
        add_string(json->stream, (const uint8_t *)name, strlen(name));
        fputs(": ", json->stream);
    }
    json->separate = 1;
}

/* The length of the well-formed UTF-8 sequence at data (RFC 3629, table in section 4), 0 when it is
 * none. */
static size_t utf8_length(const uint8_t *data, size_t len)
{
    uint8_t first = data[0];
    uint8_t low = 0x80, high = 0xBF;
    size_t need = first >= 0xC2 && first <= 0xDF   ? 2
                  : first >= 0xE0 && first <= 0xEF ? 3
                  : first >= 0xF0 && first <= 0xF4 ? 4
                                                   : 0;

    if (first == 0xE0)
        low = 0xA0;
    else if (first == 0xED)
        high = 0x9F;
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F;
    if (need == 0 || len < need || data[1] < low || data[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++)
        if ((data[i] & 0xC0) != 0x80)
            return 0;
    return need;
}

static void add_ascii(FILE *stream, uint8_t byte)
{
    if (byte == '"' || byte == '\\')
        fprintf(stream, "\\%c", byte);
    else if (byte < 0x20 || byte == 0x7F)
        fprintf(stream, "\\u%04x", byte);
    else
        fputc(byte, stream);
}

static void add_string(FILE *stream, const uint8_t *data, size_t len)
{
    fputc('"', stream);
    for (size_t i = 0; i < len;) {
        size_t sequence = data[i] < 0x80 ? 1 : utf8_length(data + i, len - i);

        if (data[i] < 0x80)
            add_ascii(stream, data[i]);
        else if (sequence)
            fwrite(data + i, 1, sequence, stream);
        else
            fputs("\xEF\xBF\xBD", stream);
        i += sequence ? sequence : 1;
    }
    fputc('"', stream);
}

void json_out_object(struct json_out *json, const char *name)
{
    begin(json, name);
    fputc('{', json->stream);
    json->separate = 0;
}

void json_out_array(struct json_out *json, const char *name)
{
    begin(json, name);
    fputc('[', json->stream);
    json->separate = 0;
}

void json_out_end_object(struct json_out *json)
{
    fputc('}', json->stream);
    json->separate = 1;
}

void json_out_end_array(struct json_out *json)
{
    fputc(']', json->stream);
    json->separate = 1;
}

void json_out_text(struct json_out *json, const char *name, const char *text)
{
    begin(json, name);
    if (text)
        add_string(json->stream, (const uint8_t *)text, strlen(text));
    else
        fputs("null", json->stream);
}

void json_out_bytes(struct json_out *json, const char *name, struct stk_bytes bytes)
{
    begin(json, name);
    add_string(json->stream, bytes.data, bytes.len);
}

void json_out_number(struct json_out *json, const char *name, uint64_t number)
{
    begin(json, name);
    fprintf(json->stream, "%" PRIu64, number);
}

void json_out_place(struct json_out *json, const char *name, uint64_t number)
{
    begin(json, name);
    if (number == UINT64_MAX)
        fputs("null", json->stream);
    else
        fprintf(json->stream, "%" PRIu64, number);
}

void json_out_real(struct json_out *json, const char *name, double real)
{
    begin(json, name);
    if (isfinite(real))
        fprintf(json->stream, "%.9g", real);
    else
        fputs("null", json->stream);
}

void json_out_bool(struct json_out *json, const char *name, int truth)
{
    begin(json, name);
    fputs(truth ? "true" : "false", json->stream);
}

void json_out_end_line(struct json_out *json)
{
    fputc('\n', json->stream);
    json->separate = 0;
}
