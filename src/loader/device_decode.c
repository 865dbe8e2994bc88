#include "loader/device_decode.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "codec/nvjpeg_decoder.h"
#include "loader/decode_share.h"
#include "loader/fill_stage.h"
#include "loader/media_stage.h"
#include "transform/image_kernel.h"
#include "work/cores.h"

#define LIMIT_MOST ((uint64_t)8 << 30) /* device memory for decoded images of a field ... */
#define LIMIT_PART 16                  /* ... and at most such a part of what is free */
#define BATCH_MOST 1024                /* images that nvJPEG is given at once */
#define SHARE_KEY 0x6a70656764657669   /* of the numbers that tell whose a sample is */
#define SHARE_ONE 4294967296.0         /* shares are multiples of its inverse: a state keeps them */
#define CREW 4                         /* threads for images that nvJPEG would not decode */
#define CREW_EACH 4                    /* images that are worth a thread */
#define SCRATCH_STEP ((uint64_t)4 << 20) /* device memory grows by whole ones of these */

/* Decoded images of one field: while a batch's are read, the next batch's are made. */
#define TURNS 2
struct field_scratch {
    gpu_address memory[TURNS];
    uint64_t size[TURNS];
    struct gpu_event *read[TURNS]; /* behind the last batch that read the memory */
    uint32_t turn;
};

struct device_decode {
    struct gpu *gpu;
    struct stk_loader *loader;
    struct nvjpeg_decoder *decoder;
    struct gpu_stream *stream; /* nvJPEG's own: it holds its caller up until the stream is through,
                                  and must not wait there for copies and kernels */
    struct gpu_event *decoded; /* the ship stage's thread */
    _Atomic double share;      /* set between runs, loaded by workers */
    int shares;                /* with the CPU: decode is AUTO */
    uint64_t limit, image_limit; /* bytes of all decoded images of a field, and of one */
    uint32_t depth, fields, capacity;
    struct nvjpeg_image **lists;    /* [depth * fields] of [capacity] by place; NULL: not a field of
                                       ours. bytes.data NULL: nothing was added */
    struct field_scratch *scratch;  /* [fields]; the ship stage's thread */
    _Atomic uint64_t scratch_bytes; /* of all: stored by the ship stage, loaded anywhere */
    struct worker *crew;            /* [CREW] of the CPU, made when first needed; as scratch */
    uint32_t *left;                 /* [capacity] places for the crew */
    _Atomic uint64_t by_gpu, by_cpu; /* statistics */
};

/* --- making ----------------------------------------------------------------------------------- */

static int is_ours(const struct field_layout *layout)
{
    return layout->pipeline && layout->place == PLACE_DENSE && layout->params &&
           pipeline_may_aim(layout->pipeline);
}

/* The first field that the device may decode; field_count: none. */
static uint32_t first_of_ours(const struct layout *layout)
{
    uint32_t f = 0;
    while (f < layout->field_count && !is_ours(&layout->fields[f]))
        f++;
    return f;
}

static stk_status make_lists(struct device_decode *decode, struct stk_error *err)
{
    const struct layout *layout = &decode->loader->layout;
    decode->lists =
        memory_zero((size_t)decode->depth * decode->fields, sizeof(struct nvjpeg_image *));
    decode->scratch = memory_zero(decode->fields, sizeof *decode->scratch);
    decode->left = memory_zero(decode->capacity, sizeof *decode->left);
    if (!decode->lists || !decode->scratch || !decode->left)
        return fail_memory(err, decode->capacity * sizeof *decode->left);
    for (uint32_t i = 0; i < decode->depth * decode->fields; i++) {
        if (!is_ours(&layout->fields[i % decode->fields]))
            continue;
        decode->lists[i] = memory_zero(decode->capacity, sizeof(struct nvjpeg_image));
        if (!decode->lists[i])
            return fail_memory(err, decode->capacity * sizeof(struct nvjpeg_image));
    }
    return STK_OK;
}

static stk_status make_stream(struct device_decode *decode, struct stk_error *err)
{
    stk_status status = gpu_stream_new(decode->gpu, GPU_NORMAL, &decode->stream, err);
    if (!status)
        status = gpu_event_new(decode->gpu, &decode->decoded, err);
    for (uint32_t i = 0; i < decode->fields * TURNS && !status; i++)
        status = gpu_event_new(decode->gpu, &decode->scratch[i / TURNS].read[i % TURNS], err);
    return status;
}

static stk_status choose_share(struct device_decode *decode,
                               const struct device_decode_options *options, struct stk_error *err)
{
    const struct layout *layout = &decode->loader->layout;
    const struct decode_share what = {.gpu = decode->gpu,
                                      .decoder = decode->decoder,
                                      .dataset = decode->loader->dataset,
                                      .layout = layout,
                                      .field = first_of_ours(layout),
                                      .threads = options->threads,
                                      .limit = decode->limit,
                                      .image_limit = decode->image_limit};
    double share = 1;
    stk_status status = STK_OK;
    if (options->decode == STK_DECODE_AUTO)
        status = decode_share_measure(&what, &share, err);
    device_decode_set_share(decode, share);
    return status;
}

static stk_status choose_limit(struct device_decode *decode, uint64_t asked, struct stk_error *err)
{
    uint64_t free = 0, total;
    stk_status status = asked ? STK_OK : gpu_memory(decode->gpu, &free, &total, err);
    decode->limit = asked ? asked : free / LIMIT_PART;
    if (!asked && decode->limit > LIMIT_MOST)
        decode->limit = LIMIT_MOST;
    decode->image_limit = decode->limit / decode->capacity;
    return status;
}

/* Behind what would make nvJPEG work. */
static void add_remedy(struct stk_error *err)
{
    char others[sizeof err->remedy];
    memcpy(others, err->remedy, sizeof others);
    fail_remedy(err, *others ? "%s, or give decode=\"cpu\"" : "%sgive decode=\"cpu\"", others);
}

static stk_status decode_init(struct device_decode *decode,
                              const struct device_decode_options *options, struct stk_error *err)
{
    const struct layout *layout = &options->loader->layout;
    decode->gpu = options->gpu;
    decode->loader = options->loader;
    decode->depth = options->depth;
    decode->fields = layout->field_count;
    decode->capacity = layout->capacity;
    decode->shares = options->decode == STK_DECODE_AUTO;
    uint32_t most = decode->capacity < BATCH_MOST ? decode->capacity : BATCH_MOST;
    stk_status status = nvjpeg_decoder_new(&decode->decoder, decode->gpu, most, err);
    if (status == STK_UNSUPPORTED)
        add_remedy(err);
    if (!status)
        status = choose_limit(decode, options->limit, err);
    if (!status)
        status = make_lists(decode, err);
    if (!status)
        status = make_stream(decode, err);
    return status ? status : choose_share(decode, options, err);
}

stk_status device_decode_new(struct device_decode **out,
                             const struct device_decode_options *options, struct stk_error *err)
{
    struct layout *layout = &options->loader->layout;
    struct stk_error own = {0};
    *out = NULL;
    if (options->decode == STK_DECODE_CPU || first_of_ours(layout) == layout->field_count)
        return STK_OK;
    struct device_decode *decode = memory_zero(1, sizeof *decode);
    if (!decode)
        return fail_memory(err, sizeof *decode);
    stk_status status = decode_init(decode, options, &own);
    if (status == STK_UNSUPPORTED && options->decode == STK_DECODE_AUTO) {
        context_notice(options->loader->context, "JPEGs are decoded by the CPU alone: %s; %s",
                       own.what, own.remedy);
        status = STK_OK;
        goto done;
    }
    if (status && err)
        *err = own;
    if (status)
        goto done;
    for (uint32_t f = 0; f < layout->field_count; f++)
        layout->fields[f].keeps_encoded = is_ours(&layout->fields[f]);
    *out = decode;
    decode = NULL;
done:
    device_decode_free(decode);
    return status;
}

void device_decode_free(struct device_decode *decode)
{
    if (!decode)
        return;
    nvjpeg_decoder_free(decode->decoder);
    for (uint32_t i = 0; decode->scratch && i < decode->fields * TURNS; i++) {
        gpu_free(decode->gpu, decode->scratch[i / TURNS].memory[i % TURNS]);
        gpu_event_free(decode->gpu, decode->scratch[i / TURNS].read[i % TURNS]);
    }
    gpu_event_free(decode->gpu, decode->decoded);
    gpu_stream_free(decode->gpu, decode->stream);
    for (uint32_t i = 0; decode->lists && i < decode->depth * decode->fields; i++)
        memory_free(decode->lists[i]);
    for (uint32_t i = 0; decode->crew && i < CREW; i++)
        worker_reset(&decode->crew[i]);
    memory_free(decode->crew);
    memory_free(decode->lists);
    memory_free(decode->scratch);
    memory_free(decode->left);
    memory_free(decode);
}

/* --- sharing ---------------------------------------------------------------------------------- */

double device_decode_share(const struct device_decode *decode)
{
    return decode ? atomic_load_explicit(&decode->share, memory_order_relaxed) : 0;
}

void device_decode_set_share(struct device_decode *decode, double share)
{
    double valid = share > 1 ? 1 : share >= 0 ? share : 0; /* not a number: 0 */
    valid = (double)(uint64_t)(valid * SHARE_ONE) / SHARE_ONE;
    if (decode)
        atomic_store_explicit(&decode->share, valid, memory_order_relaxed);
}

void device_decode_resume(struct device_decode *decode, double share)
{
    if (decode && decode->shares)
        device_decode_set_share(decode, share);
}

int device_decode_wants(const struct device_decode *decode, uint64_t sample)
{
    return random_unit(SHARE_KEY, sample) < device_decode_share(decode);
}

static struct nvjpeg_image *list_of(const struct device_decode *decode, uint32_t number, uint32_t f)
{
    assert(number < decode->depth && f < decode->fields);
    return decode->lists[(size_t)number * decode->fields + f];
}

/* Bytes of an image in the memory of its field. */
static uint64_t image_room(const struct nvjpeg_image *image)
{
    return (nvjpeg_image_size(image) + NVJPEG_ALIGN - 1) & ~(uint64_t)(NVJPEG_ALIGN - 1);
}

int device_decode_add(struct device_decode *decode, const struct device_decode_image *image)
{
    const struct pipeline_box *box = &image->box;
    struct nvjpeg_image one = {.bytes = image->bytes,
                               .x = box->x,
                               .y = box->y,
                               .width = box->width,
                               .height = box->height,
                               .image_width = box->image_width,
                               .image_height = box->image_height,
                               .channels = box->channels};
    assert(image->place < decode->capacity && image->bytes.data);
    nvjpeg_decoder_take(decode->decoder, &one);
    if (one.part == NVJPEG_NOTHING || image_room(&one) > decode->image_limit)
        return 0;
    list_of(decode, image->number, image->field)[image->place] = one;
    return 1;
}

void device_decode_forget(struct device_decode *decode, uint32_t number, uint32_t place)
{
    for (uint32_t f = 0; f < decode->fields; f++)
        if (list_of(decode, number, f))
            list_of(decode, number, f)[place] = (struct nvjpeg_image){0};
}

void device_decode_clear(struct device_decode *decode, uint32_t number)
{
    for (uint32_t f = 0; decode && f < decode->fields; f++)
        if (list_of(decode, number, f))
            memset(list_of(decode, number, f), 0, decode->capacity * sizeof(struct nvjpeg_image));
}

void device_decode_count_cpu(struct device_decode *decode)
{
    atomic_fetch_add_explicit(&decode->by_cpu, 1, memory_order_relaxed);
}

/* --- what is left to the CPU ------------------------------------------------------------------ */

struct rescue {
    struct device_decode *decode;
    struct slot *slot;
    uint32_t number, field, count;
    _Atomic uint32_t next; /* of decode->left: taken by whoever is free */
};
struct rescuer {
    struct rescue *rescue;
    struct worker *worker;
    pthread_t thread;
};

static void rescue_place(struct rescue *rescue, struct worker *worker, uint32_t place)
{
    struct stk_loader *loader = worker->loader;
    struct slot *slot = rescue->slot;
    struct nvjpeg_image *image = &list_of(rescue->decode, rescue->number, rescue->field)[place];
    const struct media_alone value = {place, rescue->field, slot->samples[place], image->bytes};
    struct stk_error error = {0};
    image->bytes = (struct stk_bytes){0};
    if (!media_fill_alone(worker, slot, &value, &error))
        return;
    uint64_t at = (uint64_t)place * loader->layout.field_count + rescue->field;
    dataset_explain(loader->dataset, value.sample, rescue->field, &slot->extents[at], &error);
    fill_bad(worker, slot, place, &error);
    if (loader->layout.aims) /* for a substitute */
        media_aim(worker, &(struct span){.slot = slot, .first = place, .count = 1});
}

static void *rescue_run(void *user)
{
    struct rescuer *rescuer = user;
    struct rescue *rescue = rescuer->rescue;
    const struct stk_loader *loader = rescuer->worker->loader;
    uint32_t i;
    while ((i = atomic_fetch_add_explicit(&rescue->next, 1, memory_order_relaxed)) <
           rescue->count) {
        if (atomic_load_explicit(&loader->stop, memory_order_relaxed))
            break;
        rescue_place(rescue, rescuer->worker, rescue->decode->left[i]);
    }
    media_count(rescuer->worker);
    return NULL;
}

static stk_status make_crew(struct device_decode *decode, struct stk_error *err)
{
    if (decode->crew)
        return STK_OK;
    decode->crew = memory_zero(CREW, sizeof *decode->crew);
    if (!decode->crew)
        return fail_memory(err, CREW * sizeof *decode->crew);
    for (uint32_t i = 0; i < CREW; i++) {
        struct worker *worker = &decode->crew[i];
        worker->loader = decode->loader;
        worker->values = memory_zero(decode->fields, sizeof *worker->values);
        if (!worker->values)
            return fail_memory(err, decode->fields * sizeof *worker->values);
    }
    return STK_OK;
}

/* A few are done at once; for many there is help. Without threads it takes longer, that is all. */
static stk_status rescue_all(struct rescue *rescue, struct stk_error *err)
{
    struct device_decode *decode = rescue->decode;
    struct rescuer crew[CREW];
    const struct cores_place place = {.name = "stoker"};
    uint32_t started = 1;
    stk_status status = make_crew(decode, err);
    if (status)
        return status;
    for (uint32_t i = 0; i < CREW; i++)
        crew[i] = (struct rescuer){.rescue = rescue, .worker = &decode->crew[i]};
    while (started < CREW && started * CREW_EACH < rescue->count &&
           !cores_start(&crew[started].thread, rescue_run, &crew[started], &place, NULL))
        started++;
    rescue_run(&crew[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(crew[i].thread, NULL);
    return STK_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

static struct image_record *record_of(const struct device_decode *decode, const struct slot *slot,
                                      uint32_t f, uint32_t place)
{
    uint64_t at = (uint64_t)decode->loader->layout.fields[f].params * place;
    return (struct image_record *)(void *)(slot->box->params[f] + at);
}

/* Gives each image its place in the memory. Until that is there, `out` counts from its beginning.
 */
static uint64_t place_images(struct nvjpeg_image *list, uint32_t count)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        list[i].out = total;
        total += image_room(&list[i]); /* 0 where nothing was added */
    }
    return total;
}

/* gpu_free waits for whatever reads the memory. */
static stk_status scratch_reserve(struct device_decode *decode, struct field_scratch *scratch,
                                  uint64_t size, struct stk_error *err)
{
    uint32_t turn = scratch->turn;
    if (size <= scratch->size[turn])
        return STK_OK;
    size = (size + size / 8 + SCRATCH_STEP - 1) / SCRATCH_STEP * SCRATCH_STEP;
    gpu_free(decode->gpu, scratch->memory[turn]);
    atomic_fetch_sub_explicit(&decode->scratch_bytes, scratch->size[turn], memory_order_relaxed);
    scratch->memory[turn] = 0;
    scratch->size[turn] = 0;
    stk_status status = gpu_alloc(decode->gpu, size, &scratch->memory[turn], err);
    if (status)
        return status;
    scratch->size[turn] = size;
    atomic_fetch_add_explicit(&decode->scratch_bytes, size, memory_order_relaxed);
    return STK_OK;
}

/* The other memory's turn. By now all that reads what was made last is in `stream`; what is to be
 * made follows the reading of what was there before. */
static stk_status scratch_turn(struct device_decode *decode, struct field_scratch *scratch,
                               struct gpu_stream *stream, struct stk_error *err)
{
    stk_status status = gpu_event_record(decode->gpu, scratch->read[scratch->turn], stream, err);
    scratch->turn = (scratch->turn + 1) % TURNS;
    if (!status)
        status = gpu_event_follow(decode->gpu, decode->stream, scratch->read[scratch->turn], err);
    return status;
}

/* Until nobody reads the box. */
static void decode_settle(struct device_decode *decode)
{
    (void)!gpu_stream_sync(decode->gpu, decode->stream, NULL); /* a lost device reads nothing */
}

/* In nvJPEG's stream, and `stream` follows it. */
static stk_status decode_apart(struct device_decode *decode, struct nvjpeg_image *list,
                               uint32_t count, struct gpu_stream *stream, struct stk_error *err)
{
    stk_status status = nvjpeg_decoder_run(decode->decoder, list, count, decode->stream, err);
    if (!status)
        status = gpu_event_record(decode->gpu, decode->decoded, decode->stream, err);
    if (!status)
        status = gpu_event_follow(decode->gpu, stream, decode->decoded, err);
    if (status)
        decode_settle(decode);
    return status;
}

/* The record was made for the box alone, lying at the beginning. */
static void record_aim(struct image_record *record, const struct nvjpeg_image *image,
                       gpu_address memory)
{
    record->pixels = image->out - memory;
    record->source = 1;
    if (image->part != NVJPEG_WHOLE)
        return;
    record->width = image->image_width;
    record->height = image->image_height;
    record->x += image->x;
    record->y += image->y;
}

static stk_status decode_list(struct device_decode *decode, struct slot *slot, uint32_t f,
                              struct nvjpeg_image *list, struct gpu_stream *stream,
                              struct stk_error *err)
{
    struct field_scratch *scratch = &decode->scratch[f];
    uint32_t count = slot->share.real, done = 0;
    uint64_t size = place_images(list, count);
    if (!size)
        return STK_OK;
    stk_status status = scratch_turn(decode, scratch, stream, err);
    if (!status)
        status = scratch_reserve(decode, scratch, size, err);
    gpu_address memory = scratch->memory[scratch->turn];
    for (uint32_t i = 0; i < count && status == STK_MEMORY; i++)
        list[i].part = NVJPEG_NOTHING;
    if (status)
        return status == STK_MEMORY ? STK_OK : status;
    for (uint32_t i = 0; i < count; i++)
        list[i].out += memory;
    status = decode_apart(decode, list, count, stream, err);
    for (uint32_t i = 0; i < count && !status; i++) {
        if (list[i].part == NVJPEG_NOTHING)
            continue;
        record_aim(record_of(decode, slot, f, i), &list[i], memory);
        done++;
    }
    atomic_fetch_add_explicit(&decode->by_gpu, done, memory_order_relaxed);
    return status;
}

stk_status device_decode_run(struct device_decode *decode, struct slot *slot, uint32_t number,
                             uint32_t f, struct gpu_stream *stream, gpu_address *decoded,
                             struct stk_error *err)
{
    struct nvjpeg_image *list = list_of(decode, number, f);
    struct rescue rescue = {.decode = decode, .slot = slot, .number = number, .field = f};
    *decoded = 0;
    if (!list)
        return STK_OK;
    stk_status status = decode_list(decode, slot, f, list, stream, err);
    if (status)
        return status;
    *decoded = decode->scratch[f].memory[decode->scratch[f].turn];
    for (uint32_t i = 0; i < slot->share.real; i++)
        if (list[i].bytes.data && list[i].part == NVJPEG_NOTHING)
            decode->left[rescue.count++] = i;
    if (rescue.count)
        status = rescue_all(&rescue, err);
    if (status || !slot_is_whole(slot)) /* then it is not shipped, and nothing waits for it */
        decode_settle(decode);
    return status;
}

int device_decode_did(const struct device_decode *decode, uint32_t number, uint32_t f,
                      uint32_t place)
{
    const struct nvjpeg_image *list = list_of(decode, number, f);
    return list && list[place].bytes.data && list[place].part != NVJPEG_NOTHING;
}

void device_decode_stats(const struct device_decode *decode, struct stk_device_stats *stats)
{
    if (!decode)
        return;
    stats->gpu_decoded = atomic_load_explicit(&decode->by_gpu, memory_order_relaxed);
    stats->cpu_decoded = atomic_load_explicit(&decode->by_cpu, memory_order_relaxed);
    stats->decode_share = device_decode_share(decode);
    stats->decode_bytes = nvjpeg_decoder_bytes(decode->decoder) +
                          atomic_load_explicit(&decode->scratch_bytes, memory_order_relaxed);
}
