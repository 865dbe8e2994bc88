/* numbered.h -- files that are named by a number: shard-0000.tar, 000000.npy.
 * Owns: nothing.   Threads: any.   Errors: a folder that cannot be read holds none.
 * Not here: who writes them. */
#ifndef PACK_NUMBERED_H
#define PACK_NUMBERED_H

#include <stddef.h>
#include <stdint.h>

struct numbered {
    const char *prefix, *suffix; /* "shard-", ".tar" */
    int digits;                  /* at least */
};

/* Digits that the numbers below count need, and at least so many. */
int numbered_digits(uint64_t count, int at_least);
void numbered_name(const struct numbered *numbered, uint64_t number, char *out, size_t cap);
/* Not 0 when the folder has such a file. */
int numbered_any(const struct numbered *numbered, int folder_fd);
void numbered_remove(const struct numbered *numbered, int folder_fd);

#endif
