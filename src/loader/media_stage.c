#include "loader/media_stage.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/fail.h"
#include "base/shape.h"
#include "loader/device_decode.h"
#include "loader/fill_stage.h"
#include "loader/tensor_input.h"
#include "store/guard.h"

/* --- places for stored bytes ------------------------------------------------------------------ */

static const struct field_layout *piece_layout(const struct worker *worker,
                                               const struct piece *piece)
{
    const struct layout *layout = &worker->loader->layout;
    return &layout->fields[piece->value % layout->field_count];
}

void media_place(struct worker *worker, struct span *span)
{
    struct slot *slot = span->slot;
    uint64_t wanted = span->encoded_used;
    if (wanted < span->encoded_least) /* so that it does not grow by and by */
        wanted = span->encoded_least;
    uint8_t *room = room_reserve(&span->encoded, wanted, box_pool_budget(worker->loader->pool));
    for (uint32_t i = 0; i < span->piece_count; i++) {
        struct piece *piece = &span->pieces[i];
        const struct field_layout *layout = piece_layout(worker, piece);
        if (!room)
            slot->how[piece->value] = HOW_ODD;
        else if (layout->pipeline && !layout->keeps_encoded)
            slot->from[piece->value] = piece->to = room + slot->run_at[piece->value];
    }
    if (!room)
        span->piece_count = 0;
}

struct map_copy {
    uint8_t *to;
    const uint8_t *from;
    uint64_t length;
};

static stk_status map_copy_run(void *user)
{
    const struct map_copy *copy = user;
    memcpy(copy->to, copy->from, copy->length);
    return STK_OK;
}

/* Libraries allocate and lock, so they never see a map: the file may be cut short under it. The
 * copy is small beside decoding, and its bytes are warm when they are. to NULL: the worker's room.
 */
static stk_status copy_from_map(struct worker *worker, const uint8_t *from, uint64_t length,
                                uint8_t *to, struct stk_bytes *bytes)
{
    struct budget *budget = box_pool_budget(worker->loader->pool);
    struct map_copy copy = {.to = to, .from = from, .length = length};
    if (!to)
        copy.to = room_reserve(&worker->encoded, length, budget);
    if (!copy.to)
        return STK_MEMORY;
    int64_t begin = clock_now();
    stk_status status = guard_run(map_copy_run, &copy);
    fill_look_for_faults(worker, length, clock_now() - begin);
    atomic_store_explicit(&worker->copies, worker->copies + 1, memory_order_relaxed);
    *bytes = (struct stk_bytes){copy.to, length};
    return status;
}

/* --- running ---------------------------------------------------------------------------------- */

/* Where samples are drawn with replacement a sample may come twice in an epoch: each time anew. */
static uint64_t media_key(const struct stk_loader *loader, const struct slot *slot, uint32_t place,
                          uint64_t sample)
{
    uint64_t key = pipeline_key(loader->plan->seed, slot->epoch, sample);
    return loader->plan->chance ? random_key(key, slot->share.first + place) : key;
}

static void shape_remedy(const struct field_layout *layout, struct stk_error *err)
{
    switch (pipeline_out(layout->pipeline)->media) {
    case STK_MEDIA_IMAGE:
    case STK_MEDIA_VIDEO:
        fail_remedy(err, "make them of one size: add Resize((height, width)), CenterCrop or "
                         "RandomResizedCrop to transforms, or give ragged=\"list\"");
        break;
    case STK_MEDIA_AUDIO:
        fail_remedy(err, "begin its transforms with DecodeAudio(rate=..., seconds=..., mono=True), "
                         "or give ragged=\"list\"");
        break;
    case STK_MEDIA_POINTS:
        fail_remedy(err, "begin its transforms with DecodePoints(count=...), or give "
                         "ragged=\"flat\" or \"list\"");
        break;
    default:
        fail_remedy(err,
                    "give ragged=\"pad\" or ragged=\"list\" to batch samples of unequal shape");
    }
}

static stk_status need_state(struct worker *worker, struct stk_error *err)
{
    return worker->state ? STK_OK : pipeline_state_new(&worker->state, err);
}

static stk_status run_pipeline(struct worker *worker, const struct field_layout *layout,
                               const struct pipeline_input *input, struct stk_flow *flow,
                               struct stk_error *err)
{
    stk_status status = need_state(worker, err);
    return status ? status : pipeline_run(layout->pipeline, worker->state, input, flow, err);
}

/* The words for a result that does not fit: only a run without a place tells what it would have
 * been, and whether that was the trouble. */
static stk_status explain_shape(struct worker *worker, const struct field_layout *layout,
                                const struct pipeline_input *input, struct stk_error *err)
{
    struct stk_flow flow = {0};
    char here[128], there[128];
    stk_status status = run_pipeline(worker, layout, input, &flow, err);
    if (status)
        return status;
    shape_text(&flow.tensor, here, sizeof here);
    shape_text(&layout->shape, there, sizeof there);
    status = fail(err, STK_SHAPE, "the sample has shape %s, but sample %llu has %s", here,
                  (unsigned long long)layout->field->probed, there);
    shape_remedy(layout, err);
    return status;
}

/* Frames or points that are not padding. */
static int64_t real_length(const struct stk_flow *flow)
{
    const struct stk_tensor *tensor = &flow->tensor;
    if (flow->real >= 0 || tensor->rank == 0)
        return flow->real >= 0 ? flow->real : 0;
    return tensor->shape[flow->media == STK_MEDIA_AUDIO ? tensor->rank - 1 : 0];
}

static stk_status run_dense(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                            const struct pipeline_input *input, struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    struct stk_batch_field *field = &slot->box->fields[f];
    struct stk_flow flow = {.tensor = layout->shape};
    flow.tensor.data = (uint8_t *)field->tensor.data + layout->item * place;
    stk_status status = run_pipeline(worker, layout, input, &flow, err);
    if (status == STK_SHAPE && err)
        return explain_shape(worker, layout, input, err);
    if (!status && layout->pads)
        box_lengths(field)[place] = real_length(&flow);
    return status;
}

/* Its shape is its own: it lies beside the batch. */
static stk_status run_item(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                           const struct pipeline_input *input, struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    struct stk_flow flow = {0};
    stk_status status = run_pipeline(worker, layout, input, &flow, err);
    if (status)
        return status;
    uint64_t size = stk_tensor_size(&flow.tensor);
    void *room = box_extra(slot->box, size);
    if (!room)
        return fail_memory(err, size);
    memcpy(room, flow.tensor.data, size);
    struct stk_tensor *item = &box_items(&slot->box->fields[f])[place];
    *item = flow.tensor;
    item->data = room;
    return STK_OK;
}

/* Where the device half finds what was drawn for a place; NULL: there is none. */
static void *params_of(const struct field_layout *layout, const struct slot *slot, uint32_t place,
                       uint32_t f)
{
    return layout->params ? slot->box->params[f] + (uint64_t)layout->params * place : NULL;
}

/* What a chain is told of a value beside its bytes. */
static void set_input(struct pipeline_input *input, const struct worker *worker,
                      const struct slot *slot, const struct media_alone *value)
{
    const struct field_layout *layout = &worker->loader->layout.fields[value->field];
    input->stop = &worker->loader->stop;
    input->key = media_key(worker->loader, slot, value->place, value->sample);
    input->place = value->place;
    input->params = params_of(layout, slot, value->place, value->field);
}

static stk_status run_value(struct worker *worker, struct slot *slot,
                            const struct media_alone *value, int slack, struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[value->field];
    const struct tensor_source source = {.bytes = value->bytes,
                                         .slack = slack,
                                         .room = &worker->converted,
                                         .counted = box_pool_budget(worker->loader->pool)};
    struct tensor_input made;
    int64_t begin = trace_begin(worker->ring);
    stk_status status = tensor_input_make(&made, layout->field, &source, err);
    if (status)
        return status;
    set_input(&made.input, worker, slot, value);
    if (layout->keeps_encoded)
        device_decode_count_cpu(worker->loader->decode);
    status = layout->place == PLACE_DENSE
                 ? run_dense(worker, slot, value->place, value->field, &made.input, err)
                 : run_item(worker, slot, value->place, value->field, &made.input, err);
    trace_end(worker->ring, begin, "decode", value->sample, value->bytes.len);
    return status;
}

/* --- straight from a map ---------------------------------------------------------------------- */

#define PAGE 4096

struct straight {
    struct worker *worker;
    struct slot *slot;
    const struct media_alone *value;
    int slack;
};

static stk_status straight_run(void *user)
{
    const struct straight *job = user;
    return run_value(job->worker, job->slot, job->value, job->slack, NULL);
}

/* Pixels that are cropped as they lie in the map. What touches them is the resampler, which holds
 * no lock and is not inside an allocation when it reads: it may be left there, and the next run
 * begins by taking all scratch memory back. */
static stk_status fill_straight(struct worker *worker, struct slot *slot,
                                const struct media_alone *value)
{
    uintptr_t end = (uintptr_t)value->bytes.data + value->bytes.len;
    struct straight job = {worker, slot, value, end % PAGE && end % PAGE + ROOM_SLACK <= PAGE};
    int64_t begin = clock_now();
    stk_status status = guard_run(straight_run, &job);
    fill_look_for_faults(worker, value->bytes.len, clock_now() - begin);
    atomic_store_explicit(&worker->copies, worker->copies + 1, memory_order_relaxed);
    return status;
}

/* --- left to the device ----------------------------------------------------------------------- */

/* The bytes of an image that the device is to decode: in the box, where they stay until they were
 * decoded. */
static stk_status keep_in_box(struct worker *worker, struct slot *slot, uint32_t value, uint32_t f,
                              struct stk_bytes *bytes)
{
    uint8_t *to = slot->box->runs[f] + slot->run_at[value];
    if (slot->how[value] == HOW_ENCODED)
        return copy_from_map(worker, bytes->data, bytes->len, to, bytes);
    if (bytes->data != to) /* it lies in a chunk */
        memcpy(to, bytes->data, bytes->len);
    bytes->data = to;
    return STK_OK;
}

/* Not 0: the device will decode it, and its record says what. */
static int leave_to_device(struct worker *worker, const struct slot *slot,
                           const struct media_alone *value)
{
    struct stk_loader *loader = worker->loader;
    struct pipeline_input input = {.bytes = value->bytes};
    struct device_decode_image image = {.number = (uint32_t)(slot - loader->slots),
                                        .field = value->field,
                                        .place = value->place,
                                        .bytes = value->bytes};
    if (need_state(worker, NULL))
        return 0;
    set_input(&input, worker, slot, value);
    return !pipeline_aim(loader->layout.fields[value->field].pipeline, worker->state, &input,
                         &image.box, NULL) &&
           device_decode_add(loader->decode, &image);
}

/* --- one value -------------------------------------------------------------------------------- */

/* Not inlined: fields that are stored as they are used would pay for its frame. */
__attribute__((noinline)) stk_status media_fill(struct worker *worker, const struct span *span,
                                                uint32_t place, uint32_t f, struct stk_error *err)
{
    struct slot *slot = span->slot;
    uint32_t value = place * worker->loader->layout.field_count + f;
    const struct extent *extent = &slot->extents[value];
    struct media_alone one = {.place = place, .field = f, .sample = slot->samples[place]};
    one.bytes = (struct stk_bytes){slot->from[value], extent->length};
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    stk_status status = STK_OK;
    int in_map = slot->how[value] == HOW_ENCODED;
    if (in_map && layout->straight)
        return fill_straight(worker, slot, &one);
    if (layout->keeps_encoded && one.bytes.len &&
        device_decode_wants(worker->loader->decode, one.sample)) {
        status = keep_in_box(worker, slot, value, f, &one.bytes);
        if (status || leave_to_device(worker, slot, &one))
            return status;
    } else if (in_map) {
        status = copy_from_map(worker, slot->from[value], extent->length, NULL, &one.bytes);
    }
    int in_room = extent->object < worker->loader->objects && !layout->keeps_encoded;
    return status ? status : run_value(worker, slot, &one, in_room, err);
}

stk_status media_fill_alone(struct worker *worker, struct slot *slot,
                            const struct media_alone *value, struct stk_error *err)
{
    return run_value(worker, slot, value, 0, err);
}

void media_aim(struct worker *worker, const struct span *span)
{
    const struct layout *layout = &worker->loader->layout;
    struct slot *slot = span->slot;
    for (uint32_t f = 0; f < layout->field_count; f++) {
        const struct field_layout *field = &layout->fields[f];
        if (!field->params || field->pipeline)
            continue;
        struct pipeline_input input = {.shape = &field->shape};
        for (uint32_t i = span->first; i < span->first + span->count; i++) {
            uint64_t sample = slot->box->samples[i]; /* a substitute's own, where there is one */
            input.key = media_key(worker->loader, slot, i, sample);
            input.place = i;
            input.params = params_of(field, slot, i, f);
            stk_status status = pipeline_aim_stored(field->cut, &input, NULL);
            assert(!status); /* shapes were checked at open */
            (void)status;
        }
    }
}

void media_count(struct worker *worker)
{
    struct budget *budget = box_pool_budget(worker->loader->pool);
    uint64_t held = worker->state ? pipeline_state_bytes(worker->state) : 0;
    if (held > worker->state_bytes)
        budget_force(budget, held - worker->state_bytes);
    else
        budget_give(budget, worker->state_bytes - held);
    worker->state_bytes = held;
}
