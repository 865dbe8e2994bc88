#include "transform/blur_device.h"

#include <assert.h>

#include "gpu/gpu.h"
#include "transform/blur_kernel.h"
#include "transform/pixels.h"

#define THREADS 256
#define GROUP 4 /* values of a thread */
#define MOST_ROWS 65535
#define SCRATCH_STEP 256

static_assert(sizeof(struct blur_params) == 8, "params have no holes");

static uint64_t frame_count(const struct stk_flow *flow)
{
    uint64_t frames = 1;
    for (int32_t axis = 0; axis < flow->tensor.rank - 3; axis++)
        frames *= (uint64_t)flow->tensor.shape[axis];
    return frames;
}

int blur_device_refuses(const struct stk_flow *in)
{
    struct pixels image = pixels_of(in);
    return image.width * image.height > INT32_MAX / image.channels;
}

/* Weights lie in front of what is between the passes. */
static uint64_t weights_size(uint32_t count, struct blur_sides sides)
{
    uint64_t size = (uint64_t)count * (sides.across + sides.down) * sizeof(float);
    return (size + SCRATCH_STEP - 1) / SCRATCH_STEP * SCRATCH_STEP;
}

uint64_t blur_device_scratch(const struct stk_flow *in, uint32_t count, struct blur_sides sides)
{
    return weights_size(count, sides) + stk_tensor_size(&in->tensor) * count * sizeof(uint16_t);
}

static struct blur_job job_of(const struct transform_device_step *step, struct blur_sides sides)
{
    struct pixels image = pixels_of(step->in);
    struct blur_job job = {.from = step->from,
                           .to = step->to,
                           .between = step->scratch + weights_size(step->count, sides),
                           .weights = step->scratch,
                           .params = step->params,
                           .samples = step->count,
                           .frames = (uint32_t)frame_count(step->in),
                           .params_stride = step->params_stride,
                           .width = (uint32_t)image.width,
                           .height = (uint32_t)image.height,
                           .channels = (uint32_t)image.channels,
                           .across = sides.across,
                           .down = sides.down};
    job.images = job.samples * job.frames;
    job.rows = job.images < MOST_ROWS ? (uint32_t)job.images : MOST_ROWS;
    job.words = job.from % 4 == 0 && job.width * job.channels % 4 == 0;
    return job;
}

static uint32_t blocks_for(uint64_t threads)
{
    return (uint32_t)((threads + THREADS - 1) / THREADS);
}

stk_status blur_device_run(const struct transform_device_step *step, struct blur_sides sides,
                           struct stk_error *err)
{
    static const char *const names[] = {"blur_weights", "blur_down", "blur_across"};
    struct blur_job job = job_of(step, sides);
    uint32_t stride = job.width * job.channels;
    const struct gpu_grid grids[] = {
        {blocks_for(2 * job.samples), 1, THREADS},
        {blocks_for((uint64_t)((stride + GROUP - 1) / GROUP) * job.height), job.rows, THREADS},
        {blocks_for((uint64_t)stride * ((job.height + GROUP - 1) / GROUP)), job.rows, THREADS},
    };
    stk_status status = STK_OK;
    for (int i = 0; i < 3 && !status; i++) {
        struct gpu_kernel *kernel;
        status = gpu_kernel(step->gpu, "blur_kernel", names[i], &kernel, err);
        if (!status && job.images && stride && job.height)
            status = gpu_launch(step->gpu, kernel, &grids[i], &job, sizeof job, step->stream, err);
    }
    return status;
}
