/* mix_kernel.h -- the job of mix_kernel.cu: MixUp or CutMix of a batch's images, in place.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: what mixing means (mix_transform.h).
 */
#ifndef TRANSFORM_MIX_KERNEL_H
#define TRANSFORM_MIX_KERNEL_H

#include "gpu/kernel_language.h"

struct mix_job {
    uint64_t images;   /* sample i is at images + i * the bytes of `elements` */
    uint64_t elements; /* of one image */
    uint32_t count;    /* samples that are real */
    uint32_t dtype;    /* enum stk_dtype: U8, F16, BF16, F32, F64; cut: any, see `size` */
    uint32_t size;     /* bytes of an element */
    double lam;
    /* CutMix: elements are (planes, height, width, inner), and those in the box are the other's. */
    uint32_t cut;
    uint64_t height, width, inner;
    int64_t x0, y0, x1, y1;
};

#endif
