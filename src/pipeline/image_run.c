/* Images, and the frames of videos: geometry is gathered until pixels are needed; then only its box
 * is decoded, and each byte of the result is written once. */
#include <assert.h>

#include "base/fail.h"
#include "codec/image_codec.h"
#include "pipeline/pipeline_impl.h"

/* Pixels on their way. */
struct pass {
    const struct pipeline *pipeline;
    struct pipeline_state *state;
    const struct pipeline_input *input;
    struct stk_flow source; /* pixels as they are: (..., H, W, C); data NULL: not decoded yet */
    struct stk_flow flow;   /* what they are once geometry is applied */
    struct image_geometry geometry;
    int ours; /* source's data is scratch: there is slack behind it, and it may be changed */
};

static int32_t flow_axis(const struct stk_flow *flow, int from_end)
{
    return (int32_t)flow->tensor.shape[flow->tensor.rank - from_end];
}
#define HEIGHT 3
#define WIDTH 2
#define CHANNELS 1

static int64_t flow_frames(const struct stk_flow *flow)
{
    int64_t frames = 1;
    for (int32_t axis = 0; axis < flow->tensor.rank - 3; axis++)
        frames *= flow->tensor.shape[axis];
    return frames;
}

static uint64_t frame_elements(const struct stk_flow *flow)
{
    return (uint64_t)flow_axis(flow, HEIGHT) * (uint64_t)flow_axis(flow, WIDTH) *
           (uint64_t)flow_axis(flow, CHANNELS);
}

static void pass_restart(struct pass *pass)
{
    geometry_init(&pass->geometry, flow_axis(&pass->source, WIDTH),
                  flow_axis(&pass->source, HEIGHT));
}

/* --- from pixels to pixels -------------------------------------------------------------------- */

static stk_status decode_box(struct pass *pass, struct image_view *view, struct stk_error *err)
{
    const struct decode_image_args *args = pipeline_decode_args(pass->pipeline);
    const struct image_geometry *geometry = &pass->geometry;
    struct image_want want = {.channels = (enum image_channels)args->mode,
                              .x = geometry->x,
                              .y = geometry->y,
                              .width = geometry->box_width,
                              .height = geometry->box_height};
    if (args->fast && geometry->resized) {
        want.least_width = geometry->to_width;
        want.least_height = geometry->to_height;
    }
    return image_read(pass->state->images, &want, view, err);
}

/* What the resampler reads: the box alone, so that nothing outside it enters the result. */
static void view_frame(const struct pass *pass, int64_t frame, struct image_view *view)
{
    const struct image_geometry *geometry = &pass->geometry;
    int32_t channels = flow_axis(&pass->source, CHANNELS);
    int64_t stride = (int64_t)flow_axis(&pass->source, WIDTH) * channels;
    const uint8_t *pixels = pass->source.tensor.data;
    pixels += (uint64_t)frame * frame_elements(&pass->source);
    pixels += geometry->y * stride + (int64_t)geometry->x * channels;
    *view = (struct image_view){.pixels = pixels,
                                .stride = stride,
                                .width = geometry->box_width,
                                .height = geometry->box_height,
                                .channels = channels,
                                .x1 = geometry->box_width,
                                .y1 = geometry->box_height};
}

/* Someone else's memory may end with its last pixel, and vectors read past it. */
static stk_status pass_copy(struct pass *pass, struct stk_error *err)
{
    uint64_t size = stk_tensor_size(&pass->source.tensor);
    void *copy = scratch_take(&pass->state->scratch, size);
    if (!copy)
        return fail_memory(err, size);
    __builtin_memcpy(copy, pass->source.tensor.data, size);
    pass->source.tensor.data = copy;
    pass->ours = 1;
    return STK_OK;
}

/* Where frame number `frame` of the result begins, in elements. */
static uint64_t frame_start(const struct stk_flow *out, int channels_first, int64_t frame)
{
    if (!channels_first || out->media != STK_MEDIA_VIDEO)
        return (uint64_t)frame * frame_elements(out);
    int64_t per_clip = out->tensor.shape[out->tensor.rank - 4];
    uint64_t plane = (uint64_t)flow_axis(out, HEIGHT) * (uint64_t)flow_axis(out, WIDTH);
    return (uint64_t)(frame / per_clip) * (uint64_t)per_clip * frame_elements(out) +
           (uint64_t)(frame % per_clip) * plane;
}

/* Applies the geometry and writes all frames. out: (..., H, W, C) as it would be channels last. */
static stk_status pass_write(struct pass *pass, const struct stk_flow *out,
                             struct image_writer *writer, int channels_first, void *to,
                             struct stk_error *err)
{
    int64_t frames = flow_frames(out);
    stk_status status = STK_OK;
    if (channels_first && out->media == STK_MEDIA_VIDEO)
        writer->channel *= out->tensor.shape[out->tensor.rank - 4]; /* all frames of a channel */
    if (pass->source.tensor.data && !pass->ours && !pass->input->slack)
        status = pass_copy(pass, err);
    for (int64_t frame = 0; frame < frames && !status; frame++) {
        struct image_view view;
        uint64_t at = frame_start(out, channels_first, frame) * stk_dtype_size(writer->dtype);
        if (pass->source.tensor.data)
            view_frame(pass, frame, &view);
        else
            status = decode_box(pass, &view, err);
        if (!status)
            status = image_resample(&view, &pass->geometry, writer, (uint8_t *)to + at,
                                    &pass->state->scratch, err);
    }
    return status;
}

/* Makes pixels of what was gathered so far, in scratch memory. */
static stk_status pass_settle(struct pass *pass, struct stk_error *err)
{
    struct image_writer writer;
    if (pass->source.tensor.data && pass->ours && geometry_is_identity(&pass->geometry))
        return STK_OK;
    struct stk_flow out = pass->flow;
    stk_status status = flow_place(pass->state, NULL, &out, err);
    if (status)
        return status;
    image_writer_init(&writer, STK_U8, flow_axis(&out, WIDTH), flow_axis(&out, HEIGHT),
                      flow_axis(&out, CHANNELS), 0);
    status = pass_write(pass, &out, &writer, 0, out.tensor.data, err);
    pass->source = pass->flow = out;
    pass->ours = 1;
    pass_restart(pass);
    return status;
}

/* --- steps ------------------------------------------------------------------------------------ */

static stk_status step_geometry(struct pass *pass, const struct chain_step *step,
                                const struct step_params *params, struct stk_error *err)
{
    if (!step->ops->fold(step->args, params->bytes, &pass->geometry)) {
        stk_status status = pass_settle(pass, err);
        if (status)
            return status;
        int folded = step->ops->fold(step->args, params->bytes, &pass->geometry);
        assert(folded);
        (void)folded;
    }
    stk_status status = STK_OK;
    if (step->ops->shape)
        status = step->ops->shape(step->args, params->bytes, &pass->flow, err);
    assert(status || (flow_axis(&pass->flow, WIDTH) == pass->geometry.out_width &&
                      flow_axis(&pass->flow, HEIGHT) == pass->geometry.out_height));
    return status;
}

/* Each frame with the same parameters. */
static stk_status step_pixels(struct pass *pass, const struct chain_step *step,
                              const struct step_params *params, struct stk_error *err)
{
    struct stk_flow in = pass->source, out;
    int64_t frames = flow_frames(&in);
    in.media = STK_MEDIA_IMAGE;
    in.tensor.rank = 3;
    for (int axis = 0; axis < 3; axis++)
        in.tensor.shape[axis] = flow_axis(&pass->source, HEIGHT - axis);
    out = in;
    stk_status status = STK_OK;
    if (step->ops->shape)
        status = step->ops->shape(step->args, params->bytes, &out, err);
    if (status)
        return status;
    struct stk_flow whole = pass->source;
    for (int axis = 0; axis < 3; axis++)
        whole.tensor.shape[whole.tensor.rank - 3 + axis] = out.tensor.shape[axis];
    int same = frame_elements(&whole) == frame_elements(&pass->source);
    if (!same || !step->ops->in_place)
        status = flow_place(pass->state, NULL, &whole, err);
    uint8_t *from = in.tensor.data, *to = whole.tensor.data;
    struct scratch *scratch = &pass->state->scratch;
    for (int64_t frame = 0; frame < frames && !status; frame++) {
        struct scratch_mark mark = scratch_mark(scratch);
        in.tensor.data = from + (uint64_t)frame * frame_elements(&in);
        out.tensor.data = to + (uint64_t)frame * frame_elements(&out);
        status = step->ops->run(step->args, params->bytes, &in, &out, scratch, err);
        scratch_return(scratch, mark);
    }
    pass->source = pass->flow = whole;
    pass_restart(pass);
    return status;
}

static stk_status pass_step(struct pass *pass, uint32_t number, struct stk_error *err)
{
    const struct chain_step *step = &pass->pipeline->chain.steps[number];
    struct step_params params;
    pipeline_draw(pass->pipeline, number, pass->input->key, &pass->flow, &params);
    if (step->ops->stage == TRANSFORM_GEOMETRY)
        return step_geometry(pass, step, &params, err);
    stk_status status = pass_settle(pass, err);
    if (status)
        return status;
    if (step->ops->stage == TRANSFORM_PIXELS)
        return step_pixels(pass, step, &params, err);
    status = step_run(pass->pipeline, pass->state, number, &params, NULL, 0, &pass->source, err);
    pass->flow = pass->source;
    pass_restart(pass);
    return status;
}

/* The last geometry, and the format steps that are folded into the writing. */
static stk_status pass_finish(struct pass *pass, const struct stk_tensor *want,
                              struct stk_flow *flow, struct stk_error *err)
{
    const struct pipeline *pipeline = pass->pipeline;
    struct stk_flow last = pass->flow; /* channels last, of the writer's type */
    stk_status status = STK_OK;
    *flow = pass->flow;
    for (uint32_t i = pipeline->format; i < pipeline->rest && !status; i++) {
        const struct chain_step *step = &pipeline->chain.steps[i];
        if (step->ops->shape)
            status = step->ops->shape(step->args, NULL, flow, err);
    }
    if (!status)
        status = flow_place(pass->state, want, flow, err);
    if (status)
        return status;
    struct image_writer writer;
    image_writer_init(&writer, pipeline->writer.dtype, flow_axis(&last, WIDTH),
                      flow_axis(&last, HEIGHT), flow_axis(&last, CHANNELS),
                      pipeline->channels_first);
    writer.plain = pipeline->writer.plain;
    for (int c = 0; c < 4; c++) {
        writer.multiply[c] = pipeline->writer.multiply[c];
        writer.add[c] = pipeline->writer.add[c];
    }
    return pass_write(pass, &last, &writer, pipeline->channels_first, flow->tensor.data, err);
}

/* A stored array may have no rows, or more than an image can. */
static stk_status check_pixels(const struct stk_flow *source, struct stk_error *err)
{
    const int64_t *shape = source->tensor.shape + source->tensor.rank - HEIGHT;
    if (shape[0] > 0 && shape[1] > 0 && shape[0] <= INT32_MAX && shape[1] <= INT32_MAX)
        return STK_OK;
    stk_status status = fail(err, STK_SHAPE, "an image of %lld x %lld pixels cannot be transformed",
                             (long long)shape[1], (long long)shape[0]);
    fail_remedy(err, "leave such samples out");
    return status;
}

static stk_status pass_run(struct pass *pass, const struct stk_tensor *want, struct stk_flow *flow,
                           struct stk_error *err)
{
    const struct pipeline *pipeline = pass->pipeline;
    stk_status status = check_pixels(&pass->source, err);
    if (status)
        return status;
    pass->flow = pass->source;
    pass_restart(pass);
    for (uint32_t i = pipeline->first; i < pipeline->format && !status; i++)
        status = pass_step(pass, i, err);
    return status ? status : pass_finish(pass, want, flow, err);
}

/* --- where pixels come from ------------------------------------------------------------------- */

/* The header alone: what is decoded is decided by the geometry. */
static stk_status pass_begin(struct pass *pass, struct stk_error *err)
{
    const struct decode_image_args *args = pipeline_decode_args(pass->pipeline);
    struct image_limits limits = {.max_pixels = (uint64_t)args->max_pixels,
                                  .relaxed = args->relaxed,
                                  .stop = pass->input->stop};
    struct image_header header;
    stk_status status = STK_OK;
    if (!pass->state->images)
        status = image_decoder_new(&pass->state->images, err);
    if (!status)
        status = image_begin(pass->state->images, &pass->input->bytes, &limits, &header, err);
    if (status)
        return status;
    pass->source = pass->pipeline->in;
    pass->source.tensor.shape[0] = header.height;
    pass->source.tensor.shape[1] = header.width;
    pass->source.tensor.shape[2] = header.channels;
    return decode_image_transform.shape(args, NULL, &pass->source, err);
}

stk_status image_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, const struct stk_tensor *want,
                     struct stk_flow *flow, struct stk_error *err)
{
    struct pass pass = {.pipeline = pipeline, .state = state, .input = input};
    stk_status status = STK_OK;
    if (pipeline->stored) {
        pass.source = pipeline->in;
        pass.source.tensor = *input->shape;
        pass.source.tensor.data = (void *)(uintptr_t)input->bytes.data;
    } else {
        status = pass_begin(&pass, err);
    }
    return status ? status : pass_run(&pass, want, flow, err);
}

stk_status frames_run(const struct pipeline *pipeline, struct pipeline_state *state,
                      const struct pipeline_input *input, const struct stk_tensor *want,
                      struct stk_flow *flow, struct stk_error *err)
{
    struct pass pass = {.pipeline = pipeline, .state = state, .input = input, .source = *flow};
    pass.ours = flow->tensor.data != input->bytes.data;
    return pass_run(&pass, want, flow, err);
}
