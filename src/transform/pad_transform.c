/* Pad: an image gets a border, of one colour or made of its own pixels. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "transform/pixels.h"
#include "transform/transform.h"

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC };
#define PAD_MODE_CHOICES "constant|edge|reflect|symmetric"
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
    {"padding_mode", ARG_CHOICE, offsetof(struct pad_args, mode), "constant", 0, 0,
     PAD_MODE_CHOICES, 0, 0},
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
    if (own->mode != PAD_CONSTANT && (shape[0] == 0 || shape[1] == 0))
        return fail(err, STK_SHAPE, "Pad has no pixels to repeat");
    if (shape[0] >= 0)
        shape[0] += border.top + border.bottom;
    if (shape[1] >= 0)
        shape[1] += border.left + border.right;
    return STK_OK;
}

/* The pixel of len that stands at place `at`, which may lie outside; -1: fill. */
static int64_t pad_source(enum pad_mode mode, int64_t at, int64_t len)
{
    if (at >= 0 && at < len)
        return at;
    if (mode == PAD_CONSTANT)
        return -1;
    if (mode == PAD_EDGE)
        return at < 0 ? 0 : len - 1;
    int64_t period = mode == PAD_REFLECT ? 2 * (len - 1) : 2 * len;
    if (!period)
        return 0;
    at = (at % period + period) % period;
    return at < len ? at : period - at - (mode == PAD_SYMMETRIC);
}

struct pad_work {
    enum pad_mode mode;
    struct pad_border border;
    struct pixels from, to;
    uint8_t fill[4];
};

static void pad_fill(const struct pad_work *work, uint8_t *to, int64_t count)
{
    int64_t channels = work->from.channels;
    for (int64_t i = 0; i < count * channels; i += channels)
        memcpy(to + i, work->fill, (size_t)channels);
}

/* Columns [first, stop) of an output row, beside the image. */
static void pad_side(const struct pad_work *work, const uint8_t *from, uint8_t *to, int64_t first,
                     int64_t stop)
{
    int64_t channels = work->from.channels;
    for (int64_t x = first; x < stop; x++) {
        int64_t source = pad_source(work->mode, x - work->border.left, work->from.width);
        memcpy(to + x * channels, source < 0 ? work->fill : from + source * channels,
               (size_t)channels);
    }
}

static void pad_row(const struct pad_work *work, int64_t y)
{
    int64_t channels = work->from.channels, width = work->from.width, left = work->border.left;
    int64_t source = pad_source(work->mode, y - work->border.top, work->from.height);
    uint8_t *to = work->to.data + y * work->to.width * channels;
    if (source < 0) {
        pad_fill(work, to, work->to.width);
        return;
    }
    const uint8_t *from = work->from.data + source * width * channels;
    pad_side(work, from, to, 0, left);
    memcpy(to + left * channels, from, (size_t)(width * channels));
    pad_side(work, from, to, left + width, work->to.width);
}

static stk_status pad_run(const void *args, const void *params, const struct stk_flow *in,
                          struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct pad_args *own = args;
    struct pad_work work = {.mode = (enum pad_mode)own->mode,
                            .border = border_of(own),
                            .from = pixels_of(in),
                            .to = pixels_of(out)};
    (void)params, (void)scratch, (void)err;
    pixels_fill(&own->fill, work.fill);
    for (int64_t y = 0; y < work.to.height; y++)
        pad_row(&work, y);
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
