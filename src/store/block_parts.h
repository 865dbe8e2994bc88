/* block_parts.h -- the inside of a block cache, for block_*.c and their tests alone.
 * Owns: see block_cache.h.   Threads: each field names its lock.   Errors: see block_cache.h.
 * Not here: any contract for callers. */
#ifndef STORE_BLOCK_PARTS_H
#define STORE_BLOCK_PARTS_H

#include <sys/types.h>

#include "store/block_census.h"
#include "store/block_folder.h"

#define BLOCK_QUEUE_MOST 64                        /* blocks that wait to be written */
#define BLOCK_THEIRS_NS (INT64_C(15) * 1000000000) /* how long another process is waited for */

/* A block that was put: it is served from here until it is written. */
struct block_pending {
    struct block_pending *next;
    struct block_key key;
    struct block_object object; /* its uri is our copy */
    uint8_t *data;              /* BLOCK_SIZE bytes, of whole pages; kept with the pending */
    uint32_t length;
    _Atomic uint32_t refs; /* the writer's, and one each reader; the last one frees */
};

struct block_writer {
    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t work;    /* there is something to write, or to stop for */
    pthread_cond_t changed; /* a block came, or was given up */
    struct block_pending *first, **last;
    struct block_pending *free; /* with their memory */
    uint32_t waiting;           /* queued or being written */
    uint32_t made;              /* pendings that there are */
    _Atomic int started;        /* written under the lock; less than 0: no thread could be had */
    int stop;
    pthread_t thread;
    struct segment_writer out; /* the thread's alone */
    struct segment *segment;   /* which it writes to; the thread's alone */
};

struct block_tally {
    _Atomic uint64_t hits, misses, bypassed, written, dropped, damaged;
    _Atomic int no_space;
};

struct block_cache {
    struct block_cache *next; /* of the process; under the registry's lock */
    uint32_t references;      /* under the registry's lock */
    uint32_t forks;           /* registry.forks when it was opened: see is_ours */
    dev_t device;
    ino_t inode; /* of the folder */
    struct block_fault fault;
    struct block_folder folder;
    struct block_index index;
    struct block_writer writer;
    struct block_tally tally;
    struct block_census expected; /* what data sets that are open are made of */
    struct block_census met;      /* what was read: of use where nothing is expected */
    int64_t theirs_ns;            /* BLOCK_THEIRS_NS, but in tests */
    _Atomic int32_t cold;         /* takes that shall have the disk read ahead */
    _Atomic long faults;          /* major ones of the process, when last asked */
    _Atomic int64_t shut_until;   /* clock_coarse: nothing can be stored before */
};

/* block_cache_open with a fault. */
STK_CHECK stk_status block_cache_open_with(struct block_cache **out, const char *folder,
                                           uint64_t size, const struct block_fault *fault,
                                           struct stk_error *err);

/* --- block_writer.c */
void block_writer_init(struct block_writer *writer);
/* Starts the thread where it does not run yet. 0: none could be had. */
int block_writer_start(struct block_cache *cache);
/* Writes what waits, for half a second at most; drops the rest. */
void block_writer_stop(struct block_cache *cache);
int block_writer_is_full(struct block_cache *cache);
/* NULL: too much waits, or there is no memory. refs is 1: the writer's. */
struct block_pending *block_pending_new(struct block_cache *cache,
                                        const struct block_object *object,
                                        const struct block_key *key, const void *data,
                                        uint32_t length);
void block_pending_give(struct block_cache *cache, struct block_pending *pending);
void block_writer_queue(struct block_cache *cache, struct block_pending *pending);
/* Whoever waits for a block looks again. */
void block_writer_tell(struct block_cache *cache);

#endif
