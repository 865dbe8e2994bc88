/* sniff.h -- which format a list of objects is of.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE (no such format, or options that do not fit
 * it), STK_CORRUPT (an object is not what its name says, with what it looks like instead),
 * STK_UNSUPPORTED (it cannot be told).   Not here: reading the format (format/format.h). */
#ifndef DATASET_SNIFF_H
#define DATASET_SNIFF_H

#include "stoker/dataset.h"
#include "dataset/names.h"
#include "format/format.h"

/* By option; else raw when a dtype is given; else by content, to which the suffix is only a claim.
 * Several arrays, or several files of no known kind, are a folder of files: a sample each. */
STK_CHECK stk_status sniff(const struct format_ops **out, const struct names *names,
                           const struct stk_dataset_options *options, struct stk_error *err);

/* What the first bytes of an object look like, in words: "an HTML page". Never NULL. */
const char *sniff_words(const struct stk_bytes *head);

#endif
