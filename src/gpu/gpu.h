/* gpu.h -- one CUDA device: memory, streams, events, copies, kernels. The driver is opened with
 * dlopen: one build runs with and without a GPU.
 * Owns: a struct gpu holds the device's primary context, the one PyTorch uses too; what is made of
 * it is freed by its own call before gpu_close.   Threads: any; a thread that calls anything but
 * gpu_open, gpu_close and gpu_info stands between gpu_enter and gpu_leave.   Errors: STK_MEMORY
 * (the device has none left), STK_RESOURCE (locked memory, a device that is lost), STK_UNSUPPORTED
 * (no driver, no device, too old, a forked process); all with a remedy.   Not here: which bytes go
 * where (loader/ship_stage.h), what kernels compute (transform/X_kernel.cu). */
#ifndef GPU_GPU_H
#define GPU_GPU_H

#include <stdint.h>

#include "stoker/error.h"

struct gpu;
struct gpu_stream;            /* a CUstream itself: a consumer's may be cast to it */
struct gpu_event;             /* a CUevent itself */
struct gpu_kernel;            /* a CUfunction itself */
typedef uint64_t gpu_address; /* in device memory; 0: none */

/* --- devices ---------------------------------------------------------------------------------- */

struct gpu_info {
    char name[96];
    int32_t number;
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    uint64_t memory;
    int32_t driver; /* 13000: CUDA 13.0 */
};

/* Devices that can be used. 0: none, and err says why and what to do. */
uint32_t gpu_count(struct stk_error *err);
/* A device that is open already is the same struct, with one close more. */
STK_CHECK stk_status gpu_open(struct gpu **out, uint32_t number, struct stk_error *err);
struct gpu *gpu_keep(struct gpu *gpu); /* one close more is needed */
void gpu_close(struct gpu *gpu);       /* NULL is fine; in a forked child it does nothing */
const struct gpu_info *gpu_info(const struct gpu *gpu);

/* The context is current in this thread until gpu_leave; they nest. Captures of CUDA graphs that
 * run elsewhere do not forbid anything here. */
STK_CHECK stk_status gpu_enter(struct gpu *gpu, struct stk_error *err);
void gpu_leave(struct gpu *gpu);

/* --- memory ----------------------------------------------------------------------------------- */

STK_CHECK stk_status gpu_alloc(struct gpu *gpu, uint64_t size, gpu_address *out,
                               struct stk_error *err);
void gpu_free(struct gpu *gpu, gpu_address address); /* waits for the device; 0 is fine */
STK_CHECK stk_status gpu_memory(struct gpu *gpu, uint64_t *free, uint64_t *total,
                                struct stk_error *err);
/* Locks pages, so that copies from them run beside everything else. Give it whole pages: no page
 * can be locked twice. */
STK_CHECK stk_status gpu_pin(struct gpu *gpu, void *data, uint64_t size, struct stk_error *err);
void gpu_unpin(struct gpu *gpu, void *data);

/* --- streams and events ----------------------------------------------------------------------- */

enum gpu_priority { GPU_NORMAL, GPU_URGENT, GPU_IDLE };
STK_CHECK stk_status gpu_stream_new(struct gpu *gpu, enum gpu_priority priority,
                                    struct gpu_stream **out, struct stk_error *err);
void gpu_stream_free(struct gpu *gpu, struct gpu_stream *stream); /* NULL is fine */
STK_CHECK stk_status gpu_stream_sync(struct gpu *gpu, struct gpu_stream *stream,
                                     struct stk_error *err);
/* Not 0: the stream is being captured into a graph. */
int gpu_stream_capturing(struct gpu *gpu, struct gpu_stream *stream);

STK_CHECK stk_status gpu_event_new(struct gpu *gpu, struct gpu_event **out, struct stk_error *err);
void gpu_event_free(struct gpu *gpu, struct gpu_event *event); /* NULL is fine */
/* What is in the stream by now. */
STK_CHECK stk_status gpu_event_record(struct gpu *gpu, struct gpu_event *event,
                                      struct gpu_stream *stream, struct stk_error *err);
/* What comes into the stream from now on waits for the event; this thread does not. An event that
 * was never recorded is over. */
STK_CHECK stk_status gpu_event_follow(struct gpu *gpu, struct gpu_stream *stream,
                                      struct gpu_event *event, struct stk_error *err);
/* This thread waits, asleep. */
STK_CHECK stk_status gpu_event_sync(struct gpu *gpu, struct gpu_event *event,
                                    struct stk_error *err);
/* 1 also when the device is lost; an answer that says nothing of the event is waited for. */
int gpu_event_over(struct gpu *gpu, struct gpu_event *event);

/* --- copies ----------------------------------------------------------------------------------- */

/* Into, out of, and within device memory; in the order of the stream. */
STK_CHECK stk_status gpu_copy_in(struct gpu *gpu, gpu_address to, const void *from, uint64_t size,
                                 struct gpu_stream *stream, struct stk_error *err);
STK_CHECK stk_status gpu_copy_out(struct gpu *gpu, void *to, gpu_address from, uint64_t size,
                                  struct gpu_stream *stream, struct stk_error *err);
STK_CHECK stk_status gpu_copy_within(struct gpu *gpu, gpu_address to, gpu_address from,
                                     uint64_t size, struct gpu_stream *stream,
                                     struct stk_error *err);
STK_CHECK stk_status gpu_clear(struct gpu *gpu, gpu_address to, uint64_t size,
                               struct gpu_stream *stream, struct stk_error *err);

/* --- kernels ---------------------------------------------------------------------------------- */

/* A kernel of an embedded module, such as "image_kernel" and "image_fused": src/transform/
 * image_kernel.cu. The module is loaded when first asked for and kept until the last gpu_close:
 * from its PTX, or, where the driver is too old for it or the build had no compiler, from its
 * source by NVRTC, kept in the user's cache. STK_UNSUPPORTED: neither works here, and why. Any
 * thread. */
STK_CHECK stk_status gpu_kernel(struct gpu *gpu, const char *module, const char *name,
                                struct gpu_kernel **out, struct stk_error *err);
struct gpu_grid {
    uint32_t x, y; /* blocks; y at most 65,535, 0 means 1 */
    uint32_t threads;
};
/* The kernel takes one argument, a struct of `size` bytes by value (4,096 at most). */
STK_CHECK stk_status gpu_launch(struct gpu *gpu, struct gpu_kernel *kernel,
                                const struct gpu_grid *grid, const void *job, uint32_t size,
                                struct gpu_stream *stream, struct stk_error *err);

#endif
