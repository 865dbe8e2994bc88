/* RandomRotation. */
#include <stddef.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/affine.h"
#include "transform/transform.h"

struct rotation_args {
    struct transform_list degrees; /* d: (-d, d); or (low, high) */
    int interpolation;             /* 0 nearest, 1 bilinear */
    int expand;                    /* the result is as large as the turned image */
    struct transform_list center;  /* (x, y) in pixels; count 0: the middle */
    struct transform_list fill;    /* one value, or one a channel */
};
struct rotation_params {
    double degrees;
};

static const struct transform_arg rotation_table[] = {
    {"degrees", ARG_FLOATS, offsetof(struct rotation_args, degrees), NULL, -360, 360, NULL, 1, 2},
    {"interpolation", ARG_CHOICE, offsetof(struct rotation_args, interpolation), "nearest", 0, 0,
     "nearest|bilinear", 0, 0},
    {"expand", ARG_BOOL, offsetof(struct rotation_args, expand), "False", 0, 0, NULL, 0, 0},
    {"center", ARG_FLOATS, offsetof(struct rotation_args, center), "None", -1e6, 1e6, NULL, 2, 2},
    {"fill", ARG_FLOATS, offsetof(struct rotation_args, fill), "0", 0, 255, NULL, 1, 4},
    {0},
};

static stk_status rotation_check(void *args, struct stk_error *err)
{
    const struct rotation_args *own = args;
    const struct transform_list *degrees = &own->degrees;
    if (degrees->count == 1 && degrees->values[0] < 0)
        return fail(err, STK_USAGE, "degrees of RandomRotation must not be below 0, or be a range");
    if (degrees->count == 2 && degrees->values[0] > degrees->values[1])
        return fail(err, STK_USAGE, "degrees of RandomRotation must be a range (low, high)");
    if (own->expand && own->center.count) {
        stk_status status = fail(err, STK_USAGE,
                                 "RandomRotation with expand=True shows the whole image in the "
                                 "middle, wherever it was turned");
        fail_remedy(err, "leave center out, or expand");
        return status;
    }
    return STK_OK;
}

static double lowest(const struct rotation_args *args)
{
    const struct transform_list *degrees = &args->degrees;
    return degrees->count == 2 ? degrees->values[0] : -degrees->values[0];
}

static double highest(const struct rotation_args *args)
{
    return args->degrees.values[args->degrees.count - 1];
}

static int rotation_draws_shape(const void *args)
{
    const struct rotation_args *own = args;
    return own->expand && lowest(own) < highest(own);
}

/* width and height: of the image; become those of the result. */
static struct affine rotation_of(const struct rotation_args *args, double degrees, int64_t *width,
                                 int64_t *height)
{
    struct affine affine = {.bilinear = args->interpolation};
    double x = (double)*width / 2, y = (double)*height / 2;
    if (args->center.count) {
        x = args->center.values[0];
        y = args->center.values[1];
    }
    affine_turn(&affine, degrees, x, y);
    if (args->expand)
        affine_expand(&affine, width, height);
    return affine;
}

/* Shape of an expanded image: known for a sample, or where the angle is not drawn. */
static stk_status rotation_expand(const struct rotation_args *args,
                                  const struct rotation_params *params, struct stk_flow *flow,
                                  struct stk_error *err)
{
    int64_t *shape = flow->tensor.shape + flow->tensor.rank - 3, height = shape[0],
            width = shape[1];
    if ((!params && rotation_draws_shape(args)) || height < 0 || width < 0) {
        shape[0] = shape[1] = -1;
        return STK_OK;
    }
    (void)rotation_of(args, params ? params->degrees : lowest(args), &width, &height);
    if (height && width > PIXELS_MOST / height) {
        stk_status status =
            fail(err, STK_LIMIT, "RandomRotation makes %lld x %lld pixels of %lld x %lld",
                 (long long)width, (long long)height, (long long)shape[1], (long long)shape[0]);
        fail_remedy(err, "leave expand out, or put Resize before RandomRotation");
        return status;
    }
    shape[0] = height;
    shape[1] = width;
    return STK_OK;
}

static stk_status rotation_shape(const void *args, const void *params, struct stk_flow *flow,
                                 struct stk_error *err)
{
    const struct rotation_args *own = args;
    stk_status status = pixels_check("RandomRotation", flow, err);
    if (!status)
        status = pixels_fill_check("RandomRotation", &own->fill, flow, err);
    if (!status && own->expand)
        status = rotation_expand(own, params, flow, err);
    return status;
}

static void rotation_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    double low = lowest(args), high = highest(args);
    (void)in;
    ((struct rotation_params *)params)->degrees = low + (high - low) * random_unit(key, 0);
}

static stk_status rotation_run(const void *args, const void *params, const struct stk_flow *in,
                               struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct rotation_args *own = args;
    struct pixels from = pixels_of(in), to = pixels_of(out);
    int64_t width = from.width, height = from.height;
    struct affine affine =
        rotation_of(own, ((const struct rotation_params *)params)->degrees, &width, &height);
    (void)scratch;
    (void)err;
    pixels_fill(&own->fill, affine.fill);
    affine_run(&affine, from, to);
    return STK_OK;
}

const struct transform_ops random_rotation_transform = {
    .name = "RandomRotation",
    .help = "Turns the image by a random angle; the size stays, unless expand is True.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = rotation_table,
    .size = sizeof(struct rotation_args),
    .check = rotation_check,
    .shape = rotation_shape,
    .draws_shape = rotation_draws_shape,
    .draw = rotation_draw,
    .run = rotation_run,
};
