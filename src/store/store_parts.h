/* store_parts.h -- what the files of this folder know of a store and of its queues, and nobody
 * else. Owns: see store.h.   Threads: see store.h.   Errors: see store.h.   Not here: any contract
 * for callers. */
#ifndef STORE_STORE_PARTS_H
#define STORE_STORE_PARTS_H

#include <stdatomic.h>

#include "store/file_cache.h"
#include "store/file_map.h"
#include "store/store.h"

struct remote;

struct store {
    struct object_table table;
    struct remote *remote; /* NULL: the objects are files; else there are no files and maps */
    struct remote *_Atomic child; /* in a child of fork(): its own (remote_of) */
    struct store_fault fault;     /* tests alone set it, before the first read */
    struct file_cache *files;
    struct file_map *maps;
};

/* A kind of queue. See store.h for what each must do; wake alone may come from another thread. */
struct store_queue_ops {
    uint32_t (*submit)(struct store_queue *queue, struct store_read **reads, uint32_t n);
    uint32_t (*reap)(struct store_queue *queue, struct store_read **reads, uint32_t cap,
                     int64_t wait_ns);
    void (*wake)(struct store_queue *queue);
    void (*close)(struct store_queue *queue);
};

/* The first member of every kind's struct. */
struct store_queue {
    const struct store_queue_ops *ops;
    struct store *store;
    uint32_t depth;
    uint32_t in_flight; /* submitted and not reaped; the owner thread's */
};

STK_CHECK stk_status pread_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                                      struct stk_error *err);
STK_CHECK stk_status uring_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                                      struct stk_error *err);

#endif
