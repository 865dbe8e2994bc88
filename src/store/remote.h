/* remote.h -- the part of a store whose objects are not files: where they lie, and how their bytes
 * come. Owns: sites, the cache.   Threads: as store.h.   Errors: as store.h.
 * Not here: HTTP (net/), files on this machine (file_cache.h). */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include "base/text.h"
#include "store/list.h"
#include "store/store_parts.h"

struct remote;

/* Not 0: the objects' root, or the first name where there is none, is a URI of a site. */
int remote_is(const struct object_table *table);
STK_CHECK stk_status remote_open(struct remote **out, const struct object_table *table,
                                 const struct store_options *options, struct stk_error *err);
void remote_close(struct remote *remote);

STK_CHECK stk_status remote_queue_open(struct store *store, uint32_t depth,
                                       struct store_queue **out, struct stk_error *err);
stk_status remote_read_now(struct store *store, struct store_read *read);
enum store_flow remote_flow(struct remote *remote); /* as store_flow */
int remote_has_cache(const struct remote *remote);
/* As store_buffers. */
uint64_t remote_buffers(struct store *store, uint64_t most);
/* As store_hold, store_let_go. */
struct store_stretch *remote_stretch_hold(struct store *store, uint32_t object, uint64_t offset,
                                          uint64_t length);
void remote_stretch_let_go(struct store_stretch *stretch);
/* As store_explain, with the words that the last failed fetch there had; STK_OK: they are not kept
 * any more. */
stk_status remote_explain(const struct store *store, const struct store_read *read,
                          struct stk_error *err);

/* list_add for URIs: one object; all under a folder (a prefix that ends at a slash, whether written
 * or not; names with a part that begins with a dot left out, markers of folders too); a glob
 * (fnmatch: * and ? and [] stop at slashes, ** does not). *kind says which it was. Plain HTTP
 * cannot list: a folder or a glob there is STK_UNSUPPORTED, with a remedy (braces). Many URIs at
 * once, so that a brace list of a thousand objects is asked about in parallel. */
enum remote_kind { REMOTE_OBJECT, REMOTE_FOLDER, REMOTE_GLOB };
STK_CHECK stk_status remote_list_add(struct list *list, const char *const *uris, uint32_t count,
                                     enum remote_kind *kinds, struct stk_error *err);

/* A whole small object (an index, metadata.json), at most `most` bytes. */
STK_CHECK stk_status remote_get(const char *uri, uint64_t most, struct text *out,
                                struct stk_error *err);

/* A blocking reader for scan.c. It reads ahead where reads follow one another closely. */
struct remote_scan;
STK_CHECK stk_status remote_scan_open(struct remote_scan **out, const char *uri, uint64_t *size,
                                      uint64_t *version, struct stk_error *err);
/* Of an object that a remote store has: through its cache, and without asking how long it is. */
STK_CHECK stk_status remote_scan_of(struct remote_scan **out, struct store *store, uint32_t number,
                                    struct stk_error *err);
void remote_scan_close(struct remote_scan *scan);
void remote_scan_limit(struct remote_scan *scan, uint64_t end); /* as scan_limit */
STK_CHECK stk_status remote_scan_read(struct remote_scan *scan, uint64_t offset, void *to,
                                      size_t len, size_t *got, struct stk_error *err);

#endif
