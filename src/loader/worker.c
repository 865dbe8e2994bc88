#include "loader/worker.h"

#include "base/fail.h"
#include "base/memory.h"
#include "loader/admit.h"
#include "loader/fetch_stage.h"
#include "loader/fill_stage.h"
#include "store/remote_settings.h"
#include "work/cores.h"

#define QUEUE_DEPTH 64 /* reads in flight a worker */
#define QUEUE_REMOTE                                                                               \
    256               /* ... over a network, where the store decides how many are sent at once     \
                       */
#define SPANS_LEAST 2 /* spans in flight a worker: while one is filled, another is read */
#define SPANS_MOST 32
#define SPANS_REMOTE 128
#define WORKER_NICE 5    /* launching kernels late costs more than decoding late */
#define REAP_NS 50000000 /* how long a wait for reads lasts before stop is looked at */

/* --- making ----------------------------------------------------------------------------------- */

static uint64_t span_values(const struct stk_loader *loader)
{
    return (uint64_t)loader->span * loader->layout.field_count;
}

static uint32_t queue_depth(const struct stk_loader *loader)
{
    return loader->remote ? QUEUE_REMOTE : QUEUE_DEPTH;
}

static uint32_t span_count(const struct stk_loader *loader)
{
    uint64_t fit = queue_depth(loader) / span_values(loader);
    uint64_t most = loader->remote ? SPANS_REMOTE : SPANS_MOST;
    uint64_t rows = loader->span * (loader->layout.rows + loader->layout.encoded);
    if (rows && fit > loader->rows_most / rows)
        fit = loader->rows_most / rows;
    return fit < SPANS_LEAST ? SPANS_LEAST : fit > most ? (uint32_t)most : (uint32_t)fit;
}

uint64_t worker_size(const struct stk_loader *loader)
{
    uint64_t value = sizeof(struct piece) + sizeof(struct store_read) + 3 * sizeof(struct iovec);
    uint64_t index_fields = index_field_count(dataset_index(loader->dataset));
    uint64_t rows = loader->span * loader->layout.rows;
    return FETCH_WASTE +
           span_count(loader) * (sizeof(struct span) + span_values(loader) * value + rows) +
           loader->span * index_fields * sizeof(struct extent);
}

static stk_status span_init(struct span *span, const struct stk_loader *loader,
                            struct stk_error *err)
{
    uint64_t values = span_values(loader);
    span->pieces = memory_zero(values, sizeof *span->pieces);
    span->reads = memory_zero(values, sizeof *span->reads);
    span->parts = memory_zero(values, 3 * sizeof *span->parts); /* gap, head, payload */
    uint64_t encoded = loader->span * loader->layout.encoded;
    span->encoded_least = encoded <= loader->rows_most ? encoded : 0;
    span->row_size = loader->layout.rows;
    span->rows = memory_zero(loader->span, span->row_size + !span->row_size);
    if (!span->pieces || !span->reads || !span->parts || !span->rows)
        return fail_memory(err, values * sizeof *span->pieces);
    return STK_OK;
}

static stk_status worker_open_queue(struct worker *worker, struct stk_error *err)
{
    const struct stk_loader *loader = worker->loader;
    return store_queue_open(dataset_store(loader->dataset), loader->queue_kind, queue_depth(loader),
                            &worker->queue, err);
}

stk_status worker_init(struct worker *worker, struct stk_loader *loader, uint32_t number,
                       struct stk_error *err)
{
    uint64_t index_fields = index_field_count(dataset_index(loader->dataset));
    *worker = (struct worker){.loader = loader, .number = number};
    worker->span_count = span_count(loader);
    worker->ring = trace_ring(loader->trace, number + 1, "worker");
    worker->spans = memory_zero(worker->span_count, sizeof *worker->spans);
    worker->waste = memory_alloc(FETCH_WASTE);
    worker->resolve = memory_zero(loader->span * index_fields, sizeof *worker->resolve);
    worker->values = memory_zero(loader->layout.field_count, sizeof *worker->values);
    worker->maps = memory_zero(loader->layout.field_count, sizeof *worker->maps);
    if (!worker->spans || !worker->waste || !worker->resolve || !worker->values || !worker->maps)
        return fail_memory(err, worker_size(loader));
    for (uint32_t i = 0; i < worker->span_count; i++) {
        stk_status status = span_init(&worker->spans[i], loader, err);
        if (status)
            return status;
    }
    return worker_open_queue(worker, err);
}

void worker_reset(struct worker *worker)
{
    store_queue_close(worker->queue);
    for (uint32_t i = 0; worker->spans && i < worker->span_count; i++) {
        memory_free(worker->spans[i].pieces);
        memory_free(worker->spans[i].reads);
        memory_free(worker->spans[i].parts);
        memory_free(worker->spans[i].rows);
        room_reset(&worker->spans[i].encoded, box_pool_budget(worker->loader->pool));
    }
    if (worker->loader) {
        struct budget *budget = box_pool_budget(worker->loader->pool);
        budget_give(budget, worker->scratch_size + worker->state_bytes);
        room_reset(&worker->encoded, budget);
        room_reset(&worker->converted, budget);
    }
    pipeline_state_free(worker->state);
    stk_reader_free(worker->reader);
    memory_free(worker->spans);
    memory_free(worker->waste);
    memory_free(worker->resolve);
    memory_free(worker->values);
    memory_free(worker->maps);
    memory_free(worker->scratch);
    *worker = (struct worker){0};
}

/* --- one turn --------------------------------------------------------------------------------- */

/* Claims the next places of the oldest slot that has any. A slot that is taken and admitted anew
 * meanwhile does no harm: what a claim finds is one number, and it is of either batch. */
static int worker_claim(struct stk_loader *loader, struct span *span)
{
    uint64_t taken = atomic_load_explicit(&loader->taken, memory_order_acquire);
    uint64_t admitted = atomic_load_explicit(&loader->admitted, memory_order_acquire);
    for (uint64_t n = taken; n < admitted; n++) {
        struct slot *slot = &loader->slots[n % loader->depth];
        if (atomic_load_explicit(&slot->unclaimed, memory_order_relaxed) <= 0)
            continue;
        int64_t left =
            atomic_fetch_sub_explicit(&slot->unclaimed, loader->span, memory_order_acquire);
        if (left <= 0)
            continue;
        span->slot = slot;
        span->first = slot->share.real - (uint32_t)left;
        span->count = left < loader->span ? (uint32_t)left : loader->span;
        return 1;
    }
    return 0;
}

/* With a device, workers hold back while batches wait for the caller: its thread launches kernels,
 * and cores that are busy beside it make that slower (shared caches, memory and hyper-threads). Up
 * to one batch ready: all may work; two: half of them; more: a quarter. Measured on 16 cores with
 * an H200, a 3D-CNN whose kernels are launched one by one, single runs of 2 s: 12 workers at full
 * speed 0.83 of the bound, 5 of them 1.01. With one batch ready it would be too soon: a caller that
 * only draws has one now and then, and workers would sleep and be woken in every batch. */
static int worker_may_claim(const struct worker *worker)
{
    struct stk_loader *loader = worker->loader;
    if (!loader->ship)
        return 1;
    uint64_t taken = atomic_load_explicit(&loader->taken, memory_order_acquire);
    uint64_t shipped = atomic_load_explicit(&loader->shipped, memory_order_relaxed);
    uint64_t ready = shipped > taken ? shipped - taken : 0;
    uint32_t most = loader->worker_count >> (ready < 2 ? 0 : ready == 2 ? 1 : 2);
    uint32_t active = atomic_load_explicit(&loader->active, memory_order_relaxed);
    return active - (worker->open_spans > 0) < (most ? most : 1);
}

static void worker_finish_span(struct worker *worker, struct span *span)
{
    struct stk_loader *loader = worker->loader;
    struct slot *slot = span->slot;
    if (!atomic_load_explicit(&loader->discard, memory_order_relaxed))
        fill_step(worker, span);
    span->slot = NULL;
    if (--worker->open_spans == 0)
        atomic_fetch_sub_explicit(&loader->active, 1, memory_order_relaxed);
    if (!fill_part_done(loader, slot))
        return;
    pthread_mutex_lock(&loader->lock);
    loader_complete(loader, slot);
    pthread_mutex_unlock(&loader->lock);
}

/* Takes back what was read; spans that are complete are filled at once, while their bytes are warm.
 */
static int worker_collect(struct worker *worker, int64_t wait_ns)
{
    struct store_read *back[16];
    struct trace_ring *ring = worker->loader->remote && wait_ns ? worker->ring : NULL;
    int64_t begin = trace_begin(ring);
    uint32_t n = store_reap(worker->queue, back, 16, wait_ns);
    trace_end(ring, begin, "network", n, 0);
    for (uint32_t i = 0; i < n; i++)
        fetch_done(back[i]);
    for (uint32_t i = 0; i < worker->span_count && worker->open_spans; i++)
        if (worker->spans[i].slot && worker->spans[i].open == 0)
            worker_finish_span(worker, &worker->spans[i]);
    return n > 0;
}

/* What is on its way is not wanted any more, and may be long in coming over a network: it is
 * cancelled with its queue. */
static int worker_abandon(struct worker *worker)
{
    struct store_queue *old = worker->queue;
    if (worker_open_queue(worker, NULL)) {
        worker->queue = old; /* then it is waited for */
        return 0;
    }
    store_queue_close(old);
    for (uint32_t i = 0; i < worker->span_count; i++)
        if (worker->spans[i].slot) {
            worker->spans[i].open = 0;
            worker_finish_span(worker, &worker->spans[i]);
        }
    return 1;
}

static struct span *worker_free_span(struct worker *worker)
{
    for (uint32_t i = 0; i < worker->span_count; i++)
        if (!worker->spans[i].slot)
            return &worker->spans[i];
    return NULL;
}

/* There may be more where this came from: see loader_wake. */
static void wake_another(const struct worker *worker)
{
    struct stk_loader *loader = worker->loader;
    if (!atomic_load_explicit(&loader->idle, memory_order_relaxed) || !worker_may_claim(worker))
        return;
    pthread_mutex_lock(&loader->lock);
    if (loader->idle)
        pthread_cond_signal(&loader->work);
    pthread_mutex_unlock(&loader->lock);
}

static int worker_fetch(struct worker *worker)
{
    struct span *span = worker_free_span(worker);
    if (!span || !worker_may_claim(worker) || !worker_claim(worker->loader, span))
        return 0;
    if (worker->open_spans++ == 0)
        atomic_fetch_add_explicit(&worker->loader->active, 1, memory_order_relaxed);
    wake_another(worker);
    span->open = 0;
    if (!atomic_load_explicit(&worker->loader->discard, memory_order_relaxed))
        fetch_step(worker, span);
    worker_collect(worker, 0);
    return 1;
}

static int worker_decode_chunk(struct worker *worker)
{
    struct stk_loader *loader = worker->loader;
    uint32_t chunk;
    pthread_mutex_lock(&loader->lock);
    int found = loader->chunks && chunk_cache_next(loader->chunks, &chunk);
    pthread_mutex_unlock(&loader->lock);
    if (!found)
        return 0;
    wake_another(worker);
    int64_t begin = trace_begin(worker->ring);
    chunk_cache_decode(loader->chunks, chunk, &loader->stop);
    trace_end(worker->ring, begin, "chunk", chunk, 0);
    pthread_mutex_lock(&loader->lock);
    chunk_cache_done(loader->chunks, chunk);
    admit_chunk_done(loader);
    loader_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    return 1;
}

static int worker_admit(struct worker *worker)
{
    struct stk_loader *loader = worker->loader;
    pthread_mutex_lock(&loader->lock);
    int admitted = !loader->discard && admit_next(loader);
    if (admitted)
        loader_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    return admitted;
}

int worker_turn(struct worker *worker, int64_t wait_ns)
{
    if (worker->loader->remote && worker->open_spans && worker->loader->discard &&
        worker_abandon(worker))
        return 1;
    if (worker->loader->chunks && worker_decode_chunk(worker))
        return 1;
    if (worker_fetch(worker) || worker_admit(worker))
        return 1;
    return worker->open_spans && worker_collect(worker, wait_ns);
}

/* --- the thread ------------------------------------------------------------------------------- */

/* Sleeps unless something changed since the turn that found nothing began. */
static void worker_sleep(struct worker *worker)
{
    struct stk_loader *loader = worker->loader;
    int64_t begin = trace_begin(worker->ring);
    pthread_mutex_lock(&loader->lock);
    if (!loader->stop && loader->wakes == worker->seen) {
        loader->idle++;
        pthread_cond_wait(&loader->work, &loader->lock);
        loader->idle--;
    }
    worker->seen = loader->wakes;
    pthread_mutex_unlock(&loader->lock);
    trace_end(worker->ring, begin, "idle", 0, 0);
}

static int worker_is_stopped(void *user)
{
    struct stk_loader *loader = user;
    return atomic_load_explicit(&loader->stop, memory_order_relaxed);
}

static void *worker_run(void *user)
{
    struct worker *worker = user;
    struct stk_loader *loader = worker->loader;
    remote_patience_set((struct remote_patience){worker_is_stopped, loader});
    while (!atomic_load_explicit(&loader->stop, memory_order_relaxed))
        if (!worker_turn(worker, REAP_NS) && worker->open_spans == 0)
            worker_sleep(worker);
    return NULL;
}

stk_status worker_start(struct worker *worker, struct stk_error *err)
{
    struct stk_loader *loader = worker->loader;
    struct cores_place place = {.number =
                                    loader->local_rank * loader->worker_count + worker->number,
                                .pin = loader->pin,
                                .nice = WORKER_NICE,
                                .name = "stoker"};
    return cores_start(&worker->thread, worker_run, worker, &place, err);
}
