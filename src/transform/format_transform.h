/* format_transform.h -- arguments of Normalize, Cast and Layout, which a pipeline folds into the
 * writing of pixels.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: the transforms (format_transform.c).
 */
#ifndef TRANSFORM_FORMAT_TRANSFORM_H
#define TRANSFORM_FORMAT_TRANSFORM_H

#include "transform/transform.h"

struct normalize_args {
    struct transform_list mean, std; /* of values on 0-1; one number, or one a channel */
    int inplace;                     /* no difference here: a batch is nobody else's yet */
    char preset[TRANSFORM_TEXT_MAX]; /* "imagenet": the mean and std of torchvision's models */
};
struct cast_args {
    int dtype; /* enum stk_dtype */
    int scale; /* integers become 0-1, and floats the whole range of integers */
};
enum layout_order { LAYOUT_CHW, LAYOUT_HWC, LAYOUT_CTHW, LAYOUT_THWC };
struct layout_args {
    int order; /* enum layout_order */
};

extern const struct transform_ops normalize_transform, cast_transform, layout_transform;

#endif
