/* fake_nvml.c -- libnvidia-ml.so.1 with one device, which the simulated driver has too. It tells
 * all but its power and the driver's version; for $FAKE_NVML=refuse it does not start.
 * $FAKE_NVML_BUSY=3,97: there are two, so many percent busy; one that is less than 0 does not tell.
 * $FAKE_NVML_PROCESSES: a file of lines "device pid". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_API __attribute__((visibility("default")))

enum { NOT_FOUND = 6, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9 };

#define DEVICES 16

struct nvml_device {
    int busy;
};
struct nvml_process {
    unsigned pid;
    unsigned long long memory;
    unsigned instances[2];
};

static struct nvml_device devices[DEVICES];

/* How many there are. */
static unsigned devices_find(void)
{
    const char *busy = getenv("FAKE_NVML_BUSY");
    unsigned count = 0;
    for (busy = busy ? busy : "97"; busy && count < DEVICES; count++) {
        devices[count].busy = atoi(busy);
        busy = strchr(busy, ',');
        busy += busy != NULL;
    }
    return count;
}

FAKE_API int nvmlInit_v2(void);
FAKE_API int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct nvml_device **device);
FAKE_API int nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned out[2]);
FAKE_API int nvmlDeviceGetMemoryInfo(struct nvml_device *device, unsigned long long out[3]);
FAKE_API int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned *out);
FAKE_API int nvmlDeviceGetClockInfo(struct nvml_device *device, int kind, unsigned *out);
FAKE_API int nvmlDeviceGetTemperature(struct nvml_device *device, int kind, unsigned *out);
FAKE_API const char *nvmlErrorString(int result);
FAKE_API int nvmlDeviceGetCount_v2(unsigned *out);
FAKE_API int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device);
FAKE_API int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device,
                                                       unsigned long long *out);
FAKE_API int nvmlDeviceGetPcieThroughput(struct nvml_device *device, int way, unsigned *out);
FAKE_API int nvmlDeviceGetName(struct nvml_device *device, char *out, unsigned cap);
FAKE_API int nvmlDeviceGetUUID(struct nvml_device *device, char *out, unsigned cap);
FAKE_API int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                                     struct nvml_process *out);

int nvmlInit_v2(void)
{
    const char *mode = getenv("FAKE_NVML");
    return mode && !strcmp(mode, "refuse") ? DRIVER_NOT_LOADED : 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct nvml_device **device)
{
    (void)devices_find();
    *device = &devices[0];
    return strcmp(bus, "00000000:01:00.0") ? NOT_FOUND : 0;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned out[2])
{
    out[0] = (unsigned)device->busy;
    out[1] = 41;
    return device->busy < 0 ? NOT_SUPPORTED : 0;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, unsigned long long out[3])
{
    (void)device;
    out[0] = 8ull << 30; /* all */
    out[1] = 5ull << 30; /* free */
    out[2] = 3ull << 30; /* used */
    return 0;
}

int nvmlDeviceGetPowerUsage(struct nvml_device *device, unsigned *out)
{
    (void)device;
    *out = 1;
    return NOT_SUPPORTED;
}

int nvmlDeviceGetClockInfo(struct nvml_device *device, int kind, unsigned *out)
{
    (void)device;
    *out = kind == 1 ? 1980 : kind == 2 ? 3201 : 1; /* the processors', the memory's */
    return 0;
}

int nvmlDeviceGetTemperature(struct nvml_device *device, int kind, unsigned *out)
{
    (void)device;
    *out = 35;
    return kind;
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
    *out = devices_find();
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    if (index >= devices_find())
        return NOT_FOUND;
    *device = &devices[index];
    return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, unsigned *count,
                                            struct nvml_process *out)
{
    const char *path = getenv("FAKE_NVML_PROCESSES");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned cap = *count, on, pid;
    *count = 0;
    while (file && *count < cap && fscanf(file, "%u %u", &on, &pid) == 2)
        if (&devices[on] == device)
            out[(*count)++] = (struct nvml_process){.pid = pid};
    if (file)
        fclose(file);
    return 0;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct nvml_device *device, unsigned long long *out)
{
    (void)device;
    *out = 4; /* the power cap */
    return 0;
}

int nvmlDeviceGetPcieThroughput(struct nvml_device *device, int way, unsigned *out)
{
    (void)device;
    *out = way ? 2000 : 1000; /* KiB a second to it, from it */
    return 0;
}

int nvmlDeviceGetName(struct nvml_device *device, char *out, unsigned cap)
{
    (void)device;
    return snprintf(out, cap, "Simulated GPU") < 0;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *out, unsigned cap)
{
    (void)device;
    return snprintf(out, cap, "GPU-01234567-89ab") < 0;
}

const char *nvmlErrorString(int result)
{
    return result == NOT_FOUND ? "Not Found" : "Driver Not Loaded";
}
