/* erasing_device.h -- runs erasing_kernel.cu.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: where elements lie (erasing_transform.c, which fills the job but for what the step
 * says). */
#ifndef TRANSFORM_ERASING_DEVICE_H
#define TRANSFORM_ERASING_DEVICE_H

#include "transform/erasing_kernel.h"
#include "transform/transform.h"

/* Params begin with a struct erasing_params. */
STK_CHECK stk_status erasing_device_run(const struct transform_device_step *step,
                                        const struct erasing_job *shape, struct stk_error *err);

#endif
