#include "loader/decode_share.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "work/cores.h"

#define SAMPLES 64
#define BYTES_MOST ((uint64_t)64 << 20) /* of encoded samples */
#define BATCH 256                       /* images; the samples over and over */
#define BATCH_LEAST 16                  /* of a slow decoder ... */
#define BATCH_SECONDS 0.04              /* ... whose batch would take longer than this */
#define ALONE_NS 50000000               /* how long each is measured alone ... */
#define TOGETHER_NS 120000000           /* ... and beside the other */
#define LOOK_NS 200000                  /* how often it is looked whether all threads are warm */
#define HAND_NICE 5                     /* as a loader's workers: the device's thread comes first */
#define WORTH 1.05 /* times the better one: less is not worth decoding in two ways */

enum phase { PHASE_WARM, PHASE_COUNT, PHASE_OVER };

struct trial;

/* A thread of the CPU. */
struct hand {
    struct trial *trial;
    pthread_t thread;
    struct pipeline_state *state;
    void *out, *params;
    uint32_t first; /* of the samples: not all begin with the same */
    double rate;    /* images a second */
};

struct trial {
    const struct decode_share *what;
    const struct field_layout *layout;
    uint8_t *stored[SAMPLES];
    struct stk_bytes bytes[SAMPLES];
    uint32_t count;

    struct hand *hands; /* [hand_count]; the first one's room serves the batch as well */
    uint32_t hand_count;
    _Atomic int phase;     /* enum phase: stored by the caller, loaded by hands */
    _Atomic uint32_t warm; /* hands that decoded something, or cannot */

    struct nvjpeg_image images[BATCH];
    uint32_t batch;   /* images */
    uint32_t decoded; /* of them */
    struct gpu_stream *stream;
    gpu_address memory;
};

static struct pipeline_input trial_input(const struct trial *trial, const struct hand *hand,
                                         uint32_t sample)
{
    return (struct pipeline_input){
        .bytes = trial->bytes[sample], .key = pipeline_key(0, 0, sample), .params = hand->params};
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

/* --- the CPU ---------------------------------------------------------------------------------- */

static int hand_decode(struct hand *hand, uint32_t sample)
{
    const struct trial *trial = hand->trial;
    struct pipeline_input input = trial_input(trial, hand, sample);
    struct stk_flow flow = {.tensor = trial->layout->shape};
    flow.tensor.data = hand->out;
    return !pipeline_run(trial->layout->pipeline, hand->state, &input, &flow, NULL);
}

/* The samples over and over, through the whole host half, until it is over; but one at least that
 * counts, however long it takes. The first one makes its memory. */
static void *hand_run(void *user)
{
    struct hand *hand = user;
    struct trial *trial = hand->trial;
    uint32_t sample = hand->first, failed = 0, done = 0;
    int64_t begin = 0, end = 0;
    int warm = 0;
    while (failed < trial->count && (!done || atomic_load(&trial->phase) != PHASE_OVER)) {
        int good = hand_decode(hand, sample % trial->count);
        sample++;
        failed = good ? 0 : failed + 1;
        if (good && !warm) {
            warm = 1;
            atomic_fetch_add(&trial->warm, 1);
        }
        end = clock_now();
        if (begin)
            done += (uint32_t)good;
        else if (warm && atomic_load(&trial->phase) != PHASE_WARM)
            begin = end;
    }
    if (!warm)
        atomic_fetch_add(&trial->warm, 1);
    hand->rate = done && end > begin ? done / ((double)(end - begin) * 1e-9) : 0;
    return NULL;
}

static void rest(int64_t ns)
{
    const struct timespec time = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&time, NULL);
}

/* Returns how many there are: where no thread can be made, that many are what a loader has too. */
static uint32_t hands_start(struct trial *trial)
{
    const struct cores_place place = {.nice = HAND_NICE, .name = "stoker"};
    uint32_t started = 0;
    atomic_store(&trial->phase, PHASE_WARM);
    atomic_store(&trial->warm, 0);
    while (started < trial->hand_count && !cores_start(&trial->hands[started].thread, hand_run,
                                                       &trial->hands[started], &place, NULL))
        started++;
    while (atomic_load(&trial->warm) < started)
        rest(LOOK_NS);
    atomic_store(&trial->phase, PHASE_COUNT);
    return started;
}

static double hands_stop(struct trial *trial, uint32_t started)
{
    double rate = 0;
    atomic_store(&trial->phase, PHASE_OVER);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(trial->hands[i].thread, NULL);
        rate += trial->hands[i].rate;
    }
    return rate;
}

static double cpu_alone(struct trial *trial)
{
    uint32_t started = hands_start(trial);
    if (started)
        rest(ALONE_NS);
    return hands_stop(trial, started);
}

static stk_status make_hands(struct trial *trial, struct stk_error *err)
{
    uint32_t count = trial->what->threads ? trial->what->threads : 1;
    trial->hands = memory_zero(count, sizeof *trial->hands);
    if (!trial->hands)
        return fail_memory(err, count * sizeof *trial->hands);
    trial->hand_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct hand *hand = &trial->hands[i];
        hand->trial = trial;
        hand->first = (uint32_t)((uint64_t)i * trial->count / count);
        hand->out = memory_alloc(trial->layout->item);
        hand->params = memory_zero(1, trial->layout->params);
        if (!hand->out || !hand->params)
            return fail_memory(err, trial->layout->item);
        stk_status status = pipeline_state_new(&hand->state, err);
        if (status)
            return status;
    }
    return STK_OK;
}

/* --- the device ------------------------------------------------------------------------------- */

/* A batch of what the device takes of the samples; returns how many bytes it is decoded. */
static uint64_t make_batch(struct trial *trial)
{
    const struct decode_share *what = trial->what;
    const struct hand *hand = &trial->hands[0];
    uint32_t taken = 0;
    uint64_t size = 0;
    for (uint32_t i = 0; i < trial->count; i++) {
        struct pipeline_input input = trial_input(trial, hand, i);
        struct pipeline_box box;
        if (pipeline_aim(trial->layout->pipeline, hand->state, &input, &box, NULL))
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
    for (; taken && trial->batch < most; trial->batch++) {
        struct nvjpeg_image image = trial->images[trial->batch % taken];
        uint64_t room = nvjpeg_image_size(&image) + NVJPEG_ALIGN - 1;
        room &= ~(uint64_t)(NVJPEG_ALIGN - 1);
        if (size + room > what->limit)
            break;
        image.out = size; /* as yet from the beginning of the memory */
        trial->images[trial->batch] = image;
        size += room;
    }
    return size;
}

/* Batches behind one another, as in a loader: until the time is over, but one at least. */
static stk_status gpu_rate(struct trial *trial, int64_t ns, double *rate, struct stk_error *err)
{
    const struct decode_share *what = trial->what;
    int64_t begin = clock_now();
    uint32_t runs = 0;
    stk_status status = STK_OK;
    do {
        status = nvjpeg_decoder_run(what->decoder, trial->images, trial->batch, trial->stream, err);
        runs++;
    } while (!status && clock_now() - begin < ns);
    if (!status)
        status = gpu_stream_sync(what->gpu, trial->stream, err);
    *rate = runs * (double)trial->decoded / ((double)(clock_now() - begin) * 1e-9 + 1e-9);
    return status;
}

/* The first run makes nvJPEG's memory and finds what it does not decode; the second one tells
 * whether the batch is too long for the time there is. */
static stk_status gpu_warm(struct trial *trial, struct stk_error *err)
{
    double rate = 0;
    stk_status status = gpu_rate(trial, 0, &rate, err);
    for (uint32_t i = 0; i < trial->batch; i++)
        trial->decoded += trial->images[i].part != NVJPEG_NOTHING;
    if (!status && trial->decoded)
        status = gpu_rate(trial, 0, &rate, err);
    double most = fmax(rate * BATCH_SECONDS, BATCH_LEAST);
    if (trial->decoded <= most)
        return status;
    trial->batch = (uint32_t)(most * trial->batch / trial->decoded);
    trial->decoded = 0;
    for (uint32_t i = 0; i < trial->batch; i++)
        trial->decoded += trial->images[i].part != NVJPEG_NOTHING;
    return status;
}

static stk_status prepare_gpu(struct trial *trial, struct stk_error *err)
{
    const struct decode_share *what = trial->what;
    uint64_t size = make_batch(trial);
    if (!size)
        return STK_OK;
    stk_status status = gpu_alloc(what->gpu, size, &trial->memory, err);
    if (!status)
        status = gpu_stream_new(what->gpu, GPU_NORMAL, &trial->stream, err);
    for (uint32_t i = 0; i < trial->batch; i++)
        trial->images[i].out += trial->memory;
    return status ? status : gpu_warm(trial, err);
}

/* --- both ------------------------------------------------------------------------------------- */

/* What each does while the other works: threads share cores, caches and memory with one another,
 * and with the part of nvJPEG's work that the CPU does. */
static stk_status both_together(struct trial *trial, struct decode_rates *rates,
                                struct stk_error *err)
{
    uint32_t started = hands_start(trial);
    stk_status status = gpu_rate(trial, TOGETHER_NS, &rates->gpu, err);
    rates->cpu = hands_stop(trial, started);
    return status;
}

double decode_share_choose(const struct decode_rates *alone, const struct decode_rates *together)
{
    double both = together->gpu + together->cpu;
    if (both > 0 && both >= WORTH * fmax(alone->gpu, alone->cpu))
        return together->gpu / both;
    return alone->gpu > 0 && alone->gpu >= alone->cpu;
}

static stk_status trial_share(struct trial *trial, double *share, struct stk_error *err)
{
    struct decode_rates alone = {0}, together = {0};
    stk_status status = prepare_gpu(trial, err);
    if (status || !trial->decoded)
        return status;
    status = gpu_rate(trial, ALONE_NS, &alone.gpu, err);
    if (status)
        return status;
    alone.cpu = cpu_alone(trial);
    if (alone.gpu + alone.cpu >=
        WORTH * fmax(alone.gpu, alone.cpu)) /* else it cannot be worth it */
        status = both_together(trial, &together, err);
    if (!status)
        *share = decode_share_choose(&alone, &together);
    return status;
}

static void trial_free(struct trial *trial)
{
    for (uint32_t i = 0; i < trial->count; i++)
        memory_free(trial->stored[i]);
    for (uint32_t i = 0; i < trial->hand_count; i++) {
        pipeline_state_free(trial->hands[i].state);
        memory_free(trial->hands[i].out);
        memory_free(trial->hands[i].params);
    }
    memory_free(trial->hands);
    gpu_stream_free(trial->what->gpu, trial->stream);
    gpu_free(trial->what->gpu, trial->memory);
    memory_free(trial);
}

stk_status decode_share_measure(const struct decode_share *what, double *share,
                                struct stk_error *err)
{
    struct trial *trial = memory_zero(1, sizeof *trial);
    *share = 0;
    if (!trial)
        return fail_memory(err, sizeof *trial);
    trial->what = what;
    trial->layout = &what->layout->fields[what->field];
    stk_status status = trial_read(trial, err);
    if (!status)
        status = make_hands(trial, err);
    if (!status)
        status = trial_share(trial, share, err);
    trial_free(trial);
    return status;
}
