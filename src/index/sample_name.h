/* sample_name.h -- WebDataset's rule: which sample and field a member's name means.
 * Owns: nothing.   Threads: any.   Errors: 0 when the name means none.   Not here: tar, folders. */
#ifndef INDEX_SAMPLE_NAME_H
#define INDEX_SAMPLE_NAME_H

#include <stddef.h>

/* "a/b.c.jpg": the key is the path up to the first dot of the base name ("a/b", *key_len bytes),
 * the field the rest behind that dot ("c.jpg"). 0 when the base name has no dot, or when it begins
 * with one and there is no folder before it whose name has none (".x", "a.b/.x"; but "a/.x" is
 * field "x" of the sample "a/", as in WebDataset). */
int sample_name_split(const char *name, size_t len, size_t *key_len);

/* Members that WebDataset passes over: the first part of the path begins and ends with "__". */
int sample_name_is_meta(const char *name, size_t len);

#endif
