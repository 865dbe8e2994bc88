#include "loader/resident_tensors.h"

#include <stdatomic.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "transform/gather_device.h"

/* A sample's entry: 0, it has no row; else the row's number and 1. */
#define ROW_FOUND ((uint32_t)1 << 31) /* its values are there, in all fields */
#define ROWS_MOST (ROW_FOUND - 2)
#define STORE_ALIGN 256
/* Values of LARGE bytes are copied by some blocks, not by all that the device has. Beside a 3D-CNN
 * on an H200 (32 values of 1.2 MB a step) 64 blocks left 0.994 of its speed, 16 left 0.993, 8 left
 * 0.990; copies by the driver in a stream of their own 0.987. The traffic, 77 MB a step, is 1 % of
 * what the memory moves in that time. */
#define LARGE (256 << 10)
#define LARGE_BLOCKS 64

struct tensor_store {
    gpu_address address;
    uint64_t item;
};

struct resident_tensors {
    struct gather_device device;
    struct tensor_store *stores; /* [field_count] */
    uint32_t field_count;
    uint64_t bytes;
    /* [samples of the index] Rows are given out as samples come, so that a part of a large dataset
     * needs no more than its own. Written by the ship stage alone; ROW_FOUND with release, and
     * whoever loads it (acquire) may put the row into a home: the gather is in the stream behind
     * what wrote it. */
    _Atomic uint32_t *entries;
    uint64_t samples;        /* of the index */
    uint64_t rows, rows_cap; /* given out; the ship stage's */
    _Atomic uint64_t found;
    struct keep_move *moves; /* [capacity of a batch], the ship stage's */
};

/* --- making ----------------------------------------------------------------------------------- */

/* Why a field's values cannot be kept; NULL: they can. */
static const char *field_trouble(const struct field_layout *field)
{
    if (field->field->field.optional)
        return "it is optional";
    if (field->place == PLACE_BYTES)
        return "it is bytes";
    if (field->place != PLACE_DENSE || field->pads)
        return "its samples differ in shape";
    if (field->pipeline)
        return "its values are made by the CPU for each batch";
    if (field->item >= GATHER_ITEM_MOST)
        return "a value has 2 GiB or more";
    return NULL;
}

static stk_status check_fields(const struct layout *layout, struct stk_error *err)
{
    for (uint32_t f = 0; f < layout->field_count; f++) {
        const char *trouble = field_trouble(&layout->fields[f]);
        if (!trouble)
            continue;
        stk_status status = fail(err, STK_UNSUPPORTED,
                                 "the data cannot live on the device: field \"%s\" cannot, for %s",
                                 layout->fields[f].field->field.name, trouble);
        fail_field(err, layout->fields[f].field->field.name);
        fail_remedy(err, "leave the field out (fields=), or give resident=False");
        return status;
    }
    return STK_OK;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + STORE_ALIGN - 1) & ~(uint64_t)(STORE_ALIGN - 1);
}

static stk_status check_size(struct resident_tensors *tensors,
                             const struct resident_options *options, const struct layout *layout,
                             struct stk_error *err)
{
    uint64_t total = 0, store;
    if (tensors->rows_cap > ROWS_MOST)
        return fail(err, STK_UNSUPPORTED, "the data cannot live on the device: it has %llu samples",
                    (unsigned long long)tensors->rows_cap);
    for (uint32_t f = 0; f < layout->field_count; f++) {
        if (!checked_mul(tensors->rows_cap, layout->fields[f].item, &store) || store > INT64_MAX ||
            !checked_add(total, round_up(store), &total))
            total = UINT64_MAX;
    }
    tensors->bytes = total;
    if (total <= options->limit)
        return STK_OK;
    stk_status status =
        fail(err, STK_MEMORY, "the data needs %llu MiB on the device, but %llu MiB are allowed",
             (unsigned long long)(total >> 20) + 1, (unsigned long long)(options->limit >> 20));
    fail_remedy(err, "give a larger device_memory=, fewer fields, or resident=False");
    return status;
}

static stk_status make_stores(struct resident_tensors *tensors, const struct layout *layout,
                              struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t f = 0; f < layout->field_count && !status; f++) {
        struct tensor_store *store = &tensors->stores[f];
        store->item = layout->fields[f].item;
        uint64_t size = round_up(store->item * tensors->rows_cap);
        if (size)
            status = gpu_alloc(tensors->device.gpu, size, &store->address, err);
    }
    return status;
}

static stk_status make_tables(struct resident_tensors *tensors, const struct layout *layout,
                              struct stk_error *err)
{
    tensors->field_count = layout->field_count;
    tensors->stores = memory_zero(layout->field_count, sizeof *tensors->stores);
    tensors->entries = memory_zero(tensors->samples + 1, sizeof *tensors->entries);
    tensors->moves = memory_zero(layout->capacity, sizeof *tensors->moves);
    if (!tensors->stores || !tensors->entries || !tensors->moves)
        return fail_memory(err, tensors->samples * sizeof *tensors->entries);
    return STK_OK;
}

stk_status resident_tensors_new(struct resident_tensors **out,
                                const struct resident_options *options, struct layout *layout,
                                struct stk_error *err)
{
    *out = NULL;
    struct resident_tensors *tensors = memory_zero(1, sizeof *tensors);
    if (!tensors)
        return fail_memory(err, sizeof *tensors);
    tensors->samples = index_samples(dataset_index(options->dataset));
    tensors->rows_cap = stk_dataset_samples(options->dataset);
    stk_status status = check_fields(layout, err);
    if (!status)
        status = check_size(tensors, options, layout, err);
    if (!status)
        status = gather_device_init(&tensors->device, options->gpu, options->blocks, err);
    if (!status)
        status = make_tables(tensors, layout, err);
    if (!status)
        status = make_stores(tensors, layout, err);
    if (status)
        goto done;
    for (uint32_t f = 0; f < layout->field_count; f++)
        layout->fields[f].resident = 1;
    *out = tensors;
    tensors = NULL;
done:
    resident_tensors_free(tensors);
    return status;
}

void resident_tensors_free(struct resident_tensors *tensors)
{
    if (!tensors)
        return;
    for (uint32_t f = 0; tensors->stores && f < tensors->field_count; f++)
        if (tensors->stores[f].address)
            gpu_free(tensors->device.gpu, tensors->stores[f].address);
    memory_free(tensors->stores);
    memory_free(tensors->entries);
    memory_free(tensors->moves);
    memory_free(tensors);
}

uint64_t resident_tensors_bytes(const struct resident_tensors *tensors)
{
    return tensors->bytes;
}

uint64_t resident_tensors_samples(const struct resident_tensors *tensors)
{
    return atomic_load_explicit(&tensors->found, memory_order_relaxed);
}

/* --- finding ---------------------------------------------------------------------------------- */

int resident_tensors_has(const struct resident_tensors *tensors, uint64_t sample)
{
    return sample < tensors->samples &&
           atomic_load_explicit(&tensors->entries[sample], memory_order_acquire) & ROW_FOUND;
}

uint32_t resident_tensors_find(const struct resident_tensors *tensors,
                               const struct resident_span *span)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < span->count; i++) {
        uint32_t entry =
            atomic_load_explicit(&tensors->entries[span->samples[i]], memory_order_acquire);
        int there = (entry & ROW_FOUND) != 0;
        uint64_t row = (entry & ~ROW_FOUND) - 1;
        found += (uint32_t)there;
        for (uint32_t f = 0; f < tensors->field_count; f++)
            span->box->home[f][span->first + i] =
                there ? row * tensors->stores[f].item : STK_NOWHERE;
    }
    return found;
}

/* --- the ship stage --------------------------------------------------------------------------- */

stk_status resident_tensors_gather(struct resident_tensors *tensors,
                                   const struct resident_batch *batch, struct stk_error *err)
{
    const struct tensor_store *store = &tensors->stores[batch->field];
    const struct gather_run run = {.store = store->address,
                                   .homes = batch->home,
                                   .values = batch->values,
                                   .item = store->item,
                                   .grain = store->item,
                                   .count = batch->count,
                                   .real = batch->real,
                                   .blocks = store->item >= LARGE ? LARGE_BLOCKS : 0,
                                   .stream = batch->stream};
    return gather_device_run(&tensors->device, &run, err);
}

/* The row of a sample that has to be kept; 0: it need not, or there is none left. Rows and 1. */
static uint32_t row_for(struct resident_tensors *tensors, uint64_t sample)
{
    if (sample >= tensors->samples)
        return 0;
    uint32_t entry = atomic_load_explicit(&tensors->entries[sample], memory_order_relaxed);
    if (entry & ROW_FOUND)
        return 0;
    if (!entry && tensors->rows < tensors->rows_cap) {
        entry = (uint32_t)++tensors->rows;
        atomic_store_explicit(&tensors->entries[sample], entry, memory_order_relaxed);
    }
    return entry;
}

stk_status resident_tensors_keep(struct resident_tensors *tensors,
                                 const struct resident_batch *batch, struct stk_error *err)
{
    const struct tensor_store *store = &tensors->stores[batch->field];
    struct keep_run run = {.store = store->address,
                           .values = batch->values,
                           .item = store->item,
                           .moves = tensors->moves,
                           .stream = batch->stream};
    for (uint32_t i = 0; i < batch->real; i++) {
        uint32_t row = row_for(tensors, batch->samples[i]);
        if (row)
            tensors->moves[run.count++] = (struct keep_move){.place = i, .row = row - 1};
    }
    return gather_device_keep(&tensors->device, &run, err);
}

void resident_tensors_found(struct resident_tensors *tensors, const uint64_t *samples,
                            uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (samples[i] >= tensors->samples)
            continue;
        uint32_t entry = atomic_load_explicit(&tensors->entries[samples[i]], memory_order_relaxed);
        if (!entry || entry & ROW_FOUND)
            continue;
        atomic_store_explicit(&tensors->entries[samples[i]], entry | ROW_FOUND,
                              memory_order_release);
        atomic_fetch_add_explicit(&tensors->found, 1, memory_order_relaxed);
    }
}
