#include <assert.h>

#include "gpu/cuda_fail.h"
#include "gpu/gpu_impl.h"

#define JOB_MOST 4096 /* bytes: what kernels take as arguments */

/* --- streams ---------------------------------------------------------------------------------- */

stk_status gpu_stream_new(struct gpu *gpu, enum gpu_priority priority, struct gpu_stream **out,
                          struct stk_error *err)
{
    *out = NULL;
    return cuda_status(gpu->api,
                       gpu->api->cuStreamCreateWithPriority(out, CUDA_STREAM_NON_BLOCKING,
                                                            gpu->priorities[priority]),
                       "making a stream", err);
}

void gpu_stream_free(struct gpu *gpu, struct gpu_stream *stream)
{
    if (stream && gpu_here(gpu))
        (void)gpu->api->cuStreamDestroy_v2(stream);
}

stk_status gpu_stream_sync(struct gpu *gpu, struct gpu_stream *stream, struct stk_error *err)
{
    return cuda_status(gpu->api, gpu->api->cuStreamSynchronize(stream), "waiting for the GPU", err);
}

int gpu_stream_capturing(struct gpu *gpu, struct gpu_stream *stream)
{
    int capture = CUDA_CAPTURE_NONE;
    int result = gpu->api->cuStreamIsCapturing(stream, &capture);
    /* IMPLICIT: the legacy stream, while a stream that it waits for is captured. */
    return result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT || (!result && capture);
}

/* --- events ----------------------------------------------------------------------------------- */

stk_status gpu_event_new(struct gpu *gpu, struct gpu_event **out, struct stk_error *err)
{
    *out = NULL;
    return cuda_status(
        gpu->api,
        gpu->api->cuEventCreate(out, CUDA_EVENT_DISABLE_TIMING | CUDA_EVENT_BLOCKING_SYNC),
        "making an event", err);
}

void gpu_event_free(struct gpu *gpu, struct gpu_event *event)
{
    if (event && gpu_here(gpu))
        (void)gpu->api->cuEventDestroy_v2(event);
}

stk_status gpu_event_record(struct gpu *gpu, struct gpu_event *event, struct gpu_stream *stream,
                            struct stk_error *err)
{
    return cuda_status(gpu->api, gpu->api->cuEventRecord(event, stream), "recording an event", err);
}

stk_status gpu_event_follow(struct gpu *gpu, struct gpu_stream *stream, struct gpu_event *event,
                            struct stk_error *err)
{
    return cuda_status(gpu->api, gpu->api->cuStreamWaitEvent(stream, event, 0),
                       "making a stream wait", err);
}

stk_status gpu_event_sync(struct gpu *gpu, struct gpu_event *event, struct stk_error *err)
{
    return cuda_status(gpu->api, gpu->api->cuEventSynchronize(event), "waiting for the GPU", err);
}

int gpu_event_over(struct gpu *gpu, struct gpu_event *event)
{
    int result = gpu->api->cuEventQuery(event);
    if (result && result != CUDA_ERROR_NOT_READY) /* it says nothing of this event */
        (void)gpu->api->cuEventSynchronize(event);
    return result != CUDA_ERROR_NOT_READY;
}

/* --- copies ----------------------------------------------------------------------------------- */

stk_status gpu_copy_in(struct gpu *gpu, gpu_address to, const void *from, uint64_t size,
                       struct gpu_stream *stream, struct stk_error *err)
{
    if (!size)
        return STK_OK;
    return cuda_status(gpu->api, gpu->api->cuMemcpyHtoDAsync_v2(to, from, size, stream),
                       "a copy to the GPU", err);
}

stk_status gpu_copy_out(struct gpu *gpu, void *to, gpu_address from, uint64_t size,
                        struct gpu_stream *stream, struct stk_error *err)
{
    if (!size)
        return STK_OK;
    return cuda_status(gpu->api, gpu->api->cuMemcpyDtoHAsync_v2(to, from, size, stream),
                       "a copy from the GPU", err);
}

stk_status gpu_copy_within(struct gpu *gpu, gpu_address to, gpu_address from, uint64_t size,
                           struct gpu_stream *stream, struct stk_error *err)
{
    if (!size)
        return STK_OK;
    return cuda_status(gpu->api, gpu->api->cuMemcpyDtoDAsync_v2(to, from, size, stream),
                       "a copy on the GPU", err);
}

stk_status gpu_clear(struct gpu *gpu, gpu_address to, uint64_t size, struct gpu_stream *stream,
                     struct stk_error *err)
{
    if (!size)
        return STK_OK;
    return cuda_status(gpu->api, gpu->api->cuMemsetD8Async(to, 0, size, stream),
                       "clearing GPU memory", err);
}

/* --- kernels ---------------------------------------------------------------------------------- */

stk_status gpu_launch(struct gpu *gpu, struct gpu_kernel *kernel, const struct gpu_grid *grid,
                      const void *job, uint32_t size, struct gpu_stream *stream,
                      struct stk_error *err)
{
    size_t len = size;
    void *extra[] = {CUDA_LAUNCH_POINTER, (void *)job, CUDA_LAUNCH_SIZE, &len, CUDA_LAUNCH_END};
    assert(size <= JOB_MOST && grid->threads && grid->threads <= 1024 && grid->y <= 65535);
    if (!grid->x)
        return STK_OK;
    return cuda_status(gpu->api,
                       gpu->api->cuLaunchKernel(kernel, grid->x, grid->y ? grid->y : 1, 1,
                                                grid->threads, 1, 1, 0, stream, NULL, extra),
                       "launching a kernel", err);
}
