/* json.h -- reads and writes small JSON objects; the only file that includes jansson is json.c.
 * Owns: a parsed document, until json_free.   Threads: one at a time for one document.
 * Errors: status on parse, 0 on a missing or mistyped member.   Not here: what the members mean. */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "base/text.h"

struct json; /* a parsed object */

STK_CHECK stk_status json_parse(struct json **out, const char *text, size_t len,
                                struct stk_error *err); /* depth and duplicate names are checked */
void json_free(struct json *json);
int json_get_u64(const struct json *json, const char *name, uint64_t *out);
/* The text lives as long as the document. */
int json_get_text(const struct json *json, const char *name, const char **out);

/* Appends a quoted, escaped string; bytes that are not UTF-8 become U+FFFD. */
void json_add_string(struct text *text, const char *data, size_t len);

#endif
