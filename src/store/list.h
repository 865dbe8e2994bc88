/* list.h -- names: which objects a source means. Those that are no files: remote_list_add.
 * Owns: the list's strings, until list_free.   Threads: any, one list each.   Errors: STK_NOT_FOUND
 * and STK_DENIED name the path.   Not here: what the objects hold (dataset/sniff). */
#ifndef STORE_LIST_H
#define STORE_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct listed {
    const char *name;       /* relative to the list's root */
    uint64_t size, version; /* as struct object's; 0 for a folder */
};

/* All zero at first. */
struct list {
    char *root; /* the folder, or the URI, that all names are under, no final slash; "" when none is
                   common */
    struct listed *items;
    uint64_t count, cap;
    char **blocks; /* where the names lie */
    uint64_t block_count;
    size_t block_used, block_size; /* of the last block */
    uint64_t skipped; /* entries that are no plain files: devices, sockets, dangling links */
};

/* Adds one plain file, or every plain file under a folder (recursively, names sorted bytewise,
 * names that begin with a dot left out, symbolic links to files followed, to folders not). */
STK_CHECK stk_status list_add(struct list *list, const char *path, struct stk_error *err);
void list_free(struct list *list);

/* For who adds by himself: makes the folder or URI base lie under the root; *below is its name
 * there, "" for the root itself, and lives as long as the list. STK_USAGE: some of the list's
 * objects are files of this machine and some are not. */
STK_CHECK stk_status list_base(struct list *list, const char *base, const char **below,
                               struct stk_error *err);
STK_CHECK stk_status list_put(struct list *list, const char *below, const char *name, uint64_t size,
                              uint64_t version, struct stk_error *err);

#endif
