/* progress_bar.h -- one line on standard error that tells how far a job is; only on a terminal.
 * Owns: nothing; the line is drawn whole each time.   Threads: one at a time.   Errors: none.
 * Not here: when it is drawn (the library's progress hook, cmd_stream.c). */
#ifndef CLI_PROGRESS_BAR_H
#define CLI_PROGRESS_BAR_H

#include "stoker/context.h"

void progress_bar_draw(const struct stk_progress *progress);
/* Takes the line away, so that words can follow. */
void progress_bar_clear(void);

#endif
