/* DecodeImage: how images are decoded. */
#include <stddef.h>

#include "transform/decode_transform.h"

static const struct transform_arg decode_image_table[] = {
    {"mode", ARG_CHOICE, offsetof(struct decode_image_args, mode), "rgb", 0, 0, IMAGE_MODE_CHOICES,
     0, 0},
    {"fast", ARG_BOOL, offsetof(struct decode_image_args, fast), "False", 0, 0, NULL, 0, 0},
    {"relaxed", ARG_BOOL, offsetof(struct decode_image_args, relaxed), "False", 0, 0, NULL, 0, 0},
    {"max_pixels", ARG_FLOAT, offsetof(struct decode_image_args, max_pixels), "179e6", 1, 1e12,
     NULL, 0, 0},
    {0},
};

static stk_status decode_image_shape(const void *args, const void *params, struct stk_flow *flow,
                                     struct stk_error *err)
{
    static const int64_t channels[] = {[IMAGE_RGB] = 3, [IMAGE_GRAY] = 1, [IMAGE_RGBA] = 4};
    const struct decode_image_args *own = args;
    (void)params, (void)err;
    if (own->mode != IMAGE_KEEP)
        flow->tensor.shape[flow->tensor.rank - 1] = channels[own->mode];
    return STK_OK;
}

const struct transform_ops decode_image_transform = {
    .name = "DecodeImage",
    .help = "How images are decoded: channels, speed, and what is done with damaged ones.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE),
    .stage = TRANSFORM_DECODE,
    .args = decode_image_table,
    .size = sizeof(struct decode_image_args),
    .shape = decode_image_shape,
};
