/* sim_kernel.h -- the job of sim_kernel.cu, a kernel that tests of the simulated driver itself
 * launch. Owns: nothing.   Threads: any.   Errors: none.   Not here: kernels of the engine
 * (src/transform). */
#ifndef SIM_CUDA_SIM_KERNEL_H
#define SIM_CUDA_SIM_KERNEL_H

#include "gpu/kernel_language.h"

struct sim_count_job {
    uint64_t out; /* uint32_t[rows][count]: row * 1000 + place */
    uint32_t count, rows;
};

#endif
