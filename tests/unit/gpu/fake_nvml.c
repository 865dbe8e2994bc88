/* fake_nvml.c -- libnvidia-ml.so.1 with one device, which the simulated driver has too. It tells
 * all but its power; for $FAKE_NVML=refuse it does not start. */
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

const char *nvmlErrorString(int result)
{
    return result == NOT_FOUND ? "Not Found" : "Driver Not Loaded";
}
