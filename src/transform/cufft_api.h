/* cufft_api.h -- the part of cuFFT's interface that Stoker calls: its functions, numbers and the
 * table through which they are called. Written by hand; no CUDA header is needed to build.
 * Owns: nothing; the library stays open for the process (gpu/library.h).   Threads: any.
 * Errors: UNSUPPORTED when there is no cuFFT, or one that lacks a function named in the words.
 * Not here: what is done with them (log_mel_device.h). */
#ifndef TRANSFORM_CUFFT_API_H
#define TRANSFORM_CUFFT_API_H

#include <stddef.h>

#include "stoker/error.h"
#include "gpu/gpu.h"

enum cufft_result {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_VALUE = 4,
};

enum { CUFFT_REAL_TO_COMPLEX = 0x2a };

/* Name and arguments; all return an enum cufft_result as an int. A plan is a number. cudaStream_t
 * is a struct gpu_stream *; data are addresses in device memory. embed NULL: transforms lie one
 * behind the other. */
#define CUFFT_API_LIST(X)                                                                          \
    X(cufftCreate, (int *plan))                                                                    \
    X(cufftMakePlanMany,                                                                           \
      (int plan, int rank, int *lengths, int *in_embed, int in_stride, int in_distance,            \
       int *out_embed, int out_stride, int out_distance, int type, int count, size_t *work))       \
    X(cufftSetStream, (int plan, struct gpu_stream *stream))                                       \
    X(cufftExecR2C, (int plan, gpu_address from, gpu_address to))                                  \
    X(cufftDestroy, (int plan))

struct cufft_api {
#define X(name, arguments) int(*name) arguments;
    CUFFT_API_LIST(X)
#undef X
};

STK_CHECK stk_status cufft_api_load(struct cufft_api *api, struct stk_error *err);

#endif
