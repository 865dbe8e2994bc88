/* progress_bar.h -- one line on standard error: how far a job is, how fast, how long it will take;
 * only on a terminal.
 * Owns: when the job on the line began.   Threads: one at a time.   Errors: none.
 * Not here: when it is drawn (the library's progress hook, cmd_stream.c). */
#ifndef CLI_PROGRESS_BAR_H
#define CLI_PROGRESS_BAR_H

#include "stoker/context.h"

void progress_bar_draw(const struct stk_progress *progress);
/* Takes the line away, so that words can follow. */
void progress_bar_clear(void);

#endif
