/* Drawing batches: the caller's side of the loader. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "loader/admit.h"
#include "loader/device_decode.h"
#include "loader/device_pool.h"
#include "loader/loader_impl.h"
#include "loader/ship_stage.h"
#include "loader/stretches.h"
#include "loader/worker.h"

#define SLICE_NS 10000000 /* a wait is looked at this often: what for, and for how long already */
#define QUARANTINE_MOST 65536

/* --- starting --------------------------------------------------------------------------------- */

static stk_status workers_init(struct stk_loader *loader, struct stk_error *err)
{
    for (uint32_t i = 0; i < loader->worker_count; i++) {
        stk_status status = worker_init(&loader->workers[i], loader, i, err);
        if (status)
            return status;
    }
    return STK_OK;
}

/* Threads are started by the first next: a loader that was only opened may still be forked. With
 * fewer threads than asked for it goes on, with a notice. */
static stk_status loader_start(struct stk_loader *loader, struct stk_error *err)
{
    uint32_t started = 0;
    stk_status status = workers_init(loader, err);
    if (!status && loader->ship)
        status = ship_start(loader->ship, err);
    for (; !status && started < loader->worker_count; started += !status)
        status = worker_start(&loader->workers[started], err);
    if (!started) {
        atomic_store(&loader->stop, 1); /* for the ship stage alone: it may be started again */
        ship_stop(loader->ship);
        atomic_store(&loader->stop, 0);
        for (uint32_t i = 0; i < loader->worker_count; i++)
            worker_reset(&loader->workers[i]);
        return status;
    }
    if (status)
        context_notice(loader->context, "only %u of %u threads could be started", started,
                       loader->worker_count);
    loader->pid = getpid();
    loader->first_next = loader->last_return = clock_now();
    atomic_store_explicit(&loader->started, started, memory_order_release);
    return STK_OK;
}

/* One caller at a time, and only in the process that started it. */
static stk_status caller_enter(struct stk_loader *loader, struct stk_error *err)
{
    if (loader->started && loader->pid != getpid()) {
        stk_status status =
            fail(err, STK_UNSUPPORTED, "this loader runs in another process: it was forked");
        fail_remedy(err, "open the loader after the fork");
        return status;
    }
    if (atomic_exchange(&loader->busy, 1)) {
        stk_status status = fail(err, STK_BUSY, "another thread is drawing from this loader");
        fail_remedy(err, "draw from one thread, or give each thread a loader of its own");
        return status;
    }
    return STK_OK;
}

static void caller_leave(struct stk_loader *loader)
{
    atomic_store(&loader->busy, 0);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static struct slot *oldest_slot(struct stk_loader *loader)
{
    if (loader->taken == loader->admitted)
        return NULL;
    return &loader->slots[loader->taken % loader->depth];
}

enum wait_cause { WAIT_FETCH, WAIT_FILL, WAIT_SHIP };

static enum wait_cause wait_cause(const struct slot *slot)
{
    if (slot && slot->filled)
        return WAIT_SHIP;
    if (slot && (slot->fetching || atomic_load_explicit(&slot->reads, memory_order_relaxed)))
        return WAIT_FETCH;
    return WAIT_FILL;
}

/* Tells of a wait that lasts too long, once until a batch comes, however many calls it is made of.
 * Under lock; the lock is let go of while the hook runs, for the hook is the user's. */
static void tell_stall(struct stk_loader *loader, int64_t now)
{
    const struct slot *slot = oldest_slot(loader);
    static const char *const causes[] = {"reads", "decoding", "the device"};
    const char *cause = slot ? causes[wait_cause(slot)] : "admission";
    if (loader->remote && cause == causes[WAIT_FETCH])
        cause = "the network";
    int64_t waited = now - loader->wait_begin;
    if (loader->stall_told || waited < loader->stall_ns)
        return;
    loader->stall_told = 1;
    pthread_mutex_unlock(&loader->lock);
    context_notice(loader->context,
                   "no batch for %.0f s: waiting for %s (epoch %llu, sample position %llu)",
                   (double)waited / 1e9, cause, (unsigned long long)loader->epoch,
                   (unsigned long long)loader->position);
    pthread_mutex_lock(&loader->lock);
}

static void wait_slice(struct stk_loader *loader, int64_t until)
{
    struct timespec deadline = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    pthread_cond_timedwait(&loader->ready, &loader->lock, &deadline);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Under lock. How many batches are in flight follows what is seen: more while the caller waits and
 * the network could take more, fewer while all comes from a cache. Memory that was just used is
 * still in the processor's caches, so that no more is used than helps. */
static void deepen(struct stk_loader *loader, enum wait_cause cause)
{
    if (loader->deep >= loader->depth || cause != WAIT_FETCH ||
        store_flow(dataset_store(loader->dataset)) != STORE_THIN)
        return;
    uint64_t deeper = 2 * (uint64_t)loader->deep;
    loader->deep = deeper < loader->depth ? (uint32_t)deeper : loader->depth;
    loader_wake(loader);
}

static void undeepen(struct stk_loader *loader)
{
    if (loader->deep > loader->deep_least &&
        store_flow(dataset_store(loader->dataset)) == STORE_STILL)
        loader->deep--;
}

/* Under lock: waits for the oldest batch. STK_CANCELLED when the time is over, or on request. */
static stk_status wait_ready(struct stk_loader *loader, int64_t timeout_ns)
{
    int64_t now = clock_now();
    int64_t limit = timeout_ns < 0 || now > INT64_MAX - timeout_ns ? INT64_MAX : now + timeout_ns;
    if (!loader->wait_begin)
        loader->wait_begin = now;
    for (;;) {
        struct slot *slot = oldest_slot(loader);
        if (slot && atomic_load_explicit(&slot->done, memory_order_acquire))
            return STK_OK;
        if (atomic_exchange(&loader->cancelled, 0) || now >= limit)
            return STK_CANCELLED;
        enum wait_cause cause = wait_cause(slot);
        deepen(loader, cause);
        wait_slice(loader, smaller(limit, now + SLICE_NS));
        int64_t later = clock_now();
        double *shares[] = {&loader->waits.fetch, &loader->waits.fill, &loader->waits.ship};
        *shares[cause] += (double)(later - now) / 1e9;
        now = later;
        tell_stall(loader, now);
    }
}

/* --- taking ----------------------------------------------------------------------------------- */

/* Only what is delivered counts, and in order: the list is the same for any number of threads. */
static void quarantine_add(struct stk_loader *loader, const struct slot *slot,
                           const struct slot_bad *bad)
{
    loader->bad++;
    if (loader->quarantine_count == QUARANTINE_MOST)
        return;
    if (loader->quarantine_count == loader->quarantine_cap) {
        uint64_t cap = loader->quarantine_cap ? loader->quarantine_cap * 2 : 16;
        struct stk_quarantined *grown =
            memory_grow(loader->quarantine, cap * sizeof *loader->quarantine);
        if (!grown)
            return; /* it is still counted */
        loader->quarantine = grown;
        loader->quarantine_cap = cap;
    }
    loader->quarantine[loader->quarantine_count++] =
        (struct stk_quarantined){.sample = slot->samples[bad->place],
                                 .epoch = slot->epoch,
                                 .substitute = bad->substitute,
                                 .error = bad->error};
}

static const struct slot_bad *first_fatal(const struct slot *slot)
{
    const struct slot_bad *bad = slot->bad;
    while (bad && bad->substitute != STK_NOWHERE)
        bad = bad->next;
    return bad;
}

/* The batch is the caller's from now on. */
static struct stk_batch *slot_hand_over(struct slot *slot)
{
    struct box *box = slot->box;
    struct device_slot *device = slot->device;
    slot->box = NULL;
    slot->device = NULL;
    if (device) {
        device_pool_hand_over(device);
        return &device->batch;
    }
    box_hand_over(box);
    return &box->batch;
}

/* Under lock: the oldest batch is complete. */
static stk_status take(struct stk_loader *loader, struct stk_batch **out, struct stk_error *err)
{
    struct slot *slot = oldest_slot(loader);
    const struct slot_bad *fatal = first_fatal(slot);
    if (fatal) {
        loader->failed = 1;
        loader->failure = fatal->error;
        if (err)
            *err = fatal->error;
        return fatal->error.status;
    }
    for (const struct slot_bad *bad = slot->bad; bad; bad = bad->next)
        quarantine_add(loader, slot, bad);
    *out = slot_hand_over(slot);
    (*out)->step = slot->position / loader->plan->global;
    loader->position = slot->share.end;
    loader->samples += slot->share.real;
    loader->bytes += (*out)->bytes;
    loader->batches++;
    undeepen(loader);
    admit_retire(loader, slot);
    ship_taken(loader->ship);
    loader_wake(loader);
    return STK_OK;
}

/* Under lock: the caller draws from an epoch that was not read ahead. Who goes on into a second one
 * will as a rule want a third. */
static void begin_epoch(struct stk_loader *loader)
{
    if (loader->epoch < loader->epoch_end)
        return;
    loader->epoch_end = loader->told_end > loader->epoch ? loader->told_end
                        : loader->turned                 ? UINT64_MAX
                                                         : loader->epoch + 1;
    loader_wake(loader);
}

void stk_loader_end_at(struct stk_loader *loader, uint64_t epoch)
{
    pthread_mutex_lock(&loader->lock);
    loader->told_end = loader->epoch_end = epoch;
    pthread_mutex_unlock(&loader->lock);
}

static stk_status next_batch(struct stk_loader *loader, int64_t timeout_ns, struct stk_batch **out,
                             struct stk_error *err)
{
    stk_status status = STK_OK;
    if (loader->failed) {
        if (err)
            *err = loader->failure;
        return loader->failure.status;
    }
    if (plan_steps(loader->plan, loader->position) == 0) {
        loader->epoch++;
        loader->position = 0;
        loader->turned = 1;
        return STK_END;
    }
    if (!loader->started)
        status = loader_start(loader, err);
    if (status)
        return status;
    int64_t begin = trace_begin(loader->ring), now = clock_now();
    pthread_mutex_lock(&loader->lock);
    begin_epoch(loader);
    struct slot *slot = oldest_slot(loader);
    if (slot && atomic_load_explicit(&slot->done, memory_order_acquire))
        loader->waits.consumer += (double)(now - loader->last_return) / 1e9;
    else
        status = wait_ready(loader, timeout_ns);
    if (!status)
        status = take(loader, out, err);
    loader->last_return = clock_now();
    if (status != STK_CANCELLED)
        loader->wait_begin = loader->stall_told = 0;
    pthread_mutex_unlock(&loader->lock);
    trace_end(loader->ring, begin, "wait", loader->position, *out ? (*out)->bytes : 0);
    if (loader->trims)
        index_trim(dataset_index(loader->dataset));
    return status;
}

stk_status stk_loader_next_within(struct stk_loader *loader, int64_t timeout_ns,
                                  struct stk_batch **out, struct stk_error *err)
{
    *out = NULL;
    stk_status status = caller_enter(loader, err);
    if (status)
        return status;
    status = next_batch(loader, timeout_ns, out, err);
    caller_leave(loader);
    return status;
}

stk_status stk_loader_next(struct stk_loader *loader, struct stk_batch **out, struct stk_error *err)
{
    return stk_loader_next_within(loader, -1, out, err);
}

void stk_loader_cancel(struct stk_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    atomic_store(&loader->cancelled, 1);
    pthread_cond_broadcast(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
}

/* --- moving ----------------------------------------------------------------------------------- */

/* Under lock: what is in flight is passed on unread, and its memory goes back. */
static void drop_in_flight(struct stk_loader *loader)
{
    struct slot *slot;
    atomic_store(&loader->discard, 1);
    loader_wake(loader);
    while ((slot = oldest_slot(loader)) != NULL) {
        while (!atomic_load_explicit(&slot->done, memory_order_acquire))
            wait_slice(loader, clock_now() + SLICE_NS);
        box_give(slot->box);
        slot->box = NULL;
        ship_give_back(loader->ship, slot->device);
        slot->device = NULL;
        admit_retire(loader, slot);
    }
    if (loader->chunks)
        admit_reset_ahead(loader);
    stretches_reset(loader->stretches);
    atomic_store(&loader->discard, 0);
}

stk_status loader_seek(struct stk_loader *loader, uint64_t epoch, uint64_t position,
                       const double *share, struct stk_error *err)
{
    if (position > loader->plan->samples)
        return fail(err, STK_USAGE, "position %llu of an epoch of %llu samples",
                    (unsigned long long)position, (unsigned long long)loader->plan->samples);
    stk_status status = caller_enter(loader, err);
    if (status)
        return status;
    pthread_mutex_lock(&loader->lock);
    drop_in_flight(loader);
    if (share)
        device_decode_resume(loader->decode, *share);
    loader->failed = 0;
    loader->epoch = loader->admit_epoch = epoch;
    loader->position = loader->admit_position = position;
    if (loader->remote && !loader->turned && !loader->told_end)
        loader->epoch_end = epoch + 1;
    if (plan_steps(loader->plan, position) == 0) { /* next says END first; admission is past that */
        loader->admit_epoch++;
        loader->admit_position = 0;
    }
    loader_wake(loader);
    pthread_mutex_unlock(&loader->lock);
    caller_leave(loader);
    return STK_OK;
}

stk_status stk_loader_seek(struct stk_loader *loader, uint64_t epoch, uint64_t position,
                           struct stk_error *err)
{
    return loader_seek(loader, epoch, position, NULL, err);
}

/* --- asking ----------------------------------------------------------------------------------- */

uint64_t stk_loader_steps(const struct stk_loader *loader)
{
    return plan_steps(loader->plan, 0);
}

uint64_t stk_loader_steps_left(const struct stk_loader *loader)
{
    return plan_steps(loader->plan, loader->position);
}

uint32_t stk_loader_capacity(const struct stk_loader *loader)
{
    return loader->layout.capacity;
}

void stk_loader_position(const struct stk_loader *loader, uint64_t *epoch, uint64_t *position)
{
    *epoch = loader->epoch;
    *position = loader->position;
}

stk_status stk_loader_peek(struct stk_loader *loader, uint64_t epoch, uint64_t position,
                           struct stk_peek *out, uint64_t *samples, struct stk_error *err)
{
    struct plan_share share;
    *out = (struct stk_peek){0};
    stk_status status = caller_enter(loader, err);
    if (status)
        return status;
    if (plan_steps(loader->plan, position) == 0) {
        status = STK_END;
    } else {
        plan_share(loader->plan, position, &share);
        status = plan_share_samples(loader->plan, &loader->peek, epoch, &share, samples, err);
        if (!status)
            *out = (struct stk_peek){.count = share.count, .real = share.real, .end = share.end};
    }
    caller_leave(loader);
    return status;
}

void stk_loader_stats(struct stk_loader *loader, struct stk_loader_stats *stats)
{
    struct budget *budget = box_pool_budget(loader->pool);
    uint32_t started = atomic_load_explicit(&loader->started, memory_order_acquire);
    pthread_mutex_lock(&loader->lock);
    *stats = (struct stk_loader_stats){
        .samples = loader->samples,
        .batches = loader->batches,
        .bytes = loader->bytes,
        .bad = loader->bad,
        .waits = loader->waits,
        .held_bytes = atomic_load(&budget->held),
        .peak_bytes = atomic_load(&budget->peak),
        .chunks_decoded = chunk_cache_decoded(loader->chunks),
        .threads = started ? started : loader->worker_count,
        .io = loader->remote                            ? "network"
              : loader->queue_kind == STORE_QUEUE_URING ? "io_uring"
                                                        : "pread",
    };
    if (started)
        stats->seconds = (double)(clock_now() - loader->first_next) / 1e9;
    for (uint32_t i = 0; i < started; i++) {
        stats->reads += atomic_load(&loader->workers[i].reads);
        stats->merged_reads += atomic_load(&loader->workers[i].merged);
        stats->mapped_copies += atomic_load(&loader->workers[i].copies);
    }
    pthread_mutex_unlock(&loader->lock);
    box_pool_caller(loader->pool, &stats->caller_bytes, &stats->caller_peak_bytes);
    if (loader->ship)
        ship_stats(loader->ship, &stats->device);
}

/* --- batches on a device ---------------------------------------------------------------------- */

stk_status stk_batch_use(struct stk_batch *batch, void *stream, struct stk_error *err)
{
    return batch->device < 0 ? STK_OK : device_slot_use((struct device_slot *)batch, stream, err);
}

stk_status stk_batch_copy_out(struct stk_batch *batch, void *to, const void *from, uint64_t size,
                              struct stk_error *err)
{
    if (batch->device >= 0)
        return device_slot_copy_out((struct device_slot *)batch, to, from, size, err);
    memcpy(to, from, size);
    return STK_OK;
}

stk_status stk_loader_use(struct stk_loader *loader, const void *address, void *stream,
                          struct stk_error *err)
{
    return loader->ship ? ship_use(loader->ship, address, stream, err) : STK_OK;
}

uint64_t stk_loader_quarantine(struct stk_loader *loader, struct stk_quarantined *out, uint64_t cap)
{
    pthread_mutex_lock(&loader->lock);
    uint64_t count = loader->quarantine_count;
    if (cap && count)
        memcpy(out, loader->quarantine, (count < cap ? count : cap) * sizeof *out);
    pthread_mutex_unlock(&loader->lock);
    return count;
}
