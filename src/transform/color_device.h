/* color_device.h -- runs color_kernel.cu.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: arguments and what is drawn (color_transform.c). */
#ifndef TRANSFORM_COLOR_DEVICE_H
#define TRANSFORM_COLOR_DEVICE_H

#include "transform/transform.h"

/* Params begin with a struct color_params. contrast: 0 when none of them can change it. */
STK_CHECK stk_status color_device_jitter(const struct transform_device_step *step, int contrast,
                                         struct stk_error *err);
uint64_t color_device_scratch(const struct stk_flow *in, uint32_t count);
STK_CHECK stk_status color_device_grey(const struct transform_device_step *step,
                                       struct stk_error *err);

#endif
