#include "transform/signal_device.h"

#include <assert.h>

#include "gpu/gpu.h"

#define THREADS 256
#define MOST_ROWS 65535
#define MOST_BLOCKS 65536

static_assert(sizeof(struct noise_params) == 16 && sizeof(struct spec_params) == 128,
              "params have no holes but at the end");

static struct signal_job job_of(const struct transform_device_step *step)
{
    const struct stk_tensor *in = &step->in->tensor;
    return (struct signal_job){.from = step->from,
                               .to = step->to,
                               .samples = step->count,
                               .elements = stk_tensor_size(in) / stk_dtype_size(in->dtype),
                               .params = step->params,
                               .params_stride = step->params_stride,
                               .rows = step->count < MOST_ROWS ? step->count : MOST_ROWS,
                               .dtype = (uint32_t)in->dtype};
}

/* Loads the kernel, and launches it when there is anything to do. */
static stk_status launch(const struct transform_device_step *step, const char *name, uint64_t width,
                         uint32_t rows, const struct signal_job *job, struct stk_error *err)
{
    uint64_t blocks = (width + THREADS - 1) / THREADS;
    struct gpu_grid grid = {blocks < MOST_BLOCKS ? (uint32_t)blocks : MOST_BLOCKS, rows, THREADS};
    struct gpu_kernel *kernel;
    stk_status status = gpu_kernel(step->gpu, "signal_kernel", name, &kernel, err);
    if (status || !job->samples || !job->elements)
        return status;
    return gpu_launch(step->gpu, kernel, &grid, job, sizeof *job, step->stream, err);
}

stk_status signal_device_gain(const struct transform_device_step *step, int clip,
                              struct stk_error *err)
{
    struct signal_job job = job_of(step);
    job.clip = clip != 0;
    return launch(step, "signal_gain", job.elements, job.rows, &job, err);
}

stk_status signal_device_noise(const struct transform_device_step *step, double sigma,
                               struct stk_error *err)
{
    struct signal_job job = job_of(step);
    job.sigma = (float)sigma;
    return launch(step, "signal_noise", (job.elements + 1) / 2, job.rows, &job, err);
}

uint64_t signal_device_scratch(uint32_t count)
{
    return (uint64_t)count * (SIGNAL_LANES * sizeof(double) + sizeof(float));
}

stk_status signal_device_mask(const struct transform_device_step *step, int mean,
                              struct stk_error *err)
{
    struct signal_job job = job_of(step);
    stk_status status = STK_OK;
    job.mean = mean != 0;
    job.bands = (uint64_t)step->in->tensor.shape[1];
    job.time = (uint64_t)step->in->tensor.shape[2];
    job.sums = step->scratch;
    job.means = step->scratch + step->count * SIGNAL_LANES * sizeof(double);
    if (mean)
        status = launch(step, "signal_sums", SIGNAL_LANES, job.rows, &job, err);
    if (mean && !status)
        status = launch(step, "signal_means", job.samples, 1, &job, err);
    if (status)
        return status;
    return launch(step, "signal_mask", job.elements, job.rows, &job, err);
}
