/* list.h -- names: which objects a source means.
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
    char *root; /* the folder that all names are under, no final slash; "" when none is common */
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

#endif
