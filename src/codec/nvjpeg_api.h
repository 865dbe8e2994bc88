/* nvjpeg_api.h -- the part of nvJPEG's interface that Stoker calls: its functions, numbers and the
 * table through which they are called. Written by hand; no CUDA header is needed to build.
 * Owns: nothing; the library stays open for the process (gpu/library.h).   Threads: any.
 * Errors: UNSUPPORTED when there is no nvJPEG, or one too old to have a function named in the
 * words. Not here: what is done with them (nvjpeg_decoder.h). */
#ifndef CODEC_NVJPEG_API_H
#define CODEC_NVJPEG_API_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"
#include "gpu/gpu.h"

/* What nvJPEG calls nvjpegHandle_t, nvjpegJpegState_t, nvjpegJpegStream_t and nvjpegDecodeParams_t
 * are pointers to these. cudaStream_t is a struct gpu_stream *. */
struct nvjpeg_handle;
struct nvjpeg_state;
struct nvjpeg_stream;
struct nvjpeg_params;

enum nvjpeg_result {
    NVJPEG_SUCCESS = 0,
    NVJPEG_NOT_INITIALIZED = 1,
    NVJPEG_INVALID_PARAMETER = 2,
    NVJPEG_BAD_JPEG = 3,
    NVJPEG_JPEG_NOT_SUPPORTED = 4,
    NVJPEG_ALLOCATOR_FAILURE = 5,
    NVJPEG_EXECUTION_FAILED = 6,
    NVJPEG_ARCH_MISMATCH = 7, /* no hardware decoder in this GPU */
    NVJPEG_INTERNAL_ERROR = 8,
    NVJPEG_IMPLEMENTATION_NOT_SUPPORTED = 9,
    NVJPEG_INCOMPLETE_BITSTREAM = 10,
};

enum nvjpeg_backend {
    NVJPEG_DEFAULT = 0,
    NVJPEG_HYBRID = 1,     /* Huffman codes by the CPU */
    NVJPEG_GPU_HYBRID = 2, /* ... by the GPU, in large batches */
    NVJPEG_HARDWARE = 3,   /* all by engines of their own */
};

enum nvjpeg_format {
    NVJPEG_Y = 2,    /* one channel */
    NVJPEG_RGBI = 5, /* three, a pixel's side by side */
};

enum { NVJPEG_SAMPLING_420 = 2 };

enum nvjpeg_flag {
    NVJPEG_INTERPOLATE = 1 << 5, /* colours are interpolated, as libjpeg does; since 12.1 */
};

enum nvjpeg_property { NVJPEG_MAJOR = 0, NVJPEG_MINOR = 1, NVJPEG_PATCH = 2 };

#define NVJPEG_CHANNELS 4
struct nvjpeg_destination {
    gpu_address channel[NVJPEG_CHANNELS];
    size_t pitch[NVJPEG_CHANNELS];
};
static_assert(sizeof(struct nvjpeg_destination) == 64, "nvjpegImage_t");
static_assert(offsetof(struct nvjpeg_destination, pitch) == 32, "nvjpegImage_t");

/* nvjpegDevAllocatorV2_t; take and give return 0 when done. */
struct nvjpeg_allocator {
    int (*take)(void *user, void **address, size_t size, struct gpu_stream *stream);
    int (*give)(void *user, void *address, size_t size, struct gpu_stream *stream);
    void *user;
};
static_assert(sizeof(struct nvjpeg_allocator) == 24, "nvjpegDevAllocatorV2_t");

/* Name and arguments; all return an enum nvjpeg_result as an int. CreateExV2 takes both allocators
 * or says INVALID_PARAMETER (nvJPEG 13.0.1). refused: 0 when it is supported. A region of (0, 0,
 * -1, -1) is the whole image. */
#define NVJPEG_API_LIST(X)                                                                         \
    X(nvjpegGetProperty, (int property, int *value))                                               \
    X(nvjpegCreateExV2,                                                                            \
      (int backend, struct nvjpeg_allocator *device, struct nvjpeg_allocator *pinned,              \
       unsigned flags, struct nvjpeg_handle **handle))                                             \
    X(nvjpegDestroy, (struct nvjpeg_handle * handle))                                              \
    X(nvjpegJpegStateCreate, (struct nvjpeg_handle * handle, struct nvjpeg_state * *state))        \
    X(nvjpegJpegStateDestroy, (struct nvjpeg_state * state))                                       \
    X(nvjpegJpegStreamCreate, (struct nvjpeg_handle * handle, struct nvjpeg_stream * *stream))     \
    X(nvjpegJpegStreamDestroy, (struct nvjpeg_stream * stream))                                    \
    X(nvjpegJpegStreamParseHeader, (struct nvjpeg_handle * handle, const uint8_t *data,            \
                                    size_t len, struct nvjpeg_stream *stream))                     \
    X(nvjpegDecodeParamsCreate, (struct nvjpeg_handle * handle, struct nvjpeg_params * *params))   \
    X(nvjpegDecodeParamsDestroy, (struct nvjpeg_params * params))                                  \
    X(nvjpegDecodeParamsSetOutputFormat, (struct nvjpeg_params * params, int format))              \
    X(nvjpegDecodeParamsSetROI,                                                                    \
      (struct nvjpeg_params * params, int x, int y, int width, int height))                        \
    X(nvjpegDecodeBatchedSupportedEx,                                                              \
      (struct nvjpeg_handle * handle, struct nvjpeg_stream * stream,                               \
       struct nvjpeg_params * params, int *refused))                                               \
    X(nvjpegDecodeBatchedInitialize, (struct nvjpeg_handle * handle, struct nvjpeg_state * state,  \
                                      int count, int threads, int format))                         \
    X(nvjpegDecodeBatchedEx,                                                                       \
      (struct nvjpeg_handle * handle, struct nvjpeg_state * state, const uint8_t *const *data,     \
       const size_t *lengths, struct nvjpeg_destination *destinations,                             \
       struct nvjpeg_params **params, struct gpu_stream *stream))                                  \
    X(nvjpegDecodeBatchedPreAllocate,                                                              \
      (struct nvjpeg_handle * handle, struct nvjpeg_state * state, int count, int width,           \
       int height, int sampling, int format))

struct nvjpeg_api {
#define X(name, arguments) int(*name) arguments;
    NVJPEG_API_LIST(X)
#undef X
    char version[32]; /* "13.0.2" */
};

/* Fills the table from the library that gpu/library.h finds. */
STK_CHECK stk_status nvjpeg_api_load(struct nvjpeg_api *api, struct stk_error *err);

#endif
