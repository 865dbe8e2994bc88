/* signal_device.h -- runs signal_kernel.cu.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: arguments and what is drawn (audio_transform.c, tensor_transform.c,
 * spec_augment_transform.c). */
#ifndef TRANSFORM_SIGNAL_DEVICE_H
#define TRANSFORM_SIGNAL_DEVICE_H

#include "transform/signal_kernel.h"
#include "transform/transform.h"

/* Params begin with a struct gain_params, noise_params, spec_params. */
STK_CHECK stk_status signal_device_gain(const struct transform_device_step *step, int clip,
                                        struct stk_error *err);
STK_CHECK stk_status signal_device_noise(const struct transform_device_step *step, double sigma,
                                         struct stk_error *err);
/* mean: masked values become the mean; it needs signal_device_scratch bytes. */
STK_CHECK stk_status signal_device_mask(const struct transform_device_step *step, int mean,
                                        struct stk_error *err);
uint64_t signal_device_scratch(uint32_t count);

#endif
