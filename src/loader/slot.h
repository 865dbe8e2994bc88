/* slot.h -- the bookkeeping of one batch on its way: admit -> fetch -> fill -> caller.
 * Owns: its arrays, made once; its box, from admission until the caller takes it.   Threads:
 * written by admission before `unclaimed` is published; then each span's places belong to the
 * worker that claimed it; shared fields name their rule.   Errors: a bad sample is an entry of
 * `bad`; it never stops a worker. Not here: when slots move on (admit.h, worker.h). */
#ifndef LOADER_SLOT_H
#define LOADER_SLOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "loader/box.h"
#include "loader/plan.h"

struct device_slot;

/* Where the bytes of one value are, as the stages pass it on. */
enum how {
    HOW_MISSING, /* the sample lacks this optional field */
    HOW_VALUE,   /* the extent is the value */
    HOW_MAP,     /* in a map: to be copied under a guard */
    HOW_ENCODED, /* in a map: a pipeline's, copied under a guard just before it runs */
    HOW_MEMORY,  /* in a decoded chunk: to be copied */
    HOW_PLACED,  /* the payload is in its place in the box, what came before it in the side memory;
                    a pipeline's: all is in memory, at `from` */
    HOW_READY,   /* nothing is left to do */
    HOW_ODD      /* not as expected, or its read failed: read again alone, with all checks */
};

/* A sample that could not be delivered, and what came in its place. */
struct slot_bad {
    struct slot_bad *next;
    uint32_t place;
    uint64_t substitute; /* STK_NOWHERE: none, the batch is an error */
    struct stk_error error;
};

struct slot {
    uint64_t epoch, position; /* where the step begins */
    struct plan_share share;
    /* Samples that nobody has claimed: published by admission (release), and claims (acquire)
     * subtract from it. 0 or less: nothing to claim, and nothing else of the slot may be looked at;
     * more: it cannot be retired before the claim is done. */
    _Atomic int64_t unclaimed;
    _Atomic uint32_t pending; /* spans not done, and one until all may be claimed; who makes it 0
                                 (acq_rel) passes the slot on */
    _Atomic int done;         /* the caller may have it: stored after slot_finish (release) */
    int filled;               /* under the loader's lock: the ship stage may have it */
    _Atomic uint32_t found; /* places whose values the device has: nothing of them lands. Spans add
                               (relaxed); read once all are done */
    _Atomic uint32_t reads; /* open reads, for telling what a wait is for */
    struct box *box;
    struct device_slot *device; /* the batch on the device; NULL: not shipped */
    uint64_t *samples;          /* [capacity] */
    struct extent *extents;     /* [capacity * fields] */
    const uint8_t **from;       /* [capacity * fields] HOW_MAP, HOW_MEMORY */
    uint8_t *how;               /* [capacity * fields] */
    uint64_t *run_at;      /* [capacity * fields] a variable value's place in its field's run, or
                              one for a pipeline in its span's room */
    struct box_need *need; /* [fields] */
    uint8_t *side;         /* heads and ASCII numbers, by field */
    uint8_t *mix;          /* layout->mix bytes, for transforms of the batch */
    uint32_t *chunks;      /* held; under the loader's lock */
    uint32_t chunk_count, chunk_cap;
    int fetching;         /* under the loader's lock: some held chunk is not ready */
    struct slot_bad *bad; /* under the loader's lock; sorted by place */
    /* Stands in when there is no memory for an entry; the batch is an error then. */
    struct slot_bad spare;
    int spare_used; /* under the loader's lock */
};

/* Bytes of the arrays of one slot. */
uint64_t slot_size(const struct layout *layout);
STK_CHECK stk_status slot_init(struct slot *slot, const struct layout *layout,
                               struct stk_error *err);
void slot_reset(struct slot *slot); /* frees what init made; zeroed is fine */

/* Side memory of one place of a field. */
static inline uint8_t *slot_side(const struct slot *slot, const struct field_layout *layout,
                                 uint32_t place)
{
    return slot->side + layout->side_at + (uint64_t)layout->side * place;
}

/* Not 0: every bad sample has a substitute. */
int slot_is_whole(const struct slot *slot);
void slot_drop_bad(struct slot *slot);
/* Adds a copy, keeping places in order. Without memory for it the batch becomes an error. */
void slot_add_bad(struct slot *slot, const struct slot_bad *bad);

/* After the last span: joins what is to be padded or flat, and clears masked places. STK_SHAPE when
 * samples do not fit together; then *value (place * fields + field) is the one that does not. */
STK_CHECK stk_status slot_finish(struct slot *slot, const struct layout *layout, uint32_t *value,
                                 struct stk_error *err);

#endif
