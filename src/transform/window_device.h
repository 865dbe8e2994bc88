/* window_device.h -- runs window_kernel.cu: windows gathered from rows that live on the device.
 * The device twin of window_gather.h.
 * Owns: its tables on the device, until window_device_free.   Threads: any that entered the gpu.
 * Errors: those of gpu.h; STK_LIMIT.   Not here: which rows (loader/resident.h). */
#ifndef TRANSFORM_WINDOW_DEVICE_H
#define TRANSFORM_WINDOW_DEVICE_H

#include "gpu/gpu.h"
#include "transform/gather_device.h"
#include "transform/window_gather.h"
#include "transform/window_kernel.h"

struct window_device;

struct window_device_options {
    struct gpu *gpu;
    const struct window_gather *gather; /* NULL: rows are taken as they lie */
    uint64_t grain;                     /* all homes are multiples of so many bytes */
    uint64_t item;                      /* bytes of a window in the batch */
    int padded;                         /* some windows lack rows in front */
    uint32_t blocks;                    /* see gather_device.h */
};
STK_CHECK stk_status window_device_new(struct window_device **out,
                                       const struct window_device_options *options,
                                       struct stk_error *err);
void window_device_free(struct window_device *device);            /* NULL is fine */
uint64_t window_device_bytes(const struct window_device *device); /* of device memory */

/* The home of a window whose first row is at `offset` and which lacks `missing` rows before it. */
static inline uint64_t window_home(uint64_t offset, uint64_t missing)
{
    return offset | missing << WINDOW_OFFSET_BITS;
}

struct window_run {
    gpu_address store, homes, values;
    uint32_t count, real; /* places from `real` on are cleared */
    struct gpu_stream *stream;
};
STK_CHECK stk_status window_device_run(const struct window_device *device,
                                       const struct window_run *run, struct stk_error *err);

#endif
