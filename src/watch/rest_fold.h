/* rest_fold.h -- what the device did after its recording ended (inject_allowance.h), from what it
 * did before and from what the loop waited for all the time. Owns: nothing.   Threads: one. Errors:
 * STK_MEMORY.   Not here: what the loop waited for (idle_split.h).
 *
 * A step is taken to have as much work for the device as before, and to keep it waiting as much for
 * launches, copies and the like. The rest of the time it waited for what the loop waited for: not
 * all of the loop's wait, for the device had work queued. */
#ifndef WATCH_REST_FOLD_H
#define WATCH_REST_FOLD_H

#include "watch/rank_line.h"

/* Adds the rest's idle time to the rank's account, and returns by how much counts of the device are
 * to be multiplied. At the end. */
STK_CHECK stk_status rest_fold(struct rank_line *rank, double *counts, struct stk_error *err);

#endif
