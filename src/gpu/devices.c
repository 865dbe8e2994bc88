#include "gpu/devices.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "stoker/device.h"
#include "base/fail.h"
#include "gpu/cuda_fail.h"
#include "gpu/library.h"
#include "gpu/nvml.h"

/* The process that started the driver; 0: none has. A child inherits the number and is not it. */
static _Atomic int32_t starter;

int cuda_started_here(void)
{
    int32_t process = atomic_load_explicit(&starter, memory_order_relaxed);
    return !process || process == (int32_t)getpid();
}

stk_status cuda_start(const struct cuda_api **out, struct stk_error *err)
{
    const struct cuda_api *api;
    *out = NULL;
    stk_status status = cuda_api_load(&api, err);
    if (status)
        return status;
    if (!cuda_started_here())
        return cuda_fail_fork(err);
    int result = api->cuInit(0);
    /* cuInit says this of nothing but a child whose parent, such as PyTorch, had started it. */
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        return cuda_fail_fork(err);
    status = cuda_status(api, result, "starting CUDA", err);
    if (status)
        return status;
    atomic_store_explicit(&starter, (int32_t)getpid(), memory_order_relaxed);
    *out = api;
    return STK_OK;
}

uint32_t gpu_count(struct stk_error *err)
{
    const struct cuda_api *api;
    int count = 0;
    if (cuda_start(&api, err))
        return 0;
    int result = api->cuDeviceGetCount(&count);
    if (!result && count <= 0)
        result = CUDA_ERROR_NO_DEVICE;
    if (cuda_status(api, result, "counting GPUs", err))
        return 0;
    return (uint32_t)count;
}

/* The rest of *info; the first error wins. */
static int describe(const struct cuda_api *api, int device, struct gpu_info *info,
                    char bus[GPU_BUS_CAP])
{
    int domain = 0, number = 0, slot = 0;
    size_t memory = 0;
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {CUDA_MULTIPROCESSOR_COUNT, &info->multiprocessors},
        {CUDA_CAPABILITY_MAJOR, &info->major},
        {CUDA_CAPABILITY_MINOR, &info->minor},
        {CUDA_PCI_DOMAIN, &domain},
        {CUDA_PCI_BUS, &number},
        {CUDA_PCI_DEVICE, &slot},
    };
    int result = api->cuDeviceGetName(info->name, (int)sizeof info->name, device);
    if (!result)
        result = api->cuDeviceTotalMem_v2(&memory, device);
    if (!result)
        result = api->cuDriverGetVersion(&info->driver);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !result; i++)
        result = api->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device);
    info->name[sizeof info->name - 1] = 0;
    info->memory = memory;
    snprintf(bus, GPU_BUS_CAP, "%08x:%02x:%02x.0", (unsigned)domain, (unsigned)number & 0xff,
             (unsigned)slot & 0xff);
    return result;
}

stk_status gpu_describe(uint32_t number, struct gpu_info *info, char bus[GPU_BUS_CAP],
                        struct stk_error *err)
{
    const struct cuda_api *api;
    int device = 0;
    *info = (struct gpu_info){.number = (int32_t)number};
    bus[0] = 0;
    uint32_t count = gpu_count(err);
    if (!count)
        return STK_UNSUPPORTED;
    if (number >= count) {
        (void)fail(err, STK_UNSUPPORTED, "there is no GPU number %u: there %s %u", number,
                   count == 1 ? "is" : "are", count);
        fail_remedy(err, "numbers begin with 0; nvidia-smi -L lists the GPUs, and "
                         "CUDA_VISIBLE_DEVICES hides and numbers them anew");
        return STK_UNSUPPORTED;
    }
    stk_status status = cuda_start(&api, err);
    if (status)
        return status;
    int result = api->cuDeviceGet(&device, (int)number);
    if (!result)
        result = describe(api, device, info, bus);
    return cuda_status(api, result, "asking for a GPU's properties", err);
}

/* --- stoker/device.h -------------------------------------------------------------------------- */

uint32_t stk_device_count(struct stk_error *err)
{
    return gpu_count(err);
}

stk_status stk_device_info(uint32_t number, struct stk_device_info *out, struct stk_error *err)
{
    struct gpu_info info;
    char bus[GPU_BUS_CAP];
    *out = (struct stk_device_info){0};
    stk_status status = gpu_describe(number, &info, bus, err);
    if (status)
        return status;
    memcpy(out->name, info.name, sizeof out->name);
    memcpy(out->bus, bus, sizeof out->bus);
    out->number = number;
    out->major = info.major;
    out->minor = info.minor;
    out->multiprocessors = info.multiprocessors;
    out->driver = info.driver;
    out->memory = info.memory;
    return STK_OK;
}

stk_status stk_device_sample(uint32_t number, struct stk_device_sample *out, struct stk_error *err)
{
    struct gpu_info info;
    char bus[GPU_BUS_CAP];
    *out = (struct stk_device_sample){0};
    stk_status status = gpu_describe(number, &info, bus, err);
    return status ? status : nvml_sample(bus, out, err);
}

stk_status stk_device_folders(const char *folders, struct stk_error *err)
{
    return gpu_library_folders(folders, err);
}
