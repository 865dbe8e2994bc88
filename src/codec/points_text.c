#include "codec/points_text.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/parse.h"

#define NUMBER_MOST 127 /* characters of a number */

/* ---- words --------------------------------------------------------------------------------- */

static inline int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

stk_status header_line(const struct stk_bytes *bytes, uint64_t *offset, struct text_span *line,
                       struct stk_error *err)
{
    uint64_t end = bytes->len < POINTS_HEADER_CAP ? bytes->len : POINTS_HEADER_CAP;
    const char *text = (const char *)bytes->data;
    const char *newline = *offset < end ? memchr(text + *offset, '\n', end - *offset) : NULL;
    if (!newline) {
        stk_status status =
            end < bytes->len
                ? fail(err, STK_LIMIT, "the header does not end within %u bytes", POINTS_HEADER_CAP)
                : fail(err, STK_TRUNCATED, "the bytes end within the header");
        fail_at(err, NULL, end);
        return status;
    }
    *line = (struct text_span){text + *offset, newline};
    *offset = (uint64_t)(newline + 1 - text);
    return STK_OK;
}

int span_word(struct text_span *span, struct text_span *word)
{
    const char *at = span->at, *end = span->end;
    while (at < end && is_space(*at))
        at++;
    word->at = at;
    while (at < end && !is_space(*at))
        at++;
    word->end = span->at = at;
    return word->end > word->at;
}

int span_is(const struct text_span *word, const char *text)
{
    size_t len = (size_t)(word->end - word->at);
    return len == strlen(text) && !memcmp(word->at, text, len);
}

int span_number(const struct text_span *word, uint64_t *out)
{
    return parse_u64(word->at, (size_t)(word->end - word->at), out);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* The C library's, for what the quick way leaves: it rounds rightly whatever is given. The "C"
 * locale is a constant of the library: nothing is allocated. */
static int float_slow(const struct text_span *word, float *out)
{
    char text[NUMBER_MOST + 1], *end = NULL;
    size_t len = (size_t)(word->end - word->at);
    if (len > NUMBER_MOST)
        return 0;
    for (size_t i = 0; i < len; i++) {
        text[i] = word->at[i];
        if (strchr("xXpP(", text[i])) /* hexadecimal, and NaNs with a load: C alone knows them */
            return 0;
    }
    text[len] = '\0';
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *out = strtof_l(text, &end, plain);
    freelocale(plain);
    return end == text + len;
}

/* digits[.digits][e[+-]digits] as mantissa * 10^exponent; 0: another form, or too many digits. */
static int float_split(const struct text_span *word, uint64_t *mantissa, int *exponent,
                       int *negative)
{
    const char *at = word->at, *end = word->end;
    uint64_t value = 0;
    int digits = 0, scale = 0, power = 0, sign = 1;
    *negative = *at == '-';
    at += *at == '-' || *at == '+';
    for (; at < end && (unsigned)(*at - '0') < 10; at++, digits++)
        value = value * 10 + (unsigned)(*at - '0');
    if (at < end && *at == '.') {
        const char *point = at++;
        for (; at < end && (unsigned)(*at - '0') < 10; at++, digits++)
            value = value * 10 + (unsigned)(*at - '0');
        scale = (int)(at - point) - 1;
    }
    if (digits == 0 || digits > 19)
        return 0;
    if (at < end && (*at | 32) == 'e') {
        at++;
        if (at < end && (*at == '-' || *at == '+'))
            sign = *at++ == '-' ? -1 : 1;
        const char *first = at;
        for (; at < end && (unsigned)(*at - '0') < 10 && power < 1000; at++)
            power = power * 10 + (*at - '0');
        if (at == first)
            return 0;
    }
    *mantissa = value;
    *exponent = sign * power - scale;
    return at == end;
}

/* The quick way: up to 19 digits and a power of ten that a double holds exactly give, by two
 * roundings, a double that is off by less than 2 of its last place. Rounded again it is the nearest
 * float, but where it lies that close to half-way between two floats, or where floats have fewer
 * bits: these go the slow way. */
int span_float(const struct text_span *word, float *out)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t mantissa, bits;
    int exponent, negative;
    if (word->at == word->end)
        return 0;
    if (!float_split(word, &mantissa, &exponent, &negative) || exponent < -22 || exponent > 22)
        return float_slow(word, out);
    double value = (double)mantissa;
    value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
    memcpy(&bits, &value, sizeof bits);
    int is_normal = value == 0 || (value >= 0x1p-126 && value < 0x1p127);
    if (!is_normal || (bits & 0x1fffffff) - 0x0ffffffc <= 8)
        return float_slow(word, out);
    *out = negative ? -(float)value : (float)value;
    return 1;
}

/* ---- lines --------------------------------------------------------------------------------- */

/* The next line that is not blank; `text` is moved behind it. 0: there is none. */
static inline int next_line(struct text_span *text, struct text_span *line)
{
    while (text->at < text->end) {
        const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        *line = (struct text_span){text->at, newline ? newline : text->end};
        text->at = newline ? newline + 1 : text->end;
        const char *at = line->at;
        while (at < line->end && is_space(*at))
            at++;
        if (at < line->end)
            return 1;
    }
    return 0;
}

uint64_t text_lines(const struct stk_bytes *bytes, uint64_t offset, uint64_t most)
{
    const char *data = (const char *)bytes->data;
    struct text_span text = {data + offset, data + bytes->len}, line;
    uint64_t lines = 0;
    while (lines < most && next_line(&text, &line))
        lines++;
    return lines;
}

/* One read of lines: which word of a line becomes which column. */
struct text_reader {
    struct text_span text;
    const char *start;     /* of the file */
    const int32_t *target; /* -1: not wanted */
    uint32_t words;
    struct stk_error *err;
};

static stk_status bad_line(const struct text_reader *reader, const struct text_span *where,
                           uint64_t row, const char *words)
{
    stk_status status =
        fail(reader->err, STK_CORRUPT, "point %llu: %s", (unsigned long long)row, words);
    fail_at(reader->err, NULL, (uint64_t)(where->at - reader->start));
    return status;
}

static stk_status read_line(const struct text_reader *reader, struct text_span line, uint64_t row,
                            float *to)
{
    struct text_span word;
    for (uint32_t i = 0; i < reader->words; i++) {
        if (!span_word(&line, &word))
            return bad_line(reader, &line, row, "its line has fewer numbers than the header says");
        if (reader->target[i] >= 0 && !span_float(&word, &to[reader->target[i]]))
            return bad_line(reader, &word, row, "its line holds what is no number");
    }
    return span_word(&line, &word)
               ? bad_line(reader, &word, row, "its line has more numbers than the header says")
               : STK_OK;
}

static int32_t *words_to_columns(const struct points_layout *layout, uint32_t columns,
                                 struct scratch *scratch)
{
    int32_t *target = scratch_take(scratch, layout->words * sizeof *target);
    for (uint32_t i = 0; target && i < layout->words; i++)
        target[i] = -1;
    for (uint32_t i = 0; target && i < columns; i++)
        target[layout->column[i].offset] = (int32_t)i;
    return target;
}

stk_status text_read(const struct stk_bytes *bytes, const struct points_layout *layout,
                     const uint32_t *rows, uint64_t count, uint32_t columns, float *to,
                     struct scratch *scratch, struct stk_error *err)
{
    const char *data = (const char *)bytes->data;
    struct text_reader reader = {.text = {data + layout->data, data + bytes->len},
                                 .start = data,
                                 .target = words_to_columns(layout, columns, scratch),
                                 .words = layout->words,
                                 .err = err};
    struct text_span line;
    uint64_t next = 0, ahead = layout->skip; /* row of the next line; lines to be passed over */
    if (!reader.target)
        return fail_memory(err, layout->words * sizeof *reader.target);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row = rows ? rows[i] : i;
        for (ahead += row - next; ahead > 0 && next_line(&reader.text, &line); ahead--)
            ;
        if (ahead > 0 || !next_line(&reader.text, &line))
            return bad_line(&reader, &reader.text, row, "the bytes end before it");
        stk_status status = read_line(&reader, line, row, to + i * columns);
        if (status)
            return status;
        next = row + 1;
    }
    return STK_OK;
}
