/* block_warm.h -- fills the cache of a store ahead of who will read from it.
 * Owns: nothing.   Threads: one at a time.   Errors: status, words in nullable *err that name the
 * object.   Not here: the cache (block_cache.h). */
#ifndef STORE_BLOCK_WARM_H
#define STORE_BLOCK_WARM_H

#include "store/store.h"

struct block_warmed {
    uint64_t blocks, bytes;            /* of all objects */
    uint64_t here;                     /* were there before */
    uint64_t fetched, fetched_bytes;   /* and are there now */
    uint64_t left;                     /* blocks that do not fit */
    uint64_t seen_bytes, seen_objects; /* how far it is */
};

/* Brings all blocks of the store's objects into its cache, as many as fit. progress may be NULL;
 * not 0 from it: STK_CANCELLED. STK_USAGE: the store has no cache. */
STK_CHECK stk_status block_warm(struct store *store,
                                int (*progress)(void *user, const struct block_warmed *warmed),
                                void *user, struct block_warmed *warmed, struct stk_error *err);

#endif
