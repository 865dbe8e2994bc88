/* nvml.h -- how busy, warm and full a device is, by NVML.
 * Owns: NVML, started once for the process.   Threads: any.   Errors: UNSUPPORTED (no NVML),
 * RESOURCE (it refuses).   Not here: exact times of kernels, which CUPTI records. */
#ifndef GPU_NVML_H
#define GPU_NVML_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/device.h"

/* bus: "00000000:65:00.0". */
STK_CHECK stk_status nvml_sample(const char *bus, struct stk_device_sample *out,
                                 struct stk_error *err);

/* --- by NVML's own numbers, for who has no CUDA context
 * -------------------------------------------- */
uint32_t nvml_count(void); /* 0 without NVML, too */
/* throttle: NVML's bits of what keeps the clocks down; 0 where it does not tell. */
STK_CHECK stk_status nvml_look(uint32_t index, struct stk_device_sample *out, uint64_t *throttle);
enum nvml_way { NVML_FROM_DEVICE, NVML_TO_DEVICE };
/* Bytes a second over PCIe, as NVML counts them in the 20 ms that this takes; STK_DEVICE_UNKNOWN:
 * not told. */
uint64_t nvml_pcie(uint32_t index, enum nvml_way way);
/* Processes that have a context on the device, and how many; 0: none, or not told (also
 * where there are more). They are the machine's numbers: in a container /proc has others. */
#define NVML_PROCESSES 64
size_t nvml_processes(uint32_t index, uint32_t pids[NVML_PROCESSES]);
/* Texts; 0 and "" where they are not told. */
int nvml_name(uint32_t index, char *out, size_t cap);
int nvml_uuid(uint32_t index, char *out, size_t cap);
int nvml_driver(char *out, size_t cap);

#endif
