/* store.h -- where bytes are: opens the objects of one dataset and reads ranges of them, many at
 * once. Owns: open files and maps; knows nothing of samples.   Threads: the store is shared by all;
 * a queue is one thread's from its first read on, but for wake.   Errors: status in each read. Not
 * here: listing names (store/list.h), blocking reads for an indexer (store/scan.h). */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdint.h>
#include <sys/uio.h>

#include "stoker/error.h"

/* One object as the index knows it. version is made by scan_file_version of size, mtime and inode
 * (or of an ETag): an object whose version differs is STK_STALE and never read. */
struct object {
    const char *name; /* path relative to the root, or absolute, or a URI; lives as long as the
                         table */
    uint64_t size, version;
};

/* The objects of a dataset, asked for by number so that ten million need no second table. */
struct object_table {
    const char *root; /* "", a folder or a URI; names are relative to it */
    uint32_t count;
    const void *owner;
    void (*get)(const void *owner, uint32_t number, struct object *out);
};

struct store;
struct store_queue;

/* memory is the caller's, and the store's from submit until reap returns it. The parts' lengths add
 * up to length; they are filled in order. */
struct store_read {
    uint32_t object;
    uint32_t part_count; /* 1 .. STORE_MAX_PARTS */
    uint64_t offset, length;
    struct iovec *parts; /* the store may change them while it owns them */
    void *owner;         /* the caller's */
    stk_status status;   /* set by the store */
    int error_number;    /* errno behind a status of IO, DENIED, ...; else 0 */
};
#define STORE_MAX_PARTS 64
#define STORE_MAX_DEPTH 4096 /* reads in flight in one queue */

enum store_queue_kind { STORE_QUEUE_PREAD, STORE_QUEUE_URING };

/* For objects that are not files of this machine. */
struct store_options {
    const char *cache;   /* a folder for their blocks; NULL: they are fetched each time */
    uint64_t cache_size; /* 0: see store/block_cache.h */
};
/* table is copied; what it points to must outlive the store. options may be NULL. */
STK_CHECK stk_status store_open(struct store **out, const struct object_table *table,
                                const struct store_options *options, struct stk_error *err);
void store_close(struct store *store); /* queues are closed before; NULL is fine */

/* STK_UNSUPPORTED when io_uring is absent, blocked or out of locked memory: use pread then. */
STK_CHECK stk_status store_queue_open(struct store *store, enum store_queue_kind kind,
                                      uint32_t depth, struct store_queue **out,
                                      struct stk_error *err);
/* Takes the first k <= n reads and says k; does not wait for any. 0: it is full, reap first. */
uint32_t store_submit(struct store_queue *queue, struct store_read **reads, uint32_t n);
/* Gives back up to cap finished reads. Waits until there is one, at most wait_ns (0: not at all, <
 * 0: for ever), or until wake. 0 when nothing is in flight. A pread queue reads here, in the
 * caller's thread; with 0 it leaves what is not in the page cache for later, but has the kernel
 * fetch it. */
uint32_t store_reap(struct store_queue *queue, struct store_read **reads, uint32_t cap,
                    int64_t wait_ns);
/* The only call another thread may make: a waiting reap returns. */
void store_wake(struct store_queue *queue);
uint32_t store_in_flight(const struct store_queue *queue);
/* Cancels what is in flight; on return no read's memory is touched any more. NULL is fine. */
void store_queue_close(struct store_queue *queue);

/* Reads one range now, in this thread (a single sample, a substitute). Retries EINTR and short
 * reads. */
stk_status store_read_now(struct store *store, struct store_read *read);

/* The whole object mapped for reading, or NULL when it cannot be mapped (remote, empty, no address
 * space) or is stale (the reads will say so). Mapped once, kept until close; any thread. Copies
 * from it must run under a guard (store/guard.h). */
const uint8_t *store_map(struct store *store, uint32_t object);

/* Not 0: the objects are not files of this machine: nothing is mapped, and reads take as long as a
 * network does. */
int store_is_remote(const struct store *store);
/* What is on its way over a network just now. */
enum store_flow {
    STORE_STILL, /* nothing: all is here */
    STORE_FULL,  /* as much as the link takes, or more */
    STORE_THIN   /* less: more reads at once would be faster */
};
enum store_flow store_flow(const struct store *store);
int store_has_cache(const struct store *store); /* what is fetched is kept on this machine */
/* At most so many bytes for buffers of the store's own, between what is fetched and a cache; what
 * it comes to is returned. 0: it has none. */
uint64_t store_buffers(struct store *store, uint64_t most);

/* A stretch of an object that many small reads will lie in. From hold to let_go it is fetched once,
 * by ranges that suit the network, into memory of the store's, and what of a read lies in it is
 * copied from there. NULL: there is none, and reads go their own ways: files of this machine, a
 * cache (which keeps what was fetched anyway), no memory. Any thread; hold does not wait, let_go
 * waits only until what is still on its way was cancelled. */
struct store_stretch;
struct store_stretch *store_hold(struct store *store, uint32_t object, uint64_t offset,
                                 uint64_t length);
void store_let_go(struct store_stretch *stretch); /* before the store closes; NULL is fine */

/* Not 0: some bytes of this range could not be had lately, with this status. Where a value cannot
 * be read or decoded, it tells a network at fault from a value at fault. Always 0 for files. */
int store_has_failed(const struct store *store, const struct store_read *range);

/* Fills *err from a failed read: what, object, offset and remedy. Returns read->status. */
stk_status store_explain(const struct store *store, const struct store_read *read,
                         struct stk_error *err);

#endif
