/* pack_crew.h -- a few threads that do numbered steps of one job, and join what came out in order.
 * Owns: its threads, for the length of pack_crew_run.   Threads: claim and join run on any of them,
 * one at a time; run on all at once; progress on the caller's, who works too.   Errors: of the
 * lowest step that failed, whatever the number of threads.   Not here: what a step does. */
#ifndef PACK_PACK_CREW_H
#define PACK_PACK_CREW_H

#include <stdint.h>

#include "stoker/context.h"
#include "stoker/error.h"

#define PACK_CREW_MAX 64u

struct pack_crew_job {
    struct stk_context *context; /* NULL: no progress */
    const char *what, *unit;     /* "scaling", "rows" */
    uint64_t total;              /* of units */
    uint64_t before;             /* of them, done by earlier runs of the same job */
    uint32_t threads;            /* at least 1; fewer when the system gives no more */
    void *user;
    /* Steps are claimed in order. STK_END: there are no more. */
    stk_status (*claim)(void *user, uint32_t worker, uint64_t step, struct stk_error *err);
    /* *done: units of this step, for the bar. */
    stk_status (*run)(void *user, uint32_t worker, uint64_t step, uint64_t *done,
                      struct stk_error *err);
    /* After run of the same worker, in the order of steps. NULL: none. */
    void (*join)(void *user, uint32_t worker, uint64_t step);
};

/* threads as an option gives them: 0 is one a core; never more than PACK_CREW_MAX. */
uint32_t pack_crew_threads(uint32_t asked);
STK_CHECK stk_status pack_crew_run(const struct pack_crew_job *job, struct stk_error *err);

#endif
