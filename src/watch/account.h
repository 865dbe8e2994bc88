/* account.h -- idle time by cause, and by the place in the code that it went to.
 * Owns: the places' sums.   Threads: one.   Errors: STK_MEMORY.   Not here: which cause it is
 * (idle_split.h). */
#ifndef WATCH_ACCOUNT_H
#define WATCH_ACCOUNT_H

#include "stoker/error.h"
#include "watch/call_tree.h"

/* Causes that are decided only when the whole run is known, and what is no cause. */
enum account_slot {
    ACCOUNT_WORKER_CPU = CAUSE_COUNT, /* workers computed: too few of them, or too slow each */
    ACCOUNT_COMPUTE,                  /* it was not idle (without a GPU) */
    ACCOUNT_PROFILED, /* not judged: the script's own profiler had the GPU's records */
    ACCOUNT_COMPILED, /* not judged: torch.compile */
    ACCOUNT_SET_UP,   /* not judged: the first step */
    ACCOUNT_RESTED,   /* not recorded, and the loop waited for nothing */
    ACCOUNT_SLOTS
};

#define ACCOUNT_IDLE(slot) ((slot) <= ACCOUNT_WORKER_CPU)

struct account_place {
    uint32_t place; /* 0: free */
    uint32_t slot;
    uint64_t ns;
};

struct account { /* all zero is an empty one */
    uint64_t ns[ACCOUNT_SLOTS];
    struct account_place *places; /* by hash */
    size_t place_count;
};

/* Beyond its most places it forgets where, never how much. */
STK_CHECK stk_status account_place_add(struct account *account, uint32_t slot, uint32_t place,
                                       uint64_t ns, struct stk_error *err);
/* All of one slot is of another, with its places. */
STK_CHECK stk_status account_move(struct account *account, uint32_t from, uint32_t to,
                                  struct stk_error *err);
/* Adds so much of another's slot, with its places. */
STK_CHECK stk_status account_add(struct account *account, uint32_t slot,
                                 const struct account *other, double share, struct stk_error *err);
void account_scale(struct account *account, uint32_t slot, double scale);
/* The three functions that a slot's time went to, most first; lines are those with most of it. */
STK_CHECK stk_status account_functions(const struct account *account, uint32_t slot,
                                       const struct call_tree *tree, struct summary_function out[3],
                                       struct stk_error *err);
void account_reset(struct account *account);

#endif
