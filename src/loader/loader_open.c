/* Opening and closing: everything that is decided once. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "loader/admit.h"
#include "loader/batch_transform.h"
#include "loader/layout.h"
#include "loader/loader_impl.h"
#include "loader/resident.h"
#include "loader/ship_stage.h"
#include "loader/stretches.h"
#include "loader/worker.h"
#include "store/guard.h"
#include "work/cores.h"

#define MEMORY_DEFAULT ((uint64_t)2 << 30)
#define STALL_DEFAULT 30.0
#define SPAN_BYTES (256 << 10) /* worth one claim */
#define AHEAD_BYTES (16 << 20) /* what small batches may fill ahead: it should stay in a cache */
#define DEPTH_LEAST 3          /* one being filled, one ready, one in between */
#define DEPTH_MOST 8
#define DEPTH_DEVICE                                                                               \
    4 /* more with a device: one being copied, and those that are there already                    \
       */
/* Over a network as much has to be on its way as it brings in one round trip, and more for the slow
 * ones among the answers: 256 MiB are 2 GB/s at 100 ms and then some. Never more than a quarter of
 * the budget. */
#define AHEAD_REMOTE (256 << 20)
#define DEPTH_REMOTE 64
#define SPAN_REMOTE (1 << 20) /* worth one request */
#define ROWS_LOCAL (4 << 20)  /* see rows_most */
#define ROWS_REMOTE (32 << 20)
#define BUFFERS_REMOTE (128 << 20) /* between the network and a cache */
#define SAMPLES_AN_OBJECT 4        /* from here on an object is worth a map */
/* For a device long values are read, not copied from maps: what read writes is in the caches when
 * the device fetches it (same measurement: 53 GB/s against 45). Short ones would cost a call each.
 */
#define MAP_MOST_DEVICE (128 << 10)
#define ENCODED_MOST (16 << 20) /* bytes of encoded values a worker is taken to hold */
#define SPAN_RESIDENT 1024      /* windows that the device gathers, in one claim */
#define SPAN_DECODED 4          /* samples of media in one claim: each is much work */

/* --- choosing --------------------------------------------------------------------------------- */

static void choose_span(struct stk_loader *loader)
{
    uint64_t bytes = loader->remote ? SPAN_REMOTE : SPAN_BYTES;
    uint64_t fit = bytes / (layout_typical(&loader->layout) + loader->layout.rows);
    uint64_t fair = loader->layout.capacity / (2 * (uint64_t)loader->worker_count);
    uint64_t span = fit < fair ? fit : fair;
    if (loader->layout.decodes && span > SPAN_DECODED)
        span = SPAN_DECODED;
    if (loader->resident && resident_needs_extents(loader->resident)) /* windows: a number each */
        span = SPAN_RESIDENT < fair ? SPAN_RESIDENT : fair;
    loader->span = span < 1 ? 1 : (uint32_t)span;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Two or three large batches in flight beat eight (first touch is what costs); small ones go
 * deeper, so that the caller and the workers seldom wait for each other. */
static void choose_depth(struct stk_loader *loader, uint32_t asked, uint64_t limit)
{
    uint64_t box = layout_typical(&loader->layout) * loader->layout.capacity + 1;
    uint64_t ahead = loader->remote ? smaller(AHEAD_REMOTE, limit / 4) : AHEAD_BYTES;
    uint64_t most = loader->remote ? DEPTH_REMOTE : DEPTH_MOST;
    uint64_t depth = asked ? asked : ahead / box;
    if (!asked)
        depth = depth < DEPTH_LEAST ? DEPTH_LEAST : smaller(depth, most);
    while (depth > 1 && depth * box > limit)
        depth--;
    if (loader->ship && !asked) /* their boxes are back with the workers by then */
        depth += DEPTH_DEVICE;
    loader->depth = loader->deep = loader->deep_least = (uint32_t)depth;
    if (loader->remote && !asked) { /* memory that was just used is still in the caches */
        uint64_t least = smaller(AHEAD_BYTES / box, DEPTH_MOST) + (loader->ship ? DEPTH_DEVICE : 0);
        least = least < DEPTH_LEAST ? DEPTH_LEAST : least;
        loader->deep = loader->deep_least = (uint32_t)smaller(least, depth);
    }
}

/* What pipelines hold while they run, roughly: a few very long values must not count for all. */
static uint64_t works_bytes(const struct stk_loader *loader)
{
    uint64_t encoded = loader->span * loader->layout.encoded;
    encoded = encoded < ENCODED_MOST ? encoded : ENCODED_MOST;
    return loader->worker_count * (loader->layout.decoded + 2 * encoded);
}

/* Chunks that one batch may touch at once. */
static uint64_t chunks_at_once(const struct stk_loader *loader)
{
    uint64_t chunks = index_chunk_count(dataset_index(loader->dataset));
    uint64_t most = (uint64_t)loader->layout.capacity * loader->layout.field_count;
    if (loader->plan->order == STK_ORDER_LOCAL)
        most = 2 * (uint64_t)loader->plan->reach; /* a batch may lie across two groups */
    if (loader->plan->order == STK_ORDER_SEQUENTIAL && most > 2)
        most = 2; /* more only when chunks hold less than a batch; then they are small */
    return chunks < most ? chunks : most;
}

/* Pages of maps are the kernel's, and it can take them back at any time; but they count as this
 * process's resident memory, and a user who set a budget looks at that. So values are copied from
 * maps only when all that would be mapped fits into what batches leave over; else they are read. */
static stk_status choose_maps(struct stk_loader *loader, uint64_t limit, struct stk_error *err)
{
    const struct index *index = dataset_index(loader->dataset);
    uint64_t batches =
        loader->fixed_bytes + works_bytes(loader) +
        (loader->depth + 1) * layout_typical(&loader->layout) * loader->layout.capacity;
    uint64_t room = limit > batches ? limit - batches : 0, mapped = index_size(index);
    uint32_t objects = index_object_count(index);
    loader->trims = mapped > room;
    loader->mapped =
        !loader->remote && (uint64_t)objects * SAMPLES_AN_OBJECT <= index_samples(index);
    for (uint32_t i = 0; loader->mapped && i < objects; i++) {
        struct index_object object;
        stk_status status = index_object(index, i, &object, err);
        if (status)
            return status;
        mapped += object.size;
        loader->mapped = mapped <= room;
    }
    return STK_OK;
}

/* A budget that not even one batch fits into is a mistake to be told now, not a slow run. */
static stk_status check_budget(struct stk_loader *loader, uint64_t limit, struct stk_error *err)
{
    const struct index *index = dataset_index(loader->dataset);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < index_chunk_count(index); i++) {
        struct chunk chunk;
        stk_status status = index_chunk(index, i, &chunk, err);
        if (status)
            return status;
        largest = chunk.decoded > largest ? chunk.decoded : largest;
    }
    uint64_t chunks = chunks_at_once(loader) * largest;
    uint64_t least = loader->fixed_bytes + chunks + works_bytes(loader);
    if (!loader->layout.variable)
        least += box_size(&loader->layout, loader->layout.capacity, NULL);
    if (least <= limit)
        return STK_OK;
    stk_status status =
        fail(err, STK_MEMORY, "one batch needs %llu MiB, but the memory budget is %llu MiB",
             (unsigned long long)((least >> 20) + 1), (unsigned long long)(limit >> 20));
    fail_remedy(err, chunks ? "give a larger memory=, a smaller batch_size= or a smaller reach="
                     : loader->layout.decodes
                         ? "give a larger memory=, fewer threads= or a smaller batch_size="
                         : "give a larger memory= or a smaller batch_size=");
    return status;
}

/* The caller's thread launches kernels and the ship stage copies: when they are late it costs more
 * than anything that a worker more could do. So cores are left to them, and no worker is bound to
 * one that they might want. Measured on 16 cores with an H200, tensors of 1.2 MB: 12 workers 53
 * GB/s, as much as the bus takes, 10 workers 51, 14 workers 45 to 49. Decoding is all work of the
 * cores'. */
static void choose_threads(struct stk_loader *loader, const struct stk_loader_options *options)
{
    uint32_t cores = loader->worker_count;
    loader->map_most = UINT64_MAX;
    if (!loader->ship)
        return;
    loader->pin = 0;
    loader->map_most = MAP_MOST_DEVICE;
    if (!options->threads && cores > 2)
        loader->worker_count = cores - (loader->layout.decodes || cores < 8 ? 1 : cores / 4);
}

/* What a remote store needs besides batches: bytes on their way to where they are decoded, and
 * blocks on their way into a cache. */
static uint64_t choose_buffers(struct stk_loader *loader, uint64_t limit)
{
    loader->rows_most = ROWS_LOCAL;
    if (!loader->remote)
        return 0;
    uint64_t share = limit / 8 / loader->worker_count;
    loader->rows_most = share < ROWS_LOCAL ? ROWS_LOCAL : smaller(share, ROWS_REMOTE);
    return store_buffers(dataset_store(loader->dataset), smaller(BUFFERS_REMOTE, limit / 8));
}

static int needs_early(struct stk_loader *loader)
{
    for (uint32_t f = 0; f < loader->layout.field_count; f++)
        loader->layout.variable |= layout_runs(&loader->layout.fields[f]);
    return loader->layout.variable || plan_needs_cursor(loader->plan) ||
           index_chunk_count(dataset_index(loader->dataset)) > 0;
}

static void take_options(struct stk_loader *loader, const struct stk_loader_options *options)
{
    uint32_t ranks = options->local_world_size ? options->local_world_size : 1;
    double stall = options->stall_seconds > 0 ? options->stall_seconds : STALL_DEFAULT;
    loader->bad_policy = options->bad;
    loader->queue_kind = options->io == STK_IO_URING ? STORE_QUEUE_URING : STORE_QUEUE_PREAD;
    loader->worker_count = options->threads ? options->threads : cores_share(ranks);
    loader->local_rank = options->local_rank;
    loader->pin = !options->no_pin;
    loader->stall_ns = (int64_t)(stall * 1e9);
}

static stk_status check_options(const struct stk_loader_options *options, struct stk_error *err)
{
    if (options->seed > INT64_MAX)
        return fail(err, STK_USAGE, "the seed must be below 2^63");
    if (options->threads > 1024)
        return fail(err, STK_USAGE, "%u threads: 1,024 at most", options->threads);
    if (options->depth > 1024)
        return fail(err, STK_USAGE, "a depth of %u batches: 1,024 at most", options->depth);
    if (options->batch_size > INT32_MAX || options->global_batch_size > INT32_MAX)
        return fail(err, STK_USAGE, "a batch of 2^31 samples or more");
    return STK_OK;
}

/* --- making ----------------------------------------------------------------------------------- */

static stk_status make_slots(struct stk_loader *loader, struct stk_error *err)
{
    uint64_t extents =
        (uint64_t)loader->layout.capacity * index_field_count(dataset_index(loader->dataset));
    loader->slots = memory_zero(loader->depth, sizeof *loader->slots);
    loader->resolve = loader->early ? memory_zero(extents, sizeof *loader->resolve)
                                    : memory_zero(1, sizeof *loader->resolve);
    loader->ahead = memory_zero((size_t)loader->plan->reach + 1, sizeof *loader->ahead);
    loader->workers = memory_zero(loader->worker_count, sizeof *loader->workers);
    if (!loader->slots || !loader->resolve || !loader->ahead || !loader->workers)
        return fail_memory(err, extents * sizeof *loader->resolve);
    for (uint32_t i = 0; i < loader->depth; i++) {
        stk_status status = slot_init(&loader->slots[i], &loader->layout, err);
        if (status)
            return status;
    }
    return STK_OK;
}

static stk_status make_trace(struct stk_loader *loader, const char *path, struct stk_error *err)
{
    if (!path)
        return STK_OK;
    loader->trace_path = memory_text(path, strlen(path));
    if (!loader->trace_path)
        return fail_memory(err, strlen(path));
    stk_status status = trace_new(&loader->trace, loader->worker_count + 2, err);
    if (!status)
        loader->ring = trace_ring(loader->trace, 0, "caller");
    return status;
}

static stk_status make_layout(struct stk_loader *loader, const struct stk_loader_options *options,
                              struct stk_error *err)
{
    const struct layout_request request = {
        .dataset = loader->dataset,
        .options = options,
        .plugins = loader->context ? loader->context->plugins : NULL,
        .capacity = plan_capacity(loader->plan),
        .device = loader->ship && ship_computes(loader->ship),
    };
    stk_status status = layout_init(&loader->layout, &request, err);
    if (!status && options->batch_transforms)
        status =
            batch_transform_new(&loader->mixes, &loader->layout, options->batch_transforms, err);
    return status;
}

static stk_status make_parts(struct stk_loader *loader, const struct stk_loader_options *options,
                             struct stk_error *err)
{
    uint64_t limit = options->memory ? options->memory : MEMORY_DEFAULT;
    stk_status status = plan_new(&loader->plan, loader->dataset, options, err);
    if (!status)
        status = ship_new(&loader->ship, loader, options, err);
    if (!status)
        status = make_layout(loader, options, err);
    if (status)
        return status;
    loader->layout.mask = loader->plan->last == STK_LAST_MASK;
    choose_threads(loader, options);
    choose_depth(loader, options->depth, limit);
    if (loader->ship)
        status = ship_prepare(loader->ship, options, err);
    if (status)
        return status;
    choose_span(loader);
    loader->early = needs_early(loader);
    uint64_t buffers = choose_buffers(loader, limit);
    loader->fixed_bytes =
        buffers + stretches_size(loader) + loader->depth * slot_size(&loader->layout) +
        loader->worker_count * worker_size(loader) + plan_cursor_size(loader->plan);
    status = check_budget(loader, limit, err);
    if (!status)
        status = choose_maps(loader, limit, err);
    if (!status)
        status = box_pool_new(&loader->pool, loader->dataset, limit, err);
    if (status)
        return status;
    if (loader->ship)
        box_pool_pin(loader->pool, ship_gpu(loader->ship));
    budget_force(box_pool_budget(loader->pool), loader->fixed_bytes);
    status = make_slots(loader, err);
    if (!status && index_chunk_count(dataset_index(loader->dataset)) > 0)
        status =
            chunk_cache_new(&loader->chunks, loader->dataset, box_pool_budget(loader->pool), err);
    if (!status)
        status = plan_cursor_init(&loader->cursor, loader->plan, err);
    if (!status)
        status = plan_cursor_init(&loader->peek, loader->plan, err);
    if (!status)
        status = stretches_new(&loader->stretches, loader, limit, err);
    if (!status)
        status = make_trace(loader, options->trace, err);
    return status;
}

static void make_locks(struct stk_loader *loader)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->work, &attributes);
    pthread_cond_init(&loader->ready, &attributes);
    pthread_cond_init(&loader->filled, &attributes);
    pthread_condattr_destroy(&attributes);
}

stk_status stk_loader_open(struct stk_context *context, struct stk_dataset *dataset,
                           struct stk_loader **out, const struct stk_loader_options *options,
                           struct stk_error *err)
{
    *out = NULL;
    stk_status status = check_options(options, err);
    if (!status)
        status = guard_install(err);
    if (status)
        return status;
    struct stk_loader *loader = memory_zero(1, sizeof *loader);
    if (!loader)
        return fail_memory(err, sizeof *loader);
    make_locks(loader);
    loader->context = context;
    loader->dataset = stk_dataset_keep(dataset);
    loader->objects = index_object_count(dataset_index(dataset));
    loader->remote = store_is_remote(dataset_store(dataset));
    loader->ahead_group = STK_NOWHERE;
    loader->epoch_end = loader->remote ? 1 : UINT64_MAX;
    take_options(loader, options);
    status = make_parts(loader, options, err);
    if (status)
        goto done;
    *out = loader;
    loader = NULL;
done:
    stk_loader_close(loader);
    return status;
}

/* --- closing ---------------------------------------------------------------------------------- */

static void stop_workers(struct stk_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    atomic_store(&loader->stop, 1);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    for (uint32_t i = 0; i < loader->started; i++)
        store_wake(loader->workers[i].queue);
    for (uint32_t i = 0; i < loader->started; i++)
        pthread_join(loader->workers[i].thread, NULL);
    ship_stop(loader->ship);
    loader->started = 0;
}

void stk_loader_close(struct stk_loader *loader)
{
    if (!loader || (loader->started && loader->pid != getpid()))
        return; /* in a forked child the threads do not exist: nothing of it can be undone here */
    if (loader->started)
        stop_workers(loader);
    if (loader->trace && trace_write(loader->trace, loader->trace_path, NULL))
        context_notice(loader->context, "the trace could not be written");
    for (uint32_t i = 0; loader->workers && i < loader->worker_count; i++)
        worker_reset(&loader->workers[i]);
    for (uint32_t i = 0; loader->slots && i < loader->depth; i++) {
        ship_give_back(loader->ship, loader->slots[i].device);
        slot_reset(&loader->slots[i]);
    }
    ship_free(loader->ship);
    chunk_cache_free(loader->chunks);
    stretches_free(loader->stretches);
    if (loader->pool)
        budget_give(box_pool_budget(loader->pool), loader->fixed_bytes);
    box_pool_close(loader->pool);
    trace_free(loader->trace);
    plan_cursor_reset(&loader->cursor);
    plan_cursor_reset(&loader->peek);
    plan_free(loader->plan);
    batch_transform_free(loader->mixes);
    layout_reset(&loader->layout);
    stk_dataset_close(loader->dataset);
    memory_free(loader->workers);
    memory_free(loader->slots);
    memory_free(loader->resolve);
    memory_free(loader->ahead);
    memory_free(loader->quarantine);
    memory_free(loader->trace_path);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->ready);
    pthread_cond_destroy(&loader->filled);
    pthread_mutex_destroy(&loader->lock);
    memory_free(loader);
}
