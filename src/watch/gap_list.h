/* gap_list.h -- the gaps of a run: how many of which size, and the longest with their cause.
 * Owns: nothing.   Threads: one.   Errors: STK_MEMORY when it is handed out.
 * Not here: finding them (busy_line.h). */
#ifndef WATCH_GAP_LIST_H
#define WATCH_GAP_LIST_H

#include "stoker/error.h"
#include "watch/summary.h"

#define GAPS_KEPT 64
#define GAP_SIZES 8

struct gap_list { /* all zero is an empty one */
    uint64_t total;
    uint64_t counts[GAP_SIZES], ns[GAP_SIZES];
    struct summary_gap longest[GAPS_KEPT]; /* in no order */
    size_t kept;
};

/* count: so many gaps that are together gap->ns long and not worth keeping each; 1: a gap. */
void gap_list_add(struct gap_list *list, const struct summary_gap *gap, uint64_t count);
STK_CHECK stk_status gap_list_summary(const struct gap_list *list, struct summary *out,
                                      struct stk_error *err);

#endif
