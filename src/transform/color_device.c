#include "transform/color_device.h"

#include <assert.h>

#include "gpu/gpu.h"
#include "transform/color_kernel.h"
#include "transform/pixels.h"

#define THREADS 256
#define GROUP 4 /* pixels of a thread */
#define MOST_ROWS 65535
#define MOST_BLOCKS 65536

static_assert(sizeof(struct color_params) == 20, "params have no holes");

static uint64_t frame_count(const struct stk_flow *flow)
{
    uint64_t frames = 1;
    for (int32_t axis = 0; axis < flow->tensor.rank - 3; axis++)
        frames *= (uint64_t)flow->tensor.shape[axis];
    return frames;
}

static uint32_t blocks_for(uint64_t threads)
{
    uint64_t blocks = (threads + THREADS - 1) / THREADS;
    return blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS;
}

static struct color_job job_of(const struct transform_device_step *step)
{
    struct pixels image = pixels_of(step->in);
    struct color_job job = {.from = step->from,
                            .to = step->to,
                            .pixels = (uint64_t)(image.width * image.height),
                            .frames = (uint32_t)frame_count(step->in),
                            .channels = (uint32_t)image.channels,
                            .params = step->params,
                            .params_stride = step->params_stride};
    job.images = (uint64_t)step->count * job.frames;
    job.rows = job.images < MOST_ROWS ? (uint32_t)job.images : MOST_ROWS;
    job.words = job.pixels % GROUP == 0 && job.from % 4 == 0 && job.to % 4 == 0;
    return job;
}

uint64_t color_device_scratch(const struct stk_flow *in, uint32_t count)
{
    uint64_t images = frame_count(in) * count;
    return images * (COLOR_LANES * sizeof(uint64_t) + sizeof(float));
}

static stk_status launch(const struct transform_device_step *step, struct gpu_kernel *kernel,
                         struct gpu_grid grid, const struct color_job *job, struct stk_error *err)
{
    if (!job->images || !job->pixels)
        return STK_OK;
    return gpu_launch(step->gpu, kernel, &grid, job, sizeof *job, step->stream, err);
}

stk_status color_device_jitter(const struct transform_device_step *step, int contrast,
                               struct stk_error *err)
{
    struct color_job job = job_of(step);
    struct gpu_kernel *sums, *means, *jitter;
    stk_status status = gpu_kernel(step->gpu, "color_kernel", "color_sums", &sums, err);
    if (!status)
        status = gpu_kernel(step->gpu, "color_kernel", "color_means", &means, err);
    if (!status)
        status = gpu_kernel(step->gpu, "color_kernel", "color_jitter", &jitter, err);
    if (!status && contrast) {
        job.sums = step->scratch;
        job.means = step->scratch + job.images * COLOR_LANES * sizeof(uint64_t);
        status = launch(step, sums, (struct gpu_grid){COLOR_LANES / THREADS, job.rows, THREADS},
                        &job, err);
        if (!status)
            status = launch(step, means, (struct gpu_grid){blocks_for(job.images), 1, THREADS},
                            &job, err);
    }
    if (status)
        return status;
    uint64_t groups = (job.pixels + GROUP - 1) / GROUP;
    return launch(step, jitter, (struct gpu_grid){blocks_for(groups), job.rows, THREADS}, &job,
                  err);
}

stk_status color_device_grey(const struct transform_device_step *step, struct stk_error *err)
{
    struct color_job job = job_of(step);
    struct gpu_kernel *grey;
    stk_status status = gpu_kernel(step->gpu, "color_kernel", "color_grey", &grey, err);
    if (status)
        return status;
    job.greys = (uint32_t)pixels_of(step->out).channels;
    job.pixels *= job.images;
    job.words = job.pixels % GROUP == 0 && job.from % 4 == 0 && job.to % 4 == 0;
    uint64_t groups = (job.pixels + GROUP - 1) / GROUP;
    return launch(step, grey, (struct gpu_grid){blocks_for(groups), 1, THREADS}, &job, err);
}
