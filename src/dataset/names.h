/* names.h -- which objects the sources of a dataset mean: paths, folders, globs, brace lists,
 * URIs. Owns: its list, until names_free.   Threads: any, one names each.   Errors: STK_NOT_FOUND,
 * STK_DENIED, STK_UNSUPPORTED (another scheme), STK_USAGE (an object named twice, files and URIs
 * in one), with the name; those of the store. Not here: walking folders (store/list.h), asking
 * stores (remote_names.h), what the objects hold (sniff.h, but for a series, which is a folder). */
#ifndef DATASET_NAMES_H
#define DATASET_NAMES_H

#include "store/list.h"

/* What is done with a series among the sources. */
enum names_series {
    NAMES_SERIES_FOUND,  /* taken as one where it is one */
    NAMES_SERIES_WANTED, /* the sources must mean one */
    NAMES_SERIES_NONE    /* its files are files */
};

struct names {
    enum names_series policy;
    char *series;     /* the folder that the sources mean; then the list is empty. NULL: none */
    struct list list; /* root is absolute, a URI, or "" */
    int remote;       /* the sources are URIs, and no files of this machine */
    int from_folder;  /* some came out of a folder */
    int from_glob;    /* some came out of a glob */
    /* A hash of the sources as written, relative to the root: the same wherever the data is moved,
     * and the same when files come and go. */
    uint64_t key;
};

/* names->policy is set, all else zero. A path that is there wins over its meaning as a glob or a
 * brace list, but for URIs: there, braces and globs are what they look like. Globs are sorted
 * bytewise; lists and braces keep their order. metadata.parquet in a folder is not data; what else
 * lies beside shards in a folder (statistics, notes) is left out too.
 */
STK_CHECK stk_status names_expand(struct names *names, const char *const *sources, uint32_t count,
                                  struct stk_error *err);
void names_free(struct names *names);

#endif
