/* gather_device.h -- runs gather_kernel.cu: copies of many values of one size within the device.
 * Owns: nothing; kernels are the gpu's.   Threads: any that entered the gpu.   Errors: those of
 * gpu.h.   Not here: what the values are (loader/resident.h), windows (window_device.h). */
#ifndef TRANSFORM_GATHER_DEVICE_H
#define TRANSFORM_GATHER_DEVICE_H

#include "gpu/gpu.h"
#include "transform/gather_kernel.h"

#define GATHER_UNITS 5
#define GATHER_ITEM_MOST ((uint64_t)1 << 31) /* bytes of a value */

struct gather_device {
    struct gpu *gpu;
    uint32_t blocks; /* of GATHER_THREADS threads, at most */
    struct gpu_kernel *gather[GATHER_UNITS], *keep[GATHER_UNITS]; /* by log2 of their unit */
};
#define GATHER_THREADS 256

/* blocks 0: as many as the device's memory needs to be busy. */
STK_CHECK stk_status gather_device_init(struct gather_device *device, struct gpu *gpu,
                                        uint32_t blocks, struct stk_error *err);

struct gather_run {
    gpu_address store, homes, values;
    uint64_t item;  /* bytes of a value, below GATHER_ITEM_MOST */
    uint64_t grain; /* all homes are multiples of it */
    uint32_t count, real;
    uint32_t blocks; /* at most; 0: as the device was made for */
    struct gpu_stream *stream;
};
/* A value is copied from store + homes[i] to values + i * item, but where its home is
 * GATHER_LANDED; places from `real` on are cleared. */
STK_CHECK stk_status gather_device_run(const struct gather_device *device,
                                       const struct gather_run *run, struct stk_error *err);

struct keep_run {
    gpu_address store, values;
    uint64_t item;
    const struct keep_move *moves; /* of the host; used before it returns */
    uint32_t count;
    struct gpu_stream *stream;
};
/* The value of each move's place becomes its row of the store. */
STK_CHECK stk_status gather_device_keep(const struct gather_device *device,
                                        const struct keep_run *run, struct stk_error *err);

/* Deals values of `units` units to threads that have `depth` of them in flight, and says how large
 * a grid is for `count` of them, of `blocks` blocks at most. */
struct gpu_grid gather_deal(struct gather_deal *deal, uint64_t units, uint32_t depth,
                            uint32_t count, uint32_t blocks);

#endif
