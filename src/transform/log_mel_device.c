#include "transform/log_mel_device.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/gpu.h"
#include "transform/cufft_api.h"

#define LOT_BYTES ((uint64_t)16 << 20) /* of frames: with their spectrum they stay in the cache */
#define LOT_SAMPLES 64
#define MOST_ROWS 65535
#define THREADS 256
#define PIECE 256 /* pieces of scratch and tables begin at multiples of it */

/* A plan and tables for one device, one rate and one size of lots. */
struct log_mel_device {
    struct log_mel_device *next;
    struct gpu *gpu; /* kept */
    double rate;
    uint32_t lot;
    struct cufft_api api;
    int plan, planned;
    gpu_address tables;
    uint64_t bands, weights; /* where they lie in the tables; the window is in front */
    struct gpu_event *over;  /* recorded behind the last run */
};

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + PIECE - 1) / PIECE * PIECE;
}

static uint64_t columns_of(const struct stk_flow *out) /* of one sample */
{
    return (uint64_t)(out->tensor.shape[0] * out->tensor.shape[2]);
}

/* Transforms of one call of cuFFT. It does not hang on the batch: the last batch of an epoch, which
 * may be smaller, is made with the same plan. */
static uint32_t lot_of(const struct log_mel_setting *setting, const struct stk_flow *out)
{
    uint64_t lot = LOT_BYTES / (setting->spec.n_fft * sizeof(float));
    uint64_t most = columns_of(out) * LOT_SAMPLES;
    lot = lot < most ? lot : most;
    return lot < MOST_ROWS ? (uint32_t)lot : MOST_ROWS;
}

/* --- making ----------------------------------------------------------------------------------- */

void log_mel_devices_init(struct log_mel_devices *devices)
{
    devices->first = NULL;
    pthread_mutex_init(&devices->lock, NULL);
}

/* In a forked child only our own memory is freed. */
static void device_free(struct log_mel_device *device)
{
    if (!device)
        return;
    if (!gpu_enter(device->gpu, NULL)) {
        gpu_free(device->gpu, device->tables); /* waits for all that runs */
        if (device->planned)
            (void)device->api.cufftDestroy(device->plan);
        gpu_event_free(device->gpu, device->over);
        gpu_leave(device->gpu);
    }
    gpu_close(device->gpu);
    memory_free(device);
}

void log_mel_devices_reset(struct log_mel_devices *devices)
{
    for (struct log_mel_device *next; devices->first; devices->first = next) {
        next = devices->first->next;
        device_free(devices->first);
    }
    pthread_mutex_destroy(&devices->lock);
}

static stk_status make_plan(struct log_mel_device *device, uint32_t n_fft, struct stk_error *err)
{
    int length = (int)n_fft, bins = length / 2 + 1;
    size_t work;
    stk_status status = cufft_api_load(&device->api, err);
    if (status)
        return status;
    int result = device->api.cufftCreate(&device->plan);
    device->planned = result == CUFFT_SUCCESS;
    if (!result)
        result =
            device->api.cufftMakePlanMany(device->plan, 1, &length, NULL, 1, length, NULL, 1, bins,
                                          CUFFT_REAL_TO_COMPLEX, (int)device->lot, &work);
    if (result == CUFFT_ALLOC_FAILED)
        return fail(err, STK_MEMORY, "cuFFT has no memory for %u transforms of %u values",
                    device->lot, n_fft);
    if (result)
        return fail(err, STK_UNSUPPORTED, "cuFFT makes no plan for %u transforms of %u values: %d",
                    device->lot, n_fft, result);
    return STK_OK;
}

/* The window, the bands and their weights in one block. Returns its size. */
static uint64_t lay_tables(struct log_mel_device *device, const struct log_mel_setting *setting,
                           const struct mel_filters *filters, uint8_t *to)
{
    const struct mel_spec *spec = &setting->spec;
    struct mel_band *bands = (struct mel_band *)(to + device->bands);
    uint32_t weights = 0;
    memcpy(to, setting->window, spec->n_fft * sizeof(float));
    for (uint32_t b = 0; b < spec->n_mels; b++) {
        bands[b] = (struct mel_band){filters->first[b], filters->count[b], weights};
        weights += filters->count[b];
    }
    memcpy(to + device->weights, filters->weights, weights * sizeof(float));
    return device->weights + weights * sizeof(float);
}

/* Copies what the tables need and waits for it. */
static stk_status send(struct log_mel_device *device, const void *data, uint64_t size,
                       struct stk_error *err)
{
    struct gpu_stream *stream = NULL;
    stk_status status = gpu_alloc(device->gpu, size, &device->tables, err);
    if (!status)
        status = gpu_stream_new(device->gpu, GPU_NORMAL, &stream, err);
    if (!status)
        status = gpu_copy_in(device->gpu, device->tables, data, size, stream, err);
    if (!status)
        status = gpu_stream_sync(device->gpu, stream, err);
    gpu_stream_free(device->gpu, stream);
    return status;
}

static stk_status make_tables(struct log_mel_device *device, const struct log_mel_setting *setting,
                              struct stk_error *err)
{
    const struct mel_spec *spec = &setting->spec;
    uint64_t made = rounded(mel_filters_bytes(spec->n_fft, spec->n_mels));
    device->bands = rounded(spec->n_fft * sizeof(float));
    device->weights = device->bands + rounded(spec->n_mels * sizeof(struct mel_band));
    uint64_t size = made + device->weights + made; /* filters are no smaller than their weights */
    uint8_t *block = memory_zero(1, size);
    struct mel_filters filters;
    if (!block)
        return fail_memory(err, size);
    mel_filters_init(&filters, spec, block);
    uint64_t len = lay_tables(device, setting, &filters, block + made);
    stk_status status = send(device, block + made, len, err);
    memory_free(block);
    return status;
}

static stk_status device_new(struct log_mel_device **out, const struct log_mel_setting *setting,
                             struct gpu *gpu, uint32_t lot, struct stk_error *err)
{
    struct log_mel_device *device = memory_zero(1, sizeof *device);
    *out = NULL;
    if (!device)
        return fail_memory(err, sizeof *device);
    device->gpu = gpu_keep(gpu);
    device->rate = setting->spec.rate;
    device->lot = lot;
    stk_status status = make_plan(device, setting->spec.n_fft, err);
    if (!status)
        status = make_tables(device, setting, err);
    if (!status)
        status = gpu_event_new(gpu, &device->over, err);
    if (status)
        goto done;
    *out = device;
    device = NULL;
done:
    device_free(device);
    return status;
}

/* Under lock. */
static stk_status find_device(struct log_mel_devices *devices,
                              const struct log_mel_setting *setting, struct gpu *gpu, uint32_t lot,
                              struct log_mel_device **out, struct stk_error *err)
{
    for (*out = devices->first; *out; *out = (*out)->next)
        if ((*out)->gpu == gpu && (*out)->rate == setting->spec.rate && (*out)->lot == lot)
            return STK_OK;
    stk_status status = device_new(out, setting, gpu, lot, err);
    if (status)
        return status;
    (*out)->next = devices->first;
    devices->first = *out;
    return STK_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

int log_mel_device_refuses(const struct stk_flow *out)
{
    struct cufft_api api;
    return columns_of(out) >= INT32_MAX || cufft_api_load(&api, NULL);
}

/* Where the pieces of scratch lie, and how long all is. */
static uint64_t place(struct mel_job *job, const struct log_mel_setting *setting, uint32_t lot,
                      uint32_t count, gpu_address scratch)
{
    uint64_t bins = setting->spec.n_fft / 2 + 1;
    job->frames = scratch;
    job->spectrum = job->frames + rounded(lot * setting->spec.n_fft * sizeof(float));
    job->most = job->spectrum + rounded(lot * bins * 2 * sizeof(float));
    job->least = job->most + (uint64_t)count * MEL_LANES * sizeof(float);
    return job->least + count * sizeof(float) - scratch;
}

uint64_t log_mel_device_scratch(const struct log_mel_setting *setting, const struct stk_flow *out,
                                uint32_t count)
{
    struct mel_job job;
    return place(&job, setting, lot_of(setting, out), count, 0);
}

static struct mel_job job_of(const struct log_mel_device *device,
                             const struct log_mel_setting *setting,
                             const struct transform_device_step *step)
{
    const struct mel_spec *spec = &setting->spec;
    struct mel_job job = {.in = step->from,
                          .out = step->to,
                          .window = device->tables,
                          .bands = device->tables + device->bands,
                          .weights = device->tables + device->weights,
                          .samples = step->count,
                          .item = stk_tensor_size(&step->out->tensor) / sizeof(float),
                          .length = step->in->tensor.shape[1],
                          .columns = (uint64_t)step->out->tensor.shape[2],
                          .hop = (uint64_t)setting->hop,
                          .n_fft = spec->n_fft,
                          .bins = spec->n_fft / 2 + 1,
                          .n_mels = spec->n_mels,
                          .side = setting->side,
                          .pad = setting->pad,
                          .rows = step->count < MOST_ROWS ? step->count : MOST_ROWS,
                          .power = setting->power,
                          .amin = setting->amin,
                          .offset = setting->offset,
                          .top_db = setting->top_db};
    (void)place(&job, setting, device->lot, step->count, step->scratch);
    return job;
}

enum { RUN_FRAMES, RUN_BANDS, RUN_MOST, RUN_LEAST, RUN_CLIP, RUN_COUNT };

static stk_status find_kernels(struct gpu *gpu, struct gpu_kernel *kernels[RUN_COUNT],
                               struct stk_error *err)
{
    static const char *const names[RUN_COUNT] = {"mel_frames", "mel_bands", "mel_most", "mel_least",
                                                 "mel_clip"};
    stk_status status = STK_OK;
    for (int i = 0; i < RUN_COUNT && !status; i++)
        status = gpu_kernel(gpu, "log_mel_kernel", names[i], &kernels[i], err);
    return status;
}

/* Threads for `width` values of a row of the grid. */
static struct gpu_grid grid_of(uint64_t width, uint32_t rows)
{
    uint32_t threads = width < THREADS ? (uint32_t)(width + 31) / 32 * 32 : THREADS;
    uint64_t blocks = (width + threads - 1) / threads;
    return (struct gpu_grid){blocks < MOST_ROWS ? (uint32_t)blocks : MOST_ROWS, rows, threads};
}

static stk_status run_lots(const struct log_mel_device *device, struct mel_job *job,
                           struct gpu_kernel *const kernels[RUN_COUNT], uint64_t total,
                           struct gpu_stream *stream, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (job->first = 0; job->first < total && !status; job->first += device->lot) {
        uint64_t left = total - job->first;
        uint32_t rows = left < device->lot ? (uint32_t)left : device->lot;
        struct gpu_grid frames = grid_of(job->n_fft, rows), bands = grid_of(job->n_mels, rows);
        status =
            gpu_launch(device->gpu, kernels[RUN_FRAMES], &frames, job, sizeof *job, stream, err);
        if (status)
            break;
        int result = device->api.cufftExecR2C(device->plan, job->frames, job->spectrum);
        if (result)
            return fail(err, STK_RESOURCE, "cuFFT fails: %d", result);
        status = gpu_launch(device->gpu, kernels[RUN_BANDS], &bands, job, sizeof *job, stream, err);
    }
    return status;
}

static stk_status run_clip(struct gpu *gpu, const struct mel_job *job,
                           struct gpu_kernel *const kernels[RUN_COUNT], struct gpu_stream *stream,
                           struct stk_error *err)
{
    struct gpu_grid grids[RUN_COUNT] = {[RUN_MOST] = grid_of(MEL_LANES, job->rows),
                                        [RUN_LEAST] = grid_of(job->samples, 1),
                                        [RUN_CLIP] = grid_of(job->item, job->rows)};
    stk_status status = STK_OK;
    for (int i = RUN_MOST; i <= RUN_CLIP && !status; i++)
        status = gpu_launch(gpu, kernels[i], &grids[i], job, sizeof *job, stream, err);
    return status;
}

/* Under lock: a plan has one stream and one memory to work in. */
static stk_status run_device(struct log_mel_device *device, struct mel_job *job, uint64_t total,
                             struct gpu_stream *stream, struct stk_error *err)
{
    struct gpu_kernel *kernels[RUN_COUNT];
    stk_status status = find_kernels(device->gpu, kernels, err);
    if (status || !total || !job->item)
        return status;
    status = gpu_event_follow(device->gpu, stream, device->over, err);
    if (status)
        return status;
    int result = device->api.cufftSetStream(device->plan, stream);
    if (result)
        return fail(err, STK_RESOURCE, "cuFFT takes no stream: %d", result);
    status = run_lots(device, job, kernels, total, stream, err);
    if (!status && job->top_db > 0)
        status = run_clip(device->gpu, job, kernels, stream, err);
    if (!status)
        status = gpu_event_record(device->gpu, device->over, stream, err);
    return status;
}

stk_status log_mel_device_run(struct log_mel_devices *devices,
                              const struct log_mel_setting *setting,
                              const struct transform_device_step *step, struct stk_error *err)
{
    struct log_mel_device *device;
    pthread_mutex_lock(&devices->lock);
    stk_status status =
        find_device(devices, setting, step->gpu, lot_of(setting, step->out), &device, err);
    if (!status) {
        struct mel_job job = job_of(device, setting, step);
        status = run_device(device, &job, columns_of(step->out) * step->count, step->stream, err);
    }
    pthread_mutex_unlock(&devices->lock);
    return status;
}
