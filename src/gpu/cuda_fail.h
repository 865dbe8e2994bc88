/* cuda_fail.h -- what the driver's numbers mean to a user.
 * Owns: nothing.   Threads: any.   Errors: that is its work.   Not here: the numbers (cuda_api.h),
 * running out of device memory in words of its size (gpu.c). */
#ifndef GPU_CUDA_FAIL_H
#define GPU_CUDA_FAIL_H

#include "gpu/cuda_api.h"

/* STK_OK for CUDA_SUCCESS. Else "DOING: what it means" with a remedy. doing: "a copy to the GPU".
 */
STK_CHECK stk_status cuda_status(const struct cuda_api *api, int result, const char *doing,
                                 struct stk_error *err);
/* The device, or this process's use of it, does not come back. */
int cuda_lost(int result);
/* The one sentence about fork, and what to do instead. */
stk_status cuda_fail_fork(struct stk_error *err);

#endif
