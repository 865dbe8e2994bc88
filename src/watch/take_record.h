/* take_record.h -- a record of a ring, taken into the lists of its process.
 * Owns: nothing.   Threads: one.   Errors: STK_MEMORY.   Not here: other events (attribution.c). */
#ifndef WATCH_TAKE_RECORD_H
#define WATCH_TAKE_RECORD_H

#include "watch/attribution_state.h"

STK_CHECK stk_status take_record(struct attribution *attribution, const struct watch_event *event,
                                 struct stk_error *err);

#endif
