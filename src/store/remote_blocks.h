/* remote_blocks.h -- blocks of remote objects on their way into the cache: buffers that all queues
 * of a store share, so that a block is fetched once for all who want it.
 * Owns: the buffers, bounded in bytes.   Threads: any; what is said to be under the lock is under
 * the remote's.   Errors: status in each wait.   Not here: the cache itself (block_cache.h), who
 * waits (remote_queue.c). */
#ifndef STORE_REMOTE_BLOCKS_H
#define STORE_REMOTE_BLOCKS_H

#include "store/remote_parts.h"

#define BLOCKS_MOST 128 /* buffers */
#define RUN_MOST 16     /* neighbours that are fetched in one strip */

struct block;
struct item;

/* A read wants a block. It is the queue's; a block that is on its way has it in its list. */
struct wait {
    struct wait *next;
    struct item *item;
    uint64_t number;
    struct block *block;  /* whose buffer it holds; NULL: none */
    struct block_ref ref; /* of a block that is in the cache */
    int64_t since_ns;     /* another process fetches it, since then */
    stk_status status;
    int puts; /* it came for this one first, who gives it to the cache */
};

struct block {
    uint32_t object;
    uint64_t number, length;
    enum { BLOCK_EMPTY, BLOCK_WANTED, BLOCK_FULL } state;
    uint32_t users; /* waits that hold it; with none a full one may be used for another */
    uint64_t used;  /* when, by blocks->clock */
    uint8_t *data;  /* BLOCK_SIZE bytes */
    int has_ref;    /* it is YOURS: to be put, or given back */
    struct block_ref ref;
    struct wait *waits; /* while WANTED */
    struct place place;
    /* of the first of a run */
    struct strip strip;
    struct blocks *home;
    struct block *run[RUN_MOST];
    uint32_t run_count;
    struct iovec parts[RUN_MOST];
};

struct blocks {
    struct remote *remote;
    /* under the lock */
    struct block *all[BLOCKS_MOST];
    uint32_t count, limit, wanted;
    uint64_t clock;
};

/* Blocks that follow one another and are to be fetched together. */
struct run {
    struct block *blocks[RUN_MOST];
    uint32_t count;
};

STK_CHECK stk_status blocks_new(struct blocks **out, struct remote *remote, struct stk_error *err);
void blocks_free(struct blocks *blocks); /* NULL is fine; no queue is open, nothing flies */

/* At most so many bytes from now on, and at least a few blocks; what is there stays. Returns the
 * bytes. */
uint64_t blocks_limit(struct blocks *blocks, uint64_t bytes);

/* --- under the lock --------------------------------------------------------------------------- */

/* WANTED or FULL; NULL: it is neither. */
struct block *blocks_find(struct blocks *blocks, uint32_t object, uint64_t number);
/* A buffer for a block that is to be fetched; NULL: all are in use. Not 0 in *is_stuck: none of
 * them is on its way either, so that waiting for one may last for ever. */
struct block *blocks_room(struct blocks *blocks, int *is_stuck);
int blocks_have_room(struct blocks *blocks);
/* The block is fetched for `place`, and ref is its own from here on. Holds nothing yet. */
STK_CHECK stk_status block_want(struct block *block, const struct place *place, uint64_t number,
                                const struct block_ref *ref);
void block_hold(struct block *block, struct wait *wait); /* WANTED: into its list */
/* Sends a run into the line, behind the last strip where that goes on in it. Empties the run. */
void run_send(struct blocks *blocks, struct run *run);
/* Takes a queue's waits out of all lists, into one of its own. */
void blocks_forget(struct blocks *blocks, const struct remote_queue *queue, struct wait **to);

/* --- without the lock ------------------------------------------------------------------------- */

/* The wait no longer needs its block; gives it to the cache where that is its duty. */
void block_let_go(struct blocks *blocks, struct wait *wait);

/* remote_queue.c: under the lock: the block came, or not (wait->status). */
void queue_wait_over(struct wait *wait);
const struct remote_queue *wait_queue(const struct wait *wait);

#endif
