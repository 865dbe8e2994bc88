/* device_plan.h -- where a chain is cut, and what its second half does on the device, pass by pass.
 * Owns: nothing.   Threads: immutable once made.   Errors: none: what cannot be done on the device
 * stays with the host.   Not here: running it (device_half.h), drawing for it (device_params.c). */
#ifndef PIPELINE_DEVICE_PLAN_H
#define PIPELINE_DEVICE_PLAN_H

#include "transform/chain.h"
#include "transform/image_resample.h"
#include "transform/tensor_kernel.h"

struct pipeline;

enum device_pass_kind {
    DEVICE_IMAGE,  /* pixels by their records: geometry, and the format steps behind it */
    DEVICE_FORMAT, /* format steps of any tensor */
    DEVICE_STEP    /* one step with a twin of its own */
};

/* One run over the batch, from memory to memory. */
struct device_pass {
    enum device_pass_kind kind;
    uint32_t step;              /* STEP: its number in the chain */
    uint32_t params;            /* STEP: where its parameters are in those of a sample */
    struct stk_flow in, out;    /* of one sample */
    struct image_writer writer; /* IMAGE: without strides ... */
    int channels_first;         /* ... and what it makes */
    struct tensor_job job;      /* FORMAT: of one sample */
};

struct device_plan {
    struct device_pass passes[CHAIN_MAX_STEPS + 1];
    uint32_t count; /* 0: there is no device half */
    uint32_t params_size;
    int record;  /* parameters begin with a struct image_record */
    int aims;    /* an encoded image: the device may decode it, and do the host half's geometry */
    int resizes; /* records of the device half's own geometry may be resized, or filled */
};

/* Cuts the chain: returns the number of the first step that is the device's, and fills the plan.
 * flows[i]: what reaches step i; flows[count]: the result. Plan->count 0: the host does it all. */
uint32_t device_plan_cut(struct device_plan *plan, const struct pipeline *pipeline,
                         const struct stk_flow *flows);

#endif
