/* index_keep.h -- finds the index of a list of objects where it is kept, or has it built there.
 * Owns: nothing after return.   Threads: any; two processes may build the same index at once, the
 * last rename wins.   Errors: those of listing, sniffing and indexing.   Not here: the index
 * (index/index.h). */
#ifndef DATASET_INDEX_KEEP_H
#define DATASET_INDEX_KEEP_H

#include "stoker/dataset.h"
#include "base/context.h"
#include "dataset/names.h"
#include "index/index.h"

/* What was found or made. */
struct index_kept {
    struct index *index;
    char *beside; /* data on the network: the URI of the index beside it, to be freed; else NULL */
    int shared;   /* the index is the one that lies there */
};

/* The order of places: options->index, and only there; else beside the data in ROOT/.stoker; else
 * in the user's cache folder; else in a temporary file that is gone once it is open. Of data on the
 * network: in the user's cache folder, where one that lies beside the data is copied to. An index
 * that is stale, damaged or of another version is built anew, and a notice says so. */
STK_CHECK stk_status index_keep_open(struct index_kept *out, const struct stk_context *context,
                                     const struct names *names,
                                     const struct stk_dataset_options *options,
                                     struct stk_error *err);

/* Writes the index of data on the network beside it, unless the same one is there. A notice tells
 * how that went. */
void index_keep_share(const struct index_kept *kept, const struct stk_context *context);

#endif
