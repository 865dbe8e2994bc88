/* device_sample.h -- the GPUs that a command sees, by NVML, without a CUDA context of our own.
 * Owns: nothing.   Threads: one.   Errors: none; without NVML there are no devices.
 * Not here: NVML itself (gpu/nvml.h). */
#ifndef WATCH_DEVICE_SAMPLE_H
#define WATCH_DEVICE_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "gpu/nvml.h"
#include "watch/event.h"

#define DEVICES_MOST 16

struct device_sample {
    uint32_t count;
    uint32_t index[DEVICES_MOST]; /* NVML's, in the order of the command's numbers */
    uint64_t pcie_in[DEVICES_MOST], pcie_out[DEVICES_MOST]; /* until they are told */
    uint32_t turn;                 /* whose PCIe is asked next: it takes NVML 20 ms each */
    uint32_t pids[NVML_PROCESSES]; /* of the device at hand */
    char name[96], driver[32];
};

/* visible: what CUDA_VISIBLE_DEVICES says; NULL: all. */
void device_sample_open(struct device_sample *sample, const char *visible);
/* 0: it does not tell. The list in *out is overwritten by the next call. */
int device_sample_take(struct device_sample *sample, uint32_t device, struct watch_device *out);
/* Asks for the PCIe traffic of one device in one direction, which is told once; the next call asks
 * for another. */
void device_sample_pcie(struct device_sample *sample);

#endif
