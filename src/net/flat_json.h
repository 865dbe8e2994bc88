/* flat_json.h -- single members of a JSON object that holds secrets, read where they lie: a parser
 * would leave copies in freed memory.
 * Owns: nothing.   Threads: any.   Errors: 0.   Not here: JSON without secrets (base/json.h). */
#ifndef NET_FLAT_JSON_H
#define NET_FLAT_JSON_H

#include <stddef.h>

/* The text, number or word (true, null) of a member of the outermost object. 0: it is not there,
 * does not fit, or the text is no JSON up to it; out is then "". */
int flat_json_get(const char *json, size_t length, const char *name, char *out, size_t cap);

#endif
