/* tokens_format.h -- flat files of token numbers, cut into windows: an index that is computed.
 * Owns: nothing; the index is the caller's.   Threads: one.   Errors: STK_USAGE for what was asked,
 * STK_CORRUPT and STK_SHAPE for files that hold something else, with the file.   Not here: which
 * sample is where (index/windows_index.h).
 *
 * A file holds tokens of one type and nothing else, or is an .npy with one axis. A sample is a
 * window of one file: none reaches over the end of its file, and what is left there is no sample.
 */
#ifndef FORMAT_TOKENS_FORMAT_H
#define FORMAT_TOKENS_FORMAT_H

#include "format/format.h"

#define TOKENS_FORMAT "tokens" /* its name, and that of the one field */

struct tokens_input {
    const char *root;
    const struct format_object *objects;
    uint64_t object_count;
    enum stk_dtype dtype;    /* STK_DTYPE_COUNT: that of the first .npy, or uint16 */
    uint64_t window, stride; /* tokens */
};

/* Nothing is read but the heads of .npy files. */
STK_CHECK stk_status tokens_index_new(struct index **out, const struct tokens_input *input,
                                      struct stk_error *err);

#endif
