/* mix_device.h -- runs mix_kernel.cu.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: what is drawn, and labels (loader/batch_transform.h). */
#ifndef TRANSFORM_MIX_DEVICE_H
#define TRANSFORM_MIX_DEVICE_H

#include "gpu/gpu.h"
#include "transform/mix_transform.h"

struct mix_device_run {
    const struct transform_ops *ops; /* &mixup_transform or &cutmix_transform */
    const struct mix_params *params;
    const struct stk_flow *flow; /* of one image */
    gpu_address images;
    uint32_t count; /* samples that are real: two or more */
    struct gpu_stream *stream;
};
STK_CHECK stk_status mix_device_run(struct gpu *gpu, const struct mix_device_run *run,
                                    struct stk_error *err);

#endif
