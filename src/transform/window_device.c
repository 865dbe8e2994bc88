#include "transform/window_device.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "transform/window_scale.h"

#define VECTOR 16 /* bytes */
#define ELEMENTS_MOST ((uint64_t)1 << 31)

struct window_device {
    struct gather_device copies;
    int plain; /* windows are copied as they lie */
    uint64_t grain, item;
    gpu_address tables;
    uint64_t bytes;
    struct window_job job;                 /* all but what a run says */
    uint32_t element;                      /* bytes */
    struct gpu_kernel *by_one, *by_vector; /* the latter NULL: a row is not whole vectors */
};

/* --- making ----------------------------------------------------------------------------------- */

static stk_status find_kernels(struct window_device *device, enum stk_dtype dtype, int vectors,
                               struct stk_error *err)
{
    const char *one = "window_f32", *vector = "window_vector_f32";
    if (dtype == STK_F16) {
        one = "window_f16";
        vector = "window_vector_f16";
    } else if (dtype == STK_BF16) {
        one = "window_bf16";
        vector = "window_vector_bf16";
    } else if (dtype == STK_F64) {
        one = "window_f64";
        vector = "window_vector_f64";
    }
    struct gpu *gpu = device->copies.gpu;
    stk_status status = gpu_kernel(gpu, "window_kernel", one, &device->by_one, err);
    if (!status && vectors)
        status = gpu_kernel(gpu, "window_kernel", vector, &device->by_vector, err);
    return status;
}

/* The scaler's tables, then the columns, as the job wants them. */
static uint64_t tables_fill(const struct window_gather_parts *parts, uint8_t *to)
{
    const struct window_scale *scale = parts->scale;
    const void *tables[3] = {0};
    uint64_t each = parts->count * sizeof(float), at = 0;
    if (scale && scale->center) {
        each = parts->count * sizeof(double);
        tables[0] = scale->center;
        tables[1] = scale->factor;
    } else if (scale) {
        tables[0] = scale->high;
        tables[1] = scale->low;
        tables[2] = scale->inverse;
    }
    for (int i = 0; i < 3 && tables[i]; i++, at += each)
        memcpy(to + at, tables[i], each);
    memcpy(to + at, parts->columns, parts->count * sizeof *parts->columns);
    return at;
}

static stk_status send(struct gpu *gpu, gpu_address to, const void *from, uint64_t size,
                       struct stk_error *err)
{
    struct gpu_stream *stream = NULL;
    stk_status status = gpu_stream_new(gpu, GPU_NORMAL, &stream, err);
    if (!status)
        status = gpu_copy_in(gpu, to, from, size, stream, err);
    if (!status)
        status = gpu_stream_sync(gpu, stream, err);
    gpu_stream_free(gpu, stream);
    return status;
}

static stk_status make_tables(struct window_device *device, const struct window_gather_parts *parts,
                              struct stk_error *err)
{
    uint64_t most = parts->count * (3 * sizeof(double) + sizeof(uint32_t));
    uint8_t *tables = memory_zero(1, most);
    if (!tables)
        return fail_memory(err, most);
    uint64_t columns = tables_fill(parts, tables);
    struct gpu *gpu = device->copies.gpu;
    stk_status status = gpu_alloc(gpu, most, &device->tables, err);
    if (!status) {
        device->bytes = most;
        status = send(gpu, device->tables, tables, most, err);
    }
    memory_free(tables);
    device->job.tables = parts->scale ? device->tables : 0;
    device->job.columns = parts->whole ? 0 : device->tables + columns;
    return status;
}

/* Of numbers below 2^31: the error of multiplier, less than 2^shift' / 2^31 of 1, never adds up to
 * one part of the divisor. */
static void set_division(struct window_job *job, uint32_t divisor)
{
    uint32_t bits = 0;
    while (((uint64_t)1 << bits) < divisor)
        bits++;
    job->shift = 31 + bits;
    job->multiplier = (uint32_t)((((uint64_t)1 << job->shift) + divisor - 1) / divisor);
}

static stk_status make_gather(struct window_device *device,
                              const struct window_device_options *options, struct stk_error *err)
{
    struct window_gather_parts parts;
    window_gather_tell(options->gather, &parts);
    device->element = (uint32_t)stk_dtype_size(parts.dtype);
    if (options->item / device->element >= ELEMENTS_MOST)
        return fail(err, STK_LIMIT, "a window of %llu bytes is more than the device can gather",
                    (unsigned long long)options->item);
    device->job.column_count = parts.count;
    uint64_t row = window_gather_row_bytes(options->gather);
    device->job.row = (uint32_t)(row / device->element);
    set_division(&device->job, parts.count);
    stk_status status =
        find_kernels(device, parts.dtype, parts.whole && (row | options->grain) % VECTOR == 0, err);
    return status ? status : make_tables(device, &parts, err);
}

static int is_plain(const struct window_device_options *options)
{
    struct window_gather_parts parts;
    if (!options->gather)
        return 1;
    window_gather_tell(options->gather, &parts);
    return parts.whole && !parts.scale && !options->padded;
}

stk_status window_device_new(struct window_device **out,
                             const struct window_device_options *options, struct stk_error *err)
{
    *out = NULL;
    if (options->item >= GATHER_ITEM_MOST)
        return fail(err, STK_LIMIT, "a window of %llu bytes is more than the device can gather",
                    (unsigned long long)options->item);
    struct window_device *device = memory_zero(1, sizeof *device);
    if (!device)
        return fail_memory(err, sizeof *device);
    stk_status status = gather_device_init(&device->copies, options->gpu, options->blocks, err);
    device->plain = is_plain(options);
    device->grain = options->grain;
    device->item = options->item;
    if (!status && !device->plain)
        status = make_gather(device, options, err);
    if (status)
        goto done;
    *out = device;
    device = NULL;
done:
    window_device_free(device);
    return status;
}

void window_device_free(struct window_device *device)
{
    if (!device)
        return;
    gpu_free(device->copies.gpu, device->tables);
    memory_free(device);
}

uint64_t window_device_bytes(const struct window_device *device)
{
    return device->bytes;
}

/* --- running ---------------------------------------------------------------------------------- */

stk_status window_device_run(const struct window_device *device, const struct window_run *run,
                             struct stk_error *err)
{
    if (device->plain) {
        const struct gather_run copy = {.store = run->store,
                                        .homes = run->homes,
                                        .values = run->values,
                                        .item = device->item,
                                        .grain = device->grain,
                                        .count = run->count,
                                        .real = run->real,
                                        .stream = run->stream};
        return gather_device_run(&device->copies, &copy, err);
    }
    struct window_job job = device->job;
    int vectors = device->by_vector && ((run->store | run->values) % VECTOR) == 0;
    if (!run->count)
        return STK_OK;
    job.store = run->store;
    job.homes = run->homes;
    job.values = run->values;
    job.count = run->count;
    job.real = run->real;
    struct gpu_grid grid =
        gather_deal(&job.deal, device->item / (vectors ? VECTOR : device->element), WINDOW_DEPTH,
                    run->count, device->copies.blocks);
    return gpu_launch(device->copies.gpu, vectors ? device->by_vector : device->by_one, &grid, &job,
                      sizeof job, run->stream, err);
}
