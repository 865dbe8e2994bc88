/* index_fresh.h -- whether an index still tells the truth about a list of objects.
 * Owns: nothing.   Threads: any.   Errors: STK_MEMORY, STK_CORRUPT (a damaged index).
 * Not here: what is done when it does not (index_keep.h). */
#ifndef DATASET_INDEX_FRESH_H
#define DATASET_INDEX_FRESH_H

#include "base/text.h"
#include "dataset/names.h"
#include "index/index.h"

/* What an index is wanted of. */
struct index_wish {
    const struct names *names;
    const char *format;    /* as asked for; NULL: any */
    struct stk_tensor raw; /* of one sample; rank -1: not a raw array */
    uint64_t chunk_limit;  /* most bytes a chunk may decode to */
};

/* Adds to *what, in words, the first thing that changed since the index was made: an object's size
 * or version, the list of objects, the options. Nothing is added when nothing did. */
STK_CHECK stk_status index_fresh(const struct index *index, const struct index_wish *wish,
                                 struct text *what, struct stk_error *err);

#endif
