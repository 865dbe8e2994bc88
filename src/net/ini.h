/* ini.h -- the configuration files of AWS's tools: sections, keys, and keys below a key.
 * Owns: the file's text, wiped by ini_free.   Threads: any may read one.   Errors: status of the
 * file; 0 where a key is not there.   Not here: which keys there are (aws_config.h). */
#ifndef NET_INI_H
#define NET_INI_H

#include "net/credentials.h"

/* All zero is an empty file. */
struct ini {
    struct text text;
};

STK_CHECK stk_status ini_read(struct ini *out, const char *path, struct stk_error *err);
void ini_free(struct ini *ini);

/* A section's name as in its brackets, quotes off and with single blanks: "profile prod". Keys are
 * in lower case; "s3.addressing_style" is the key addressing_style indented below an s3 without a
 * value. The last of several counts. 0: it is not there, or does not fit (then out is ""). */
int ini_get(const struct ini *ini, const char *section, const char *key, char *out, size_t cap);
int ini_has(const struct ini *ini, const char *section);

#endif
