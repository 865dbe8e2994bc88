/* tensor_device.h -- runs tensor_kernel.cu: the device twin of Cast, Normalize and Layout, several
 * of them in one pass.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: pixels with a geometry (image_device.h). */
#ifndef TRANSFORM_TENSOR_DEVICE_H
#define TRANSFORM_TENSOR_DEVICE_H

#include "gpu/gpu.h"
#include "transform/tensor_kernel.h"
#include "transform/transform.h"

/* A job that copies one sample. in: lengths known, data not looked at. */
void tensor_job_begin(struct tensor_job *job, const struct stk_flow *in);
/* Adds a step of TRANSFORM_FORMAT behind those that are in the job. in: what goes into that step.
 * 0: the job is as it was, and must run before this step: the step's input was rounded, which one
 * pass would leave out. A job that was just begun takes every step. */
int tensor_job_fold(struct tensor_job *job, const struct transform_ops *ops, const void *args,
                    const struct stk_flow *in);
/* The job of one sample becomes that of `samples` of them, one behind the other. */
void tensor_job_place(struct tensor_job *job, uint64_t from, uint64_t to, uint32_t samples);
/* Enqueues. A batch of no elements is fine. */
STK_CHECK stk_status tensor_device_run(struct gpu *gpu, const struct tensor_job *job,
                                       struct gpu_stream *stream, struct stk_error *err);

#endif
