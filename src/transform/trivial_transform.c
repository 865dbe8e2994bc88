/* TrivialAugment: one change of colour or shape a sample, of random strength (torchvision's
 * TrivialAugmentWide: its list of changes, and its ranges). */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/affine.h"
#include "transform/color_ops.h"
#include "transform/transform.h"

enum change {
    CHANGE_NONE,
    CHANGE_SHEAR_X,
    CHANGE_SHEAR_Y,
    CHANGE_MOVE_X,
    CHANGE_MOVE_Y,
    CHANGE_TURN,
    CHANGE_BRIGHTNESS,
    CHANGE_SATURATION,
    CHANGE_CONTRAST,
    CHANGE_SHARPNESS,
    CHANGE_POSTERIZE,
    CHANGE_SOLARIZE,
    CHANGE_AUTOCONTRAST,
    CHANGE_EQUALIZE,
    CHANGE_COUNT
};

struct trivial_args {
    int64_t bins;
    int interpolation;
    struct transform_list fill;
};
struct trivial_params {
    int32_t change; /* enum change */
    double strength;
};

static const struct transform_arg trivial_table[] = {
    {"num_magnitude_bins", ARG_INT, offsetof(struct trivial_args, bins), "31", 2, 1000, NULL, 0, 0},
    {"interpolation", ARG_CHOICE, offsetof(struct trivial_args, interpolation), "nearest", 0, 0,
     "nearest|bilinear", 0, 0},
    {"fill", ARG_FLOATS, offsetof(struct trivial_args, fill), "0", 0, 255, NULL, 1, 4},
    {0},
};

static stk_status trivial_shape(const void *args, const void *params, struct stk_flow *flow,
                                struct stk_error *err)
{
    (void)params;
    stk_status status = pixels_check("TrivialAugment", flow, err);
    return status ? status
                  : pixels_fill_check("TrivialAugment", &((const struct trivial_args *)args)->fill,
                                      flow, err);
}

/* step: 0 to 1 of the change's range. */
static double strength_of(enum change change, double step)
{
    switch (change) {
    case CHANGE_SHEAR_X:
    case CHANGE_SHEAR_Y:
    case CHANGE_BRIGHTNESS:
    case CHANGE_SATURATION:
    case CHANGE_CONTRAST:
    case CHANGE_SHARPNESS:
        return 0.99 * step;
    case CHANGE_MOVE_X:
    case CHANGE_MOVE_Y:
        return 32 * step;
    case CHANGE_TURN:
        return 135 * step;
    case CHANGE_POSTERIZE:
        return 8 - rint(6 * step);
    case CHANGE_SOLARIZE:
        return 255 * (1 - step);
    default:
        return 0;
    }
}

static int has_sign(enum change change)
{
    return change >= CHANGE_SHEAR_X && change <= CHANGE_SHARPNESS;
}

static void trivial_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct trivial_args *own = args;
    struct trivial_params *out = params;
    (void)in;
    out->change = (int32_t)random_below(key, 0, CHANGE_COUNT);
    double step = (double)random_below(key, 1, (uint64_t)own->bins) / (double)(own->bins - 1);
    out->strength = strength_of((enum change)out->change, step);
    if (has_sign((enum change)out->change) && random_unit(key, 2) < 0.5)
        out->strength = -out->strength;
}

static void change_shape(const struct trivial_args *args, const struct trivial_params *params,
                         struct pixels in, struct pixels out)
{
    struct affine affine = {.m = {1, 0, 0, 0, 1, 0}, .bilinear = args->interpolation};
    pixels_fill(&args->fill, affine.fill);
    if (params->change == CHANGE_SHEAR_X)
        affine.m[1] = params->strength;
    else if (params->change == CHANGE_SHEAR_Y)
        affine.m[3] = params->strength;
    else if (params->change == CHANGE_MOVE_X)
        affine.m[2] = trunc(params->strength);
    else if (params->change == CHANGE_MOVE_Y)
        affine.m[5] = trunc(params->strength);
    else
        affine_turn(&affine, params->strength, (double)in.width / 2, (double)in.height / 2);
    affine_run(&affine, in, out);
}

static stk_status change_color(const struct trivial_params *params, struct pixels image,
                               struct scratch *scratch, struct stk_error *err)
{
    float factor = 1 + (float)params->strength;
    uint64_t size = (uint64_t)(image.width * image.height * image.channels);
    uint8_t *copy = NULL;
    switch (params->change) {
    case CHANGE_BRIGHTNESS:
        color_brightness(image, factor);
        break;
    case CHANGE_SATURATION:
        color_saturation(image, factor);
        break;
    case CHANGE_CONTRAST:
        color_contrast(image, factor);
        break;
    case CHANGE_SHARPNESS:
        copy = scratch_take(scratch, size);
        if (!copy)
            return fail_memory(err, size);
        color_sharpness(image, factor, copy);
        break;
    case CHANGE_POSTERIZE:
        color_posterize(image, (int)params->strength);
        break;
    case CHANGE_SOLARIZE:
        color_solarize(image, (float)params->strength);
        break;
    case CHANGE_AUTOCONTRAST:
        color_autocontrast(image);
        break;
    case CHANGE_EQUALIZE:
        color_equalize(image);
        break;
    default:
        break;
    }
    return STK_OK;
}

static stk_status trivial_run(const void *args, const void *params, const struct stk_flow *in,
                              struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct trivial_params *own = params;
    if (own->change >= CHANGE_SHEAR_X && own->change <= CHANGE_TURN) {
        change_shape(args, own, pixels_of(in), pixels_of(out));
        return STK_OK;
    }
    memcpy(out->tensor.data, in->tensor.data, stk_tensor_size(&in->tensor));
    return change_color(own, pixels_of(out), scratch, err);
}

#define TRIVIAL_HELP "One random change of colour or shape a sample, of random strength."

const struct transform_ops trivial_augment_transform = {
    .name = "TrivialAugment",
    .help = TRIVIAL_HELP,
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = trivial_table,
    .size = sizeof(struct trivial_args),
    .shape = trivial_shape,
    .draw = trivial_draw,
    .run = trivial_run,
};

/* Under torchvision's name. */
const struct transform_ops trivial_augment_wide_transform = {
    .name = "TrivialAugmentWide",
    .help = TRIVIAL_HELP,
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = trivial_table,
    .size = sizeof(struct trivial_args),
    .shape = trivial_shape,
    .draw = trivial_draw,
    .run = trivial_run,
};
