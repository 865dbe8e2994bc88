/* digest.h -- a running hash of delivered samples: two runs that agree saw the same bytes in the
 * same order, whatever the batch size, threads or store.
 * Owns: nothing; the struct is the caller's.   Threads: one at a time.   Errors: see add.
 * Not here: checksums of files (src/base/hash.h). */
#ifndef STOKER_DIGEST_H
#define STOKER_DIGEST_H

#include "stoker/loader.h"

struct stk_digest {
    uint64_t state[2];
    uint64_t samples;
};

STK_API void stk_digest_init(struct stk_digest *digest);
/* Adds the batch's real samples, one after the other, fields in order; masked places left out. A
 * batch on a device is copied for it, and gives the digest that it gives on the CPU; only that can
 * fail. */
STK_API STK_CHECK stk_status stk_digest_add(struct stk_digest *digest, struct stk_batch *batch,
                                            struct stk_error *err);
/* 32 hexadecimal digits and a NUL. */
STK_API void stk_digest_text(const struct stk_digest *digest, char out[33]);

#endif
