#include "gpu/nvml.h"

#include <assert.h>
#include <pthread.h>

#include "base/fail.h"
#include "gpu/library.h"

enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2 };

struct nvml_device; /* nvmlDevice_t points to it */
struct nvml_utilization {
    unsigned gpu, memory;
};
struct nvml_memory {
    unsigned long long total, free, used;
};
struct nvml_process { /* nvmlProcessInfo_v2_t */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(struct nvml_utilization) == 8 && sizeof(struct nvml_memory) == 24 &&
                  sizeof(struct nvml_process) == 24,
              "NVML's ABI");

/* Written once, under `once`. */
static struct {
    pthread_once_t once;
    stk_status status;
    struct stk_error error;
    int (*init)(void);
    int (*device)(const char *bus, struct nvml_device **device);
    int (*utilization)(struct nvml_device *device, struct nvml_utilization *out);
    int (*memory)(struct nvml_device *device, struct nvml_memory *out);
    int (*power)(struct nvml_device *device, unsigned *out);
    int (*clock)(struct nvml_device *device, int kind, unsigned *out);
    int (*temperature)(struct nvml_device *device, int kind, unsigned *out);
    const char *(*words)(int result);
    /* these may be missing */
    int (*count)(unsigned *out);
    int (*by_index)(unsigned index, struct nvml_device **device);
    int (*throttle)(struct nvml_device *device, unsigned long long *out);
    int (*pcie)(struct nvml_device *device, int way, unsigned *out);
    int (*name)(struct nvml_device *device, char *out, unsigned cap);
    int (*uuid)(struct nvml_device *device, char *out, unsigned cap);
    int (*driver)(char *out, unsigned cap);
    int (*processes)(struct nvml_device *device, unsigned *count, struct nvml_process *out);
} nvml = {.once = PTHREAD_ONCE_INIT};

static void load_more(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"nvmlDeviceGetCount_v2", &nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", &nvml.by_index},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.throttle},
        {"nvmlDeviceGetPcieThroughput", &nvml.pcie},
        {"nvmlDeviceGetName", &nvml.name},
        {"nvmlDeviceGetUUID", &nvml.uuid},
        {"nvmlSystemGetDriverVersion", &nvml.driver},
        {"nvmlDeviceGetComputeRunningProcesses_v2", &nvml.processes},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (gpu_library_function(GPU_NVML, wanted[i].name, wanted[i].function, NULL))
            continue; /* it stays NULL */
}

static void load_nvml(void)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"nvmlInit_v2", &nvml.init},
        {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.device},
        {"nvmlDeviceGetUtilizationRates", &nvml.utilization},
        {"nvmlDeviceGetMemoryInfo", &nvml.memory},
        {"nvmlDeviceGetPowerUsage", &nvml.power},
        {"nvmlDeviceGetClockInfo", &nvml.clock},
        {"nvmlDeviceGetTemperature", &nvml.temperature},
        {"nvmlErrorString", &nvml.words},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !nvml.status; i++)
        nvml.status =
            gpu_library_function(GPU_NVML, wanted[i].name, wanted[i].function, &nvml.error);
    if (nvml.status)
        return;
    load_more();
    int result = nvml.init();
    if (result) {
        nvml.status = fail(&nvml.error, STK_UNSUPPORTED, "NVML does not start: %s (%d)",
                           nvml.words(result), result);
        fail_remedy(&nvml.error, "see what nvidia-smi says");
    }
}

static uint64_t known(int result, unsigned value)
{
    return result ? STK_DEVICE_UNKNOWN : value;
}

static void look(struct nvml_device *device, struct stk_device_sample *out)
{
    struct nvml_utilization busy = {0};
    struct nvml_memory memory = {0};
    unsigned power = 0, clock = 0, memory_clock = 0, temperature = 0;
    int result = nvml.utilization(device, &busy);
    out->busy = known(result, busy.gpu);
    out->memory_busy = known(result, busy.memory);
    result = nvml.memory(device, &memory);
    out->memory_used = result ? STK_DEVICE_UNKNOWN : memory.used;
    out->memory_total = result ? STK_DEVICE_UNKNOWN : memory.total;
    result = nvml.power(device, &power);
    out->power = known(result, power);
    result = nvml.clock(device, NVML_CLOCK_SM, &clock);
    out->clock = known(result, clock);
    result = nvml.clock(device, NVML_CLOCK_MEMORY, &memory_clock);
    out->memory_clock = known(result, memory_clock);
    result = nvml.temperature(device, NVML_TEMPERATURE_GPU, &temperature);
    out->temperature = known(result, temperature);
}

stk_status nvml_sample(const char *bus, struct stk_device_sample *out, struct stk_error *err)
{
    struct nvml_device *device = NULL;
    pthread_once(&nvml.once, load_nvml);
    if (nvml.status) {
        if (err)
            *err = nvml.error;
        return nvml.status;
    }
    int result = nvml.device(bus, &device);
    if (result)
        return fail(err, STK_RESOURCE, "NVML does not know the device %s: %s (%d)", bus,
                    nvml.words(result), result);
    look(device, out);
    return STK_OK;
}

/* --- by number -------------------------------------------------------------------------------- */

/* NULL: there is no such device, or no NVML that knows numbers. */
static struct nvml_device *device_at(uint32_t index)
{
    struct nvml_device *device = NULL;
    pthread_once(&nvml.once, load_nvml);
    if (nvml.status || !nvml.by_index || nvml.by_index(index, &device))
        return NULL;
    return device;
}

uint32_t nvml_count(void)
{
    unsigned count = 0;
    pthread_once(&nvml.once, load_nvml);
    if (nvml.status || !nvml.count || nvml.count(&count))
        return 0;
    return count;
}

stk_status nvml_look(uint32_t index, struct stk_device_sample *out, uint64_t *throttle)
{
    struct nvml_device *device = device_at(index);
    unsigned long long reasons = 0;
    *throttle = 0;
    if (!device)
        return STK_RESOURCE;
    look(device, out);
    if (nvml.throttle && !nvml.throttle(device, &reasons))
        *throttle = reasons;
    return STK_OK;
}

uint64_t nvml_pcie(uint32_t index, enum nvml_way way)
{
    struct nvml_device *device = device_at(index);
    unsigned kib = 0; /* KiB a second */
    if (!device || !nvml.pcie || nvml.pcie(device, way, &kib))
        return STK_DEVICE_UNKNOWN;
    return (uint64_t)kib * 1024;
}

size_t nvml_processes(uint32_t index, uint32_t pids[NVML_PROCESSES])
{
    struct nvml_device *device = device_at(index);
    struct nvml_process list[NVML_PROCESSES];
    unsigned count = NVML_PROCESSES;
    if (!device || !nvml.processes || nvml.processes(device, &count, list) ||
        count > NVML_PROCESSES)
        return 0;
    for (unsigned i = 0; i < count; i++)
        pids[i] = list[i].pid;
    return count;
}

static int text_of(uint32_t index, int (*get)(struct nvml_device *, char *, unsigned), char *out,
                   size_t cap)
{
    struct nvml_device *device = device_at(index);
    out[0] = '\0';
    if (!device || !get || get(device, out, (unsigned)cap)) {
        out[0] = '\0';
        return 0;
    }
    out[cap - 1] = '\0';
    return 1;
}

int nvml_name(uint32_t index, char *out, size_t cap)
{
    pthread_once(&nvml.once, load_nvml);
    return text_of(index, nvml.name, out, cap);
}

int nvml_uuid(uint32_t index, char *out, size_t cap)
{
    pthread_once(&nvml.once, load_nvml);
    return text_of(index, nvml.uuid, out, cap);
}

int nvml_driver(char *out, size_t cap)
{
    out[0] = '\0';
    pthread_once(&nvml.once, load_nvml);
    if (nvml.status || !nvml.driver || nvml.driver(out, (unsigned)cap)) {
        out[0] = '\0';
        return 0;
    }
    out[cap - 1] = '\0';
    return 1;
}
