#include "stoker/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Counts past the end, so that the caller learns the length the text would have had. */
struct line {
    char *buf;
    size_t cap, len;
};

static void line_add(struct line *line, const char *format, ...) STK_PRINTF(2, 3);

static void line_add(struct line *line, const char *format, ...)
{
    char *to = line->len < line->cap ? line->buf + line->len : NULL;
    va_list args;
    va_start(args, format);
    int wrote = vsnprintf(to, to ? line->cap - line->len : 0, format, args);
    va_end(args);
    if (wrote > 0)
        line->len += (size_t)wrote;
}

/* "(" before the first detail, ", " before the others. */
static const char *detail_gap(int *details)
{
    return (*details)++ ? ", " : " (";
}

size_t stk_error_format(const struct stk_error *err, char *buf, size_t cap)
{
    struct line line = {.buf = buf, .cap = cap};
    int details = 0;
    if (cap)
        buf[0] = '\0';
    if (!err)
        return 0;
    line_add(&line, "%s", err->what[0] ? err->what : stk_status_words(err->status));
    if (err->object[0])
        line_add(&line, "%sobject %s", detail_gap(&details), err->object);
    if (err->offset != STK_NOWHERE)
        line_add(&line, "%soffset %" PRIu64, detail_gap(&details), err->offset);
    if (err->sample != STK_NOWHERE)
        line_add(&line, "%ssample %" PRIu64, detail_gap(&details), err->sample);
    if (err->key[0])
        line_add(&line, "%skey %s", detail_gap(&details), err->key);
    if (err->field[0])
        line_add(&line, "%sfield %s", detail_gap(&details), err->field);
    if (details)
        line_add(&line, ")");
    if (err->remedy[0])
        line_add(&line, "\n  %s", err->remedy);
    return line.len;
}
