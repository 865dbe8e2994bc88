/* sim_device.c -- devices, their primary contexts, and the names of errors. */
#include <stdio.h>

#include "simulator.h"

enum { CONTEXT_STACK = 64 };

static _Thread_local struct {
    struct cuda_context *stack[CONTEXT_STACK];
    unsigned depth;
} thread_contexts;

struct cuda_context *sim_current(void)
{
    unsigned depth = thread_contexts.depth;
    return depth ? thread_contexts.stack[depth - 1] : NULL;
}

int cuInit(unsigned flags)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_ANY)) {
        if (flags)
            call.result = CUDA_ERROR_INVALID_VALUE;
        else if (!simulator.devices)
            call.result = CUDA_ERROR_NO_DEVICE;
        else
            simulator.initialised = 1;
    }
    return sim_leave(&call);
}

int cuDriverGetVersion(int *version)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_ANY))
        *version = simulator.driver;
    return sim_leave(&call);
}

int cuDeviceGetCount(int *count)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_DEVICE))
        *count = simulator.devices;
    return sim_leave(&call);
}

/* 1: go on with this device. */
static int device_enter(struct sim_call *call, const char *name, unsigned needs, int device)
{
    if (!sim_enter(call, name, needs))
        return 0;
    if (device < 0 || device >= simulator.devices)
        call->result = CUDA_ERROR_INVALID_DEVICE;
    return !call->result;
}

int cuDeviceGet(int *device, int number)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE, number))
        *device = number;
    return sim_leave(&call);
}

int cuDeviceGetName(char *name, int cap, int device)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE, device))
        snprintf(name, (size_t)cap, "Simulated device %d", device);
    return sim_leave(&call);
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE, device))
        *bytes = simulator.memory;
    return sim_leave(&call);
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE, device)) {
        *value = 0;
        if (attribute == CUDA_MULTIPROCESSOR_COUNT)
            *value = 4;
        else if (attribute == CUDA_CAPABILITY_MAJOR)
            *value = 9;
        else if (attribute == CUDA_PCI_BUS)
            *value = device + 1;
    }
    return sim_leave(&call);
}

int cuDevicePrimaryCtxRetain(struct cuda_context **context, int device)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE, device)) {
        struct cuda_context *primary = &simulator.contexts[device];
        call.result = primary->lost;
        if (!call.result) {
            primary->retained++;
            *context = primary;
        }
    }
    return sim_leave(&call);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    struct sim_call call;
    if (device_enter(&call, __func__, CALL_DEVICE | CALL_FREES, device)) {
        struct cuda_context *primary = &simulator.contexts[device];
        if (primary->retained == 1)
            sim_drain();
        if (primary->retained)
            primary->retained--;
        else
            call.result = CUDA_ERROR_INVALID_CONTEXT;
    }
    return sim_leave(&call);
}

int cuCtxPushCurrent_v2(struct cuda_context *context)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_DEVICE)) {
        if (!context || !context->retained || thread_contexts.depth == CONTEXT_STACK)
            call.result = CUDA_ERROR_INVALID_CONTEXT;
        else
            thread_contexts.stack[thread_contexts.depth++] = context;
    }
    return sim_leave(&call);
}

int cuCtxPopCurrent_v2(struct cuda_context **context)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_DEVICE | CALL_FREES)) {
        if (!thread_contexts.depth)
            call.result = CUDA_ERROR_INVALID_CONTEXT;
        else if (context)
            *context = thread_contexts.stack[--thread_contexts.depth];
        else
            thread_contexts.depth--;
    }
    return sim_leave(&call);
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        *least = 0;
        *greatest = -5;
    }
    return sim_leave(&call);
}

static const struct {
    int number;
    const char *name, *words;
} error_names[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "unsupported toolchain of the PTX"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "host memory is already registered"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "host memory is not registered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not permitted when a stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "the capture failed because of an earlier error"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture was not begun in this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the capture has a stream that was not joined"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency on work that is not captured"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "a capture would depend on the legacy stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "not permitted on an event recorded in a capture"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int error_find(int number, const char **name, const char **words)
{
    for (size_t i = 0; i < sizeof error_names / sizeof *error_names; i++)
        if (error_names[i].number == number) {
            *name = error_names[i].name;
            *words = error_names[i].words;
            return CUDA_SUCCESS;
        }
    *name = *words = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorName(int result, const char **name)
{
    const char *words;
    return error_find(result, name, &words);
}

int cuGetErrorString(int result, const char **words)
{
    const char *name;
    return error_find(result, &name, words);
}
