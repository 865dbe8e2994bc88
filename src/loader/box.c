#include "loader/box.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "loader/device_pool.h"

struct box_extra {
    struct box_extra *next;
    max_align_t data[];
};

#define POOL_KEEPS                                                                                 \
    4 /* free boxes kept warm; a caller that lets go of many at once frees the rest */

struct box_pool {
    pthread_mutex_t lock;
    struct box *free;    /* under lock; the last one given back is the warmest, so it goes first */
    uint32_t free_count; /* under lock */
    uint32_t holders;    /* under lock: the loader, and each box outside the free list */
    int closed;          /* under lock */
    struct stk_dataset *dataset;
    struct gpu *gpu; /* boxes are locked for it; NULL: none */
    _Atomic uint64_t pinned;
    struct budget budget;
    struct budget caller; /* what the caller holds: counted, never refused */
};

stk_status box_pool_new(struct box_pool **out, struct stk_dataset *dataset, uint64_t limit,
                        struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    if (!*out)
        return fail_memory(err, sizeof **out);
    pthread_mutex_init(&(*out)->lock, NULL);
    budget_init(&(*out)->budget, limit);
    budget_init(&(*out)->caller, UINT64_MAX);
    (*out)->holders = 1;
    (*out)->dataset = stk_dataset_keep(dataset);
    return STK_OK;
}

void box_pool_pin(struct box_pool *pool, struct gpu *gpu)
{
    pool->gpu = gpu_keep(gpu);
}

uint64_t box_pool_pinned(struct box_pool *pool)
{
    return atomic_load(&pool->pinned);
}

/* A box is locked once, when it is made. */
static void box_pin(struct box *box)
{
    struct box_pool *pool = box->pool;
    if (!pool->gpu || gpu_enter(pool->gpu, NULL))
        return;
    box->pinned = !gpu_pin(pool->gpu, box, box->size, NULL);
    gpu_leave(pool->gpu);
    atomic_fetch_add(&pool->pinned, box->pinned ? box->size : 0);
}

static void box_unmap(struct box *box)
{
    struct box_pool *pool = box->pool;
    if (box->pinned) {
        int entered = !gpu_enter(pool->gpu, NULL); /* else CUDA is gone, and with it the lock */
        if (entered)
            gpu_unpin(pool->gpu, box);
        if (entered)
            gpu_leave(pool->gpu);
        atomic_fetch_sub(&pool->pinned, box->size);
    }
    memory_unmap(box, box->size);
}

/* counted: the budget that it is in. */
static void box_drop_extra(struct box *box, struct budget *counted)
{
    budget_give(counted, box->extra_size);
    box->extra_size = 0;
    while (box->extra) {
        struct box_extra *next = box->extra->next;
        memory_free(box->extra);
        box->extra = next;
    }
}

static void pool_unlock(struct box_pool *pool)
{
    int last = pool->holders == 0;
    pthread_mutex_unlock(&pool->lock);
    if (last) {
        pthread_mutex_destroy(&pool->lock);
        stk_dataset_close(pool->dataset);
        gpu_close(pool->gpu);
        memory_free(pool);
    }
}

/* Under lock. */
static void pool_drop_free(struct box_pool *pool)
{
    while (pool->free) {
        struct box *next = pool->free->next;
        budget_give(&pool->budget, pool->free->size);
        box_unmap(pool->free);
        pool->free = next;
    }
    pool->free_count = 0;
}

/* Under lock. */
static void pool_push(struct box_pool *pool, struct box *box)
{
    box->next = pool->free;
    pool->free = box;
    pool->free_count++;
}

void box_pool_close(struct box_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closed = 1;
    pool_drop_free(pool);
    pool->holders--;
    pool_unlock(pool);
}

void box_pool_trim(struct box_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool_drop_free(pool);
    pthread_mutex_unlock(&pool->lock);
}

struct budget *box_pool_budget(struct box_pool *pool)
{
    return &pool->budget;
}

void box_pool_caller(struct box_pool *pool, uint64_t *bytes, uint64_t *peak)
{
    *bytes = atomic_load(&pool->caller.held);
    *peak = atomic_load(&pool->caller.peak);
}

/* Hands out consecutive pieces of a box. With base NULL it only measures; what no number can say
 * measures UINT64_MAX. */
struct cutter {
    uint8_t *base;
    uint64_t at;
};

static void *cut(struct cutter *cutter, uint64_t count, uint64_t each)
{
    void *piece = cutter->base ? cutter->base + cutter->at : NULL;
    uint64_t bytes;
    if (!checked_mul(count, each, &bytes) || bytes > UINT64_MAX - BOX_ALIGN ||
        !checked_add(cutter->at, box_round_up(bytes), &cutter->at))
        cutter->at = UINT64_MAX;
    return piece;
}

static void cut_field(struct cutter *cutter, const struct field_layout *layout, uint32_t count,
                      const struct box_need *need, struct stk_batch_field *field, uint8_t **run)
{
    const struct stk_field *shown = &layout->field->field;
    memset(field, 0, sizeof *field);
    field->field = shown;
    if (shown->optional)
        field->present = cut(cutter, count, 1);
    if (layout->place == PLACE_DENSE) {
        field->tensor = layout->shape;
        field->tensor.rank = layout->shape.rank + 1;
        memmove(field->tensor.shape + 1, field->tensor.shape, sizeof(int64_t) * (STK_MAX_RANK - 1));
        field->tensor.shape[0] = count;
        field->tensor.data = cut(cutter, count, layout->item);
        if (layout->pads)
            field->lengths = cut(cutter, count, sizeof(int64_t));
        if (layout->keeps_encoded)
            *run = cut(cutter, 1, need->run);
        return;
    }
    if (layout->place == PLACE_BYTES) {
        field->bytes = cut(cutter, count, sizeof(struct stk_bytes));
    } else {
        field->items = cut(cutter, count, sizeof(struct stk_tensor));
        field->layout = STK_RAGGED_LIST;
    }
    *run = cut(cutter, 1, need->run);
    if (layout->place == PLACE_PAD) {
        field->layout = STK_RAGGED_PAD;
        field->lengths = cut(cutter, count, sizeof(int64_t));
        field->tensor.data = cut(cutter, count, need->most);
    }
    if (layout->place == PLACE_FLAT) {
        field->layout = STK_RAGGED_FLAT;
        field->offsets = cut(cutter, (uint64_t)count + 1, sizeof(int64_t));
        field->tensor.data = cut(cutter, 1, need->run); /* values are no longer than stored */
    }
}

/* One walk measures and one arranges, so the two cannot disagree. */
static uint64_t box_walk(struct box *box, const struct layout *layout, uint32_t count,
                         const struct box_need *need)
{
    static const struct box_need nothing;
    struct cutter cutter = {.base = (uint8_t *)box};
    struct stk_batch_field unused;
    cut(&cutter, 1, sizeof *box);
    struct stk_batch_field *fields = cut(&cutter, layout->field_count, sizeof *fields);
    uint8_t **runs = cut(&cutter, layout->field_count, sizeof *runs);
    uint8_t **params = cut(&cutter, layout->field_count, sizeof *params);
    uint64_t **home = cut(&cutter, layout->field_count, sizeof *home);
    uint64_t *samples = cut(&cutter, count, sizeof *samples);
    uint8_t *mask = layout->mask ? cut(&cutter, count, 1) : NULL;
    for (uint32_t f = 0; f < layout->field_count; f++) {
        uint8_t *run = NULL;
        cut_field(&cutter, &layout->fields[f], count, need ? &need[f] : &nothing,
                  box ? &fields[f] : &unused, &run);
        uint8_t *beside = cut(&cutter, count, layout->fields[f].params);
        uint64_t *places = layout->fields[f].resident ? cut(&cutter, count, sizeof *places) : NULL;
        if (!box)
            continue;
        runs[f] = run;
        params[f] = beside;
        home[f] = places;
    }
    if (box) {
        box->fields = fields;
        box->runs = runs;
        box->params = params;
        box->home = home;
        box->samples = samples;
        box->mask = mask;
    }
    return cutter.at;
}

uint64_t box_size(const struct layout *layout, uint32_t count, const struct box_need *need)
{
    return box_walk(NULL, layout, count, need);
}

void box_arrange(struct box *box, const struct layout *layout, uint32_t count,
                 const struct box_need *need)
{
    box_walk(box, layout, count, need);
    box->batch = (struct stk_batch){.count = count,
                                    .field_count = layout->field_count,
                                    .fields = box->fields,
                                    .samples = box->samples,
                                    .mask = box->mask,
                                    .device = -1};
}

/* Under lock: unlinks the first free box that is large enough, but not wastefully so. */
static struct box *pool_find(struct box_pool *pool, uint64_t size)
{
    for (struct box **link = &pool->free; *link; link = &(*link)->next) {
        struct box *box = *link;
        if (box->size >= size && box->size / 2 <= size) {
            *link = box->next;
            pool->free_count--;
            return box;
        }
    }
    return NULL;
}

static struct box *box_new(struct box_pool *pool, uint64_t size, enum box_urgency urgency)
{
    if (!budget_try(&pool->budget, size)) {
        pool_drop_free(pool);
        if (!budget_try(&pool->budget, size)) {
            if (urgency == BOX_IF_IT_FITS)
                return NULL;
            budget_force(&pool->budget, size);
        }
    }
    struct box *box = memory_map(size);
    if (!box) {
        budget_give(&pool->budget, size);
        return NULL;
    }
    memset(box, 0, sizeof *box);
    box->pool = pool;
    box->size = size;
    box_pin(box);
    return box;
}

struct box *box_take(struct box_pool *pool, uint64_t size, enum box_urgency urgency)
{
    pthread_mutex_lock(&pool->lock);
    struct box *box = pool_find(pool, size);
    if (!box)
        box = box_new(pool, size, urgency);
    if (box)
        pool->holders++;
    pthread_mutex_unlock(&pool->lock);
    return box;
}

void box_give(struct box *box)
{
    if (!box)
        return;
    struct box_pool *pool = box->pool;
    box_drop_extra(box, &pool->budget);
    pthread_mutex_lock(&pool->lock);
    pool->holders--;
    pool_push(pool, box);
    if (pool->closed)
        pool_drop_free(pool);
    pool_unlock(pool);
}

void box_hand_over(struct box *box)
{
    budget_give(&box->pool->budget, box->size + box->extra_size);
    budget_force(&box->pool->caller, box->size + box->extra_size);
}

void stk_batch_release(struct stk_batch *batch)
{
    if (!batch)
        return;
    if (batch->device >= 0) {
        device_slot_release((struct device_slot *)batch);
        return;
    }
    struct box *box = (struct box *)batch;
    struct box_pool *pool = box->pool;
    budget_give(&pool->caller, box->size);
    box_drop_extra(box, &pool->caller);
    pthread_mutex_lock(&pool->lock);
    pool->holders--;
    if (!pool->closed && pool->free_count < POOL_KEEPS && budget_try(&pool->budget, box->size))
        pool_push(pool, box);
    else
        box_unmap(box);
    pool_unlock(pool);
}

void *box_extra(struct box *box, uint64_t len)
{
    uint64_t size;
    if (!checked_add(len, sizeof(struct box_extra), &size) || size > INT64_MAX)
        return NULL;
    struct box_extra *extra = memory_alloc(size);
    if (!extra)
        return NULL;
    budget_force(&box->pool->budget, size);
    pthread_mutex_lock(&box->pool->lock); /* two spans of one box may want some */
    extra->next = box->extra;
    box->extra = extra;
    box->extra_size += size;
    pthread_mutex_unlock(&box->pool->lock);
    return extra->data;
}
