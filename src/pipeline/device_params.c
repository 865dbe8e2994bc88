/* The parameters of the device half: drawn on the host from the same keys as ever, and written as
 * plain bytes beside the sample. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/shape.h"
#include "codec/jpeg_header.h"
#include "pipeline/pipeline_impl.h"
#include "transform/image_device.h"

static stk_status draw_step(const struct pipeline *pipeline, uint32_t i,
                            const struct pipeline_input *input, struct image_geometry *geometry,
                            struct stk_flow *flow, struct step_params *params,
                            struct stk_error *err)
{
    const struct chain_step *step = &pipeline->chain.steps[i];
    pipeline_draw(pipeline, i, input->key, flow, params);
    if (step->ops->stage == TRANSFORM_GEOMETRY) {
        assert(geometry);
        if (!step->ops->fold(step->args, params->bytes, geometry))
            return fail(err, STK_UNSUPPORTED, "%s cannot be folded into one step for the device",
                        step->ops->name);
    }
    return step->ops->shape ? step->ops->shape(step->args, params->bytes, flow, err) : STK_OK;
}

stk_status device_params_draw(const struct pipeline *pipeline, const struct pipeline_input *input,
                              struct image_geometry *geometry, struct stk_flow *flow,
                              struct stk_error *err)
{
    const struct device_plan *plan = &pipeline->plan;
    const struct device_pass *pass = plan->passes, *end = pass + plan->count;
    uint8_t *to = input->params;
    stk_status status = STK_OK;
    memset(to, 0, plan->params_size);
    flow->tensor.data = NULL;
    for (uint32_t i = pipeline->cut; i < pipeline->chain.count && !status; i++) {
        struct step_params params;
        status = draw_step(pipeline, i, input, geometry, flow, &params, err);
        while (pass < end && (pass->kind != DEVICE_STEP || pass->step < i))
            pass++;
        if (!status && pass < end && pass->step == i)
            memcpy(to + pass->params, params.bytes, sizeof params.bytes);
    }
    return status;
}

/* Up to its last member: what is shipped holds no bytes that mean nothing. */
static void write_record(const struct pipeline_input *input, const struct image_geometry *geometry,
                         uint32_t source, uint64_t offset)
{
    struct image_record record;
    image_record_set(&record, geometry, source, offset);
    memcpy(input->params, &record, offsetof(struct image_record, fill) + sizeof record.fill);
}

static void pixels_geometry(const struct stk_flow *flow, struct image_geometry *geometry)
{
    const int64_t *shape = flow->tensor.shape + flow->tensor.rank - 3;
    geometry_init(geometry, (int32_t)shape[1], (int32_t)shape[0]);
}

stk_status device_params_set(const struct pipeline *pipeline, const struct pipeline_input *input,
                             struct stk_flow *flow, struct stk_error *err)
{
    uint64_t size = stk_tensor_size(&pipeline->out.tensor);
    struct image_geometry geometry;
    if (!shape_same(&flow->tensor, &pipeline->out.tensor))
        return fail(err, STK_SHAPE, "the sample has another shape than the batch");
    if (!pipeline->plan.record)
        return device_params_draw(pipeline, input, NULL, flow, err);
    pixels_geometry(flow, &geometry);
    stk_status status = device_params_draw(pipeline, input, &geometry, flow, err);
    if (status)
        return status;
    write_record(input, &geometry, 0, input->place * size);
    return STK_OK;
}

stk_status pipeline_aim_stored(const struct pipeline *pipeline, const struct pipeline_input *input,
                               struct stk_error *err)
{
    assert(pipeline_ships_stored(pipeline) && input->shape);
    struct stk_flow flow = pipeline->in;
    flow.tensor = *input->shape;
    return device_params_set(pipeline, input, &flow, err);
}

/* --- images that the device decodes ----------------------------------------------------------- */

/* The host half's geometry of this image, folded. */
static stk_status aim_geometry(const struct pipeline *pipeline, const struct pipeline_input *input,
                               struct image_geometry *geometry, struct stk_flow *flow,
                               struct stk_error *err)
{
    stk_status status = STK_OK;
    pixels_geometry(flow, geometry);
    for (uint32_t i = pipeline->first; i < pipeline->cut && !status; i++) {
        struct step_params params;
        status = draw_step(pipeline, i, input, geometry, flow, &params, err);
    }
    return status;
}

static stk_status aim_header(const struct pipeline *pipeline, const struct pipeline_input *input,
                             struct jpeg_header *header, struct stk_error *err)
{
    const struct decode_image_args *args = pipeline_decode_args(pipeline);
    stk_status status = jpeg_header_read(&input->bytes, header, err);
    if (status)
        return status;
    if ((double)header->width * header->height > args->max_pixels)
        return fail(err, STK_UNSUPPORTED, "the image is larger than allowed");
    return STK_OK;
}

stk_status pipeline_aim(const struct pipeline *pipeline, struct pipeline_state *state,
                        const struct pipeline_input *input, struct pipeline_box *box,
                        struct stk_error *err)
{
    struct jpeg_header header;
    struct image_geometry geometry;
    struct stk_flow flow = pipeline->in;
    (void)state; /* the header is read without a decoder */
    *box = (struct pipeline_box){0};
    assert(pipeline_may_aim(pipeline));
    stk_status status = aim_header(pipeline, input, &header, err);
    if (status)
        return status;
    flow.tensor.shape[0] = header.height;
    flow.tensor.shape[1] = header.width;
    flow.tensor.shape[2] = pipeline->out.tensor.shape[2]; /* whatever is stored */
    status = aim_geometry(pipeline, input, &geometry, &flow, err);
    if (!status)
        status = device_params_draw(pipeline, input, NULL, &flow, err);
    if (status)
        return status;
    *box = (struct pipeline_box){.x = geometry.x,
                                 .y = geometry.y,
                                 .width = geometry.box_width,
                                 .height = geometry.box_height,
                                 .image_width = header.width,
                                 .image_height = header.height,
                                 .channels = (int32_t)pipeline->out.tensor.shape[2]};
    geometry.width = geometry.box_width; /* what is decoded is the box alone */
    geometry.height = geometry.box_height;
    geometry.x = geometry.y = 0;
    write_record(input, &geometry, 1, 0);
    return STK_OK;
}
