/* attribution.h -- gives each idle moment of a GPU (or of the compute step, where there is none) to
 * one cause. It works as the run goes on and keeps only what is not settled yet, so that ten hours
 * take no more memory than ten minutes.
 * Owns: its state.   Threads: one.   Errors: STK_MEMORY; the run is then told as cut short.
 * Not here: where events come from (collect.h), what is advised (advice_rules.h). */
#ifndef WATCH_ATTRIBUTION_H
#define WATCH_ATTRIBUTION_H

#include "stoker/error.h"
#include "stoker/watch.h"
#include "watch/event.h"
#include "watch/summary.h"

struct attribution;

struct attribution_options {
    uint64_t begun; /* when the run began */
    uint32_t cpus;  /* that the child may use */
    /* Told of each idle piece as it is settled, in order of time a rank; NULL: nobody. */
    void (*idle)(void *user, uint32_t pid, uint64_t start, uint64_t end, enum cause cause);
    void *user;
};

STK_CHECK stk_status attribution_new(struct attribution **out,
                                     const struct attribution_options *options,
                                     struct stk_error *err);
STK_CHECK stk_status attribution_take(struct attribution *attribution,
                                      const struct watch_event *event, struct stk_error *err);
/* All events that ended before `upto` have been given. Called about once a second. */
STK_CHECK stk_status attribution_settle(struct attribution *attribution, uint64_t upto,
                                        struct stk_error *err);
void attribution_now(const struct attribution *attribution, struct stk_watch_now *out);
/* Fills what it knows of the summary: mode, ranks, loaders, gaps, trees, processes, series, lanes,
 * reliability. What belongs to the run as a whole (command, exit, machine) is the caller's. */
STK_CHECK stk_status attribution_finish(struct attribution *attribution, struct summary *out,
                                        struct stk_error *err);
void attribution_free(struct attribution *attribution); /* NULL is fine */

#endif
