/* worker.h -- the threads that read and decode: one loop, no hand-over a sample.
 * Owns: its store queue, its spans and their reads, its reader for odd samples.   Threads: a worker
 * is one thread's; worker_run is that thread.   Errors: a failure of our own becomes a bad sample.
 * Not here: what the steps do (fetch_stage.h, fill_stage.h). */
#ifndef LOADER_WORKER_H
#define LOADER_WORKER_H

#include "loader/loader_impl.h"
#include "loader/room.h"

#define FETCH_WASTE (16 << 10)

/* One value to be read: where from, and where its head and its payload go. */
struct piece {
    uint64_t offset, length;
    uint32_t object;
    uint32_t value;    /* place * fields + field, in the slot */
    uint32_t head_len; /* the first bytes go to head, the others to `to` */
    uint32_t read;     /* which read it became a part of */
    uint8_t *head, *to;
};

/* Some samples of a slot that one worker fetches and fills. */
struct span {
    struct slot *slot; /* NULL: free */
    uint32_t first, count;
    uint32_t open;   /* reads that are not back */
    uint32_t copies; /* values to be copied from memory */
    uint32_t piece_count, read_count;
    uint8_t *rows;          /* [loader->span * row_size] stored rows, until they are gathered */
    uint64_t row_size;      /* of one sample */
    struct room encoded;    /* stored bytes that are read for pipelines ... */
    uint64_t encoded_used;  /* ... so many in this span */
    uint64_t encoded_least; /* ... and so many at first */
    struct piece *pieces;
    struct store_read *reads;
    struct iovec *parts;
};

/* The map that a field's last value lies in. */
struct known_map {
    uint32_t object; /* EXTENT_NONE: none yet */
    const uint8_t *data;
};

struct worker {
    struct stk_loader *loader;
    pthread_t thread;
    uint32_t number;
    struct store_queue *queue;
    struct span *spans;
    uint32_t span_count, open_spans;
    uint8_t *waste; /* FETCH_WASTE bytes: what lies between merged values; never looked at */
    struct extent *resolve;    /* room for a span's extents of the whole index */
    struct stk_reader *reader; /* made when first needed */
    struct stk_value *values;
    struct known_map *maps; /* [fields] of the span that is being fetched */
    void *scratch;          /* for arrays in Fortran order; made when first needed */
    uint64_t scratch_size;
    struct pipeline_state *state; /* of all pipelines; made when first needed */
    uint64_t state_bytes;         /* of it that are counted in the budget */
    struct room encoded;          /* a value copied from a map, for a pipeline */
    struct room converted;        /* an array put in order, for a pipeline */
    uint64_t seen;                /* loader->wakes when it last went to sleep */
    uint32_t cold; /* spans left that are taken for cold: copies from maps went to the disk */
    long faults;   /* of this thread that went to the disk, when it last looked */
    struct trace_ring *ring;
    _Atomic uint64_t reads, merged, copies; /* statistics; this thread adds, any may load */
};

/* Bytes of one worker's arrays. */
uint64_t worker_size(const struct stk_loader *loader);
STK_CHECK stk_status worker_init(struct worker *worker, struct stk_loader *loader, uint32_t number,
                                 struct stk_error *err);
STK_CHECK stk_status worker_start(struct worker *worker, struct stk_error *err);
void worker_reset(struct worker *worker); /* after its thread was joined; zeroed is fine */

/* One turn of the loop, for tests too: decodes a chunk, or claims and fetches a span, or takes
 * reads back. 0: there was nothing to do. wait_ns: how long to wait for reads when there is nothing
 * else. */
int worker_turn(struct worker *worker, int64_t wait_ns);

#endif
