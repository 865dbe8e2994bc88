/* module.h -- the kernels that are built into the library, and those loaded on one device.
 * Owns: a shelf owns its loaded modules.   Threads: any.   Errors: UNSUPPORTED when no way leads to
 * a module, with what each way said; MEMORY.   Not here: compiling (nvrtc.h), what kernels compute
 * (transform/X_kernel.cu). */
#ifndef GPU_MODULE_H
#define GPU_MODULE_H

#include "gpu/gpu.h"

/* X_kernel.cu, with what it includes in its place; and what nvcc made of it. cmake/kernels.cmake
 * writes the table. Both texts end with a NUL. */
struct gpu_module {
    const char *name; /* "image_kernel"; NULL ends the table */
    const char *source;
    const char *ptx; /* or a fat binary with PTX inside; NULL: the build had no nvcc */
};
extern const struct gpu_module gpu_modules[];

enum module_way {
    MODULE_NONE,
    MODULE_PTX,   /* the driver took the PTX */
    MODULE_NVRTC, /* compiled here, or kept from such a time */
};

struct module_shelf;
STK_CHECK stk_status module_shelf_new(struct module_shelf **out, struct stk_error *err);
/* With its context current, or lost: then only the memory is freed. NULL is fine. */
void module_shelf_free(struct module_shelf *shelf, struct gpu *gpu);

/* Loads the module unless it is loaded; way tells how. Between gpu_enter and gpu_leave. */
STK_CHECK stk_status module_load(struct gpu *gpu, const char *name, enum module_way *way,
                                 struct stk_error *err);

#endif
