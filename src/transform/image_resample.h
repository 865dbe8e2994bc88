/* image_resample.h -- pixels of a view -> a finished image in its place, each output byte written
 * once: resize (as Pillow does it, to one level of 255), flip, normalise, cast, layout.
 * Owns: nothing.   Threads: any; one scratch a thread.   Errors: STK_MEMORY.
 * Not here: what is cut and how large it becomes (image_geometry.h). */
#ifndef TRANSFORM_IMAGE_RESAMPLE_H
#define TRANSFORM_IMAGE_RESAMPLE_H

#include "stoker/error.h"
#include "stoker/tensor.h"
#include "base/image_view.h"
#include "base/scratch.h"
#include "transform/image_geometry.h"

/* How a finished pixel is written: to[c] = (pixel[c] * multiply[c] + add[c]) as dtype. */
struct image_writer {
    enum stk_dtype dtype; /* U8, F16, BF16, F32; other integers and F64 by the slow way */
    int plain;            /* multiply is 1 and add 0: values are only cast */
    float multiply[4], add[4];
    int64_t pixel, row, channel; /* strides in elements: HWC: C, W * C, 1; CHW: 1, W, H * W */
};

/* The writer of a tensor of width x height x channels. */
void image_writer_init(struct image_writer *writer, enum stk_dtype dtype, int32_t width,
                       int32_t height, int32_t channels, int channels_first);

/* view holds what geometry's box asked for (view->x0.. is the box). to: the first element of the
 * output of out_width x out_height. */
STK_CHECK stk_status image_resample(const struct image_view *view,
                                    const struct image_geometry *geometry,
                                    const struct image_writer *writer, void *to,
                                    struct scratch *scratch, struct stk_error *err);

#endif
