/* device_half.h -- the end of a chain that runs on the device, for a batch at a time.
 * Owns: what it keeps on the device between batches; scratch is the caller's.   Threads: one at a
 * time, entered.   Errors: those of gpu.h.   Not here: the host half (pipeline.h), when it runs
 * (loader/ship_stage.h).
 *
 * A pipeline made for a device is cut in two (pipeline_new with options.device): the host half
 * leaves what is shipped in the batch, and the parameters of the device half beside it, params_size
 * bytes a sample, drawn from the same keys as ever. Images and videos: params begin with a struct
 * image_record (transform/image_kernel.h). Then 256 bytes for each step that is not fused. */
#ifndef PIPELINE_DEVICE_HALF_H
#define PIPELINE_DEVICE_HALF_H

#include "gpu/gpu.h"
#include "pipeline/pipeline.h"

struct device_half;

/* capacity: samples in the largest batch. */
STK_CHECK stk_status device_half_new(struct device_half **out, const struct pipeline *pipeline,
                                     struct gpu *gpu, uint32_t capacity, struct stk_error *err);
void device_half_free(struct device_half *half); /* NULL is fine */
/* Device memory that run needs beside what goes in and comes out. */
uint64_t device_half_scratch(const struct device_half *half);

struct device_half_run {
    uint32_t count;
    uint64_t landed;  /* what was shipped: sample i at i * the host half's size */
    uint64_t params;  /* as shipped: sample i at i * params_size */
    uint64_t decoded; /* pixels of records with source 1; 0: none has */
    uint64_t out;     /* sample i at i * the result's size */
    uint64_t scratch;
    int resizes; /* some record is resized: 0 when all were made by the host half without */
    struct gpu_stream *stream;
};
STK_CHECK stk_status device_half_run(struct device_half *half, const struct device_half_run *run,
                                     struct stk_error *err);

#endif
