/* ColorJitter and Grayscale. */
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/color_device.h"
#include "transform/color_kernel.h"
#include "transform/color_ops.h"
#include "transform/transform.h"

#define IMAGES (STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO))

/* --- ColorJitter ------------------------------------------------------------------------------ */

struct jitter_args {
    struct transform_list
        ranges[JITTER_COUNT]; /* one number: about 1 (hue: about 0); or (low, high) */
};

static const struct transform_arg jitter_table[] = {
    {"brightness", ARG_FLOATS, offsetof(struct jitter_args, ranges[JITTER_BRIGHTNESS]), "0", 0,
     1000, NULL, 1, 2},
    {"contrast", ARG_FLOATS, offsetof(struct jitter_args, ranges[JITTER_CONTRAST]), "0", 0, 1000,
     NULL, 1, 2},
    {"saturation", ARG_FLOATS, offsetof(struct jitter_args, ranges[JITTER_SATURATION]), "0", 0,
     1000, NULL, 1, 2},
    {"hue", ARG_FLOATS, offsetof(struct jitter_args, ranges[JITTER_HUE]), "0", -0.5, 0.5, NULL, 1,
     2},
    {0},
};

static void jitter_range(const struct jitter_args *args, int which, double *low, double *high)
{
    const struct transform_list *list = &args->ranges[which];
    double middle = which == JITTER_HUE ? 0 : 1;
    *low = list->count == 2 ? list->values[0] : middle - list->values[0];
    *high = list->count == 2 ? list->values[1] : middle + list->values[0];
    if (which != JITTER_HUE && *low < 0)
        *low = 0;
}

static stk_status jitter_check(void *args, struct stk_error *err)
{
    for (int i = 0; i < JITTER_COUNT; i++) {
        double low, high;
        jitter_range(args, i, &low, &high);
        if (low > high)
            return fail(err, STK_USAGE,
                        "%s of ColorJitter must be a range (low, high), or a "
                        "number from 0 on",
                        jitter_table[i].name);
    }
    return STK_OK;
}

static stk_status jitter_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    (void)args;
    (void)params;
    return pixels_check("ColorJitter", flow, err);
}

static void jitter_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    struct color_params *out = params;
    struct permutation order;
    (void)in;
    permutation_init(&order, JITTER_COUNT, random_at(key, JITTER_COUNT));
    for (int i = 0; i < JITTER_COUNT; i++) {
        double low, high;
        jitter_range(args, i, &low, &high);
        out->factors[i] = (float)(low + (high - low) * random_unit(key, (uint64_t)i));
        out->order[i] = (uint8_t)permutation_at(&order, (uint64_t)i);
    }
}

/* Out may be in: then nothing is copied. */
static struct pixels copy_once(const struct stk_flow *in, struct stk_flow *out)
{
    if (out->tensor.data != in->tensor.data)
        memcpy(out->tensor.data, in->tensor.data, stk_tensor_size(&in->tensor));
    return pixels_of(out);
}

static stk_status jitter_run(const void *args, const void *params, const struct stk_flow *in,
                             struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct color_params *own = params;
    struct pixels image = copy_once(in, out);
    (void)args;
    (void)scratch;
    (void)err;
    for (int i = 0; i < JITTER_COUNT; i++) {
        float factor = own->factors[own->order[i]];
        if (own->order[i] == JITTER_HUE ? factor == 0 : factor == 1)
            continue;
        switch (own->order[i]) {
        case JITTER_BRIGHTNESS:
            color_brightness(image, factor);
            break;
        case JITTER_CONTRAST:
            color_contrast(image, factor);
            break;
        case JITTER_SATURATION:
            color_saturation(image, factor);
            break;
        default:
            color_hue(image, factor);
        }
    }
    return STK_OK;
}

static stk_status jitter_run_device(const struct transform_device_step *step, struct stk_error *err)
{
    double low, high;
    jitter_range(step->args, JITTER_CONTRAST, &low, &high);
    return color_device_jitter(step, low != 1 || high != 1, err);
}

static uint64_t jitter_device_scratch(const void *args, const struct stk_flow *in, uint32_t count)
{
    (void)args;
    return color_device_scratch(in, count);
}

const struct transform_ops color_jitter_transform = {
    .name = "ColorJitter",
    .help = "Changes brightness, contrast, saturation and hue at random, in a random order.",
    .media = IMAGES,
    .stage = TRANSFORM_PIXELS,
    .args = jitter_table,
    .size = sizeof(struct jitter_args),
    .check = jitter_check,
    .shape = jitter_shape,
    .draw = jitter_draw,
    .run = jitter_run,
    .in_place = 1,
    .run_device = jitter_run_device,
    .device_scratch = jitter_device_scratch,
};

/* --- Grayscale -------------------------------------------------------------------------------- */

struct grey_args {
    int64_t channels;
};

static const struct transform_arg grey_table[] = {
    {"num_output_channels", ARG_INT, offsetof(struct grey_args, channels), "1", 1, 3, NULL, 0, 0},
    {0},
};

static stk_status grey_check(void *args, struct stk_error *err)
{
    int64_t channels = ((const struct grey_args *)args)->channels;
    return channels == 2 ? fail(err, STK_USAGE, "Grayscale makes 1 or 3 channels") : STK_OK;
}

static stk_status grey_shape(const void *args, const void *params, struct stk_flow *flow,
                             struct stk_error *err)
{
    (void)params;
    stk_status status = pixels_check("Grayscale", flow, err);
    flow->tensor.shape[flow->tensor.rank - 1] = ((const struct grey_args *)args)->channels;
    return status;
}

/* Not in place: pixels become narrower. */
static stk_status grey_run(const void *args, const void *params, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    int64_t channels = ((const struct grey_args *)args)->channels;
    struct pixels image = pixels_of(in);
    const uint8_t *from = image.data;
    uint8_t *to = out->tensor.data;
    (void)params;
    (void)scratch;
    (void)err;
    for (int64_t i = 0; i < image.width * image.height; i++, from += image.channels, to += channels)
        memset(to, image.colors == 3 ? color_grey(from) : *from, (size_t)channels);
    return STK_OK;
}

const struct transform_ops grayscale_transform = {
    .name = "Grayscale",
    .help = "Colours become their brightness, in one channel or three equal ones.",
    .media = IMAGES,
    .stage = TRANSFORM_PIXELS,
    .args = grey_table,
    .size = sizeof(struct grey_args),
    .check = grey_check,
    .shape = grey_shape,
    .run = grey_run,
    .run_device = color_device_grey,
};
