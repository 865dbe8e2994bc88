/* chunk_cache.h -- decoded chunks in memory: each is decoded once while somebody needs it.
 * Owns: the chunks' memory, counted against the loader's budget.   Threads: every function runs
 * under the loader's lock but chunk_cache_decode, which runs without it, and chunk_cache_data,
 * which is for chunks that a slot holds and that are ready.   Errors: a chunk that cannot be
 * decoded is ready with a status. Not here: how bytes are decoded (dataset/chunk_read.h), which
 * chunks come next (admit.h). */
#ifndef LOADER_CHUNK_CACHE_H
#define LOADER_CHUNK_CACHE_H

#include <stdint.h>

#include "dataset/dataset_view.h"
#include "work/budget.h"

struct chunk_cache;

STK_CHECK stk_status chunk_cache_new(struct chunk_cache **out, struct stk_dataset *dataset,
                                     struct budget *budget, struct stk_error *err);
void chunk_cache_free(struct chunk_cache *cache); /* NULL is fine */

enum chunk_urgency { CHUNK_IF_IT_FITS, CHUNK_ANYWAY };
/* Holds a chunk: reserves its memory and queues it for decoding when it is not there. Chunks that
 * nobody holds make room. 0: it does not fit now. */
int chunk_cache_hold(struct chunk_cache *cache, uint32_t chunk, enum chunk_urgency urgency);
void chunk_cache_release(struct chunk_cache *cache, uint32_t chunk);
/* Lets go of the chunk that nobody holds and that was left longest ago. 0: all are held. */
int chunk_cache_evict(struct chunk_cache *cache);
int chunk_cache_ready(const struct chunk_cache *cache, uint32_t chunk);

/* The next chunk to decode, oldest first; it is the caller's to decode. 0: none. */
int chunk_cache_next(struct chunk_cache *cache, uint32_t *chunk);
/* Without the lock: decodes. */
void chunk_cache_decode(struct chunk_cache *cache, uint32_t chunk, const _Atomic int *cancel);
/* With the lock: what was decoded becomes visible. */
void chunk_cache_done(struct chunk_cache *cache, uint32_t chunk);

/* The decoded bytes, or NULL when decoding failed. */
const uint8_t *chunk_cache_data(const struct chunk_cache *cache, uint32_t chunk);
/* Why it failed. */
stk_status chunk_cache_error(const struct chunk_cache *cache, uint32_t chunk,
                             struct stk_error *err);
uint64_t chunk_cache_decoded(const struct chunk_cache *cache); /* how many so far */

#endif
