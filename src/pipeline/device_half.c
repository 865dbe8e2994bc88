#include "pipeline/device_half.h"

#include <assert.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "pipeline/pipeline_impl.h"
#include "transform/image_device.h"
#include "transform/pixels.h"
#include "transform/tensor_device.h"

#define ROOM_ALIGN 256

struct device_half {
    const struct pipeline *pipeline;
    struct gpu *gpu;
    uint32_t capacity;
    /* Scratch: what goes from pass to pass lies in one room and then in the other; behind them what
     * a step needs for itself. */
    uint64_t second, own, scratch; /* where these begin, and where all ends */
};

/* --- room ------------------------------------------------------------------------------------- */

static int grow(uint64_t *room, uint64_t item, uint64_t count)
{
    uint64_t bytes;
    if (!checked_mul(item, count, &bytes) || !checked_add(bytes, ROOM_ALIGN - 1, &bytes))
        return 0;
    bytes &= ~(uint64_t)(ROOM_ALIGN - 1);
    if (bytes > *room)
        *room = bytes;
    return 1;
}

static uint64_t step_scratch(const struct device_half *half, const struct device_pass *pass)
{
    const struct chain_step *step = &half->pipeline->chain.steps[pass->step];
    if (pass->kind != DEVICE_STEP || !step->ops->device_scratch)
        return 0;
    return step->ops->device_scratch(step->args, &pass->in, half->capacity);
}

static stk_status find_room(struct device_half *half, struct stk_error *err)
{
    const struct device_plan *plan = &half->pipeline->plan;
    uint64_t rooms[2] = {0}, own = 0;
    int fits = 1;
    for (uint32_t i = 0; i < plan->count && fits; i++) {
        const struct device_pass *pass = &plan->passes[i];
        fits = grow(&own, step_scratch(half, pass), 1);
        if (fits && i + 1 < plan->count)
            fits = grow(&rooms[i % 2], stk_tensor_size(&pass->out.tensor), half->capacity);
    }
    half->second = rooms[0];
    fits = fits && checked_add(rooms[0], rooms[1], &half->own) &&
           checked_add(half->own, own, &half->scratch);
    return fits ? STK_OK : fail(err, STK_LIMIT, "a batch needs more memory than there can be");
}

/* Kernels are loaded now, or known to be missing, and not at the first batch: steps load theirs for
 * a batch of none. */
static stk_status load_kernels(struct device_half *half, struct stk_error *err)
{
    const struct device_plan *plan = &half->pipeline->plan;
    const struct device_half_run none = {0};
    struct gpu_kernel *kernel;
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < plan->count && !status; i++)
        if (plan->passes[i].kind == DEVICE_FORMAT)
            status = gpu_kernel(half->gpu, "tensor_kernel", "tensor_any", &kernel, err);
    return status ? status : device_half_run(half, &none, err);
}

stk_status device_half_new(struct device_half **out, const struct pipeline *pipeline,
                           struct gpu *gpu, uint32_t capacity, struct stk_error *err)
{
    struct device_half *half = memory_zero(1, sizeof *half);
    *out = NULL;
    assert(pipeline_params_size(pipeline) > 0);
    if (!half)
        return fail_memory(err, sizeof *half);
    half->pipeline = pipeline;
    half->gpu = gpu;
    half->capacity = capacity;
    stk_status status = find_room(half, err);
    if (!status)
        status = load_kernels(half, err);
    if (status)
        goto done;
    *out = half;
    half = NULL;
done:
    device_half_free(half);
    return status;
}

void device_half_free(struct device_half *half)
{
    memory_free(half);
}

uint64_t device_half_scratch(const struct device_half *half)
{
    return half->scratch;
}

/* --- passes ----------------------------------------------------------------------------------- */

static stk_status run_image(const struct device_half *half, const struct device_half_run *run,
                            const struct device_pass *pass, uint64_t to, struct stk_error *err)
{
    const struct device_plan *plan = &half->pipeline->plan;
    const struct stk_tensor *in = &pass->in.tensor;
    int64_t height, width, channels, frames = 1;
    pixels_axes(&pass->out, &height, &width, &channels);
    for (int32_t axis = 0; axis < in->rank - 3; axis++)
        frames *= in->shape[axis];
    struct image_job job = {.records = run->params,
                            .record_stride = plan->params_size,
                            .count = run->count,
                            .landed = run->landed,
                            .decoded = run->decoded,
                            .out = to,
                            .item = stk_tensor_size(&pass->out.tensor),
                            .frames = (uint32_t)frames,
                            .clip = in->rank > 4 ? (uint32_t)in->shape[in->rank - 4] : 0,
                            .width = (uint32_t)width,
                            .height = (uint32_t)height,
                            .channels = (uint32_t)channels,
                            .dtype = (uint32_t)pass->writer.dtype,
                            .channels_first = (uint32_t)pass->channels_first,
                            .plain = (uint32_t)pass->writer.plain};
    for (int c = 0; c < 4; c++) {
        job.multiply[c] = pass->writer.multiply[c];
        job.add[c] = pass->writer.add[c];
    }
    int resizes = plan->resizes || (plan->aims && run->resizes);
    return image_device_run(half->gpu, &job, resizes, run->stream, err);
}

static stk_status run_step(const struct device_half *half, const struct device_half_run *run,
                           const struct device_pass *pass, uint64_t from, uint64_t to,
                           struct stk_error *err)
{
    const struct chain_step *own = &half->pipeline->chain.steps[pass->step];
    const struct transform_device_step step = {.args = own->args,
                                               .in = &pass->in,
                                               .out = &pass->out,
                                               .count = run->count,
                                               .from = from,
                                               .to = to,
                                               .params = run->params + pass->params,
                                               .params_stride = half->pipeline->plan.params_size,
                                               .scratch = run->scratch + half->own,
                                               .gpu = half->gpu,
                                               .stream = run->stream};
    return own->ops->run_device(&step, err);
}

static stk_status run_format(const struct device_half *half, const struct device_half_run *run,
                             const struct device_pass *pass, uint64_t from, uint64_t to,
                             struct stk_error *err)
{
    struct tensor_job job = pass->job;
    tensor_job_place(&job, from, to, run->count);
    return tensor_device_run(half->gpu, &job, run->stream, err);
}

stk_status device_half_run(struct device_half *half, const struct device_half_run *run,
                           struct stk_error *err)
{
    const struct device_plan *plan = &half->pipeline->plan;
    uint64_t from = run->landed;
    stk_status status = STK_OK;
    assert(run->count <= half->capacity);
    for (uint32_t i = 0; i < plan->count && !status; i++) {
        const struct device_pass *pass = &plan->passes[i];
        uint64_t to = run->scratch + (i % 2 ? half->second : 0);
        if (i + 1 == plan->count)
            to = run->out;
        if (pass->kind == DEVICE_IMAGE)
            status = run_image(half, run, pass, to, err);
        else if (pass->kind == DEVICE_FORMAT)
            status = run_format(half, run, pass, from, to, err);
        else
            status = run_step(half, run, pass, from, to, err);
        from = to;
    }
    return status;
}
