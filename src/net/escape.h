/* escape.h -- percent escapes of URLs.
 * Owns: nothing.   Threads: any.   Errors: see text.h.   Not here: taking URIs apart (site.h). */
#ifndef NET_ESCAPE_H
#define NET_ESCAPE_H

#include "base/text.h"

/* All but A-Z a-z 0-9 - . _ ~ becomes %XX (upper case); slashes stay where keep_slash is not 0. */
void escape_add(struct text *to, const char *from, size_t length, int keep_slash);
/* Decodes; -1 where a % is not followed by two digits, or gives a NUL. */
int escape_decode(struct text *to, const char *from, size_t length);

#endif
