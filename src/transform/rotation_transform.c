/* RandomRotation. */
#include <stddef.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/affine.h"
#include "transform/transform.h"

struct rotation_args {
    struct transform_list degrees; /* d: (-d, d); or (low, high) */
    int interpolation;             /* 0 nearest, 1 bilinear */
    struct transform_list fill;    /* one value, or one a channel */
};
struct rotation_params {
    double degrees;
};

static const struct transform_arg rotation_table[] = {
    {"degrees", ARG_FLOATS, offsetof(struct rotation_args, degrees), NULL, -360, 360, NULL, 1, 2},
    {"interpolation", ARG_CHOICE, offsetof(struct rotation_args, interpolation), "nearest", 0, 0,
     "nearest|bilinear", 0, 0},
    {"fill", ARG_FLOATS, offsetof(struct rotation_args, fill), "0", 0, 255, NULL, 1, 4},
    {0},
};

static stk_status rotation_check(void *args, struct stk_error *err)
{
    struct transform_list *degrees = &((struct rotation_args *)args)->degrees;
    if (degrees->count == 1 && degrees->values[0] < 0)
        return fail(err, STK_USAGE, "degrees of RandomRotation must not be below 0, or be a range");
    if (degrees->count == 2 && degrees->values[0] > degrees->values[1])
        return fail(err, STK_USAGE, "degrees of RandomRotation must be a range (low, high)");
    return STK_OK;
}

static stk_status rotation_shape(const void *args, const void *params, struct stk_flow *flow,
                                 struct stk_error *err)
{
    (void)params;
    stk_status status = pixels_check("RandomRotation", flow, err);
    return status ? status
                  : pixels_fill_check("RandomRotation", &((const struct rotation_args *)args)->fill,
                                      flow, err);
}

static void rotation_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct transform_list *degrees = &((const struct rotation_args *)args)->degrees;
    double low = degrees->count == 2 ? degrees->values[0] : -degrees->values[0];
    double high = degrees->values[degrees->count - 1];
    (void)in;
    ((struct rotation_params *)params)->degrees = low + (high - low) * random_unit(key, 0);
}

static stk_status rotation_run(const void *args, const void *params, const struct stk_flow *in,
                               struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct rotation_args *own = args;
    struct pixels from = pixels_of(in), to = pixels_of(out);
    struct affine affine = {.bilinear = own->interpolation};
    (void)scratch;
    (void)err;
    pixels_fill(&own->fill, affine.fill);
    affine_turn(&affine, ((const struct rotation_params *)params)->degrees, from.width,
                from.height);
    affine_run(&affine, from, to);
    return STK_OK;
}

const struct transform_ops random_rotation_transform = {
    .name = "RandomRotation",
    .help = "Turns the image about its middle by a random angle; the size stays.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = rotation_table,
    .size = sizeof(struct rotation_args),
    .check = rotation_check,
    .shape = rotation_shape,
    .draw = rotation_draw,
    .run = rotation_run,
};
