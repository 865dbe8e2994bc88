/* live_line.h -- one line on standard error: how busy the GPU of a watched run is, what it waits
 * for, how fast it goes. Owns: nothing.   Threads: the collector's, one at a time.   Errors: none.
 * Not here: a job's progress (progress_bar.h). */
#ifndef CLI_LIVE_LINE_H
#define CLI_LIVE_LINE_H

#include "stoker/watch.h"

/* On a terminal the line is drawn over the last one, and what the command prints goes over it.
 * Elsewhere it is a line of its own every ten seconds. user: a uint64_t that is 0 at first. */
void live_line_draw(void *user, const struct stk_watch_now *now);
void live_line_clear(void);

#endif
