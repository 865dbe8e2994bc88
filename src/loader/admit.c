#include "loader/admit.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "loader/device_decode.h"
#include "loader/fill_stage.h"
#include "loader/resident.h"
#include "loader/stretches.h"

/* --- what a batch needs ----------------------------------------------------------------------- */

/* Places of variable values in their runs, from the lengths that the index knows. */
static void admit_runs(const struct stk_loader *loader, struct slot *slot)
{
    uint32_t fields = loader->layout.field_count;
    memset(slot->need, 0, sizeof *slot->need * fields);
    for (uint32_t i = 0; i < slot->share.real; i++) {
        for (uint32_t f = 0; f < fields; f++) {
            const struct extent *extent = &slot->extents[(uint64_t)i * fields + f];
            struct box_need *need = &slot->need[f];
            const struct field_layout *layout = &loader->layout.fields[f];
            if (!layout_runs(layout) || extent->object == EXTENT_NONE)
                continue;
            slot->run_at[(uint64_t)i * fields + f] = need->run;
            if (!checked_add(need->run, box_round_up(extent->length), &need->run))
                need->run = UINT64_MAX; /* no box is that large */
            need->most = extent->length > need->most ? extent->length : need->most;
        }
    }
}

static int slot_add_chunk(struct slot *slot, uint32_t chunk)
{
    for (uint32_t i = slot->chunk_count; i-- > 0;) /* neighbours are the likely ones */
        if (slot->chunks[i] == chunk)
            return 1;
    if (slot->chunk_count == slot->chunk_cap) {
        uint32_t cap = slot->chunk_cap ? slot->chunk_cap * 2 : 16;
        uint32_t *chunks = memory_grow(slot->chunks, cap * sizeof *chunks);
        if (!chunks)
            return 0;
        slot->chunks = chunks;
        slot->chunk_cap = cap;
    }
    slot->chunks[slot->chunk_count++] = chunk;
    return 1;
}

static int admit_list_chunks(const struct stk_loader *loader, struct slot *slot)
{
    uint32_t objects = index_object_count(dataset_index(loader->dataset));
    uint64_t values = (uint64_t)slot->share.real * loader->layout.field_count;
    for (uint64_t v = 0; v < values; v++) {
        uint32_t object = slot->extents[v].object;
        if (loader->resident &&
            resident_has(loader->resident, slot->samples[v / loader->layout.field_count]))
            continue; /* its bytes are not needed */
        if (object >= objects && object < EXTENT_VALUE && !slot_add_chunk(slot, object - objects))
            return 0;
    }
    return 1;
}

static void admit_release_chunks(struct stk_loader *loader, struct slot *slot, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        chunk_cache_release(loader->chunks, slot->chunks[i]);
    slot->chunk_count = 0;
}

static int admit_hold_chunks(struct stk_loader *loader, struct slot *slot, int oldest)
{
    slot->chunk_count = 0;
    if (!loader->chunks)
        return 1;
    if (!admit_list_chunks(loader, slot)) {
        slot->chunk_count = 0; /* none of them is held */
        return 0;
    }
    for (uint32_t i = 0; i < slot->chunk_count; i++) {
        if (chunk_cache_hold(loader->chunks, slot->chunks[i], CHUNK_IF_IT_FITS))
            continue;
        if (!oldest) {
            admit_release_chunks(loader, slot, i);
            return 0;
        }
        box_pool_trim(loader->pool);
        chunk_cache_hold(loader->chunks, slot->chunks[i], CHUNK_ANYWAY);
    }
    return 1;
}

/* --- reading ahead ---------------------------------------------------------------------------- */

void admit_reset_ahead(struct stk_loader *loader)
{
    for (uint32_t i = 0; i < loader->ahead_count; i++)
        chunk_cache_release(loader->chunks, loader->ahead[i]);
    loader->ahead_count = 0;
    loader->ahead_group = STK_NOWHERE;
}

/* While a group of chunks is being consumed, the next one is decoded as far as the budget allows:
 * without it every group would begin with a stall. */
static void admit_ahead(struct stk_loader *loader, const struct slot *slot)
{
    const struct plan *plan = loader->plan;
    if (plan->order != STK_ORDER_LOCAL || plan->lane_count > 1) /* lanes have no chunks to decode */
        return;
    uint64_t group = plan_group(plan, &loader->cursor, slot->epoch, slot->position);
    if (group == loader->ahead_group)
        return;
    admit_reset_ahead(loader);
    loader->ahead_group = group;
    if (group + 1 >= plan->group_count)
        return; /* the next epoch's chunks are not known to this cursor yet */
    uint32_t objects = index_object_count(dataset_index(loader->dataset)), chunk = 0;
    uint64_t sample;
    while ((sample = plan_group_next(plan, &loader->cursor, group + 1, &chunk)) != STK_NOWHERE) {
        struct extent extents[DATASET_MAX_FIELDS];
        if (dataset_resolve(loader->dataset, &sample, 1, loader->resolve, extents, NULL))
            return;
        uint32_t object = extents[0].object;
        if (object < objects || object >= EXTENT_VALUE)
            continue;
        if (!chunk_cache_hold(loader->chunks, object - objects, CHUNK_IF_IT_FITS))
            return;
        loader->ahead[loader->ahead_count++] = object - objects;
    }
}

/* --- admission -------------------------------------------------------------------------------- */

/* Its samples may be claimed from now on. */
static void slot_open(struct slot *slot)
{
    atomic_store_explicit(&slot->unclaimed, slot->share.real, memory_order_release);
}

/* One of a slot's parts is done; under lock. */
static void slot_pass_on(struct stk_loader *loader, struct slot *slot)
{
    if (fill_part_done(loader, slot))
        loader_complete(loader, slot);
}

/* The batch's samples and extents, where admission needs them. */
static stk_status admit_resolve(struct stk_loader *loader, struct slot *slot, struct stk_error *err)
{
    if (!loader->early)
        return STK_OK;
    stk_status status = plan_share_samples(loader->plan, &loader->cursor, slot->epoch, &slot->share,
                                           slot->samples, err);
    if (status)
        return status;
    return dataset_resolve(loader->dataset, slot->samples, slot->share.real, loader->resolve,
                           slot->extents, err);
}

/* Sizes that differ a little share a box: steps of an eighth. */
static uint64_t size_class(uint64_t size)
{
    uint64_t step = ((uint64_t)1 << (63 - __builtin_clzll(size | 8))) / 8;
    return (size + step - 1) & ~(step - 1);
}

static struct box *admit_box(struct stk_loader *loader, struct slot *slot, int oldest)
{
    const struct box_need *need = NULL;
    if (loader->layout.variable) {
        admit_runs(loader, slot);
        need = slot->need;
    }
    uint64_t size = box_size(&loader->layout, slot->share.count, need);
    if (size > INT64_MAX)
        return NULL;
    if (loader->layout.variable)
        size = size_class(size);
    struct box *box = box_take(loader->pool, size, BOX_IF_IT_FITS);
    while (!box && loader->chunks && chunk_cache_evict(loader->chunks))
        box = box_take(loader->pool, size, BOX_IF_IT_FITS);
    if (!box && oldest)
        box = box_take(loader->pool, size, BOX_ANYWAY);
    if (box)
        box_arrange(box, &loader->layout, slot->share.count, need);
    return box;
}

static void admit_publish(struct stk_loader *loader, struct slot *slot)
{
    uint32_t spans = (slot->share.real + loader->span - 1) / loader->span;
    struct stk_batch *batch = &slot->box->batch;
    batch->epoch = slot->epoch;
    batch->real = slot->share.real;
    batch->end = slot->share.end;
    slot->fetching = 0;
    for (uint32_t i = 0; i < slot->chunk_count; i++)
        slot->fetching |= !chunk_cache_ready(loader->chunks, slot->chunks[i]);
    atomic_store_explicit(&slot->reads, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->found, 0, memory_order_relaxed);
    device_decode_clear(loader->decode, (uint32_t)(slot - loader->slots));
    atomic_store_explicit(&slot->pending, spans + 1, memory_order_relaxed);
    if (!slot->fetching)
        slot_open(slot);
    atomic_store_explicit(&loader->admitted, loader->admitted + 1, memory_order_release);
}

static void admit_move_on(struct stk_loader *loader, const struct slot *slot)
{
    loader->admit_position = slot->share.end;
    if (plan_steps(loader->plan, loader->admit_position) == 0) {
        loader->admit_epoch++;
        loader->admit_position = 0;
        admit_reset_ahead(loader); /* groups are numbered anew */
    }
}

/* No memory for the oldest batch, or an index that cannot be read: the batch is its own error. */
static int admit_as_error(struct stk_loader *loader, struct slot *slot, const struct stk_error *err)
{
    slot_add_bad(slot, &(struct slot_bad){.substitute = STK_NOWHERE, .error = *err});
    atomic_store_explicit(&loader->admitted, loader->admitted + 1, memory_order_release);
    admit_move_on(loader, slot);
    loader_complete(loader, slot);
    return 1;
}

int admit_next(struct stk_loader *loader)
{
    uint64_t number = loader->admitted;
    int oldest = number == loader->taken;
    if (number - loader->taken >= loader->deep || plan_steps(loader->plan, 0) == 0 ||
        loader->admit_epoch >= loader->epoch_end)
        return 0;
    struct slot *slot = &loader->slots[number % loader->depth];
    struct stk_error err;
    slot->epoch = loader->admit_epoch;
    slot->position = loader->admit_position;
    atomic_store_explicit(&slot->done, 0, memory_order_relaxed);
    slot->filled = 0;
    plan_share(loader->plan, slot->position, &slot->share);
    if (admit_resolve(loader, slot, &err))
        return oldest ? admit_as_error(loader, slot, &err) : 0;
    if (!admit_hold_chunks(loader, slot, oldest))
        goto no_memory;
    slot->box = admit_box(loader, slot, oldest);
    if (!slot->box) {
        if (loader->chunks)
            admit_release_chunks(loader, slot, slot->chunk_count);
        goto no_memory;
    }
    admit_ahead(loader, slot);
    stretches_admit(loader->stretches, slot);
    admit_publish(loader, slot);
    admit_move_on(loader, slot);
    if (!slot->fetching)
        slot_pass_on(loader, slot); /* the place that admission held: an empty batch is ready now */
    return 1;
no_memory:
    if (!oldest)
        return 0;
    fail_memory(&err, box_size(&loader->layout, slot->share.count, slot->need));
    return admit_as_error(loader, slot, &err);
}

void admit_retire(struct stk_loader *loader, struct slot *slot)
{
    if (loader->chunks)
        admit_release_chunks(loader, slot, slot->chunk_count);
    slot_drop_bad(slot);
    atomic_store_explicit(&loader->taken, loader->taken + 1, memory_order_release);
}

void admit_chunk_done(struct stk_loader *loader)
{
    for (uint64_t n = loader->taken; n < loader->admitted; n++) {
        struct slot *slot = &loader->slots[n % loader->depth];
        if (!slot->fetching)
            continue;
        slot->fetching = 0;
        for (uint32_t i = 0; i < slot->chunk_count; i++)
            slot->fetching |= !chunk_cache_ready(loader->chunks, slot->chunks[i]);
        if (slot->fetching)
            continue;
        slot_open(slot);
        slot_pass_on(loader, slot);
    }
}
