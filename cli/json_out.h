/* json_out.h -- writes JSON on one line, value by value.
 * Owns: nothing; the stream is the caller's.   Threads: one at a time.   Errors: those of the
 * stream. Not here: parsing, meaning. */
#ifndef CLI_JSON_OUT_H
#define CLI_JSON_OUT_H

#include <stdint.h>
#include <stdio.h>

#include "stoker/bytes.h"

struct json_out {
    FILE *stream;
    int separate; /* not 0: a comma comes before the next value */
};

/* name: the member's name; NULL inside an array and at the top. */
void json_out_object(struct json_out *json, const char *name);
void json_out_array(struct json_out *json, const char *name);
void json_out_end_object(struct json_out *json);
void json_out_end_array(struct json_out *json);
void json_out_text(struct json_out *json, const char *name, const char *text); /* NULL: null */
/* Bytes that are not UTF-8 become U+FFFD. */
void json_out_bytes(struct json_out *json, const char *name, struct stk_bytes bytes);
void json_out_number(struct json_out *json, const char *name, uint64_t number);
/* null for UINT64_MAX (STK_NOWHERE). */
void json_out_place(struct json_out *json, const char *name, uint64_t number);
void json_out_real(struct json_out *json, const char *name, double real); /* null when not finite */
void json_out_bool(struct json_out *json, const char *name, int truth);
void json_out_end_line(struct json_out *json); /* ends the top value */

#endif
