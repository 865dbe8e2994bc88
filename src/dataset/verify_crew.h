/* verify_crew.h -- threads that check spans of something and note what is bad; it is told in order.
 * Owns: its threads, for the length of the call.   Threads: `check` runs on its own, all else on
 * the caller's.   Errors: status, words in nullable *err.   Not here: what is checked
 * (dataset_verify.c, series_verify.c). */
#ifndef DATASET_VERIFY_CREW_H
#define DATASET_VERIFY_CREW_H

#include "stoker/dataset.h"

/* Units first .. first + count - 1, and what was found in them. */
struct verify_span {
    uint64_t first, count;
    uint64_t bytes; /* looked at: added up by check */
    struct stk_bad *bad;
    uint64_t bad_count, bad_cap;
    int done; /* the crew's, under its lock */
};

struct verify_job {
    const struct stk_context *context;
    uint64_t total;   /* units */
    const char *unit; /* "samples" */
    void *user;
    /* How many units the span that begins at first has, 1 or more; called in order, one at a time.
     */
    uint64_t (*length)(void *user, uint64_t first);
    /* What one thread needs, or STK_MEMORY and the like. */
    stk_status (*begin)(void *user, void **state, struct stk_error *err);
    void (*end)(void *state); /* NULL is fine */
    /* Looks at a span; what is bad goes to verify_note. Else than STK_OK ends the whole job. */
    stk_status (*check)(void *user, void *state, struct verify_span *span, struct stk_error *err);
};

struct verify_told {
    void (*bad)(void *user, const struct stk_bad *bad); /* may be NULL */
    void *user;
    uint64_t count; /* of those told */
};

STK_CHECK stk_status verify_note(struct verify_span *span, uint64_t sample,
                                 const struct stk_error *error, struct stk_error *err);
/* The machine is at fault, not the data. */
int verify_is_ours(stk_status status);

/* threads 0: one a core. STK_OK also when something was bad. */
STK_CHECK stk_status verify_crew_run(const struct verify_job *job, uint32_t threads,
                                     struct verify_told *told, struct stk_error *err);

#endif
