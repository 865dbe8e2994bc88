/* block_index.h -- where each block is that this process knows of: in a segment, in memory on its
 * way there, or with whoever fetches it.
 * Owns: its nodes; segments are the folder's.   Threads: any; a stripe's lock is held for some
 * steps in memory only.   Errors: 0 when memory ran out.   Not here: the files (block_segment.h).
 */
#ifndef STORE_BLOCK_INDEX_H
#define STORE_BLOCK_INDEX_H

#include <pthread.h>

#include "store/block_segment.h"

#define INDEX_STRIPES 64

enum node_state {
    NODE_HERE,    /* in a segment */
    NODE_PENDING, /* put by this process; it waits to be written */
    NODE_OURS,    /* a thread of this process fetches it, or is about to */
    NODE_THEIRS   /* another process fetches it */
};

struct block_pending; /* block_writer.h */

struct block_node {
    struct block_node *next;
    uint8_t id[16];
    uint32_t number;
    uint32_t state;               /* enum node_state */
    uint32_t entry, length, page; /* HERE: page is its offset / SEGMENT_PAGE */
    union {
        struct segment *segment;       /* HERE; OURS: where it was found meanwhile, or NULL */
        struct block_pending *pending; /* PENDING */
        int64_t since;                 /* THEIRS: clock_coarse when we first met it */
    } at;
};

struct block_stripe {
    pthread_mutex_t lock; /* of all below */
    struct block_node **buckets;
    uint32_t bucket_count, count;
    struct block_node *free;
    void *chunks; /* where nodes lie: a list */
};

struct block_index {
    struct block_stripe stripes[INDEX_STRIPES];
};

struct block_key {
    uint8_t id[16];
    uint32_t number;
    uint64_t hash;
};

void block_index_init(struct block_index *index);
void block_index_reset(struct block_index *index);

struct block_key block_key(const uint8_t id[16], uint64_t number);

/* These four are for whoever holds the stripe's lock. */
struct block_stripe *block_index_stripe(struct block_index *index, const struct block_key *key);
struct block_node *stripe_find(struct block_stripe *stripe, const struct block_key *key);
/* A new node without a state; NULL: no memory. */
struct block_node *stripe_add(struct block_stripe *stripe, const struct block_key *key);
void stripe_remove(struct block_stripe *stripe, const struct block_key *key);

/* A block that a segment has. THEIRS becomes HERE; OURS stays OURS, and knows of it; others stay as
 * they are. 0: no memory. */
int block_index_add(struct block_index *index, const struct block_key *key,
                    const struct segment_block *block);
/* Forgets the block if it still is where `block` says. */
void block_index_forget(struct block_index *index, const struct block_key *key,
                        const struct segment_block *block);
/* Forgets all that is in the segment. After it nobody takes a ref to it any more: refs is counted
 * up under a stripe's lock alone. */
void block_index_forget_segment(struct block_index *index, const struct segment *segment);

#endif
