/* copy.h -- copies that are too large for the caches.
 * Owns: nothing.   Threads: any; on return other threads that synchronise with this one see the
 * bytes. Errors: none.   Not here: copies from maps that may vanish (store/guard.h). */
#ifndef BASE_COPY_H
#define BASE_COPY_H

#include <stddef.h>

/* As memcpy, but what is written does not go through the caches: it would only push out what others
 * use, and reading each line before overwriting it costs a third of the memory's bandwidth. Worth
 * it from COPY_LARGE bytes on. */
void copy_past_caches(void *to, const void *from, size_t len);
#define COPY_LARGE ((size_t)256 << 10)

#endif
