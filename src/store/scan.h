/* scan.h -- a blocking reader of one object, for whoever builds an index or decodes a chunk.
 * Owns: the open file.   Threads: one at a time for one scan.   Errors: status, words in nullable
 * *err that name the object and the offset.   Not here: asynchronous reads (store.h). */
#ifndef STORE_SCAN_H
#define STORE_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct scan;

struct store;

/* name: relative to root ("" for none), or absolute, or a URI. What is not on this machine is read
 * ahead where reads follow one another closely. */
STK_CHECK stk_status scan_open(struct scan **out, const char *root, const char *name,
                               struct stk_error *err);
/* An object of a store, whose size and version are taken for what its table says: the first read
 * finds out. What is not on this machine comes through the store's cache. The store must outlive
 * it. */
STK_CHECK stk_status scan_open_object(struct scan **out, struct store *store, uint32_t number,
                                      struct stk_error *err);
void scan_close(struct scan *scan);
/* Nothing from there on will be wanted: it is not read ahead. */
void scan_limit(struct scan *scan, uint64_t end);
uint64_t scan_size(const struct scan *scan);
uint64_t scan_version(const struct scan *scan); /* as struct object's */
const char *scan_name(const struct scan *scan);

/* Reads up to len bytes at offset; *got is less only at the end of the object. */
STK_CHECK stk_status scan_read(struct scan *scan, uint64_t offset, void *to, size_t len,
                               size_t *got, struct stk_error *err);
/* As scan_read, but STK_TRUNCATED when fewer than len are there. */
STK_CHECK stk_status scan_read_all(struct scan *scan, uint64_t offset, void *to, size_t len,
                                   struct stk_error *err);

/* The version of a local file, from stat(2)'s size, mtime and inode. */
uint64_t scan_file_version(uint64_t size, int64_t mtime_sec, int64_t mtime_nsec, uint64_t inode);

#endif
