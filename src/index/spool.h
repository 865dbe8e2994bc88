/* spool.h -- bytes that are appended now and read back later; a file without a name takes them when
 * they outgrow a buffer. Owns: the buffer and the file, until spool_reset.   Threads: one at a
 * time.   Errors: status, words. Not here: what the bytes are. */
#ifndef INDEX_SPOOL_H
#define INDEX_SPOOL_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct spool {
    const char *folder; /* where the file goes; the caller's */
    int fd;             /* -1 until the buffer was too small */
    uint8_t *buf;       /* the bytes from `written` on */
    size_t used;
    uint64_t written;
    int failed; /* the folder took no file, or no more bytes */
};

void spool_init(struct spool *spool, const char *folder);
void spool_reset(struct spool *spool);

STK_CHECK stk_status spool_add(struct spool *spool, const void *data, size_t len,
                               struct stk_error *err);
static inline uint64_t spool_size(const struct spool *spool)
{
    return spool->written + spool->used;
}
/* offset + len <= spool_size. */
STK_CHECK stk_status spool_read(const struct spool *spool, uint64_t offset, void *to, size_t len,
                                struct stk_error *err);

#endif
