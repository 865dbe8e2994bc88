#include "pipeline/device_plan.h"

#include <string.h>

#include "pipeline/pipeline_impl.h"
#include "transform/image_kernel.h"
#include "transform/tensor_device.h"

#define PARAMS_LEAST 16 /* a device half that needs none has some all the same: 0 means no half */

/* --- geometry --------------------------------------------------------------------------------- */

/* What a sample's geometry may be like by now. One record holds one resize; whether a sample's
 * steps fit into it must be known before its numbers are drawn. */
struct outlook {
    int resized, flipped;
    int cut;    /* behind the resize: what lies beyond the window is not fill */
    int filled; /* the window may reach outside */
};

static int is_named(const struct chain_step *step, const char *name)
{
    return step->ops == transform_find(name);
}

static int is_larger(const struct stk_flow *out, const struct stk_flow *in)
{
    const int64_t *to = out->tensor.shape + out->tensor.rank - 3;
    const int64_t *from = in->tensor.shape + in->tensor.rank - 3;
    return to[0] > from[0] || to[1] > from[1];
}

/* NULL: the step has no such argument. */
static const void *argument_of(const struct chain_step *step, const char *name)
{
    for (const struct transform_arg *arg = step->ops->args; arg->name; arg++)
        if (!strcmp(arg->name, name))
            return (const char *)step->args + arg->offset;
    return NULL;
}

/* Can a crop reach outside of what it cuts? */
static int may_pad(const struct chain_step *step, const struct stk_flow *flows)
{
    const struct transform_list *padding = argument_of(step, "padding");
    return is_larger(&flows[1], &flows[0]) || (padding && padding->count);
}

/* Some filters cannot be folded behind a flip, whatever is drawn: see image_geometry.c. */
static int is_sided(const struct chain_step *step)
{
    const int *filter = argument_of(step, "interpolation");
    return filter && (*filter == IMAGE_NEAREST || *filter == IMAGE_AREA);
}

/* Can the step be folded whatever is drawn? */
static int outlook_add(struct outlook *outlook, const struct pipeline *pipeline, uint32_t i,
                       const struct stk_flow *flows)
{
    const struct chain_step *step = &pipeline->chain.steps[i];
    if (is_named(step, "RandomHorizontalFlip") || is_named(step, "RandomVerticalFlip")) {
        outlook->flipped = 1;
        return 1;
    }
    if (is_named(step, "CenterCrop") || is_named(step, "RandomCrop")) {
        int pads = may_pad(step, flows + i);
        if (pads && (outlook->cut || outlook->filled))
            return 0;
        outlook->cut |= outlook->resized;
        outlook->filled |= pads;
        return 1;
    }
    if (!is_named(step, "Resize") && !is_named(step, "RandomResizedCrop"))
        return 0;
    if (outlook->resized || outlook->filled || (outlook->flipped && is_sided(step)))
        return 0;
    outlook->resized = 1;
    return 1;
}

/* --- passes ----------------------------------------------------------------------------------- */

/* A half of a chain that is being planned. */
struct planning {
    struct device_plan *plan;
    const struct pipeline *pipeline;
    const struct stk_flow *flows;
    uint32_t at; /* the next step */
};

static int is_fixed(const struct stk_flow *flow)
{
    uint64_t size = stk_tensor_size(&flow->tensor);
    return size && size != UINT64_MAX;
}

static int is_pixels(const struct stk_flow *flow)
{
    return (flow->media == STK_MEDIA_IMAGE || flow->media == STK_MEDIA_VIDEO) &&
           flow->tensor.dtype == STK_U8 && !flow->channels_first;
}

static const struct chain_step *next_step(const struct planning *planning)
{
    const struct chain *chain = &planning->pipeline->chain;
    return planning->at < chain->count ? &chain->steps[planning->at] : NULL;
}

static struct device_pass *pass_begin(const struct planning *planning, enum device_pass_kind kind)
{
    struct device_pass *pass = &planning->plan->passes[planning->plan->count++];
    *pass = (struct device_pass){
        .kind = kind, .step = planning->at, .in = planning->flows[planning->at]};
    return pass;
}

static void pass_end(const struct planning *planning, struct device_pass *pass)
{
    pass->out = planning->flows[planning->at];
}

static int is_format(const struct chain_step *step)
{
    return step && step->ops->stage == TRANSFORM_FORMAT;
}

/* Pixels are gathered by their records when the device cuts them, or may decode them. */
static int plan_image(struct planning *planning)
{
    struct device_plan *plan = planning->plan;
    const struct chain_step *step = next_step(planning);
    int geometry = step && step->ops->stage == TRANSFORM_GEOMETRY;
    plan->record = is_pixels(&planning->flows[planning->at]);
    if (!plan->record)
        return !geometry;
    plan->params_size = sizeof(struct image_record);
    if (!geometry && !plan->aims)
        return 1;
    if (geometry && !planning->pipeline->stored) /* the decoder cuts while it decodes */
        return 0;
    struct outlook outlook = {0};
    struct device_pass *pass = pass_begin(planning, DEVICE_IMAGE);
    for (; (step = next_step(planning)) && step->ops->stage == TRANSFORM_GEOMETRY; planning->at++)
        if (!outlook_add(&outlook, planning->pipeline, planning->at, planning->flows))
            return 0;
    plan->resizes = outlook.resized || outlook.filled;
    format_fold_begin(&pass->writer, &pass->channels_first);
    while (is_format(step = next_step(planning)) &&
           format_fold_step(&pass->writer, &pass->channels_first, pass->in.media, step))
        planning->at++;
    pass_end(planning, pass);
    return 1;
}

/* Format steps, as many as go into one pass. */
static int plan_format(struct planning *planning)
{
    const struct chain_step *step;
    struct device_pass *pass = pass_begin(planning, DEVICE_FORMAT);
    uint32_t before = planning->at;
    tensor_job_begin(&pass->job, &pass->in);
    while (is_format(step = next_step(planning)) &&
           tensor_job_fold(&pass->job, step->ops, step->args, &planning->flows[planning->at]))
        planning->at++;
    pass_end(planning, pass);
    return planning->at > before;
}

static int plan_step(struct planning *planning, const struct chain_step *step)
{
    struct device_plan *plan = planning->plan;
    const struct transform_ops *ops = step->ops;
    const struct stk_flow *in = &planning->flows[planning->at];
    int capable = (ops->stage == TRANSFORM_PIXELS || ops->stage == TRANSFORM_TENSOR) &&
                  ops->run_device && !(ops->device_refuses && ops->device_refuses(step->args, in));
    if (!capable)
        return 0;
    struct device_pass *pass = pass_begin(planning, DEVICE_STEP);
    pass->params = plan->params_size;
    plan->params_size += TRANSFORM_PARAMS;
    planning->at++;
    pass_end(planning, pass);
    return 1;
}

/* --- the cut ---------------------------------------------------------------------------------- */

/* The host half does nothing but decode and cut: the device's decoder can stand in for it. */
static int plan_aims(const struct pipeline *pipeline, uint32_t cut)
{
    if (pipeline->stored || pipeline->media != STK_MEDIA_IMAGE)
        return 0;
    for (uint32_t i = pipeline->first; i < cut; i++)
        if (pipeline->chain.steps[i].ops->stage != TRANSFORM_GEOMETRY)
            return 0;
    const struct decode_image_args *args = pipeline_decode_args(pipeline);
    return args->mode == IMAGE_RGB || args->mode == IMAGE_GRAY;
}

/* 0: the steps from `cut` on are not for the device. */
static int plan_make(struct device_plan *plan, const struct pipeline *pipeline,
                     const struct stk_flow *flows, uint32_t cut)
{
    struct planning planning = {plan, pipeline, flows, cut};
    const struct chain_step *step;
    *plan = (struct device_plan){.aims = plan_aims(pipeline, cut)};
    for (uint32_t i = cut; i <= pipeline->chain.count; i++)
        if (!is_fixed(&flows[i]))
            return 0;
    int made = plan_image(&planning);
    while (made && (step = next_step(&planning)))
        made = is_format(step) ? plan_format(&planning) : plan_step(&planning, step);
    if (plan->params_size < PARAMS_LEAST)
        plan->params_size = PARAMS_LEAST;
    return made;
}

/* Half as many bytes again are worth it: a bus that takes 50 GB/s is seldom what a loader waits
 * for, and what the device does not do the CPU's cores must. */
uint32_t device_plan_cut(struct device_plan *plan, const struct pipeline *pipeline,
                         const struct stk_flow *flows)
{
    uint32_t count = pipeline->chain.count;
    uint64_t least = UINT64_MAX;
    for (uint32_t cut = pipeline->first; cut <= count; cut++) {
        uint64_t size = stk_tensor_size(&flows[cut].tensor);
        if (plan_make(plan, pipeline, flows, cut) && size < least)
            least = size;
    }
    for (uint32_t cut = pipeline->first; cut <= count; cut++) {
        uint64_t size = stk_tensor_size(&flows[cut].tensor);
        if (plan_make(plan, pipeline, flows, cut) && (pipeline->early || size - least <= least / 2))
            return cut;
    }
    *plan = (struct device_plan){0};
    return count;
}
