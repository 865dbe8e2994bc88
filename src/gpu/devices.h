/* devices.h -- starts CUDA and tells which devices there are, without a context on any.
 * Owns: nothing.   Threads: any.   Errors: UNSUPPORTED (no driver, no device, a forked process).
 * Not here: using one (gpu.h); the public face of this is stoker/device.h. */
#ifndef GPU_DEVICES_H
#define GPU_DEVICES_H

#include "gpu/cuda_api.h"

#define GPU_BUS_CAP 24

/* The driver, started for this process. */
STK_CHECK stk_status cuda_start(const struct cuda_api **out, struct stk_error *err);
/* 0 in a child that was forked after the driver was started. */
int cuda_started_here(void);
/* bus: "00000000:65:00.0", as NVML names it. */
STK_CHECK stk_status gpu_describe(uint32_t number, struct gpu_info *info, char bus[GPU_BUS_CAP],
                                  struct stk_error *err);

#endif
