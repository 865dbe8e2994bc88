/* block_cache.h -- blocks of remote objects on this machine's disk, shared by all its processes.
 * Owns: a folder of files.   Threads: any.   Errors: none that stop a read: what the cache cannot
 * do is BLOCK_BYPASS, counted. Only opening fails.   Not here: fetching (remote_queue.c).
 *
 * Nothing wrong is ever served: each piece of 64 KiB of a block has a checksum, which is compared
 * when this process first reads that piece; and a block belongs to one version of one object.
 * A process that dies at any moment leaves nothing that another must clean before it can go on.
 * How it lies on the disk: block_segment.h. */
#ifndef STORE_BLOCK_CACHE_H
#define STORE_BLOCK_CACHE_H

#include <stdint.h>
#include <sys/uio.h>

#include "stoker/error.h"

#define BLOCK_SIZE (UINT64_C(1) << 20) /* the last one of an object is shorter */

struct block_cache;

#define BLOCK_CACHE_LEAST (2 * BLOCK_SIZE) /* with its books; a smaller cache is refused */

/* Finds or makes the folder. size: most bytes that blocks may take on the disk; 0: what the folder
 * was made with, else a tenth of the disk. One block_cache a process and folder: a second open
 * gives the same. */
STK_CHECK stk_status block_cache_open(struct block_cache **out, const char *folder, uint64_t size,
                                      struct stk_error *err);
void block_cache_close(struct block_cache *cache); /* refs are given back before; NULL is fine */

/* Somebody is going to read this object; and no more. What does not fit is chosen by the sum of
 * them: of data twice as large as the cache, half of the blocks are kept, always the same ones, so
 * that every epoch hits half. An object that several expect counts once. Where nobody said, the
 * sizes of the objects that were taken are added up. */
void block_cache_expect(struct block_cache *cache, const char *uri, uint64_t size);
void block_cache_expect_no_more(struct block_cache *cache, const char *uri, uint64_t size);

/* One version of one object. uri without secrets. */
struct block_object {
    uint8_t id[16]; /* block_object_id */
    uint64_t size;
    const char *uri;
};
void block_object_id(const char *uri, uint64_t size, uint64_t version, uint8_t out[16]);

enum block_state {
    BLOCK_HERE,   /* pinned until block_give: it is not evicted */
    BLOCK_YOURS,  /* nobody has it: fetch it, then block_put or block_give */
    BLOCK_COMING, /* another thread or process fetches it: ask again, or wait with block_wait */
    BLOCK_BYPASS  /* the cache cannot help with this one: read past it */
};
struct block_ref {
    struct block_cache *cache;
    struct block_object object;
    uint64_t number; /* of the block in the object */
    void *entry;     /* the cache's own */
    uint64_t inside[4];
};
/* Takes microseconds; never waits for a disk longer than opening a file does. Whoever fetched and
 * died is found out: its blocks become YOURS for the next. */
enum block_state block_take(struct block_cache *cache, const struct block_object *object,
                            uint64_t number, struct block_ref *out);
/* What block_take would say, without claim, pin or count. COMING is said as YOURS. */
enum block_state block_peek(struct block_cache *cache, const struct block_object *object,
                            uint64_t number);
/* HERE: copies [offset, offset + the parts' lengths) of the block out, and checks it. 0: done.
 * -1: it is damaged; it is gone from the cache, and the ref with it: take it again. */
int block_read(struct block_ref *ref, uint64_t offset, const struct iovec *parts,
               uint32_t part_count);
/* YOURS: the whole block's bytes. Written by a thread of the cache from a copy, or, when too much
 * waits to be written, not at all (counted). Others that wait for it are told when it is HERE or
 * dropped. The ref is given back. */
void block_put(struct block_ref *ref, const void *data, uint64_t length);
/* HERE: no longer needed. YOURS: it could not be fetched. */
void block_give(struct block_ref *ref);
/* Waits until a COMING block may have changed, at most wait_ns. */
void block_wait(struct block_cache *cache, const struct block_object *object, uint64_t number,
                int64_t wait_ns);
/* Waits until at most `most` blocks wait to be written, at most wait_ns. 1: so it is. */
int block_cache_settle(struct block_cache *cache, uint32_t most, int64_t wait_ns);

struct block_counts {
    uint64_t hits, misses, bypassed, written, dropped, damaged, evicted; /* blocks */
    uint64_t bytes, limit;                                               /* on the disk */
    int no_space;                                                        /* ENOSPC was met */
};
void block_cache_counts(struct block_cache *cache, struct block_counts *out);
/* The same of the cache in that folder, when this process has it open; else 0. */
int block_cache_counts_of(const char *folder, struct block_counts *out);

#endif
