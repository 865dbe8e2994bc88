#include "watch/device_sample.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"

/* The index of one word of CUDA_VISIBLE_DEVICES, a number or the beginning of a UUID; -1: none. */
static int find_device(const char *word, size_t len, uint32_t count)
{
    char *end, uuid[96];
    if (!strncmp(word, "GPU-", 4)) {
        for (uint32_t i = 0; i < count; i++)
            if (nvml_uuid(i, uuid, sizeof uuid) && !strncmp(uuid, word, len))
                return (int)i;
        return -1;
    }
    long number = strtol(word, &end, 10);
    return end == word + len && len > 0 && number >= 0 && number < (long)count ? (int)number : -1;
}

/* As CUDA reads it: what follows a word that names no device is not seen. */
static void choose(struct device_sample *sample, const char *visible, uint32_t count)
{
    while (sample->count < DEVICES_MOST) {
        visible += strspn(visible, " ");
        size_t len = strcspn(visible, ",");
        size_t trimmed = len;
        while (trimmed > 0 && visible[trimmed - 1] == ' ')
            trimmed--;
        int index = find_device(visible, trimmed, count);
        if (index < 0)
            return;
        sample->index[sample->count++] = (uint32_t)index;
        if (!visible[len])
            return;
        visible += len + 1;
    }
}

void device_sample_open(struct device_sample *sample, const char *visible)
{
    *sample = (struct device_sample){0};
    uint32_t count = nvml_count();
    if (visible)
        choose(sample, visible, count);
    else
        for (; sample->count < count && sample->count < DEVICES_MOST; sample->count++)
            sample->index[sample->count] = sample->count;
    for (uint32_t i = 0; i < DEVICES_MOST; i++)
        sample->pcie_in[i] = sample->pcie_out[i] = STK_DEVICE_UNKNOWN;
    if (sample->count > 0) {
        nvml_name(sample->index[0], sample->name, sizeof sample->name);
        nvml_driver(sample->driver, sizeof sample->driver);
    }
}

static uint64_t told(uint64_t value)
{
    return value == STK_DEVICE_UNKNOWN ? 0 : value;
}

int device_sample_take(struct device_sample *sample, uint32_t device, struct watch_device *out)
{
    struct stk_device_sample about;
    uint64_t throttle;
    if (nvml_look(sample->index[device], &about, &throttle))
        return 0;
    *out = (struct watch_device){
        .device = device,
        .memory_used_bytes = told(about.memory_used),
        .memory_total_bytes = told(about.memory_total),
        .busy_percent = (uint32_t)told(about.busy),
        .busy_untold = about.busy == STK_DEVICE_UNKNOWN,
        .power_mw = (uint32_t)told(about.power),
        .clock_mhz = (uint32_t)told(about.clock),
        .temperature_c = (uint32_t)told(about.temperature),
        .throttle = throttle,
        .pcie_in_bytes_s = sample->pcie_in[device],
        .pcie_out_bytes_s = sample->pcie_out[device],
        .pids = sample->pids,
        .pid_count = nvml_processes(sample->index[device], sample->pids),
    };
    sample->pcie_in[device] = sample->pcie_out[device] = STK_DEVICE_UNKNOWN;
    return 1;
}

void device_sample_pcie(struct device_sample *sample)
{
    if (sample->count == 0)
        return;
    uint32_t device = sample->turn / 2 % sample->count;
    enum nvml_way way = sample->turn % 2 ? NVML_FROM_DEVICE : NVML_TO_DEVICE;
    uint64_t *to = way == NVML_TO_DEVICE ? &sample->pcie_in[device] : &sample->pcie_out[device];
    *to = nvml_pcie(sample->index[device], way);
    sample->turn++;
}
