/* cache.h -- the folder in which this machine keeps what it fetched from the network: what is in
 * it, whether it is sound, filling it ahead, emptying it.
 * Owns: nothing.   Threads: any; also while loaders of this and other processes use the folder.
 * Errors: status, words in nullable *err; STK_NOT_FOUND: the folder holds no cache.
 * Not here: reading through it (stk_dataset_options.cache). */
#ifndef STOKER_CACHE_H
#define STOKER_CACHE_H

#include <stdint.h>

#include "stoker/context.h"

struct stk_dataset;

/* One version of one object, as far as it is kept. */
struct stk_cache_object {
    const char *uri;       /* "" when it is not known; lives until the call returns */
    uint64_t size;         /* of the whole object */
    uint64_t cached_bytes; /* of it */
    uint64_t blocks;       /* that they are in, of 1 MiB each but the last */
    uint8_t id[16];        /* of this version */
};
/* Calls object for each, sorted by URI. */
STK_API STK_CHECK stk_status stk_cache_list(const char *folder,
                                            void (*object)(void *user,
                                                           const struct stk_cache_object *object),
                                            void *user, struct stk_error *err);

struct stk_cache_stat {
    uint64_t limit;        /* most bytes it may take on the disk; 0: not set */
    uint64_t disk_bytes;   /* that it takes; a file that is still written to counts as full */
    uint64_t cached_bytes; /* of objects */
    uint64_t objects, blocks, files;
    uint64_t hidden_files; /* of other users, which this one may not read */
    uint64_t old_layouts;  /* folders that other versions of Stoker made: clear removes them */
};
STK_API STK_CHECK stk_status stk_cache_stat(const char *folder, struct stk_cache_stat *out,
                                            struct stk_error *err);

/* What a cache did for this process since it opened it first: blocks of 1 MiB. */
struct stk_cache_counts {
    uint64_t hits, misses;
    uint64_t
        bypassed; /* of the misses: not kept, since it is too small, full or not to be written */
    uint64_t written, dropped; /* dropped: could not be written, or not in time */
    uint64_t damaged, evicted;
    int disk_full; /* not 0: it was, at some time */
};
/* 0: this process has no dataset open that uses this folder; *out is all 0 then. */
STK_API int stk_cache_counts(const char *folder, struct stk_cache_counts *out);

/* Reads all that is kept and compares it with its checksums. Calls bad for each block that is
 * damaged, with where it begins in its object; such a block is dropped, and will be fetched again.
 * STK_OK even when some were: *bad_count says. */
STK_API STK_CHECK stk_status stk_cache_verify(struct stk_context *context, const char *folder,
                                              void (*bad)(void *user, const char *uri,
                                                          uint64_t offset),
                                              void *user, uint64_t *bad_count,
                                              struct stk_error *err);

struct stk_cache_cleared {
    uint64_t files, bytes;
    uint64_t kept_files; /* of other users, which this one may not remove */
};
/* Removes all that is kept. Who reads from it at the time is not disturbed. */
STK_API STK_CHECK stk_status stk_cache_clear(const char *folder, struct stk_cache_cleared *out,
                                             struct stk_error *err);

struct stk_cache_warmed {
    uint64_t blocks, bytes;  /* of all objects of the dataset */
    uint64_t here_blocks;    /* that were kept before */
    uint64_t fetched_blocks; /* that are kept now, too */
    uint64_t fetched_bytes;  /* that were read for them */
    uint64_t left_blocks;    /* for which the cache is too small */
};
/* Fetches every object of a dataset that was opened with a cache into it, as much as fits.
 * STK_USAGE: it was opened without, or is on this machine. */
STK_API STK_CHECK stk_status stk_cache_warm(struct stk_context *context,
                                            struct stk_dataset *dataset,
                                            struct stk_cache_warmed *out, struct stk_error *err);

#endif
