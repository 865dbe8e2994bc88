/* Compiling a chain for a field, and running it on one sample. */
#include "pipeline/pipeline.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/shape.h"
#include "codec/image_codec.h"
#include "pipeline/pipeline_impl.h"
#include "transform/cast.h"
#include "transform/pixels.h"

#define RESULT_MOST ((uint64_t)1 << 40) /* bytes of one result: more is a mistake in a chain */

/* --- compiling -------------------------------------------------------------------------------- */

static const char *decode_name(enum stk_media media)
{
    static const char *const names[STK_MEDIA_COUNT] = {NULL, "DecodeImage", "DecodeAudio",
                                                       "DecodeVideo", "DecodePoints"};
    return names[media];
}

/* What a decoder finds before any option: lengths are not known. */
static struct stk_flow flow_of_media(enum stk_media media)
{
    struct stk_flow flow = {.media = media, .real = -1};
    flow.tensor = (struct stk_tensor){.dtype = STK_F32, .rank = 2, .shape = {-1, -1}};
    if (media == STK_MEDIA_IMAGE)
        flow.tensor = (struct stk_tensor){.dtype = STK_U8, .rank = 3, .shape = {-1, -1, -1}};
    if (media == STK_MEDIA_VIDEO)
        flow.tensor = (struct stk_tensor){.dtype = STK_U8, .rank = 4, .shape = {-1, -1, -1, 3}};
    return flow;
}

/* Only the form of floats is changed: their axes mean something to Layout alone. */
static int is_all_format(const struct chain *chain)
{
    for (uint32_t i = 0; i < chain->count; i++)
        if (chain->steps[i].ops->stage != TRANSFORM_FORMAT)
            return 0;
    return 1;
}

static int tensor_is_pixels(const struct chain *chain, const struct stk_tensor *tensor)
{
    int64_t last = tensor->rank ? tensor->shape[tensor->rank - 1] : 0;
    if (last < 1 || last > 4)
        return 0;
    return tensor->dtype == STK_U8 ? last != 2
                                   : cast_is_float(tensor->dtype) && is_all_format(chain);
}

static int tensor_is_media(const struct chain *chain, const struct stk_tensor *tensor,
                           enum stk_media media)
{
    switch (media) {
    case STK_MEDIA_IMAGE:
        return tensor->rank == 3 && tensor_is_pixels(chain, tensor);
    case STK_MEDIA_VIDEO:
        return tensor->rank == 4 && tensor_is_pixels(chain, tensor);
    case STK_MEDIA_AUDIO:
    case STK_MEDIA_POINTS:
        return tensor->dtype == STK_F32 && tensor->rank == 2;
    default:
        return 1;
    }
}

/* A stored tensor is what all of its transforms can take it for: bytes are pixels when they look
 * like them, then a plain tensor; floats are pixels only for transforms of nothing else. */
static enum stk_media media_of_tensor(const struct chain *chain, const struct stk_tensor *tensor)
{
    static const enum stk_media bytes[] = {STK_MEDIA_IMAGE, STK_MEDIA_VIDEO, STK_MEDIA_TENSOR,
                                           STK_MEDIA_POINTS, STK_MEDIA_AUDIO},
                                floats[] = {STK_MEDIA_TENSOR, STK_MEDIA_IMAGE, STK_MEDIA_VIDEO,
                                            STK_MEDIA_POINTS, STK_MEDIA_AUDIO};
    const enum stk_media *order = tensor->dtype == STK_U8 ? bytes : floats;
    uint32_t all = STK_MEDIA_ANY;
    for (uint32_t i = 0; i < chain->count; i++)
        all &= chain->steps[i].ops->media;
    if (!chain->count)
        return STK_MEDIA_TENSOR;
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
        if (all & STK_MEDIA_BIT(order[i]) && tensor_is_media(chain, tensor, order[i]))
            return order[i];
    return STK_MEDIA_TENSOR;
}

/* Encoded media begin with a decoding step, written or not: so steps are numbered alike. */
static stk_status add_decode(struct pipeline *pipeline, struct stk_error *err)
{
    struct chain *chain = &pipeline->chain, decode;
    if (chain->count && chain->steps[0].ops->stage == TRANSFORM_DECODE)
        return STK_OK;
    if (chain->count == CHAIN_MAX_STEPS)
        return fail(err, STK_LIMIT, "a chain of more than %d transforms", CHAIN_MAX_STEPS - 1);
    stk_status status = chain_parse(&decode, decode_name(pipeline->media), NULL, err);
    if (status)
        return status;
    memmove(chain->steps + 1, chain->steps, chain->count * sizeof chain->steps[0]);
    chain->steps[0] = decode.steps[0];
    chain->count++;
    pipeline->defaulted = 1;
    return STK_OK;
}

static stk_status wrong_media(const struct pipeline *pipeline, const struct transform_ops *ops,
                              enum stk_media media, struct stk_error *err)
{
    char takes[96] = "";
    if (!ops->media) {
        stk_status status = fail(err, STK_USAGE, "%s works on whole batches", ops->name);
        fail_remedy(err, "give it as batch_transforms");
        return status;
    }
    for (int m = 0; m < STK_MEDIA_COUNT; m++)
        if (ops->media & STK_MEDIA_BIT(m)) {
            strcat(takes, *takes ? ", " : "");
            strcat(takes, stk_media_name((enum stk_media)m));
        }
    stk_status status = fail(err, STK_USAGE, "%s takes %s, but the field is %s", ops->name, takes,
                             stk_media_name(media));
    if (pipeline->stored) {
        char shape[128];
        shape_text(&pipeline->in.tensor, shape, sizeof shape);
        fail_remedy(err, "the stored values are %s", shape);
    }
    return status;
}

static stk_status compile_step(struct pipeline *pipeline, uint32_t i, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct chain_step *step = &pipeline->chain.steps[i];
    const struct transform_ops *ops = step->ops;
    if (!(ops->media & STK_MEDIA_BIT(flow->media)))
        return wrong_media(pipeline, ops, flow->media, err);
    if (ops->stage == TRANSFORM_DECODE && (i > 0 || pipeline->stored)) {
        stk_status status = fail(err, STK_USAGE, "%s has nothing to decode here", ops->name);
        fail_remedy(err, "it is the first transform of a field that is stored encoded");
        return status;
    }
    return ops->shape ? ops->shape(step->args, NULL, flow, err) : STK_OK;
}

static int is_pixels(const struct pipeline *pipeline)
{
    return pipeline->media == STK_MEDIA_IMAGE || pipeline->media == STK_MEDIA_VIDEO;
}

/* Geometry and pixels of the host end with the last step of these stages; what stands behind is
 * format or works on the finished tensor. */
static void find_format(struct pipeline *pipeline)
{
    const struct chain *chain = &pipeline->chain;
    pipeline->format = pipeline->first;
    for (uint32_t i = pipeline->first; is_pixels(pipeline) && i < pipeline->cut; i++) {
        enum transform_stage stage = chain->steps[i].ops->stage;
        if (stage == TRANSFORM_GEOMETRY || stage == TRANSFORM_PIXELS)
            pipeline->format = i + 1;
    }
    pipeline->rest = pipeline->format;
}

/* A drawn size lasts until a step makes all of one size. */
static void note_drawn(struct pipeline *pipeline, const struct chain_step *step,
                       const struct stk_flow *out)
{
    int64_t height, width, channels;
    if (step->ops->draws_shape && step->ops->draws_shape(step->args))
        pipeline->drawn = step->ops->name;
    if (!pipeline->drawn)
        return;
    pixels_axes(out, &height, &width, &channels);
    if (height >= 0 && width >= 0)
        pipeline->drawn = NULL;
}

static stk_status compile(struct pipeline *pipeline, int device, struct stk_error *err)
{
    const struct chain *chain = &pipeline->chain;
    struct stk_flow flows[CHAIN_MAX_STEPS + 1]; /* what reaches each step, and the result */
    flows[0] = pipeline->in;
    for (uint32_t i = 0; i < chain->count; i++) {
        flows[i + 1] = flows[i];
        stk_status status = compile_step(pipeline, i, &flows[i + 1], err);
        if (status)
            return status;
        note_drawn(pipeline, &chain->steps[i], &flows[i + 1]);
        pipeline->pads |= flows[i + 1].real >= 0;
    }
    pipeline->first = chain->count && chain->steps[0].ops->stage == TRANSFORM_DECODE;
    pipeline->cut = chain->count;
    if (device)
        pipeline->cut = device_plan_cut(&pipeline->plan, pipeline, flows);
    find_format(pipeline);
    if (is_pixels(pipeline))
        format_fold(pipeline, &flows[pipeline->format]);
    pipeline->out = flows[pipeline->cut];
    pipeline->device_out = flows[chain->count];
    return STK_OK;
}

stk_status pipeline_new(struct pipeline **out, const struct pipeline_options *options,
                        struct stk_error *err)
{
    struct pipeline *pipeline = memory_zero(1, sizeof *pipeline);
    *out = NULL;
    if (!pipeline)
        return fail_memory(err, sizeof *pipeline);
    stk_status status = chain_parse(&pipeline->chain, options->chain, options->plugins, err);
    if (status)
        goto done;
    pipeline->media = options->media;
    pipeline->early = options->early;
    pipeline->stored = options->media == STK_MEDIA_TENSOR;
    if (pipeline->stored) {
        pipeline->media = media_of_tensor(&pipeline->chain, &options->tensor);
        pipeline->in =
            (struct stk_flow){.media = pipeline->media, .tensor = options->tensor, .real = -1};
        pipeline->in.tensor.data = NULL;
    } else {
        pipeline->in = flow_of_media(pipeline->media);
        status = add_decode(pipeline, err);
    }
    if (!status)
        status = compile(pipeline, options->device, err);
    if (status)
        goto done;
    *out = pipeline;
    pipeline = NULL;
done:
    pipeline_free(pipeline);
    return status;
}

void pipeline_free(struct pipeline *pipeline)
{
    if (!pipeline)
        return;
    chain_reset(&pipeline->chain);
    memory_free(pipeline);
}

const struct stk_flow *pipeline_out(const struct pipeline *pipeline)
{
    return &pipeline->out;
}

const struct stk_flow *pipeline_device_out(const struct pipeline *pipeline)
{
    return &pipeline->device_out;
}

uint32_t pipeline_params_size(const struct pipeline *pipeline)
{
    return pipeline->plan.count ? pipeline->plan.params_size : 0;
}

int pipeline_ships_stored(const struct pipeline *pipeline)
{
    return pipeline->stored && pipeline->cut == 0;
}

int pipeline_may_aim(const struct pipeline *pipeline)
{
    return pipeline->plan.count && pipeline->plan.aims;
}

int pipeline_pads(const struct pipeline *pipeline)
{
    return pipeline->pads;
}

const char *pipeline_drawn_shape(const struct pipeline *pipeline)
{
    return pipeline->drawn;
}

size_t pipeline_text(const struct pipeline *pipeline, char *text, size_t cap)
{
    struct chain written = pipeline->chain;
    if (pipeline->defaulted) {
        written.count--;
        memmove(written.steps, written.steps + 1, written.count * sizeof written.steps[0]);
    }
    return chain_text(&written, text, cap);
}

/* --- the state -------------------------------------------------------------------------------- */

stk_status pipeline_state_new(struct pipeline_state **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    return *out ? STK_OK : fail_memory(err, sizeof **out);
}

void pipeline_state_free(struct pipeline_state *state)
{
    if (!state)
        return;
    scratch_free(&state->scratch);
    image_decoder_free(state->images);
    audio_run_free(state);
    video_run_free(state);
    memory_free(state);
}

uint64_t pipeline_state_bytes(const struct pipeline_state *state)
{
    uint64_t images = state->images ? image_decoder_bytes(state->images) : 0;
    return sizeof *state + scratch_size(&state->scratch) + images + audio_run_bytes(state) +
           video_run_bytes(state);
}

/* --- running ---------------------------------------------------------------------------------- */

uint64_t pipeline_key(uint64_t seed, uint64_t epoch, uint64_t sample)
{
    return random_key(random_key(random_key(seed, epoch), sample),
                      UINT64_C(0x7472616e73)); /* "trans" */
}

void pipeline_draw(const struct pipeline *pipeline, uint32_t step, uint64_t key,
                   const struct stk_flow *in, struct step_params *params)
{
    const struct chain_step *own = &pipeline->chain.steps[step];
    *params = (struct step_params){0};
    if (own->ops->draw)
        own->ops->draw(own->args, random_key(key, step + (uint32_t)pipeline->stored), in,
                       params->bytes); /* a stored tensor has no decoding step: number 0 is free */
}

stk_status flow_place(struct pipeline_state *state, const struct stk_tensor *want,
                      struct stk_flow *flow, struct stk_error *err)
{
    uint64_t size = stk_tensor_size(&flow->tensor);
    if (size > RESULT_MOST)
        return fail(err, STK_LIMIT, "a transform would make %llu bytes of one sample",
                    (unsigned long long)size);
    if (want && !shape_same(want, &flow->tensor))
        return fail(err, STK_SHAPE, "the sample has another shape than the batch");
    flow->tensor.data = want ? want->data : scratch_take(&state->scratch, size);
    return flow->tensor.data ? STK_OK : fail_memory(err, size);
}

stk_status step_run(const struct pipeline *pipeline, struct pipeline_state *state, uint32_t step,
                    const struct step_params *params, const struct stk_tensor *want, int borrowed,
                    struct stk_flow *flow, struct stk_error *err)
{
    const struct chain_step *own = &pipeline->chain.steps[step];
    struct stk_flow out = *flow;
    stk_status status = STK_OK;
    if (own->ops->shape)
        status = own->ops->shape(own->args, params->bytes, &out, err);
    if (status)
        return status;
    int fits = stk_tensor_size(&out.tensor) <= stk_tensor_size(&flow->tensor);
    if (want || borrowed || !own->ops->in_place || !fits) {
        status = flow_place(state, want, &out, err);
        if (status) {
            *flow = out;
            return status;
        }
    }
    status = own->ops->run(own->args, params->bytes, flow, &out, &state->scratch, err);
    *flow = out;
    return status;
}

/* Decoded, and through the steps that were folded. */
static stk_status run_decode(const struct pipeline *pipeline, struct pipeline_state *state,
                             const struct pipeline_input *input, const struct stk_tensor *want,
                             struct stk_flow *flow, struct stk_error *err)
{
    stk_status status = STK_OK;
    int last = pipeline->rest == pipeline->cut;
    void *place = want && last && stk_tensor_size(&pipeline->out.tensor) != UINT64_MAX &&
                          shape_same(want, &pipeline->out.tensor)
                      ? want->data
                      : NULL;
    int as_it_is = pipeline->stored && (pipeline->cut == 0 || pipeline->in.tensor.dtype != STK_U8);
    if (pipeline->media == STK_MEDIA_IMAGE && !as_it_is)
        return image_run(pipeline, state, input, last ? want : NULL, flow, err);
    if (pipeline->stored) {
        *flow = pipeline->in;
        flow->tensor = *input->shape;
        flow->tensor.data = (void *)(uintptr_t)input->bytes.data;
    } else if (pipeline->media == STK_MEDIA_AUDIO) {
        return audio_run(pipeline, state, input, place, flow, err);
    } else if (pipeline->media == STK_MEDIA_POINTS) {
        return points_run(pipeline, state, input, place, flow, err);
    } else {
        int as_they_are = pipeline->rest == pipeline->first;
        status = video_run(pipeline, state, input, as_they_are ? place : NULL, flow, err);
    }
    if (!status && pipeline->media == STK_MEDIA_VIDEO && pipeline->rest > pipeline->first)
        status = frames_run(pipeline, state, input, last ? want : NULL, flow, err);
    return status;
}

/* The result lies elsewhere than where it is wanted. */
static stk_status deliver(const struct stk_tensor *want, struct stk_flow *flow,
                          struct stk_error *err)
{
    if (!shape_same(want, &flow->tensor))
        return fail(err, STK_SHAPE, "the sample has another shape than the batch");
    memcpy(want->data, flow->tensor.data, stk_tensor_size(want));
    flow->tensor.data = want->data;
    return STK_OK;
}

/* A remedy where nobody knew a better one. */
static void advise(stk_status status, struct stk_error *err)
{
    if (!err || err->remedy[0])
        return;
    if (status == STK_CORRUPT || status == STK_TRUNCATED)
        fail_remedy(err, "get the file again from where it came, or let the loader replace bad "
                         "samples");
    else if (status == STK_UNSUPPORTED)
        fail_remedy(err, "convert the file, or let the loader replace bad samples");
    else if (status == STK_LIMIT)
        fail_remedy(err, "store it smaller, or let the loader replace bad samples");
}

stk_status pipeline_run(const struct pipeline *pipeline, struct pipeline_state *state,
                        const struct pipeline_input *input, struct stk_flow *result,
                        struct stk_error *err)
{
    struct stk_tensor wanted = result->tensor;
    const struct stk_tensor *want = wanted.data ? &wanted : NULL;
    uint32_t count = pipeline->cut;
    scratch_reset(&state->scratch);
    stk_status status = run_decode(pipeline, state, input, want, result, err);
    for (uint32_t i = pipeline->rest; i < count && !status; i++) {
        struct step_params params;
        int borrowed = result->tensor.data == input->bytes.data;
        pipeline_draw(pipeline, i, input->key, result, &params);
        status = step_run(pipeline, state, i, &params, i + 1 == count ? want : NULL, borrowed,
                          result, err);
    }
    if (!status && want && result->tensor.data != want->data)
        status = deliver(want, result, err);
    if (!status && input->params && pipeline->plan.count) {
        struct stk_flow flow = *result;
        status = device_params_set(pipeline, input, &flow, err);
        result->real = flow.real; /* of what the consumer sees */
    }
    if (status) { /* what a damaged header asked for is not kept */
        scratch_drop(&state->scratch);
        advise(status, err);
    }
    return status;
}
