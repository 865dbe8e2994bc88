/* pack_names.h -- where shards may be written, and how they may be called.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE with words.   Not here: writing. */
#ifndef PACK_PACK_NAMES_H
#define PACK_PACK_NAMES_H

#include "stoker/dataset.h"

/* Refuses a folder that holds the source (shards would lie among what they are made of), and a
 * prefix that is no plain file name. */
STK_CHECK stk_status pack_names_check(const struct stk_dataset *dataset, const char *out,
                                      const char *prefix, struct stk_error *err);

#endif
