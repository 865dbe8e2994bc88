/* names.h -- which objects the sources of a dataset mean: paths, folders, globs, brace lists,
 * file://. Owns: its list, until names_free.   Threads: any, one names each.   Errors:
 * STK_NOT_FOUND, STK_DENIED, STK_UNSUPPORTED (another scheme), STK_USAGE (an object named twice),
 * with the name. Not here: walking folders (store/list.h), what the objects hold (sniff.h). */
#ifndef DATASET_NAMES_H
#define DATASET_NAMES_H

#include "store/list.h"

struct names {
    struct list list; /* root is absolute, or "" */
    int from_folder;  /* some came out of a folder */
    int from_glob;    /* some came out of a glob */
    /* A hash of the sources as written, relative to the root: the same wherever the data is moved,
     * and the same when files come and go. */
    uint64_t key;
};

/* A path that is there wins over its meaning as a glob or a brace list. Globs are sorted bytewise;
 * lists and braces keep their order. metadata.parquet in a folder is not data; what else lies
 * beside shards in a folder (statistics, notes) is left out too. */
STK_CHECK stk_status names_expand(struct names *names, const char *const *sources, uint32_t count,
                                  struct stk_error *err);
void names_free(struct names *names);

#endif
