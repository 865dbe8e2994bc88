/* watch_environment.h -- what a watched command is given besides what it would have: three
 * variables and a file of options. Owns: nothing.   Threads: one.   Errors: STK_MEMORY; STK_CORRUPT
 * for a run file that cannot be replayed.   Not here: the folder (run_folder.h). */
#ifndef WATCH_ENVIRONMENT_H
#define WATCH_ENVIRONMENT_H

#include "stoker/error.h"
#include "stoker/watch.h"
#include "base/text.h"
#include "watch/run_folder.h"

/* A copy of this process's environment with what the hook and the library need. *notice: a sentence
 * where CUDA will not load the library, else "". To give to memory_free, *out alone: the
 * variables lie behind the list. */
STK_CHECK stk_status environment_make(char ***out, const struct run_folder *folder, char *notice,
                                      size_t notice_cap, struct stk_error *err);

/* options.json for the hook. until: on the monotonic clock, nanoseconds; 0: none. */
STK_CHECK stk_status environment_options(struct text *out, const struct stk_watch_options *options,
                                         uint64_t until, struct stk_error *err);

#endif
