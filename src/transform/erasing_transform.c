/* RandomErasing: a random rectangle of a finished image or clip is overwritten. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/random.h"
#include "transform/erasing_device.h"
#include "transform/pixels.h"
#include "transform/transform.h"

#define TRIES 10

struct erasing_args {
    double p;
    struct transform_list scale, ratio;
    struct transform_list value; /* one, or one a channel; count 0: random */
    int inplace;                 /* no difference here: a batch is nobody else's yet */
};

static const struct transform_arg erasing_table[] = {
    {"p", ARG_FLOAT, offsetof(struct erasing_args, p), "0.5", 0, 1, NULL, 0, 0},
    {"scale", ARG_FLOATS, offsetof(struct erasing_args, scale), "(0.02, 0.33)", 0, 1, NULL, 2, 2},
    {"ratio", ARG_FLOATS, offsetof(struct erasing_args, ratio), "(0.3, 3.3)", 1e-3, 1e3, NULL, 2,
     2},
    {"value", ARG_FLOATS, offsetof(struct erasing_args, value), "0", 0, 0, "random", 1, 4},
    {"inplace", ARG_BOOL, offsetof(struct erasing_args, inplace), "False", 0, 0, NULL, 0, 0},
    {0},
};

static stk_status erasing_check(void *args, struct stk_error *err)
{
    struct erasing_args *own = args;
    own->inplace = 0; /* so that one chain has one text */
    if (own->scale.values[0] > own->scale.values[1] || own->ratio.values[0] > own->ratio.values[1])
        return fail(err, STK_USAGE, "scale and ratio of RandomErasing are ranges (low, high)");
    return STK_OK;
}

static int dtype_fits(enum stk_dtype dtype)
{
    return dtype == STK_U8 || dtype == STK_F32 || dtype == STK_F16 || dtype == STK_BF16;
}

static stk_status erasing_shape(const void *args, const void *params, struct stk_flow *flow,
                                struct stk_error *err)
{
    const struct erasing_args *own = args;
    int64_t height, width, channels;
    (void)params;
    if (!dtype_fits(flow->tensor.dtype))
        return fail(err, STK_USAGE,
                    "RandomErasing takes uint8, float32, float16 or bfloat16, not "
                    "%s",
                    stk_dtype_name(flow->tensor.dtype));
    pixels_axes(flow, &height, &width, &channels);
    if (own->value.count > 1 && channels >= 0 && own->value.count != channels)
        return fail(err, STK_USAGE, "value of RandomErasing has %u numbers for %lld channels",
                    own->value.count, (long long)channels);
    return STK_OK;
}

static void erasing_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct erasing_args *own = args;
    struct erasing_params *out = params;
    int64_t height, width, channels;
    pixels_axes(in, &height, &width, &channels);
    out->key = random_key(key, 1);
    if (random_unit(key, 0) >= own->p)
        return;
    for (uint64_t try = 0; try < TRIES; try++) {
        const double *scale = own->scale.values, *ratio = own->ratio.values;
        uint64_t at = 1 + 4 * try;
        double area = (double)(width * height);
        area *= scale[0] + (scale[1] - scale[0]) * random_unit(key, at);
        double low = log(ratio[0]), high = log(ratio[1]);
        double aspect = exp(low + (high - low) * random_unit(key, at + 1));
        int64_t h = (int64_t)rint(sqrt(area * aspect)), w = (int64_t)rint(sqrt(area / aspect));
        if (h < 1 || w < 1 || h >= height || w >= width)
            continue;
        out->height = (int32_t)h;
        out->width = (int32_t)w;
        out->y = (int32_t)random_below(key, at + 2, (uint64_t)(height - h + 1));
        out->x = (int32_t)random_below(key, at + 3, (uint64_t)(width - w + 1));
        return;
    }
}

/* A number as the tensor's type. */
static void put(enum stk_dtype dtype, double value, uint8_t *to)
{
    float single = (float)value;
    uint16_t half;
    switch (dtype) {
    case STK_U8:
        *to = (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value);
        break;
    case STK_F32:
        memcpy(to, &single, sizeof single);
        break;
    default:
        half = dtype == STK_F16 ? half_of_float(single) : bfloat_of_float(single);
        memcpy(to, &half, sizeof half);
    }
}

/* Normally distributed for floats, evenly for bytes: what the two kinds of images look like. */
static double random_value(enum stk_dtype dtype, uint64_t key, uint64_t counter)
{
    double u = random_unit(key, 2 * counter), v = random_unit(key, 2 * counter + 1);
    if (dtype == STK_U8)
        return u * 256;
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* Where one element lies: strides in elements of frame, row, column and channel. */
struct strides {
    int64_t frames, frame, row, column, channel;
};

static struct strides strides_of(const struct stk_flow *flow)
{
    const int64_t *shape = flow->tensor.shape;
    int32_t rank = flow->tensor.rank;
    int64_t height, width, channels;
    pixels_axes(flow, &height, &width, &channels);
    int64_t plane = height * width;
    if (!flow->channels_first) {
        struct strides last = {1, plane * channels, width * channels, channels, 1};
        for (int32_t axis = 0; axis < rank - 3; axis++)
            last.frames *= shape[axis];
        return last;
    }
    int video = flow->media == STK_MEDIA_VIDEO;
    int64_t frames = video ? shape[rank - 3] : 1;
    return (struct strides){frames, plane, width, 1, plane * frames};
}

/* Several clips with channels first lie one behind the other. */
static int64_t clip_count(const struct stk_flow *flow)
{
    int clips = flow->channels_first && flow->media == STK_MEDIA_VIDEO && flow->tensor.rank == 5;
    return clips ? flow->tensor.shape[0] : 1;
}

static void erase(const struct erasing_args *args, const struct erasing_params *box,
                  const struct stk_flow *flow, uint8_t *data, int64_t channel)
{
    struct strides at = strides_of(flow);
    enum stk_dtype dtype = flow->tensor.dtype;
    int64_t size = (int64_t)stk_dtype_size(dtype);
    uint32_t count = args->value.count;
    double value = count ? args->value.values[count == 1 ? 0 : channel] : 0;
    uint64_t counter = (uint64_t)channel << 40;
    for (int64_t frame = 0; frame < at.frames; frame++)
        for (int64_t y = box->y; y < box->y + box->height; y++)
            for (int64_t x = box->x; x < box->x + box->width; x++, counter++) {
                int64_t place =
                    frame * at.frame + y * at.row + x * at.column + channel * at.channel;
                put(dtype, count ? value : random_value(dtype, box->key, counter),
                    data + place * size);
            }
}

static stk_status erasing_run(const void *args, const void *params, const struct stk_flow *in,
                              struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct erasing_params *box = params;
    uint64_t size = stk_tensor_size(&in->tensor);
    int64_t height, width, channels, clips = clip_count(in);
    (void)scratch;
    (void)err;
    if (out->tensor.data != in->tensor.data)
        memcpy(out->tensor.data, in->tensor.data, size);
    pixels_axes(in, &height, &width, &channels);
    for (int64_t clip = 0; clip < clips && box->width; clip++)
        for (int64_t c = 0; c < channels; c++)
            erase(args, box, out,
                  (uint8_t *)out->tensor.data + (uint64_t)clip * (size / (uint64_t)clips), c);
    return STK_OK;
}

static stk_status erasing_run_device(const struct transform_device_step *step,
                                     struct stk_error *err)
{
    const struct erasing_args *own = step->args;
    struct strides at = strides_of(step->in);
    int64_t height, width, channels, clips = clip_count(step->in);
    pixels_axes(step->in, &height, &width, &channels);
    struct erasing_job job = {.clips = (uint64_t)clips,
                              .clip = (uint64_t)(at.frames * height * width * channels),
                              .frames = (uint64_t)at.frames,
                              .frame = (uint64_t)at.frame,
                              .row = (uint64_t)at.row,
                              .column = (uint64_t)at.column,
                              .channels = (uint64_t)channels,
                              .channel = (uint64_t)at.channel,
                              .values = own->value.count};
    for (uint32_t i = 0; i < own->value.count; i++)
        job.value[i] = own->value.values[i];
    return erasing_device_run(step, &job, err);
}

const struct transform_ops random_erasing_transform = {
    .name = "RandomErasing",
    .help = "Overwrites a random rectangle with a value or with noise.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_TENSOR,
    .args = erasing_table,
    .size = sizeof(struct erasing_args),
    .check = erasing_check,
    .shape = erasing_shape,
    .draw = erasing_draw,
    .run = erasing_run,
    .in_place = 1,
    .run_device = erasing_run_device,
};
