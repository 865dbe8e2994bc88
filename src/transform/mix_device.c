#include "transform/mix_device.h"

#include "transform/mix_kernel.h"

#define THREADS 256
#define BLOCKS_MOST 65536

/* Where the box is: elements as (planes, height, width, inner). */
static void set_box(struct mix_job *job, const struct mix_device_run *run)
{
    const struct stk_tensor *image = &run->flow->tensor;
    int32_t axis = mix_height_axis(run->flow);
    job->cut = 1;
    job->height = (uint64_t)image->shape[axis];
    job->width = (uint64_t)image->shape[axis + 1];
    job->inner = 1;
    for (int32_t i = axis + 2; i < image->rank; i++)
        job->inner *= (uint64_t)image->shape[i];
    job->x0 = run->params->x0;
    job->y0 = run->params->y0;
    job->x1 = run->params->x1;
    job->y1 = run->params->y1;
}

stk_status mix_device_run(struct gpu *gpu, const struct mix_device_run *run, struct stk_error *err)
{
    const struct stk_tensor *image = &run->flow->tensor;
    struct gpu_kernel *kernel;
    struct mix_job job = {.images = run->images,
                          .count = run->count,
                          .dtype = image->dtype,
                          .size = (uint32_t)stk_dtype_size(image->dtype),
                          .lam = run->params->lam};
    job.elements = stk_tensor_size(image) / job.size;
    if (run->ops == &cutmix_transform)
        set_box(&job, run);
    uint64_t blocks = (job.elements + THREADS - 1) / THREADS;
    struct gpu_grid grid = {.x = blocks < BLOCKS_MOST ? (uint32_t)blocks : BLOCKS_MOST,
                            .threads = THREADS};
    stk_status status = gpu_kernel(gpu, "mix_kernel", "mix_batch", &kernel, err);
    if (status || !blocks)
        return status;
    return gpu_launch(gpu, kernel, &grid, &job, sizeof job, run->stream, err);
}
