/* cuda_api.h -- the part of the CUDA driver's interface that Stoker calls: its functions, numbers
 * and the table through which they are called. Written by hand; no CUDA header is needed to build.
 * Owns: the driver's library, opened once for the process and never closed.   Threads: any.
 * Errors: UNSUPPORTED when there is no driver, or one too old to have a function named in the
 * words. Not here: what is done with them (gpu.h), what their errors mean (cuda_fail.h). */
#ifndef GPU_CUDA_API_H
#define GPU_CUDA_API_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "gpu/gpu.h"

/* What the driver calls CUcontext and CUmodule; CUstream, CUevent, CUfunction and CUdeviceptr are
 * struct gpu_stream *, struct gpu_event *, struct gpu_kernel * and gpu_address. CUdevice is an int,
 * CUresult an enum cuda_result in an int. */
struct cuda_context;
struct cuda_module;

/* The errors that mean something to us: cuda_fail.c says what. */
enum cuda_result {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_INSUFFICIENT_DRIVER = 35, /* the runtime's number; some shims hand it on */
    CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_OPERATING_SYSTEM = 304,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_STATE = 401,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_NOT_PERMITTED = 800,
    CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_UNKNOWN = 999,
};

enum cuda_attribute {
    CUDA_MULTIPROCESSOR_COUNT = 16,
    CUDA_PCI_BUS = 33,
    CUDA_PCI_DEVICE = 34,
    CUDA_PCI_DOMAIN = 50,
    CUDA_CAPABILITY_MAJOR = 75,
    CUDA_CAPABILITY_MINOR = 76,
};

enum {
    CUDA_STREAM_NON_BLOCKING = 1,  /* does not wait for the legacy stream */
    CUDA_EVENT_BLOCKING_SYNC = 1,  /* who waits sleeps */
    CUDA_EVENT_DISABLE_TIMING = 2, /* records are cheaper */
    CUDA_HOST_REGISTER_PORTABLE = 1,
};

enum cuda_capture_mode {
    CUDA_CAPTURE_MODE_GLOBAL = 0,
    CUDA_CAPTURE_MODE_THREAD_LOCAL = 1,
    CUDA_CAPTURE_MODE_RELAXED = 2,
};

enum cuda_capture_status {
    CUDA_CAPTURE_NONE = 0,
    CUDA_CAPTURE_ACTIVE = 1,
    CUDA_CAPTURE_INVALIDATED = 2, /* the graph is spoiled, but the stream still captures */
};

/* The `extra` of cuLaunchKernel: pointers of a kind and a value in turns, up to CUDA_LAUNCH_END.
 * The value behind CUDA_LAUNCH_SIZE is a size_t *. */
#define CUDA_LAUNCH_END ((void *)0)
#define CUDA_LAUNCH_POINTER ((void *)1)
#define CUDA_LAUNCH_SIZE ((void *)2)

/* Streams that are not made by anybody. */
#define CUDA_STREAM_LEGACY ((struct gpu_stream *)1)
#define CUDA_STREAM_PER_THREAD ((struct gpu_stream *)2)

/* Name and arguments; all return an enum cuda_result as an int. */
#define CUDA_API_LIST(X)                                                                           \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDriverGetVersion, (int *version))                                                          \
    X(cuDeviceGetCount, (int *count))                                                              \
    X(cuDeviceGet, (int *device, int number))                                                      \
    X(cuDeviceGetName, (char *name, int cap, int device))                                          \
    X(cuDeviceTotalMem_v2, (size_t * bytes, int device))                                           \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                               \
    X(cuDevicePrimaryCtxRetain, (struct cuda_context * *context, int device))                      \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                                  \
    X(cuCtxPushCurrent_v2, (struct cuda_context * context))                                        \
    X(cuCtxPopCurrent_v2, (struct cuda_context * *context))                                        \
    X(cuCtxGetStreamPriorityRange, (int *least, int *greatest))                                    \
    X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                      \
    X(cuMemAlloc_v2, (gpu_address * address, size_t size))                                         \
    X(cuMemFree_v2, (gpu_address address))                                                         \
    X(cuMemHostRegister_v2, (void *data, size_t size, unsigned flags))                             \
    X(cuMemHostUnregister, (void *data))                                                           \
    X(cuMemcpyHtoDAsync_v2,                                                                        \
      (gpu_address to, const void *from, size_t size, struct gpu_stream *stream))                  \
    X(cuMemcpyDtoHAsync_v2, (void *to, gpu_address from, size_t size, struct gpu_stream *stream))  \
    X(cuMemcpyDtoDAsync_v2,                                                                        \
      (gpu_address to, gpu_address from, size_t size, struct gpu_stream * stream))                 \
    X(cuMemsetD8Async,                                                                             \
      (gpu_address to, unsigned char value, size_t size, struct gpu_stream *stream))               \
    X(cuStreamCreateWithPriority, (struct gpu_stream * *stream, unsigned flags, int priority))     \
    X(cuStreamDestroy_v2, (struct gpu_stream * stream))                                            \
    X(cuStreamSynchronize, (struct gpu_stream * stream))                                           \
    X(cuStreamWaitEvent, (struct gpu_stream * stream, struct gpu_event * event, unsigned flags))   \
    X(cuStreamIsCapturing, (struct gpu_stream * stream, int *status))                              \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                              \
    X(cuEventCreate, (struct gpu_event * *event, unsigned flags))                                  \
    X(cuEventDestroy_v2, (struct gpu_event * event))                                               \
    X(cuEventRecord, (struct gpu_event * event, struct gpu_stream * stream))                       \
    X(cuEventQuery, (struct gpu_event * event))                                                    \
    X(cuEventSynchronize, (struct gpu_event * event))                                              \
    X(cuModuleLoadDataEx, (struct cuda_module * *module, const void *image, unsigned count,        \
                           int *options, void **values))                                           \
    X(cuModuleUnload, (struct cuda_module * module))                                               \
    X(cuModuleGetFunction,                                                                         \
      (struct gpu_kernel * *kernel, struct cuda_module * module, const char *name))                \
    X(cuLaunchKernel,                                                                              \
      (struct gpu_kernel * kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,              \
       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,                \
       struct gpu_stream *stream, void **params, void **extra))                                    \
    X(cuGetErrorName, (int result, const char **name))                                             \
    X(cuGetErrorString, (int result, const char **words))

struct cuda_api {
#define X(name, arguments) int(*name) arguments;
    CUDA_API_LIST(X)
#undef X
};

/* The driver's sizes, on every system that Stoker runs on. */
static_assert(sizeof(gpu_address) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4,
              "the CUDA driver's ABI");

/* The same table and the same answer each time. *out is NULL unless STK_OK. Does not call the
 * driver. */
STK_CHECK stk_status cuda_api_load(const struct cuda_api **out, struct stk_error *err);

#endif
