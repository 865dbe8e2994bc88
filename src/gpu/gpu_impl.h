/* gpu_impl.h -- what the files of this folder know of an opened device.
 * Owns, Threads, Errors: see gpu.h.   Not here: anything that others may use. */
#ifndef GPU_GPU_IMPL_H
#define GPU_GPU_IMPL_H

#include "gpu/cuda_api.h"
#include "gpu/module.h"

/* One for each device of the process, however often it is opened. All is set when it is opened and
 * does not change, but for what names its lock. */
struct gpu {
    const struct cuda_api *api;
    struct gpu_info info;
    int device;
    int32_t process; /* that opened it */
    struct cuda_context *context;
    int priorities[3];          /* of enum gpu_priority */
    uint32_t holders;           /* under the lock of all open devices, as is next */
    struct gpu *next;           /* another open device */
    struct module_shelf *shelf; /* has a lock of its own */
};

/* 0 in a forked child: nothing of the driver may be called. */
int gpu_here(const struct gpu *gpu);

#endif
