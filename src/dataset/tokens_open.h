/* tokens_open.h -- opens flat files of tokens as windows.
 * Owns: nothing; what is made is the source's.   Threads: one.   Errors: STK_USAGE for options that
 * do not fit, and those of tokens_format.h.   Not here: the files (format/tokens_format.h). */
#ifndef DATASET_TOKENS_OPEN_H
#define DATASET_TOKENS_OPEN_H

#include "dataset/dataset_state.h"
#include "dataset/names.h"

/* Whether the options ask for tokens; nothing in the files could tell. */
int tokens_wanted(const struct stk_dataset_options *options);
/* Fills root and index of source. No index file is kept: making it costs a look at each file. */
STK_CHECK stk_status tokens_open(struct dataset_source *source, const struct names *names,
                                 const struct stk_dataset_options *options, struct stk_error *err);

#endif
