#include "transform/format_transform.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/transpose.h"
#include "transform/cast.h"

/* --- Normalize ----------------------------------------------------------------------------------
 */

#define TINY 1e-12

static const struct transform_arg normalize_table[] = {
    {"mean", ARG_FLOATS, offsetof(struct normalize_args, mean), "None", 0, 0, NULL, 1,
     TRANSFORM_LIST_MAX},
    {"std", ARG_FLOATS, offsetof(struct normalize_args, std), "None", TINY, 1 / TINY, NULL, 1,
     TRANSFORM_LIST_MAX},
    {"inplace", ARG_BOOL, offsetof(struct normalize_args, inplace), "False", 0, 0, NULL, 0, 0},
    {"preset", ARG_TEXT, offsetof(struct normalize_args, preset), "None", 0, 0, NULL, 0, 0},
    {0},
};

/* The preset becomes its numbers, so that one chain has one text. */
static stk_status preset_apply(struct normalize_args *args, struct stk_error *err)
{
    static const struct transform_list mean = {3, {0.485, 0.456, 0.406}},
                                       std = {3, {0.229, 0.224, 0.225}};
    if (strcmp(args->preset, "imagenet"))
        return fail(err, STK_USAGE, "Normalize knows no preset '%s', only 'imagenet'",
                    args->preset);
    if (args->mean.count || args->std.count)
        return fail(err, STK_USAGE, "Normalize takes a preset, or mean and std, not both");
    *args = (struct normalize_args){.mean = mean, .std = std};
    return STK_OK;
}

static void list_repeat(struct transform_list *list, uint32_t count)
{
    for (; list->count < count; list->count++)
        list->values[list->count] = list->values[0];
}

static stk_status normalize_check(void *args, struct stk_error *err)
{
    struct normalize_args *own = args;
    own->inplace = 0; /* so that one chain has one text */
    stk_status status = own->preset[0] ? preset_apply(own, err) : STK_OK;
    if (status)
        return status;
    if (!own->mean.count || !own->std.count) {
        status = fail(err, STK_USAGE, "Normalize needs mean and std");
        fail_remedy(err, "as in Normalize(imagenet) or Normalize(mean=(0.5, 0.5, 0.5), std=0.25)");
        return status;
    }
    if (own->mean.count == 1)
        list_repeat(&own->mean, own->std.count);
    if (own->std.count == 1)
        list_repeat(&own->std, own->mean.count);
    if (own->mean.count != own->std.count)
        return fail(err, STK_USAGE, "mean of Normalize has %u numbers, and std %u", own->mean.count,
                    own->std.count);
    return STK_OK;
}

/* Where the channels are: points have them in columns, plain tensors and audio in front. */
static int32_t channel_axis(const struct stk_flow *flow)
{
    int32_t rank = flow->tensor.rank;
    switch (flow->media) {
    case STK_MEDIA_IMAGE:
        return flow->channels_first ? rank - 3 : rank - 1;
    case STK_MEDIA_VIDEO:
        return flow->channels_first ? rank - 4 : rank - 1;
    case STK_MEDIA_POINTS:
        return rank - 1;
    default:
        return 0;
    }
}

static stk_status normalize_shape(const void *args, const void *params, struct stk_flow *flow,
                                  struct stk_error *err)
{
    const struct normalize_args *own = args;
    enum stk_dtype dtype = flow->tensor.dtype;
    int32_t axis = channel_axis(flow);
    int64_t channels = axis >= 0 && axis < flow->tensor.rank ? flow->tensor.shape[axis] : 0;
    (void)params;
    if (dtype != STK_U8 && !cast_is_float(dtype)) {
        stk_status status =
            fail(err, STK_USAGE, "Normalize takes uint8 and floats, not %s", stk_dtype_name(dtype));
        fail_remedy(err, "put Cast('float32') before Normalize; scale=True makes 0-1 of integers");
        return status;
    }
    if (own->mean.count > 1 && channels >= 0 && channels != own->mean.count)
        return fail(err, STK_USAGE, "Normalize has %u numbers, but there are %lld channels",
                    own->mean.count, (long long)channels);
    flow->tensor.dtype = dtype == STK_U8 ? STK_F32 : dtype;
    return STK_OK;
}

/* A run of values of one channel, or (period > 1) of channels that come in turn. */
struct run {
    const double *mean, *std;
    uint64_t period, count;
};

static void run_u8(const struct run *run, const uint8_t *from, float *to)
{
    float multiply[TRANSFORM_LIST_MAX], add[TRANSFORM_LIST_MAX];
    for (uint64_t c = 0; c < run->period; c++) {
        multiply[c] = (float)(1 / (255 * run->std[c]));
        add[c] = (float)(-run->mean[c] / run->std[c]);
    }
    for (uint64_t i = 0; i < run->count; i += run->period)
        for (uint64_t c = 0; c < run->period; c++) {
            float product = (float)from[i + c] * multiply[c];
            to[i + c] = product + add[c];
        }
}

#define RUN_FLOAT(name, type, real, in, out)                                                       \
    static void name(const struct run *run, const type *from, type *to)                            \
    {                                                                                              \
        for (uint64_t i = 0; i < run->count; i += run->period)                                     \
            for (uint64_t c = 0; c < run->period; c++)                                             \
                to[i + c] = out((in(from[i + c]) - (real)run->mean[c]) / (real)run->std[c]);       \
    }
RUN_FLOAT(run_f16, uint16_t, float, half_to_float, half_of_float)
RUN_FLOAT(run_bf16, uint16_t, float, bfloat_to_float, bfloat_of_float)
RUN_FLOAT(run_f32, float, float, , )
RUN_FLOAT(run_f64, double, double, , )

static void run_any(const struct run *run, enum stk_dtype dtype, const void *from, void *to)
{
    switch (dtype) {
    case STK_U8:
        run_u8(run, from, to);
        break;
    case STK_F16:
        run_f16(run, from, to);
        break;
    case STK_BF16:
        run_bf16(run, from, to);
        break;
    case STK_F32:
        run_f32(run, from, to);
        break;
    default:
        run_f64(run, from, to);
    }
}

static stk_status normalize_run(const void *args, const void *params, const struct stk_flow *in,
                                struct stk_flow *out, struct scratch *scratch,
                                struct stk_error *err)
{
    const struct normalize_args *own = args;
    enum stk_dtype dtype = in->tensor.dtype;
    uint64_t from_size = stk_dtype_size(dtype), to_size = stk_dtype_size(out->tensor.dtype);
    uint64_t count = stk_tensor_size(&in->tensor) / from_size, inner = 1;
    (void)params, (void)scratch, (void)err;
    if (own->mean.count == 1) {
        struct run run = {own->mean.values, own->std.values, 1, count};
        run_any(&run, dtype, in->tensor.data, out->tensor.data);
        return STK_OK;
    }
    for (int32_t axis = channel_axis(in) + 1; axis < in->tensor.rank; axis++)
        inner *= (uint64_t)in->tensor.shape[axis];
    uint64_t period = inner == 1 ? own->mean.count : 1, step = inner == 1 ? count : inner;
    for (uint64_t at = 0, c = 0; at < count; at += step, c = (c + 1) % own->mean.count) {
        struct run run = {own->mean.values + c, own->std.values + c, period, step};
        run_any(&run, dtype, (const uint8_t *)in->tensor.data + at * from_size,
                (uint8_t *)out->tensor.data + at * to_size);
    }
    return STK_OK;
}

const struct transform_ops normalize_transform = {
    .name = "Normalize",
    .help = "Subtracts a mean and divides by a deviation, of values on 0-1: uint8 is divided by "
            "255 first.",
    .media = STK_MEDIA_ANY,
    .stage = TRANSFORM_FORMAT,
    .args = normalize_table,
    .size = sizeof(struct normalize_args),
    .check = normalize_check,
    .shape = normalize_shape,
    .run = normalize_run,
};

/* --- Cast ---------------------------------------------------------------------------------------
 */

static const struct transform_arg cast_table[] = {
    {"dtype", ARG_DTYPE, offsetof(struct cast_args, dtype), NULL, 0, 0, NULL, 0, 0},
    {"scale", ARG_BOOL, offsetof(struct cast_args, scale), "False", 0, 0, NULL, 0, 0},
    {0},
};

static stk_status cast_check(void *args, struct stk_error *err)
{
    const struct cast_args *own = args;
    if (cast_is_complex((enum stk_dtype)own->dtype))
        return fail(err, STK_USAGE, "Cast makes no complex numbers");
    return STK_OK;
}

static stk_status cast_shape(const void *args, const void *params, struct stk_flow *flow,
                             struct stk_error *err)
{
    const struct cast_args *own = args;
    enum stk_dtype from = flow->tensor.dtype, to = (enum stk_dtype)own->dtype;
    (void)params;
    if (cast_is_complex(from))
        return fail(err, STK_USAGE, "Cast takes no complex numbers");
    int coarse =
        (to == STK_I32 || to == STK_U32) ? from != STK_F64 : to == STK_I64 || to == STK_U64;
    int whole = !cast_is_float(from) && !cast_is_float(to) && from != to;
    int widest = whole && (from == STK_U64 || to == STK_U64);
    if (own->scale && ((cast_is_float(from) && coarse) || widest)) {
        stk_status status = fail(err, STK_USAGE, "Cast with scale: %s cannot fill the range of %s",
                                 stk_dtype_name(from), stk_dtype_name(to));
        fail_remedy(err, "cast to a smaller integer, or without scale");
        return status;
    }
    flow->tensor.dtype = to;
    return STK_OK;
}

static stk_status cast_run(const void *args, const void *params, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct cast_args *own = args;
    (void)params, (void)scratch, (void)err;
    cast_elements(in->tensor.data, in->tensor.dtype, out->tensor.data, out->tensor.dtype,
                  own->scale ? CAST_RANGE : CAST_VALUES,
                  stk_tensor_size(&in->tensor) / stk_dtype_size(in->tensor.dtype));
    return STK_OK;
}

const struct transform_ops cast_transform = {
    .name = "Cast",
    .help = "Converts to another dtype; with scale, integers' range is 0-1 of floats.",
    .media = STK_MEDIA_ANY,
    .stage = TRANSFORM_FORMAT,
    .args = cast_table,
    .size = sizeof(struct cast_args),
    .check = cast_check,
    .shape = cast_shape,
    .run = cast_run,
};

/* --- Layout -------------------------------------------------------------------------------------
 */

#define LAYOUT_CHOICES "CHW|HWC|CTHW|THWC"

static const struct transform_arg layout_table[] = {
    {"order", ARG_CHOICE, offsetof(struct layout_args, order), NULL, 0, 0, LAYOUT_CHOICES, 0, 0},
    {0},
};

/* Axes that take part: those of one image or clip. */
static int32_t layout_axes(const struct stk_flow *flow)
{
    return flow->media == STK_MEDIA_VIDEO ? 4 : 3;
}

static int layout_first(const struct layout_args *args)
{
    return args->order == LAYOUT_CHW || args->order == LAYOUT_CTHW;
}

static stk_status layout_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct layout_args *own = args;
    int32_t axes = layout_axes(flow);
    int for_video = own->order == LAYOUT_CTHW || own->order == LAYOUT_THWC;
    int first = layout_first(own);
    (void)params;
    if (for_video != (flow->media == STK_MEDIA_VIDEO) || flow->tensor.rank < axes) {
        stk_status status = fail(err, STK_USAGE, "this order is not for %s",
                                 flow->media == STK_MEDIA_VIDEO ? "video" : "images");
        fail_remedy(err, "Layout('CHW') and Layout('HWC') are for images, Layout('CTHW') and "
                         "Layout('THWC') for video");
        return status;
    }
    if (first == flow->channels_first)
        return STK_OK;
    int64_t before[STK_MAX_RANK], *shape = flow->tensor.shape + flow->tensor.rank - axes;
    memcpy(before, shape, (size_t)axes * sizeof *before);
    for (int32_t axis = 0; axis < axes; axis++) /* turned by one place */
        shape[axis] = before[(axis + (first ? axes - 1 : 1)) % axes];
    flow->channels_first = first;
    return STK_OK;
}

static stk_status layout_run(const void *args, const void *params, const struct stk_flow *in,
                             struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    int32_t axes = layout_axes(in), front = in->tensor.rank - axes;
    const int64_t *shape = in->tensor.shape + front;
    uint64_t all = stk_tensor_size(&in->tensor), clips = 1;
    (void)args, (void)params, (void)scratch, (void)err;
    if (in->channels_first == out->channels_first || !all) {
        memcpy(out->tensor.data, in->tensor.data, all);
        return STK_OK;
    }
    for (int32_t axis = 0; axis < front; axis++)
        clips *= (uint64_t)in->tensor.shape[axis];
    int64_t channels = shape[in->channels_first ? 0 : axes - 1];
    uint64_t size = all / clips;
    int64_t others = (int64_t)(size / stk_dtype_size(in->tensor.dtype)) / channels;
    struct stk_tensor plane = {.dtype = in->tensor.dtype, .rank = 2};
    plane.shape[0] = out->channels_first ? channels : others;
    plane.shape[1] = out->channels_first ? others : channels;
    for (uint64_t clip = 0; clip < clips; clip++)
        transpose_fortran((uint8_t *)out->tensor.data + clip * size,
                          (const uint8_t *)in->tensor.data + clip * size, &plane);
    return STK_OK;
}

const struct transform_ops layout_transform = {
    .name = "Layout",
    .help = "Orders the axes: CHW or HWC of images, CTHW or THWC of video.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_FORMAT,
    .args = layout_table,
    .size = sizeof(struct layout_args),
    .shape = layout_shape,
    .run = layout_run,
};
