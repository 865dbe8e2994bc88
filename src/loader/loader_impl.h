/* loader_impl.h -- what the loader's own files share: the loader itself.
 * Owns: see stoker/loader.h.   Threads: `lock` guards what names it; the rest is set at open, or
 * names its owner.   Errors: none.   Not here: any behaviour.
 *
 * Batches are numbered by admission: `taken` is the next one the caller gets, `admitted` the next
 * one to be admitted, and batch n lives in slots[n % depth]. A slot is free again when its batch
 * was taken. */
#ifndef LOADER_LOADER_IMPL_H
#define LOADER_LOADER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/context.h"
#include "loader/box.h"
#include "loader/chunk_cache.h"
#include "loader/plan.h"
#include "loader/slot.h"
#include "store/store.h"
#include "trace/trace.h"

struct batch_transform;
struct worker;

struct stk_loader {
    struct stk_context *context;
    struct stk_dataset *dataset; /* a reference of its own */
    struct plan *plan;
    struct layout layout;
    struct batch_transform *mixes; /* what is done with whole batches; NULL: nothing */
    struct box_pool *pool;
    struct chunk_cache *chunks; /* NULL: none; under lock but where its header says */
    struct trace *trace;
    struct trace_ring *ring; /* the caller's */
    char *trace_path;
    struct worker *workers;
    uint32_t worker_count;
    _Atomic uint32_t started; /* workers whose thread runs: stored once all are there (release),
                                 loaded anywhere (acquire) */
    uint32_t depth, span, local_rank, local_world;
    uint32_t objects; /* stored ones: larger numbers in extents are chunks */
    enum stk_bad_policy bad_policy;
    enum store_queue_kind queue_kind;
    int early;  /* samples are resolved at admission: their sizes or chunks are needed there */
    int mapped; /* values are copied from maps */
    int trims;  /* the index alone outgrows the budget: its pages are let go of each batch */
    int pin;
    int64_t stall_ns;
    pid_t pid;            /* where they run; stored before `started` */
    uint64_t fixed_bytes; /* slots and workers: counted against the budget while open */

    pthread_mutex_t lock;
    pthread_cond_t work;              /* a slot was admitted or freed, a chunk is wanted, or stop */
    pthread_cond_t ready;             /* the oldest batch may be ready */
    struct slot *slots;               /* [depth] */
    _Atomic uint64_t admitted, taken; /* stored under lock (release); loaded anywhere (acquire) */
    struct plan_cursor cursor;        /* under lock: admission's */
    struct extent *resolve; /* under lock: room for a batch's extents of the whole index */
    uint64_t admit_epoch, admit_position; /* under lock: where the next slot begins */
    uint32_t *ahead;                      /* under lock: chunks held for the next group */
    uint32_t ahead_count;
    uint64_t ahead_group;
    int idle;            /* under lock: workers waiting for work */
    uint64_t wakes;      /* under lock: how often there was new work; a worker that saw the last one
                            and found nothing may sleep */
    _Atomic int stop;    /* the workers end; also cancels a chunk being decoded */
    _Atomic int discard; /* what is in flight is not wanted: spans are passed on unread */
    _Atomic int cancelled; /* next gives up once */

    /* the caller's thread */
    _Atomic int busy; /* some thread is inside next, seek or load */
    uint64_t epoch, position;
    struct plan_cursor peek;
    int failed;
    struct stk_error failure;
    int64_t first_next, last_return;
    int64_t wait_begin; /* 0: the caller does not wait, or got its batch */
    int stall_told;

    /* statistics: under lock */
    uint64_t samples, batches, bytes, bad;
    struct stk_wait waits;
    struct stk_quarantined *quarantine;
    uint64_t quarantine_count, quarantine_cap;
};

/* There may be new work; under lock. */
static inline void loader_wake(struct stk_loader *loader)
{
    loader->wakes++;
    if (loader->idle)
        pthread_cond_broadcast(&loader->work);
}

#endif
