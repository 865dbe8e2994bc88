#include "watch/json_pen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"

static void begin(struct json_pen *pen, const char *name)
{
    if (pen->comma)
        text_add(&pen->text, ",", 1);
    pen->comma = 1;
    if (!name)
        return;
    json_add_string(&pen->text, name, strlen(name));
    text_add(&pen->text, ":", 1);
}

void json_pen_open(struct json_pen *pen, const char *name, char bracket)
{
    begin(pen, name);
    text_add(&pen->text, &bracket, 1);
    pen->comma = 0;
}

void json_pen_close(struct json_pen *pen, char bracket)
{
    text_add(&pen->text, &bracket, 1);
    pen->comma = 1;
}

void json_pen_null(struct json_pen *pen, const char *name)
{
    begin(pen, name);
    text_add(&pen->text, "null", 4);
}

void json_pen_bool(struct json_pen *pen, const char *name, int value)
{
    begin(pen, name);
    text_format(&pen->text, "%s", value ? "true" : "false");
}

void json_pen_u64(struct json_pen *pen, const char *name, uint64_t value)
{
    begin(pen, name);
    text_format(&pen->text, "%" PRIu64, value);
}

void json_pen_i64(struct json_pen *pen, const char *name, int64_t value)
{
    begin(pen, name);
    text_format(&pen->text, "%" PRId64, value);
}

void json_pen_count(struct json_pen *pen, const char *name, int64_t value)
{
    if (value < 0)
        json_pen_null(pen, name);
    else
        json_pen_i64(pen, name, value);
}

void json_pen_double(struct json_pen *pen, const char *name, double value, int digits)
{
    double scale = pow(10.0, digits);
    double rounded = round(value * scale) / scale;
    begin(pen, name);
    json_add_double(&pen->text, rounded == 0 ? 0.0 : rounded); /* no "-0" */
}

void json_pen_seconds(struct json_pen *pen, const char *name, uint64_t ns)
{
    uint64_t micro = ns / 1000 + (ns % 1000 >= 500);
    char digits[8];
    begin(pen, name);
    text_format(&pen->text, "%" PRIu64, micro / 1000000);
    if (micro % 1000000 == 0)
        return;
    snprintf(digits, sizeof digits, "%06u", (unsigned)(micro % 1000000));
    for (size_t len = 6; digits[len - 1] == '0'; len--)
        digits[len - 1] = '\0';
    text_format(&pen->text, ".%s", digits);
}

void json_pen_text(struct json_pen *pen, const char *name, const char *value)
{
    begin(pen, name);
    json_add_string(&pen->text, value, strlen(value));
}

void json_pen_known(struct json_pen *pen, const char *name, const char *value)
{
    if (value && value[0])
        json_pen_text(pen, name, value);
    else
        json_pen_null(pen, name);
}
