/* remote_names.h -- what URIs among the sources of a dataset mean. Braces are expanded first, and
 * all that they give is asked for at once.
 * Owns: nothing.   Threads: any, one names each.   Errors: as names.h, and those of the store.
 * Not here: asking the store (store/remote.h), files of this machine (names.c). */
#ifndef DATASET_REMOTE_NAMES_H
#define DATASET_REMOTE_NAMES_H

#include "dataset/names.h"

/* Not 0: the source is a URI of a store that is no file system of this machine. */
int remote_names_is(const char *source);

/* Adds what all sources, URIs each, mean to names->list; or sets names->series. */
STK_CHECK stk_status remote_names_add(struct names *names, const char *const *sources,
                                      uint32_t count, struct stk_error *err);

/* Adds what URIs mean to a list, and tells of each which of its objects are its own: in order, once
 * all is known. Braces are expanded: uri is one of what they give. */
struct remote_share {
    const char *uri;
    int is_folder;
    uint64_t first, count;
};
STK_CHECK stk_status remote_names_list(struct list *list, const char *const *sources,
                                       uint32_t count,
                                       void (*tell)(void *user, const struct remote_share *share),
                                       void *user, struct stk_error *err);

/* The part of a URI that counts for the key: no slashes at its end. */
size_t remote_names_length(const char *source);

/* A source as messages may show it: without a query, and without user and password of HTTP, where
 * secrets may be. out is also what it returns. */
#define REMOTE_NAMES_SHOWN 512
const char *remote_names_shown(const char *source, char out[REMOTE_NAMES_SHOWN]);

#endif
