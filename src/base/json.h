/* json.h -- reads and writes JSON; the only file that includes jansson is json.c.
 * Owns: a parsed document, until json_free.   Threads: one at a time for one document.
 * Errors: status on parse, 0 on a missing or mistyped member.   Not here: what the members mean. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "base/text.h"

struct json; /* a value: the parsed object, or one that lies in it and lives as long */

/* The text must be an object; depth and duplicate names are checked. */
STK_CHECK stk_status json_parse(struct json **out, const char *text, size_t len,
                                struct stk_error *err);
void json_free(struct json *json); /* what json_parse gave; NULL is fine */
int json_get_u64(const struct json *json, const char *name, uint64_t *out);
/* The text lives as long as the document. */
int json_get_text(const struct json *json, const char *name, const char **out);

/* --- values: NULL is a value that is not there, and legal everywhere ------------------------- */
enum json_kind {
    JSON_KIND_NONE, /* not there */
    JSON_KIND_NULL,
    JSON_KIND_BOOL,
    JSON_KIND_NUMBER,
    JSON_KIND_TEXT,
    JSON_KIND_LIST,
    JSON_KIND_OBJECT
};
enum json_kind json_kind(const struct json *value);
const struct json *json_member(const struct json *object, const char *name); /* NULL: none */
size_t json_count(const struct json *value); /* items of a list, members of an object; else 0 */
const struct json *json_item(const struct json *list, size_t number); /* NULL: none */
/* The members in the order of the text: *cursor is NULL at first. NULL: that was the last. */
const struct json *json_each(const struct json *object, void **cursor, const char **name);

/* 0: of another type, or it does not fit; *out is then untouched. */
int json_u64(const struct json *value, uint64_t *out);
int json_i64(const struct json *value, int64_t *out);
int json_double(const struct json *value, double *out); /* whole numbers too */
int json_bool(const struct json *value, int *out);
int json_text(const struct json *value, const char **out);

/* --- writing --------------------------------------------------------------------------------- */
/* Appends a quoted, escaped string; bytes that are not UTF-8 become U+FFFD. */
void json_add_string(struct text *text, const char *data, size_t len);
/* Appends the shortest number that reads back as the same; null for what is not finite. */
void json_add_double(struct text *text, double number);

#endif
