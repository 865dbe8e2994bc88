/* The ship stage: what is decided and made once, and statistics. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "loader/device_decode.h"
#include "loader/resident.h"
#include "loader/ship_impl.h"
#include "pipeline/device_half.h"

#define AHEAD_DEFAULT ((uint64_t)1 << 30) /* bytes of batches made ahead */
#define DECODE_PART 4 /* of device_memory, where it is given, may be decoded images */
#define AHEAD_LEAST 3 /* batches: one with the caller soon, one there, one on its way */

/* --- making ----------------------------------------------------------------------------------- */

struct gpu *ship_gpu(struct ship *ship)
{
    return ship->gpu;
}

int ship_computes(const struct ship *ship)
{
    return ship->computes;
}

/* Kernels are looked for only where some are wanted: to load one takes time. */
static stk_status find_kernels(struct ship *ship, const struct stk_loader_options *options,
                               struct stk_error *err)
{
    struct gpu_kernel *kernel;
    struct stk_error why;
    if (!options->transform_count && !options->batch_transforms &&
        options->resident == STK_RESIDENT_NO)
        return STK_OK;
    stk_status status = gpu_enter(ship->gpu, err);
    if (status)
        return status;
    ship->computes = !gpu_kernel(ship->gpu, "mix_kernel", "mix_batch", &kernel, &why);
    gpu_leave(ship->gpu);
    if (!ship->computes)
        context_notice(ship->loader->context,
                       "transforms run on the CPU, JPEGs are decoded there, and nothing is "
                       "resident: %s",
                       why.what);
    return STK_OK;
}

/* With AUTO a machine without a GPU is no error: *out stays NULL. */
stk_status ship_new(struct ship **out, struct stk_loader *loader,
                    const struct stk_loader_options *options, struct stk_error *err)
{
    struct stk_error why;
    *out = NULL;
    if (options->device == STK_DEVICE_CPU)
        return STK_OK;
    struct ship *ship = memory_zero(1, sizeof *ship);
    if (!ship)
        return fail_memory(err, sizeof *ship);
    ship->loader = loader;
    stk_status status = gpu_open(&ship->gpu, options->device_number, &why);
    if (!status) {
        *out = ship; /* the loader's, also when this fails */
        return find_kernels(ship, options, err);
    }
    memory_free(ship);
    if (options->device == STK_DEVICE_AUTO) {
        context_notice(loader->context, "no GPU: batches stay in the memory of the CPU (%s)",
                       why.what);
        return STK_OK;
    }
    if (err)
        *err = why;
    return status;
}

static stk_status make_halves(struct ship *ship, struct stk_error *err)
{
    const struct layout *layout = &ship->loader->layout;
    uint64_t most = 0;
    stk_status status = STK_OK;
    for (uint32_t f = 0; f < layout->field_count && !status; f++) {
        const struct field_layout *field = &layout->fields[f];
        if (!field->params)
            continue;
        status = device_half_new(&ship->halves[f], field->cut, ship->gpu, layout->capacity, err);
        uint64_t scratch = status ? 0 : device_half_scratch(ship->halves[f]);
        most = scratch > most ? scratch : most;
    }
    if (!status && most)
        status = gpu_alloc(ship->gpu, most, &ship->scratch, err);
    if (!status)
        budget_force(device_pool_budget(ship->pool), most);
    return status;
}

static stk_status make_streams(struct ship *ship, struct stk_error *err)
{
    stk_status status = gpu_stream_new(ship->gpu, GPU_NORMAL, &ship->copy, err);
    if (!status)
        status = gpu_stream_new(ship->gpu, GPU_IDLE, &ship->work, err); /* batches are made ahead */
    if (!status)
        status = gpu_event_new(ship->gpu, &ship->copied, err);
    for (uint32_t i = 0; i < LANDINGS && !status; i++)
        status = gpu_event_new(ship->gpu, &ship->landings[i].read, err);
    for (uint32_t i = 0; i < ship->loader->depth && !status; i++)
        status = gpu_event_new(ship->gpu, &ship->copying[i].done, err);
    return status;
}

/* Bytes of the largest batch as the caller sees it, in dense fields. */
static uint64_t batch_bytes(const struct ship *ship)
{
    const struct layout *layout = &ship->loader->layout;
    uint64_t made = 0;
    for (uint32_t f = 0; f < layout->field_count; f++)
        made += layout->fields[f].made_item;
    return made * layout->capacity;
}

/* Bytes that the largest batch of resident data lands in, before the result is made of them. */
static uint64_t landing_bytes(const struct ship *ship)
{
    const struct layout *layout = &ship->loader->layout;
    uint64_t landed = 0;
    for (uint32_t f = 0; f < layout->field_count; f++) {
        const struct field_layout *field = &layout->fields[f];
        landed += sizeof(uint64_t) + (field->params ? field->item + field->params : 0);
    }
    return landed * layout->capacity;
}

static uint64_t ahead_limit(const struct ship *ship, const struct stk_loader_options *options)
{
    uint64_t least = AHEAD_LEAST * batch_bytes(ship);
    if (options->device_memory)
        return options->device_memory;
    return least > AHEAD_DEFAULT ? least : AHEAD_DEFAULT;
}

/* What resident data may take: what the user allows beside batches, or half of what is free. */
static stk_status resident_limit(struct ship *ship, const struct stk_loader_options *options,
                                 uint64_t *limit, struct stk_error *err)
{
    uint64_t free = 0, total = 0;
    uint64_t batches = AHEAD_LEAST * batch_bytes(ship) + LANDINGS * landing_bytes(ship);
    stk_status status = gpu_memory(ship->gpu, &free, &total, err);
    *limit = free / 2;
    if (options->device_memory)
        *limit = options->device_memory > batches ? options->device_memory - batches : 0;
    return status;
}

static stk_status refuse_mixing(struct stk_error *err)
{
    stk_status status =
        fail(err, STK_UNSUPPORTED, "resident data cannot be mixed by batch_transforms");
    fail_remedy(err, "leave resident or batch_transforms out");
    return status;
}

static stk_status refuse_resident(struct stk_error *err)
{
    stk_status status =
        fail(err, STK_UNSUPPORTED, "resident data needs kernels, and there are none here");
    fail_remedy(err, "`stoker check` says why they do not load; else leave resident out");
    return status;
}

static stk_status make_resident(struct ship *ship, const struct stk_loader_options *options,
                                struct stk_error *err)
{
    struct resident_options wanted = {.gpu = ship->gpu, .dataset = ship->loader->dataset};
    if (options->resident == STK_RESIDENT_NO)
        return STK_OK;
    stk_status status = STK_OK;
    if (!ship->computes)
        status = refuse_resident(err);
    else if (options->batch_transforms)
        status = refuse_mixing(err);
    if (!status)
        status = resident_limit(ship, options, &wanted.limit, err);
    if (!status)
        status = resident_new(&ship->resident, &wanted, &ship->loader->layout, err);
    if (status && options->resident == STK_RESIDENT_AUTO) {
        if (err)
            *err = (struct stk_error){0};
        ship->resident = NULL;
        return STK_OK;
    }
    ship->feeding = !status;
    ship->loader->resident = ship->resident;
    return status;
}

static stk_status make_decode(struct ship *ship, const struct stk_loader_options *options,
                              struct stk_error *err)
{
    struct stk_loader *loader = ship->loader;
    const struct device_decode_options wanted = {.gpu = ship->gpu,
                                                 .loader = loader,
                                                 .decode = options->decode,
                                                 .depth = loader->depth,
                                                 .limit = options->device_memory / DECODE_PART,
                                                 .threads = loader->worker_count};
    return device_decode_new(&loader->decode, &wanted, err);
}

static stk_status make_arrays(struct ship *ship, struct stk_error *err)
{
    const struct stk_loader *loader = ship->loader;
    uint32_t fields = loader->layout.field_count;
    ship->halves = memory_zero(fields, sizeof *ship->halves);
    ship->lent = memory_zero(fields, sizeof *ship->lent);
    ship->landed = memory_zero(fields, sizeof *ship->landed);
    ship->decoded = memory_zero(fields, sizeof *ship->decoded);
    ship->copying = memory_zero(loader->depth, sizeof *ship->copying);
    if (!ship->halves || !ship->lent || !ship->landed || !ship->decoded || !ship->copying)
        return fail_memory(err, fields * sizeof *ship->halves);
    return parcel_init(&ship->parcel, &loader->layout, err);
}

stk_status ship_prepare(struct ship *ship, const struct stk_loader_options *options,
                        struct stk_error *err)
{
    uint64_t limit = ahead_limit(ship, options);
    stk_status status = make_arrays(ship, err);
    if (!status)
        status = gpu_enter(ship->gpu, err);
    if (status)
        return status;
    status = make_resident(ship, options, err);
    uint64_t resident = ship->resident ? resident_bytes(ship->resident) : 0;
    if (!options->device_memory)
        limit += resident;
    if (!status)
        status = device_pool_new(&ship->pool, ship->gpu, ship->loader->dataset, limit, err);
    if (!status) {
        budget_force(device_pool_budget(ship->pool), resident);
        status = make_decode(ship, options, err);
    }
    if (!status)
        status = make_halves(ship, err);
    if (!status)
        status = make_streams(ship, err);
    gpu_leave(ship->gpu);
    return status;
}

/* --- ending --------------------------------------------------------------------------------- */

static void free_on_device(struct ship *ship)
{
    for (uint32_t f = 0; ship->halves && f < ship->loader->layout.field_count; f++)
        device_half_free(ship->halves[f]);
    resident_free(ship->resident);
    device_decode_free(ship->loader->decode);
    gpu_free(ship->gpu, ship->scratch);
    for (uint32_t i = 0; i < LANDINGS; i++) {
        gpu_free(ship->gpu, ship->landings[i].data);
        gpu_event_free(ship->gpu, ship->landings[i].read);
    }
    for (uint32_t i = 0; ship->copying && i < ship->loader->depth; i++)
        gpu_event_free(ship->gpu, ship->copying[i].done);
    gpu_event_free(ship->gpu, ship->copied);
    gpu_stream_free(ship->gpu, ship->copy);
    gpu_stream_free(ship->gpu, ship->work);
    device_pool_close(ship->pool);
}

void ship_free(struct ship *ship)
{
    if (!ship)
        return;
    int entered = !gpu_enter(ship->gpu, NULL);
    free_on_device(ship);
    if (entered)
        gpu_leave(ship->gpu);
    gpu_close(ship->gpu);
    ship->loader->decode = NULL;
    ship->loader->resident = NULL;
    parcel_reset(&ship->parcel);
    memory_free(ship->halves);
    memory_free(ship->lent);
    memory_free(ship->landed);
    memory_free(ship->decoded);
    memory_free(ship->copying);
    memory_free(ship);
}

/* --- for the loader --------------------------------------------------------------------------- */

void ship_give_back(struct ship *ship, struct device_slot *slot)
{
    if (!slot)
        return;
    int entered = !gpu_enter(ship->gpu, NULL);
    device_pool_give(slot);
    if (entered)
        gpu_leave(ship->gpu);
}

void ship_taken(struct ship *ship)
{
    if (ship)
        device_pool_wake(ship->pool);
}

stk_status ship_use(struct ship *ship, const void *address, void *stream, struct stk_error *err)
{
    return device_pool_use(ship->pool, address, stream, err);
}

void ship_stats(struct ship *ship, struct stk_device_stats *stats)
{
    const struct budget *budget = device_pool_budget(ship->pool);
    *stats = (struct stk_device_stats){
        .held_bytes = atomic_load(&budget->held),
        .peak_bytes = atomic_load(&budget->peak),
        .shipped_bytes = atomic_load(&ship->shipped),
        .pinned_bytes = box_pool_pinned(ship->loader->pool),
        .pageable_batches = atomic_load(&ship->pageable),
        .resident_batches = atomic_load(&ship->resident_batches),
    };
    memcpy(stats->name, gpu_info(ship->gpu)->name, sizeof stats->name);
    device_pool_caller(ship->pool, &stats->caller_bytes, &stats->caller_peak_bytes);
    if (ship->resident) {
        stats->resident_bytes = resident_bytes(ship->resident);
        stats->resident_samples = resident_samples(ship->resident);
    }
    if (ship->loader->decode)
        device_decode_stats(ship->loader->decode, stats);
}
