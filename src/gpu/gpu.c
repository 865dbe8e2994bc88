#include "gpu/gpu.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/cuda_fail.h"
#include "gpu/devices.h"
#include "gpu/gpu_impl.h"

/* The open devices of the process: its primary contexts are the process's too. */
static struct {
    pthread_mutex_t lock;
    struct gpu *first; /* under lock */
} open_devices = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* How deep this thread stands between gpu_enter and gpu_leave, and its capture mode from before:
 * the driver keeps one a thread, and gpu_leave must give it back. */
static _Thread_local struct {
    uint32_t depth;
    int mode;
} entered;

/* --- opening and closing ---------------------------------------------------------------------- */

int gpu_here(const struct gpu *gpu)
{
    return gpu->process == (int32_t)getpid();
}

/* With the context current. */
static stk_status read_priorities(struct gpu *gpu, struct stk_error *err)
{
    int least = 0, greatest = 0;
    stk_status status = cuda_status(
        gpu->api, gpu->api->cuCtxGetStreamPriorityRange(&least, &greatest), "opening the GPU", err);
    gpu->priorities[GPU_NORMAL] = 0; /* as PyTorch's streams */
    gpu->priorities[GPU_URGENT] = greatest;
    gpu->priorities[GPU_IDLE] = least;
    return status;
}

/* Ends a device that no one holds. */
static void shut(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->context && gpu_here(gpu)) {
        int entered_it = !gpu_enter(gpu, NULL);
        module_shelf_free(gpu->shelf, entered_it ? gpu : NULL);
        if (entered_it)
            gpu_leave(gpu);
        (void)gpu->api->cuDevicePrimaryCtxRelease_v2(gpu->device); /* a lost one says no */
    } else {
        module_shelf_free(gpu->shelf, NULL);
    }
    memory_free(gpu);
}

static stk_status make(struct gpu **out, uint32_t number, struct stk_error *err)
{
    char bus[GPU_BUS_CAP];
    int entered_it = 0;
    struct gpu *gpu = memory_zero(1, sizeof *gpu);
    *out = NULL;
    if (!gpu)
        return fail_memory(err, sizeof *gpu);
    stk_status status = gpu_describe(number, &gpu->info, bus, err);
    if (!status)
        status = cuda_start(&gpu->api, err);
    if (!status)
        status = module_shelf_new(&gpu->shelf, err);
    if (status)
        goto done;
    gpu->holders = 1;
    gpu->process = (int32_t)getpid();
    status = cuda_status(gpu->api, gpu->api->cuDeviceGet(&gpu->device, (int)number),
                         "opening the GPU", err);
    if (!status)
        status =
            cuda_status(gpu->api, gpu->api->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device),
                        "opening the GPU", err);
    if (!status)
        status = gpu_enter(gpu, err);
    if (status)
        goto done;
    entered_it = 1;
    status = read_priorities(gpu, err);
    if (status)
        goto done;
    *out = gpu;
done:
    if (entered_it)
        gpu_leave(gpu);
    if (status)
        shut(gpu);
    return status;
}

stk_status gpu_open(struct gpu **out, uint32_t number, struct stk_error *err)
{
    struct gpu *gpu;
    *out = NULL;
    if (!cuda_started_here()) /* the lock below may be held by a thread that only the parent has */
        return cuda_fail_fork(err);
    pthread_mutex_lock(&open_devices.lock);
    for (gpu = open_devices.first; gpu && gpu->info.number != (int32_t)number;)
        gpu = gpu->next;
    stk_status status = STK_OK;
    if (gpu) {
        gpu->holders++;
    } else {
        status = make(&gpu, number, err);
        if (!status) {
            gpu->next = open_devices.first;
            open_devices.first = gpu;
        }
    }
    pthread_mutex_unlock(&open_devices.lock);
    *out = gpu;
    return status;
}

struct gpu *gpu_keep(struct gpu *gpu)
{
    pthread_mutex_lock(&open_devices.lock);
    gpu->holders++;
    pthread_mutex_unlock(&open_devices.lock);
    return gpu;
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu || !gpu_here(gpu))
        return;
    pthread_mutex_lock(&open_devices.lock);
    assert(gpu->holders);
    int last = !--gpu->holders;
    if (last) {
        struct gpu **link = &open_devices.first;
        while (*link != gpu)
            link = &(*link)->next;
        *link = gpu->next;
        shut(gpu); /* under the lock: whoever opens it now waits for a clean device */
    }
    pthread_mutex_unlock(&open_devices.lock);
}

const struct gpu_info *gpu_info(const struct gpu *gpu)
{
    return &gpu->info;
}

/* --- entering --------------------------------------------------------------------------------- */

stk_status gpu_enter(struct gpu *gpu, struct stk_error *err)
{
    if (!gpu_here(gpu))
        return cuda_fail_fork(err);
    stk_status status =
        cuda_status(gpu->api, gpu->api->cuCtxPushCurrent_v2(gpu->context), "entering the GPU", err);
    if (status)
        return status;
    if (!entered.depth++) {
        /* Else an allocation of ours spoils a graph that another thread captures. */
        entered.mode = CUDA_CAPTURE_MODE_RELAXED;
        if (gpu->api->cuThreadExchangeStreamCaptureMode(&entered.mode))
            entered.mode = CUDA_CAPTURE_MODE_GLOBAL;
    }
    return STK_OK;
}

void gpu_leave(struct gpu *gpu)
{
    struct cuda_context *context;
    assert(entered.depth);
    if (!--entered.depth)
        (void)gpu->api->cuThreadExchangeStreamCaptureMode(&entered.mode);
    (void)gpu->api->cuCtxPopCurrent_v2(&context);
}

/* --- memory ----------------------------------------------------------------------------------- */

stk_status gpu_memory(struct gpu *gpu, uint64_t *free, uint64_t *total, struct stk_error *err)
{
    size_t free_bytes = 0, all = 0;
    stk_status status = cuda_status(gpu->api, gpu->api->cuMemGetInfo_v2(&free_bytes, &all),
                                    "asking for the GPU's free memory", err);
    *free = free_bytes;
    *total = all;
    return status;
}

stk_status gpu_alloc(struct gpu *gpu, uint64_t size, gpu_address *out, struct stk_error *err)
{
    uint64_t free = 0, total = 0;
    *out = 0;
    int result = gpu->api->cuMemAlloc_v2(out, size ? size : 1);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        return cuda_status(gpu->api, result, "taking GPU memory", err);
    *out = 0;
    stk_status status = cuda_status(gpu->api, result, "taking GPU memory", err); /* the remedy */
    if (err && !gpu_memory(gpu, &free, &total, NULL)) {
        char remedy[sizeof err->remedy];
        memcpy(remedy, err->remedy, sizeof remedy);
        (void)fail(err, status,
                   "out of GPU memory: %" PRIu64 " bytes are wanted, %" PRIu64 " of %" PRIu64
                   " are free on %s",
                   size, free, total, gpu->info.name);
        fail_remedy(err, "%s", remedy);
    }
    return status;
}

void gpu_free(struct gpu *gpu, gpu_address address)
{
    if (address && gpu_here(gpu))
        (void)gpu->api->cuMemFree_v2(address); /* a lost device has nothing to free */
}

stk_status gpu_pin(struct gpu *gpu, void *data, uint64_t size, struct stk_error *err)
{
    const char *name = NULL;
    int result = gpu->api->cuMemHostRegister_v2(data, size, CUDA_HOST_REGISTER_PORTABLE);
    if (!result || cuda_lost(result))
        return cuda_status(gpu->api, result, "locking memory", err);
    if (gpu->api->cuGetErrorName(result, &name) || !name)
        name = "an unknown error";
    (void)fail(err, STK_RESOURCE, "%" PRIu64 " bytes of memory cannot be locked (CUDA says %s, %d)",
               size, name, result);
    fail_remedy(err, "allow more locked memory (ulimit -l unlimited; in a container --ulimit "
                     "memlock=-1), or give a smaller device_memory=");
    return STK_RESOURCE;
}

void gpu_unpin(struct gpu *gpu, void *data)
{
    if (data && gpu_here(gpu))
        (void)gpu->api->cuMemHostUnregister(data);
}
