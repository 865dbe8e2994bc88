/* library.h -- CUDA's optional libraries, opened when they are first needed.
 * Owns: the handle of every library that was found, for the process; none is ever closed: they keep
 * threads and exit handlers of their own.   Threads: any.   Errors: UNSUPPORTED when a library is
 * not there or lacks a function, with where it was looked for and how to get it.
 * Not here: the driver itself (cuda_api.h), what a library is used for. */
#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include <stddef.h>

#include "stoker/error.h"

enum gpu_library {
    GPU_NVRTC,  /* compiles kernels */
    GPU_NVJPEG, /* decodes JPEGs */
    GPU_CUFFT,  /* Fourier transforms */
    GPU_CUPTI,  /* records what the GPU does */
    GPU_NVML,   /* load, power, clocks */
    GPU_LIBRARY_COUNT
};

/* Looked for where the process has it already (PyTorch ships all of them but NVML), then on the
 * loader's path, in the folders, in $CUDA_HOME and in /usr/local/cuda. A version that is made for a
 * newer driver than this one is passed by. */
STK_CHECK stk_status gpu_library_open(enum gpu_library library, void **handle,
                                      struct stk_error *err);
/* Folders to look in, "a:b"; in place of those set before. NULL: none. What is open stays so. */
STK_CHECK stk_status gpu_library_folders(const char *folders, struct stk_error *err);
/* The file that gpu_library_open found; "" when it did not. For the process's life. */
const char *gpu_library_path(enum gpu_library library);
const char *gpu_library_name(enum gpu_library library); /* "nvjpeg" */

/* Sets the function pointer at `function`, of whatever type, to a function of the library; to NULL
 * when it fails. */
STK_CHECK stk_status gpu_library_function(enum gpu_library library, const char *name,
                                          void *function, struct stk_error *err);

#endif
