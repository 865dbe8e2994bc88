/* text.h -- a string that grows.
 * Owns: its buffer, until text_free.   Threads: one at a time.   Errors: `failed` is set when
 * memory ran out, and stays set; the text is then cut but still ended by NUL (or NULL when empty).
 * Not here: parsing. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

#include "stoker/export.h"

struct text {
    char *data; /* ended by NUL once something was added */
    size_t len, cap;
    int failed;
};

void text_add(struct text *text, const char *data, size_t len);
void text_format(struct text *text, const char *format, ...) STK_PRINTF(2, 3);
void text_free(struct text *text);

#endif
