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
struct device_decode;
struct resident;
struct ship;
struct stretches;
struct worker;

struct stk_loader {
    struct stk_context *context;
    struct stk_dataset *dataset; /* a reference of its own */
    struct plan *plan;
    struct layout layout;
    struct batch_transform *mixes; /* what is done with whole batches; NULL: nothing */
    struct box_pool *pool;
    struct chunk_cache *chunks;   /* NULL: none; under lock but where its header says */
    struct ship *ship;            /* the stage behind filling: NULL without a device */
    struct resident *resident;    /* its own, for workers to ask; NULL: none */
    struct device_decode *decode; /* its own, for workers to add to; NULL: none */
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
    int remote; /* the data comes over a network: never mapped, and much of it is on its way */
    int mapped; /* values are copied from maps ... */
    uint64_t map_most; /* ... up to this length */
    int trims;         /* the index alone outgrows the budget: its pages are let go of each batch */
    int pin;
    int64_t stall_ns;
    pid_t pid;            /* where they run; stored before `started` */
    uint64_t rows_most;   /* bytes a worker reads before they are gathered or decoded */
    uint64_t fixed_bytes; /* slots and workers: counted against the budget while open */

    pthread_mutex_t lock;
    pthread_cond_t work;              /* a slot was admitted or freed, a chunk is wanted, or stop */
    pthread_cond_t ready;             /* the oldest batch may be ready */
    pthread_cond_t filled;            /* for the ship stage: a batch was filled, or stop */
    struct slot *slots;               /* [depth] */
    _Atomic uint64_t admitted, taken; /* stored under lock (release); loaded anywhere (acquire) */
    _Atomic uint64_t shipped; /* the next one to be shipped: written by the ship stage under lock */
    struct plan_cursor cursor;   /* under lock: admission's */
    struct stretches *stretches; /* under lock; NULL: none */
    uint64_t epoch_end;     /* under lock: this epoch and later ones are not admitted yet. Over a
                               network it is the next one until the caller has turned one ... */
    uint64_t told_end;      /* under lock: ... or what stk_loader_end_at said; 0: nothing */
    struct extent *resolve; /* under lock: room for a batch's extents of the whole index */
    uint64_t admit_epoch, admit_position; /* under lock: where the next slot begins */
    uint32_t deep, deep_least; /* under lock: batches that may be in flight now, of depth. Remote:
                                  it grows while the caller waits for the network, and shrinks while
                                  all comes from a cache; else it is depth */
    uint32_t *ahead;           /* under lock: chunks held for the next group */
    uint32_t ahead_count;
    uint64_t ahead_group;
    _Atomic uint32_t active; /* workers that have spans: see worker_may_claim */
    _Atomic int idle; /* workers waiting for work: written under lock, loaded anywhere (relaxed) */
    uint64_t wakes;   /* under lock: how often there was new work; a worker that saw the last one
                         and found nothing may sleep */
    _Atomic int stop; /* the workers end; also cancels a chunk being decoded */
    _Atomic int discard;   /* what is in flight is not wanted: spans are passed on unread */
    _Atomic int cancelled; /* next gives up once */

    /* the caller's thread */
    _Atomic int busy; /* some thread is inside next, seek or load */
    uint64_t epoch, position;
    struct plan_cursor peek;
    int turned; /* an epoch was drawn to its end */
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

/* There may be new work; under lock. One worker is woken, and whoever finds work wakes the next:
 * the caller, who may have kernels to launch, does not pay for waking them all. */
static inline void loader_wake(struct stk_loader *loader)
{
    loader->wakes++;
    if (loader->idle)
        pthread_cond_signal(&loader->work);
}

/* All of a slot's parts are done; under lock. The batch is the caller's, or has to be shipped. */
static inline void loader_complete(struct stk_loader *loader, struct slot *slot)
{
    if (loader->ship) {
        slot->filled = 1;
        pthread_cond_signal(&loader->filled);
        return;
    }
    atomic_store_explicit(&slot->done, 1, memory_order_release);
    pthread_cond_broadcast(&loader->ready);
}

/* As stk_loader_seek. share: the device decoder's from there on (device_decode_resume); NULL: as it
 * was. */
STK_CHECK stk_status loader_seek(struct stk_loader *loader, uint64_t epoch, uint64_t position,
                                 const double *share, struct stk_error *err);

#endif
