/* blur_device.h -- runs blur_kernel.cu.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: arguments and what is drawn (blur_transform.c). */
#ifndef TRANSFORM_BLUR_DEVICE_H
#define TRANSFORM_BLUR_DEVICE_H

#include "transform/transform.h"

/* Weights of the two passes: odd; half of them is less than the image's sides. */
struct blur_sides {
    uint32_t across, down;
};

/* Params begin with a struct blur_params. */
STK_CHECK stk_status blur_device_run(const struct transform_device_step *step,
                                     struct blur_sides sides, struct stk_error *err);
int blur_device_refuses(const struct stk_flow *in); /* images that are too large */
uint64_t blur_device_scratch(const struct stk_flow *in, uint32_t count, struct blur_sides sides);

#endif
