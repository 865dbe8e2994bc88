/* tensor_kernel.h -- the job of tensor_kernel.cu: elements of a batch -> the same elements cast,
 * normalised by channel and with their axes in another order, in one pass.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: who fills it (tensor_device.h). */
#ifndef TRANSFORM_TENSOR_KERNEL_H
#define TRANSFORM_TENSOR_KERNEL_H

#include "gpu/kernel_language.h"

#define TENSOR_CHANNELS 8

/* A batch is `count` tensors of rows x columns elements, one behind the other. Channels last to
 * first: THWC is T*H*W rows of C columns, turned; back: C rows of T*H*W columns, turned. */
struct tensor_job {
    uint64_t from, to; /* in device memory, aligned to their elements; they do not overlap */
    uint64_t count;
    uint64_t rows, columns;        /* as it is stored */
    uint32_t turned;               /* the result is columns x rows */
    uint32_t from_dtype, to_dtype; /* enum stk_dtype; no complex numbers */
    /* to = from * multiply[c] + add[c]; not from whole numbers to whole numbers. */
    uint32_t affine;
    uint32_t channels;    /* 1 to TENSOR_CHANNELS */
    uint32_t cut;         /* floats become whole numbers by being cut, not rounded */
    int32_t shift;        /* whole numbers to whole numbers: left by so many bits, or right */
    uint64_t channel_run; /* elements of one channel in a row: that of stored element i of a tensor
                             is c = (i / channel_run) % channels */
    double multiply[TENSOR_CHANNELS], add[TENSOR_CHANNELS];
};

#endif
