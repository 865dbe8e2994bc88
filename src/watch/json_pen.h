/* json_pen.h -- writes JSON member by member, with the commas in their places.
 * Owns: its text, until the caller takes or frees it.   Threads: one.   Errors: text.failed.
 * Not here: escapes and numbers (base/json.h). */
#ifndef WATCH_JSON_PEN_H
#define WATCH_JSON_PEN_H

#include <stdint.h>

#include "base/text.h"

struct json_pen {
    struct text text;
    int comma; /* something stands before in this object or list */
};

/* `name` is that of the member, or NULL in a list. */
void json_pen_open(struct json_pen *pen, const char *name, char bracket);
void json_pen_close(struct json_pen *pen, char bracket);
void json_pen_null(struct json_pen *pen, const char *name);
void json_pen_bool(struct json_pen *pen, const char *name, int value);
void json_pen_u64(struct json_pen *pen, const char *name, uint64_t value);
void json_pen_i64(struct json_pen *pen, const char *name, int64_t value);
/* null where it is negative. */
void json_pen_count(struct json_pen *pen, const char *name, int64_t value);
/* Rounded to `digits` after the point; null for what is not finite. */
void json_pen_double(struct json_pen *pen, const char *name, double value, int digits);
/* Nanoseconds as seconds, with at most six digits after the point. */
void json_pen_seconds(struct json_pen *pen, const char *name, uint64_t ns);
void json_pen_text(struct json_pen *pen, const char *name, const char *value);
/* null where the text is NULL or empty. */
void json_pen_known(struct json_pen *pen, const char *name, const char *value);

#endif
