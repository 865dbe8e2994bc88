/* nvml.h -- how busy, warm and full a device is, by NVML.
 * Owns: NVML, started once for the process.   Threads: any.   Errors: UNSUPPORTED (no NVML),
 * RESOURCE (it refuses).   Not here: exact times of kernels, which CUPTI records. */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include "stoker/device.h"

/* bus: "00000000:65:00.0". */
STK_CHECK stk_status nvml_sample(const char *bus, struct stk_device_sample *out,
                                 struct stk_error *err);

#endif
