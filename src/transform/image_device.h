/* image_device.h -- runs image_kernel.cu: the device twin of image_resample.h.
 * Owns: nothing.   Threads: any that entered the gpu.   Errors: those of gpu.h.
 * Not here: filling records for a chain (pipeline/device_half.h). */
#ifndef TRANSFORM_IMAGE_DEVICE_H
#define TRANSFORM_IMAGE_DEVICE_H

#include "gpu/gpu.h"
#include "transform/image_geometry.h"
#include "transform/image_kernel.h"

/* The record of pixels of one sample, of width x height a frame at `offset` of source. */
void image_record_set(struct image_record *record, const struct image_geometry *geometry,
                      uint32_t source, uint64_t offset);
/* Enqueues. resizes: some record is resized or has a window outside its box (geometry_is_filled);
 * 0 takes the faster kernel for crops and flips alone, which does not look. A batch of no samples
 * is fine. */
STK_CHECK stk_status image_device_run(struct gpu *gpu, const struct image_job *job, int resizes,
                                      struct gpu_stream *stream, struct stk_error *err);

#endif
