#include "loader/device_pool.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define POOL_KEEPS 32 /* free slots: freeing one waits for all that the device has to do */
#define POOL_TURNS 6  /* slots that are used in turn before one is waited for: see pool_find */
#define POOL_MOST 16  /* the same, where the device was done with all of them while we waited */
#define PER_THREAD ((struct gpu_stream *)(uintptr_t)2) /* CUDA's name for a thread's own stream */

struct device_pool {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    struct device_slot *free; /* under lock; the one that was given back first comes first */
    uint32_t made;            /* under lock: slots that there are, wherever */
    uint32_t free_count;      /* under lock */
    struct device_slot *out;  /* under lock: with the caller */
    struct device_slot *late; /* under lock: released while a stream of theirs was captured */
    uint32_t holders;         /* under lock: the loader, and each slot outside the free list */
    int closed;               /* under lock */
    int news;                 /* under lock: since the last wait a take may succeed that did not */
    int in_use;               /* under lock: the last take met slots that the device still uses */
    uint32_t turns;           /* under lock: POOL_TURNS to POOL_MOST */
    struct gpu *gpu;
    struct stk_dataset *dataset; /* batches name its fields */
    struct budget budget, caller;
};

stk_status device_pool_new(struct device_pool **out, struct gpu *gpu, struct stk_dataset *dataset,
                           uint64_t limit, struct stk_error *err)
{
    pthread_condattr_t attributes;
    struct device_pool *pool = *out = memory_zero(1, sizeof *pool);
    if (!pool)
        return fail_memory(err, sizeof *pool);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->returned, &attributes);
    pthread_condattr_destroy(&attributes);
    budget_init(&pool->budget, limit);
    budget_init(&pool->caller, UINT64_MAX);
    pool->holders = 1;
    pool->turns = POOL_TURNS;
    pool->gpu = gpu_keep(gpu);
    pool->dataset = stk_dataset_keep(dataset);
    return STK_OK;
}

struct budget *device_pool_budget(struct device_pool *pool)
{
    return &pool->budget;
}

void device_pool_caller(struct device_pool *pool, uint64_t *bytes, uint64_t *peak)
{
    *bytes = atomic_load(&pool->caller.held);
    *peak = atomic_load(&pool->caller.peak);
}

/* --- slots ------------------------------------------------------------------------------------ */

/* Frees the slot and what it has on the device; entered. Freeing waits for the device's work. */
static void slot_destroy(struct device_slot *slot)
{
    struct gpu *gpu = slot->pool->gpu;
    slot->pool->made--;
    gpu_free(gpu, slot->data);
    gpu_event_free(gpu, slot->ready);
    for (uint32_t i = 0; i < DEVICE_STREAMS; i++)
        gpu_event_free(gpu, slot->uses[i]);
    memory_free(slot->host);
    memory_free(slot);
}

static stk_status slot_new(struct device_slot **out, struct device_pool *pool, uint64_t size,
                           struct stk_error *err)
{
    struct device_slot *slot = memory_zero(1, sizeof *slot);
    *out = NULL;
    if (!slot)
        return fail_memory(err, sizeof *slot);
    slot->pool = pool;
    slot->size = size;
    pool->made++;
    stk_status status = gpu_event_new(pool->gpu, &slot->ready, err);
    if (!status)
        status = gpu_alloc(pool->gpu, size, &slot->data, err);
    if (status)
        slot_destroy(slot);
    else
        *out = slot;
    return status;
}

static void list_push(struct device_slot **list, struct device_slot *slot)
{
    slot->before = NULL;
    slot->next = *list;
    if (*list)
        (*list)->before = slot;
    *list = slot;
}

/* Behind the others. */
static void list_append(struct device_slot **list, struct device_slot *slot)
{
    struct device_slot *last = *list;
    while (last && last->next)
        last = last->next;
    slot->before = last;
    slot->next = NULL;
    if (last)
        last->next = slot;
    else
        *list = slot;
}

static void list_drop(struct device_slot **list, struct device_slot *slot)
{
    if (slot->before)
        slot->before->next = slot->next;
    else
        *list = slot->next;
    if (slot->next)
        slot->next->before = slot->before;
    slot->next = slot->before = NULL;
}

/* --- the pool --------------------------------------------------------------------------------- */

/* Under lock, entered. */
static void pool_drop_free(struct device_pool *pool)
{
    while (pool->free) {
        struct device_slot *slot = pool->free;
        list_drop(&pool->free, slot);
        budget_give(&pool->budget, slot->size);
        slot_destroy(slot);
    }
    pool->free_count = 0;
}

/* Lets the lock go; the last holder ends the pool. */
static void pool_unlock(struct device_pool *pool)
{
    int last = pool->holders == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!last)
        return;
    pthread_cond_destroy(&pool->returned);
    pthread_mutex_destroy(&pool->lock);
    stk_dataset_close(pool->dataset);
    gpu_close(pool->gpu);
    memory_free(pool);
}

void device_pool_close(struct device_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closed = 1;
    pool_drop_free(pool);
    while (pool->late) { /* freeing waits for whatever used them */
        struct device_slot *slot = pool->late;
        list_drop(&pool->late, slot);
        pool->holders--;
        slot_destroy(slot);
    }
    pool->holders--;
    pool_unlock(pool);
}

/* Not 0: nothing that the device has still to do concerns the slot. */
static int slot_is_over(const struct device_slot *slot)
{
    struct gpu *gpu = slot->pool->gpu;
    int over = gpu_event_over(gpu, slot->ready);
    for (uint32_t i = 0; i < slot->stream_count && over; i++)
        over = gpu_event_over(gpu, slot->uses[i]);
    return over;
}

/* Under lock: the one that was given back first of those that are large enough, but not wastefully
 * so, and that the device is done with. *in_use: there are some that it is not done with: a caller
 * that runs ahead of the device gives slots back long before its work on them is over. */
static struct device_slot *pool_find(struct device_pool *pool, uint64_t size, int *in_use)
{
    *in_use = 0;
    for (struct device_slot *slot = pool->free; slot; slot = slot->next) {
        if (slot->size < size || slot->size / 2 > size)
            continue;
        if (slot_is_over(slot))
            return slot;
        *in_use = 1;
    }
    return NULL;
}

/* Under lock, after a wait: was the device done with all that it had? It then waits for us, who
 * sleep longer than so many batches last it: one more is used in turn. Slots that the caller holds,
 * or has not drawn, are no such sign. */
static void pool_judge(struct device_pool *pool)
{
    if (pool->turns == POOL_MOST || pool->free_count + 1 < pool->turns)
        return;
    for (struct device_slot *slot = pool->free; slot; slot = slot->next)
        if (!slot_is_over(slot))
            return;
    pool->turns++;
}

/* Records an event in each stream that used the slot. 0: not while one of them is captured. */
static int slot_record(struct device_slot *slot)
{
    struct gpu *gpu = slot->pool->gpu;
    for (uint32_t i = 0; i < slot->stream_count; i++)
        if (gpu_stream_capturing(gpu, slot->streams[i]))
            return 0;
    for (uint32_t i = 0; i < slot->stream_count; i++) {
        stk_status status = STK_OK;
        if (!slot->uses[i])
            status = gpu_event_new(gpu, &slot->uses[i], NULL);
        if (!status)
            status = gpu_event_record(gpu, slot->uses[i], slot->streams[i], NULL);
        slot->crowded |= status != STK_OK; /* its stream is gone: the memory is freed instead */
    }
    return 1;
}

/* Under lock, entered: released slots whose streams are no longer captured. */
static void pool_catch_up(struct device_pool *pool)
{
    struct device_slot *next;
    for (struct device_slot *slot = pool->late; slot; slot = next) {
        next = slot->next;
        if (!slot_record(slot))
            continue;
        list_drop(&pool->late, slot);
        pool->holders--;
        if (slot->crowded || !budget_try(&pool->budget, slot->size)) {
            slot_destroy(slot);
            continue;
        }
        list_append(&pool->free, slot);
        pool->free_count++;
    }
}

/* Under lock: a new slot; when the device has no room for it, free ones are given up first. */
static stk_status pool_make(struct device_pool *pool, uint64_t size, int anyway,
                            struct device_slot **out, struct stk_error *err)
{
    *out = NULL;
    if (!budget_try(&pool->budget, size)) {
        pool_drop_free(pool);
        if (!budget_try(&pool->budget, size)) {
            if (!anyway)
                return STK_OK;
            budget_force(&pool->budget, size);
        }
    }
    stk_status status = slot_new(out, pool, size, err);
    if (status && pool->free) {
        pool_drop_free(pool);
        status = slot_new(out, pool, size, err);
    }
    if (status)
        budget_give(&pool->budget, size);
    return status;
}

/* Under lock: one more, beside those that are free but in use; NULL: there is no room. */
static struct device_slot *pool_add(struct device_pool *pool, uint64_t size)
{
    struct device_slot *slot = NULL;
    if (pool->made >= pool->turns || !budget_try(&pool->budget, size))
        return NULL;
    if (slot_new(&slot, pool, size, NULL))
        budget_give(&pool->budget, size);
    return slot;
}

static stk_status slot_host(struct device_slot *slot, uint64_t size, struct stk_error *err)
{
    if (slot->host_size >= size)
        return STK_OK;
    memory_free(slot->host);
    slot->host = memory_alloc(size);
    slot->host_size = slot->host ? size : 0;
    return slot->host ? STK_OK : fail_memory(err, size);
}

stk_status device_pool_take(struct device_pool *pool, uint64_t size, uint64_t host_size, int anyway,
                            struct device_slot **out, struct stk_error *err)
{
    stk_status status = STK_OK;
    pthread_mutex_lock(&pool->lock);
    pool_catch_up(pool);
    if (pool->in_use)
        pool_judge(pool);
    struct device_slot *slot = pool_find(pool, size, &pool->in_use);
    if (slot) {
        list_drop(&pool->free, slot);
        pool->free_count--;
        slot->stream_count = 0;
    } else if (pool->in_use) {
        slot = pool_add(pool, size);
    } else {
        status = pool_make(pool, size, anyway, &slot, err);
    }
    if (slot) {
        pool->holders++;
        status = slot_host(slot, host_size, err);
    }
    pthread_mutex_unlock(&pool->lock);
    if (status && slot)
        device_pool_give(slot);
    *out = status ? NULL : slot;
    return status;
}

void device_pool_give(struct device_slot *slot)
{
    if (!slot)
        return;
    struct device_pool *pool = slot->pool;
    pthread_mutex_lock(&pool->lock);
    pool->holders--;
    list_append(&pool->free, slot);
    pool->free_count++;
    if (pool->closed)
        pool_drop_free(pool);
    pool_unlock(pool);
}

void device_pool_hand_over(struct device_slot *slot)
{
    struct device_pool *pool = slot->pool;
    budget_give(&pool->budget, slot->size);
    budget_force(&pool->caller, slot->size);
    pthread_mutex_lock(&pool->lock);
    list_push(&pool->out, slot);
    pthread_mutex_unlock(&pool->lock);
}

void device_pool_wait(struct device_pool *pool, int64_t ns)
{
    pthread_mutex_lock(&pool->lock);
    if (pool->in_use && ns > DEVICE_LOOK_NS)
        ns = DEVICE_LOOK_NS;
    int64_t until = clock_now() + ns;
    struct timespec deadline = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    if (!pool->news)
        pthread_cond_timedwait(&pool->returned, &pool->lock, &deadline);
    pool->news = 0;
    pthread_mutex_unlock(&pool->lock);
}

/* Under lock. */
static void pool_tell(struct device_pool *pool)
{
    pool->news = 1;
    pthread_cond_signal(&pool->returned);
}

void device_pool_wake(struct device_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool_tell(pool);
    pthread_mutex_unlock(&pool->lock);
}

/* --- the caller's side ------------------------------------------------------------------------ */

/* Under lock, entered: where a slot goes that the caller is done with. */
static void pool_receive(struct device_pool *pool, struct device_slot *slot)
{
    if (!pool->closed && !slot->crowded && !slot_record(slot)) {
        list_push(&pool->late, slot);
        return;
    }
    pool->holders--;
    if (!pool->closed && !slot->crowded && pool->free_count < POOL_KEEPS &&
        budget_try(&pool->budget, slot->size)) {
        list_append(&pool->free, slot);
        pool->free_count++;
        pool_tell(pool);
    } else {
        slot_destroy(slot);
    }
}

void device_slot_release(struct device_slot *slot)
{
    struct device_pool *pool = slot->pool;
    struct gpu *gpu = gpu_keep(pool->gpu); /* the pool may end here, and with it its own hold */
    budget_give(&pool->caller, slot->size);
    int entered = !gpu_enter(gpu, NULL); /* not where CUDA is gone already: the process ends */
    pthread_mutex_lock(&pool->lock);
    list_drop(&pool->out, slot);
    pool_receive(pool, slot);
    pool_unlock(pool);
    if (entered)
        gpu_leave(gpu);
    gpu_close(gpu);
}

static stk_status refuse_capture(struct stk_error *err)
{
    stk_status status =
        fail(err, STK_USAGE, "a batch cannot be drawn while its stream is captured into a graph");
    fail_remedy(err,
                "draw the batch before the capture, copy it into a tensor that the graph reads, "
                "and replay the graph");
    return status;
}

/* The stream waits for the batch already: each of its tensors asks for it. */
static int slot_has(const struct device_slot *slot, const struct gpu_stream *stream)
{
    uint32_t i = 0;
    while (i < slot->stream_count && slot->streams[i] != stream)
        i++;
    return i < slot->stream_count;
}

/* Under the pool's lock, entered. */
static stk_status slot_join(struct device_slot *slot, struct gpu_stream *stream,
                            struct stk_error *err)
{
    struct gpu *gpu = slot->pool->gpu;
    if (gpu_stream_capturing(gpu, stream))
        return refuse_capture(err);
    stk_status status = gpu_event_follow(gpu, stream, slot->ready, err);
    if (status)
        return status;
    if (slot_has(slot, stream))
        return STK_OK;
    if (slot->stream_count == DEVICE_STREAMS || stream == PER_THREAD)
        slot->crowded = 1; /* who releases it may be another thread, with a stream of its own */
    else
        slot->streams[slot->stream_count++] = stream;
    return STK_OK;
}

stk_status device_slot_use(struct device_slot *slot, struct gpu_stream *stream,
                           struct stk_error *err)
{
    struct device_pool *pool = slot->pool;
    pthread_mutex_lock(&pool->lock);
    int known = slot_has(slot, stream);
    pthread_mutex_unlock(&pool->lock);
    if (known)
        return STK_OK;
    stk_status status = gpu_enter(pool->gpu, err);
    if (status)
        return status;
    pthread_mutex_lock(&pool->lock);
    status = slot_join(slot, stream, err);
    pthread_mutex_unlock(&pool->lock);
    gpu_leave(pool->gpu);
    return status;
}

stk_status device_pool_use(struct device_pool *pool, const void *address, struct gpu_stream *stream,
                           struct stk_error *err)
{
    gpu_address at = (gpu_address)(uintptr_t)address;
    stk_status status = gpu_enter(pool->gpu, err);
    if (status)
        return status;
    pthread_mutex_lock(&pool->lock);
    struct device_slot *slot = pool->out;
    while (slot && (at < slot->data || at >= slot->data + slot->size))
        slot = slot->next;
    if (slot)
        status = slot_join(slot, stream, err);
    else
        status = fail(err, STK_NOT_FOUND, "no batch of this loader lies there");
    pthread_mutex_unlock(&pool->lock);
    gpu_leave(pool->gpu);
    return status;
}

stk_status device_slot_copy_out(struct device_slot *slot, void *to, const void *from, uint64_t size,
                                struct stk_error *err)
{
    struct gpu *gpu = slot->pool->gpu;
    struct gpu_stream *stream = NULL;
    stk_status status = gpu_enter(gpu, err);
    if (status)
        return status;
    status = gpu_stream_new(gpu, GPU_NORMAL, &stream, err);
    if (!status)
        status = gpu_event_follow(gpu, stream, slot->ready, err);
    if (!status)
        status = gpu_copy_out(gpu, to, (gpu_address)(uintptr_t)from, size, stream, err);
    if (!status)
        status = gpu_stream_sync(gpu, stream, err);
    gpu_stream_free(gpu, stream);
    gpu_leave(gpu);
    return status;
}
