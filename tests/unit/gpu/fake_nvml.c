/* fake_nvml.c -- libnvidia-ml.so.1 with one device, which the simulated driver has too. It tells
 * all but its power and the driver's version; for $FAKE_NVML=refuse it does not start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_API __attribute__((visibility("default")))

enum { NOT_FOUND = 6, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9 };

struct nvml_device {
    int number;
};

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

int nvmlInit_v2(void)
{
    const char *mode = getenv("FAKE_NVML");
    return mode && !strcmp(mode, "refuse") ? DRIVER_NOT_LOADED : 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, struct nvml_device **device)
{
    static struct nvml_device only;
    *device = &only;
    return strcmp(bus, "00000000:01:00.0") ? NOT_FOUND : 0;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, unsigned out[2])
{
    (void)device;
    out[0] = 97;
    out[1] = 41;
    return 0;
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
    *out = 1;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
    return index ? NOT_FOUND : nvmlDeviceGetHandleByPciBusId_v2("00000000:01:00.0", device);
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
