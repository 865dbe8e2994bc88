/* parse.h -- numbers and sizes in text.
 * Owns: nothing.   Threads: any.   Errors: 0 when the text is not wholly such a number or does not
 * fit (then *out is untouched).   Not here: JSON (json.h), dtypes (stoker/tensor.h). */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

int parse_u64(const char *text, size_t len, uint64_t *out); /* decimal digits only */
int parse_i64(const char *text, size_t len, int64_t *out);  /* an optional sign before them */
/* "-1.5e-3": decimal, whatever the locale; no "inf", no "nan". */
int parse_double(const char *text, size_t len, double *out);
/* "512MiB", "2GiB", "1.5GB", "4096", "64k": powers of 1024 with i or alone, of 1000 with B. */
int parse_size(const char *text, size_t len, uint64_t *out);

#endif
