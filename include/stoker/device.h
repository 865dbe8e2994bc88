/* device.h -- GPUs: which there are, what they do at the moment, where their libraries lie.
 * Owns: nothing.   Threads: any.   Errors: STK_UNSUPPORTED without a driver, a device, or a
 * library, and in a process that was forked after CUDA was started; words and a remedy in *err. Not
 * here: batches on a device (loader.h: enum stk_device). */
#ifndef STOKER_DEVICE_H
#define STOKER_DEVICE_H

#include <stdint.h>

#include "stoker/error.h"

struct stk_device_info {
    char name[96];
    char bus[24]; /* "00000000:65:00.0": of the PCI bus, as nvidia-smi has it */
    uint32_t number;
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    int32_t driver; /* 13000: CUDA 13.0 */
    uint64_t memory;
};

/* What the driver measured last; STK_DEVICE_UNKNOWN where the device does not tell. */
#define STK_DEVICE_UNKNOWN UINT64_MAX
struct stk_device_sample {
    uint64_t busy;                      /* percent of its last period in which some kernel ran */
    uint64_t memory_busy;               /* percent in which device memory was read or written */
    uint64_t memory_used, memory_total; /* bytes, of all processes */
    uint64_t power;                     /* milliwatts */
    uint64_t clock, memory_clock;       /* MHz */
    uint64_t temperature;               /* degrees Celsius */
};

/* Devices that CUDA shows to this process. 0: none, and err says why and what to do. */
STK_API uint32_t stk_device_count(struct stk_error *err);
/* Makes no context: costs no device memory. */
STK_API STK_CHECK stk_status stk_device_info(uint32_t number, struct stk_device_info *out,
                                             struct stk_error *err);
/* By NVML, which the driver brings. */
STK_API STK_CHECK stk_status stk_device_sample(uint32_t number, struct stk_device_sample *out,
                                               struct stk_error *err);
/* Folders, "a:b", to look in for nvJPEG, NVRTC, cuFFT and CUPTI besides those of the system, in
 * place of those set before; NULL: none. Python gives the nvidia/.../lib of its packages. */
STK_API STK_CHECK stk_status stk_device_folders(const char *folders, struct stk_error *err);

#endif
