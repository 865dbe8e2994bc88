/* Pad: an image gets a border, of one colour or made of its own pixels. */
#include <math.h>
#include <stddef.h>

#include "base/fail.h"
#include "transform/border.h"
#include "transform/transform.h"

#define PADDING_MOST 65535

struct pad_args {
    struct transform_list
        padding;                /* one; left and right, top and bottom; left, top, right, bottom */
    struct transform_list fill; /* one, or one a channel */
    int mode;
};

static const struct transform_arg pad_table[] = {
    {"padding", ARG_FLOATS, offsetof(struct pad_args, padding), NULL, 0, PADDING_MOST, NULL, 1, 4},
    {"fill", ARG_FLOATS, offsetof(struct pad_args, fill), "0", 0, 255, NULL, 1, 4},
    {"padding_mode", ARG_CHOICE, offsetof(struct pad_args, mode), "constant", 0, 0, BORDER_CHOICES,
     0, 0},
    {0},
};

struct pad_border {
    int64_t left, top, right, bottom;
};

static struct pad_border border_of(const struct pad_args *args)
{
    const double *values = args->padding.values;
    uint32_t count = args->padding.count, top = count > 1;
    return (struct pad_border){(int64_t)values[0], (int64_t)values[top],
                               (int64_t)values[count == 4 ? 2 : 0],
                               (int64_t)values[count == 4 ? 3 : top]};
}

static stk_status pad_check(void *args, struct stk_error *err)
{
    const struct pad_args *own = args;
    if (own->padding.count == 3)
        return fail(err, STK_USAGE,
                    "padding of Pad is one number, two (left and right, top and "
                    "bottom) or four (left, top, right, bottom)");
    for (uint32_t i = 0; i < own->padding.count; i++)
        if (own->padding.values[i] != floor(own->padding.values[i]))
            return fail(err, STK_USAGE, "padding of Pad is in whole pixels, not %g",
                        own->padding.values[i]);
    return STK_OK;
}

static stk_status pad_shape(const void *args, const void *params, struct stk_flow *flow,
                            struct stk_error *err)
{
    const struct pad_args *own = args;
    struct pad_border border = border_of(own);
    (void)params;
    stk_status status = pixels_check("Pad", flow, err);
    if (!status)
        status = pixels_fill_check("Pad", &own->fill, flow, err);
    if (status)
        return status;
    int64_t *shape = flow->tensor.shape + flow->tensor.rank - 3;
    if (own->mode != BORDER_CONSTANT && (shape[0] == 0 || shape[1] == 0))
        return fail(err, STK_SHAPE, "Pad has no pixels to repeat");
    if (shape[0] >= 0)
        shape[0] += border.top + border.bottom;
    if (shape[1] >= 0)
        shape[1] += border.left + border.right;
    return STK_OK;
}

static stk_status pad_run(const void *args, const void *params, const struct stk_flow *in,
                          struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct pad_args *own = args;
    struct pad_border border = border_of(own);
    struct border window = {
        .mode = (enum border_mode)own->mode, .x = -border.left, .y = -border.top};
    (void)params, (void)scratch, (void)err;
    pixels_fill(&own->fill, window.fill);
    border_run(&window, pixels_of(in), pixels_of(out));
    return STK_OK;
}

const struct transform_ops pad_transform = {
    .name = "Pad",
    .help = "Adds a border: of one colour, or of the image's own pixels, repeated or mirrored.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = pad_table,
    .size = sizeof(struct pad_args),
    .check = pad_check,
    .shape = pad_shape,
    .run = pad_run,
};
