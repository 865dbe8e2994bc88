#include "loader/decode_share.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define SAMPLES 64
#define BYTES_MOST ((uint64_t)64 << 20) /* of encoded samples */
#define CPU_NS 30000000                 /* how long the CPU is measured */
#define CPU_LEAST 4                     /* samples */
#define BATCH 256                       /* images; the samples over and over */
#define RUNS 2                          /* behind one another: as in a loader */
#define SHARE_LEAST 0.02

struct trial {
    const struct decode_share *what;
    const struct field_layout *layout;
    struct pipeline_state *state;
    void *out, *params;
    uint8_t *stored[SAMPLES];
    struct stk_bytes bytes[SAMPLES];
    uint32_t count;
    struct nvjpeg_image images[BATCH];
};

static struct pipeline_input trial_input(const struct trial *trial, uint32_t sample)
{
    return (struct pipeline_input){
        .bytes = trial->bytes[sample], .key = pipeline_key(0, 0, sample), .params = trial->params};
}

static stk_status trial_read(struct trial *trial, struct stk_error *err)
{
    const struct decode_share *what = trial->what;
    uint64_t samples = stk_dataset_samples(what->dataset), total = 0;
    struct stk_reader *reader = NULL;
    stk_status status = stk_reader_new(what->dataset, &reader, err);
    for (uint64_t i = 0; i < samples && i < SAMPLES && total < BYTES_MOST && !status; i++) {
        struct stk_bytes bytes = {0};
        if (stk_reader_bytes(reader, i, what->field, &bytes, NULL) || !bytes.len)
            continue;
        uint8_t *copy = memory_alloc(bytes.len);
        if (!copy) {
            status = fail_memory(err, bytes.len);
            break;
        }
        memcpy(copy, bytes.data, bytes.len);
        trial->stored[trial->count] = copy;
        trial->bytes[trial->count++] = (struct stk_bytes){copy, bytes.len};
        total += bytes.len;
    }
    stk_reader_free(reader);
    return status;
}

/* Images a second of one thread, through the whole host half. */
static double trial_cpu(struct trial *trial)
{
    uint32_t done = 0;
    int64_t begin = 0, now = 0;
    for (uint32_t i = 0; i < trial->count && (done < CPU_LEAST || now - begin < CPU_NS); i++) {
        struct pipeline_input input = trial_input(trial, i);
        struct stk_flow flow = {.tensor = trial->layout->shape};
        flow.tensor.data = trial->out;
        if (pipeline_run(trial->layout->pipeline, trial->state, &input, &flow, NULL))
            continue;
        now = clock_now();
        if (begin)
            done++;
        else
            begin = now; /* the first one makes its memory */
    }
    return done ? done / ((double)(now - begin) * 1e-9) : 0;
}

/* A batch of what the device takes of the samples; returns how many images. */
static uint32_t trial_batch(struct trial *trial, uint64_t *size)
{
    const struct decode_share *what = trial->what;
    uint32_t taken = 0, count = 0;
    *size = 0;
    for (uint32_t i = 0; i < trial->count; i++) {
        struct pipeline_input input = trial_input(trial, i);
        struct pipeline_box box;
        if (pipeline_aim(trial->layout->pipeline, trial->state, &input, &box, NULL))
            continue;
        struct nvjpeg_image image = {.bytes = input.bytes,
                                     .x = box.x,
                                     .y = box.y,
                                     .width = box.width,
                                     .height = box.height,
                                     .image_width = box.image_width,
                                     .image_height = box.image_height,
                                     .channels = box.channels};
        nvjpeg_decoder_take(what->decoder, &image);
        if (image.part != NVJPEG_NOTHING && nvjpeg_image_size(&image) <= what->image_limit)
            trial->images[taken++] = image;
    }
    uint32_t most = what->layout->capacity < BATCH ? what->layout->capacity : BATCH;
    for (; taken && count < most; count++) {
        uint64_t room = nvjpeg_image_size(&trial->images[count % taken]) + NVJPEG_ALIGN - 1;
        room &= ~(uint64_t)(NVJPEG_ALIGN - 1);
        if (*size + room > what->limit)
            break;
        trial->images[count] = trial->images[count % taken];
        trial->images[count].out = *size; /* as yet from the beginning of the memory */
        *size += room;
    }
    return count;
}

static stk_status trial_runs(struct trial *trial, uint32_t count, uint32_t runs,
                             struct gpu_stream *stream, double *seconds, struct stk_error *err)
{
    const struct decode_share *what = trial->what;
    int64_t begin = clock_now();
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < runs && !status; i++)
        status = nvjpeg_decoder_run(what->decoder, trial->images, count, stream, err);
    if (!status)
        status = gpu_stream_sync(what->gpu, stream, err);
    *seconds = (double)(clock_now() - begin) * 1e-9;
    return status;
}

/* Images a second of the device. The first run makes nvJPEG's memory and is not counted. */
static stk_status trial_gpu(struct trial *trial, double *rate, struct stk_error *err)
{
    const struct decode_share *what = trial->what;
    struct gpu_stream *stream = NULL;
    gpu_address memory = 0;
    uint64_t size;
    double seconds = 0;
    uint32_t count = trial_batch(trial, &size), decoded = 0;
    *rate = 0;
    if (!count)
        return STK_OK;
    stk_status status = gpu_alloc(what->gpu, size, &memory, err);
    if (!status)
        status = gpu_stream_new(what->gpu, GPU_NORMAL, &stream, err);
    for (uint32_t i = 0; i < count; i++)
        trial->images[i].out += memory;
    if (!status)
        status = trial_runs(trial, count, 1, stream, &seconds, err);
    if (!status)
        status = trial_runs(trial, count, RUNS, stream, &seconds, err);
    for (uint32_t i = 0; i < count; i++)
        decoded += trial->images[i].part != NVJPEG_NOTHING;
    if (!status)
        *rate = RUNS * (double)decoded / seconds;
    gpu_stream_free(what->gpu, stream);
    gpu_free(what->gpu, memory);
    return status;
}

stk_status decode_share_measure(const struct decode_share *what, double *share,
                                struct stk_error *err)
{
    const struct field_layout *layout = &what->layout->fields[what->field];
    struct trial *trial = memory_zero(1, sizeof *trial);
    double gpu = 0;
    *share = 0;
    if (!trial)
        return fail_memory(err, sizeof *trial);
    trial->what = what;
    trial->layout = layout;
    trial->out = memory_alloc(layout->item);
    trial->params = memory_zero(1, layout->params);
    stk_status status = STK_OK;
    if (!trial->out || !trial->params)
        status = fail_memory(err, layout->item);
    if (!status)
        status = pipeline_state_new(&trial->state, err);
    if (!status)
        status = trial_read(trial, err);
    if (!status)
        status = trial_gpu(trial, &gpu, err);
    if (!status && gpu > 0) {
        *share = gpu / (gpu + trial_cpu(trial) * what->threads);
        if (*share < SHARE_LEAST)
            *share = 0;
    }
    for (uint32_t i = 0; i < trial->count; i++)
        memory_free(trial->stored[i]);
    pipeline_state_free(trial->state);
    memory_free(trial->out);
    memory_free(trial->params);
    memory_free(trial);
    return status;
}
