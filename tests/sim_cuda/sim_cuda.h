/* sim_cuda.h -- a simulated CUDA driver (libcuda.so.1) for tests on machines without a GPU: what it
 * offers besides the driver's own functions. Tests find these with dlsym.
 * Owns: nothing; the driver's state is the library's.   Threads: any.   Errors: CUDA's numbers; a
 * misuse is told on stderr too, in a line that begins with "sim_cuda:".   Not here: the driver's
 * own functions (src/gpu/cuda_api.h names them).
 *
 * Device memory is host memory: a device address may be read by the test once a stream was waited
 * for. Settings, from the environment:
 *   SIM_CUDA_DEVICES=1       0: cuInit answers 100
 *   SIM_CUDA_DRIVER=13000    the version of the driver
 *   SIM_CUDA_MEMORY=1G       of a device; an allocation beyond it gets 2
 *   SIM_CUDA_SEED=1          of the delays and of the order in which a kernel's threads run
 *   SIM_CUDA_DELAY_US=50     the longest delay before each operation of a stream; 0: none
 *   SIM_CUDA_FAIL=NAME:N:E   the Nth call of NAME ("*": of any) answers error E; see sim_cuda_fail
 *   SIM_CUDA_PTX=refuse      modules in PTX get 222, what the simulated NVRTC made is taken
 *   SIM_CUDA_REPORT=1        at exit, the counts go to stderr */
#ifndef SIM_CUDA_SIM_CUDA_H
#define SIM_CUDA_SIM_CUDA_H

#include <stdint.h>

struct gpu_stream;

#define SIM_API __attribute__((visibility("default")))

struct sim_cuda_counts {
    /* alive now */
    uint64_t contexts; /* retains without a release */
    uint64_t allocations, allocated_bytes;
    uint64_t registrations, registered_bytes;
    uint64_t streams, events, modules; /* streams: those that were made */
    uint64_t queued;                   /* operations that are not over */
    /* since the start */
    uint64_t peak_bytes; /* most of allocated_bytes */
    uint64_t copies_in, copied_in_bytes, copies_out, copied_out_bytes;
    uint64_t pageable_copies; /* of those, from and to memory that was not registered */
    uint64_t launches;
    uint64_t complaints; /* lines on stderr about misuse */
};
SIM_API void sim_cuda_counts(struct sim_cuda_counts *out);

/* "cuMemAlloc_v2:3:2": the third call from now on answers 2. "*:17:2": the 17th call of any
 * function. Errors that lose a device (214, 220, 700, 702, 710, 714-719) stay: all later calls with
 * a context answer them, but what they free is freed. An error of a call that frees comes after the
 * freeing. NULL: no failure. Either way calls are counted from 0 again and a lost device is well
 * again. 0: the text is understood. */
SIM_API int sim_cuda_fail(const char *text);
/* Calls since the start or since sim_cuda_fail; cuGetErrorName and cuGetErrorString do not count.
 */
SIM_API uint64_t sim_cuda_calls(void);

/* As cuStreamBeginCapture in global mode. What is put into a captured stream is not run. */
SIM_API int sim_cuda_begin_capture(struct gpu_stream *stream);
/* 0, or 901 (spoiled), 903 (not the stream that began), 904 (a stream that joined did not come
 * back). */
SIM_API int sim_cuda_end_capture(struct gpu_stream *stream);

/* Runs a function in the order of a stream, in its thread. Takes `data`, which is from malloc: it
 * is freed after the function, and also where that never runs. For other simulated libraries. */
SIM_API int sim_cuda_call_in_stream(struct gpu_stream *stream, void (*function)(void *),
                                    void *data);
/* 1: all of these bytes are device memory that is allocated now. */
SIM_API int sim_cuda_is_device_memory(uint64_t address, uint64_t size);

#endif
