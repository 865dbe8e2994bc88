#include "transform/erasing_device.h"

#include <assert.h>

#include "gpu/gpu.h"

#define THREADS 256
#define BLOCKS_MOST 64 /* of a sample, whose rectangle the host does not look up */
#define ELEMENTS 2048  /* of a block, of a rectangle as large as the sample */
#define MOST_ROWS 65535

static_assert(sizeof(struct erasing_params) == 24, "params have no holes");

stk_status erasing_device_run(const struct transform_device_step *step,
                              const struct erasing_job *shape, struct stk_error *err)
{
    struct erasing_job job = *shape;
    uint64_t size = stk_tensor_size(&step->in->tensor);
    struct gpu_kernel *kernel;
    job.data = step->to;
    job.samples = step->count;
    job.item = size / stk_dtype_size(step->in->tensor.dtype);
    job.params = step->params;
    job.params_stride = step->params_stride;
    job.rows = step->count < MOST_ROWS ? step->count : MOST_ROWS;
    job.dtype = (uint32_t)step->in->tensor.dtype;
    uint64_t blocks = job.item / ELEMENTS + 1;
    struct gpu_grid grid = {blocks < BLOCKS_MOST ? (uint32_t)blocks : BLOCKS_MOST, job.rows,
                            THREADS};
    stk_status status = gpu_kernel(step->gpu, "erasing_kernel", "erasing_fill", &kernel, err);
    if (status || !job.samples || !size)
        return status;
    status =
        gpu_copy_within(step->gpu, step->to, step->from, size * step->count, step->stream, err);
    if (status)
        return status;
    return gpu_launch(step->gpu, kernel, &grid, &job, sizeof job, step->stream, err);
}
