/* remote_items.h -- one read of a remote object inside its queue: what it waits for, and how that
 * is asked for.
 * Owns: see remote.h.   Threads: all is the queue's owner's but what is under the remote's lock.
 * Errors: a status in the item.   Not here: submitting and reaping (remote_queue.c). */
#ifndef STORE_REMOTE_ITEMS_H
#define STORE_REMOTE_ITEMS_H

#include "store/remote_blocks.h"
#include "store/remote_parts.h"

/* A range that goes past the cache, straight to where it is wanted. */
struct direct {
    struct strip strip;
    struct direct *next;
    struct item *item;
    struct iovec parts[STORE_MAX_PARTS];
};

struct item {
    struct item *next; /* in the list of free, finished or stalled ones */
    struct remote_queue *queue;
    struct store_read *read;
    struct place place;
    struct block_object object;
    uint64_t at, end; /* blocks that were not asked for yet */
    uint32_t open;    /* ranges and blocks that are not there yet */
    stk_status status;
    int is_busy, is_stalled;
};

struct items {
    struct item *first, **last;
};

struct remote_queue {
    struct store_queue base;
    struct remote *remote;
    pthread_cond_t arrived;
    /* under the lock */
    struct direct *landed;
    struct dip *dipped;
    struct wait *ready, **ready_last;
    int woken;
    /* the owner's */
    struct item *free;
    struct items over, stalled; /* stalled: no buffer was free for them */
    struct wait *here, **here_last, *coming, *spare_waits;
    struct direct *spare_directs;
    struct dip *spare_dips;
    int64_t ask_ns;      /* when what is coming, or stalled, is looked at again */
    struct item items[]; /* base.depth */
};

static inline void items_add(struct items *items, struct item *item)
{
    item->next = NULL;
    *items->last = item;
    items->last = &item->next;
}

/* --- remote_ask.c ----------------------------------------------------------------------------- */

void direct_over(struct strip *strip); /* under the lock */
/* Without a cache. What lies in stretches waits for those; what lies between them flies by itself.
 */
STK_CHECK stk_status item_cover(struct item *item);
void dip_free(struct dip *dip);

/* With one: asks for the blocks of a read, as many as it may wait for at once. */
void item_advance(struct item *item);
void item_stall(struct item *item); /* no buffer is free for it */
/* One block of a read anew: it was damaged, or another process was to fetch it. */
void wait_again(struct wait *wait);
void wait_free(struct wait *wait);
/* Where the block's bytes go; *within: where they begin in the block. */
uint32_t wait_parts(const struct wait *wait, uint64_t *within, struct iovec *parts);

#endif
