/* TemporalCrop and Noise: of tensors with any axes. */
#include <string.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/random.h"
#include "transform/decode_transform.h"
#include "transform/gaussian.h"
#include "transform/signal_device.h"

/* ---- TemporalCrop -------------------------------------------------------------------------- */

struct crop_args {
    int64_t frames, axis;
    int start; /* enum clip_from */
};
struct crop_params {
    int64_t start;
};

static const struct transform_arg crop_arguments[] = {
    {.name = "frames",
     .type = ARG_INT,
     .offset = offsetof(struct crop_args, frames),
     .least = 1,
     .most = 1e15},
    {.name = "axis",
     .type = ARG_INT,
     .offset = offsetof(struct crop_args, axis),
     .preset = "0",
     .least = -STK_MAX_RANK,
     .most = STK_MAX_RANK - 1},
    {.name = "start",
     .type = ARG_CHOICE,
     .offset = offsetof(struct crop_args, start),
     .preset = "random",
     .choices = CLIP_FROM_CHOICES},
    {.name = NULL},
};

/* The axis of time: a video's and a recording's are known, a tensor's is the argument. -1: it has
 * no such axis. */
static int time_axis(const struct crop_args *args, const struct stk_flow *flow)
{
    int rank = flow->tensor.rank;
    if (flow->media == STK_MEDIA_VIDEO)
        return rank - 4 + (flow->channels_first != 0);
    if (flow->media == STK_MEDIA_AUDIO)
        return rank - 1;
    int64_t axis = args->axis < 0 ? args->axis + rank : args->axis;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

static stk_status crop_shape(const void *from, const void *drawn, struct stk_flow *flow,
                             struct stk_error *err)
{
    const struct crop_args *args = from;
    const struct crop_params *params = drawn;
    int axis = time_axis(args, flow);
    if (axis < 0) {
        fail(err, STK_SHAPE, "TemporalCrop cuts axis %lld, but the tensor has %d axes",
             (long long)args->axis, (int)flow->tensor.rank);
        fail_remedy(err, "give the axis of time, counted from 0");
        return STK_SHAPE;
    }
    int64_t length = flow->tensor.shape[axis];
    if (length >= 0 && length < args->frames) {
        fail(err, STK_SHAPE, "TemporalCrop takes %lld frames, but axis %d has %lld",
             (long long)args->frames, axis, (long long)length);
        fail_remedy(err, "take fewer frames, or pad before");
        return STK_SHAPE;
    }
    flow->tensor.shape[axis] = args->frames;
    if (params && flow->media == STK_MEDIA_AUDIO && flow->real >= 0) {
        int64_t left = flow->real > params->start ? flow->real - params->start : 0;
        flow->real = left < args->frames ? left : args->frames;
    }
    return STK_OK;
}

static void crop_draw(const void *from, uint64_t key, const struct stk_flow *in, void *to)
{
    const struct crop_args *args = from;
    int axis = time_axis(args, in);
    int64_t room = axis < 0 ? 0 : in->tensor.shape[axis] - args->frames;
    if (room <= 0 || args->start == CLIP_START)
        return;
    ((struct crop_params *)to)->start =
        args->start == CLIP_CENTER ? room / 2 : (int64_t)(random_unit(key, 0) * (double)(room + 1));
}

static stk_status crop_run(const void *from, const void *drawn, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    int axis = time_axis(from, in);
    uint64_t outer = 1, inner = stk_dtype_size(in->tensor.dtype);
    uint64_t start = (uint64_t)((const struct crop_params *)drawn)->start;
    (void)scratch;
    (void)err;
    for (int i = 0; i < axis; i++)
        outer *= (uint64_t)in->tensor.shape[i];
    for (int i = axis + 1; i < in->tensor.rank; i++)
        inner *= (uint64_t)in->tensor.shape[i];
    uint64_t from_step = (uint64_t)in->tensor.shape[axis] * inner;
    uint64_t to_step = (uint64_t)out->tensor.shape[axis] * inner;
    const uint8_t *source = (const uint8_t *)in->tensor.data + start * inner;
    for (uint64_t i = 0; i < outer && to_step; i++)
        memcpy((uint8_t *)out->tensor.data + i * to_step, source + i * from_step, to_step);
    return STK_OK;
}

const struct transform_ops temporal_crop_transform = {
    .name = "TemporalCrop",
    .help = "Cuts so many frames out of the axis of time.",
    .media = STK_MEDIA_BIT(STK_MEDIA_TENSOR) | STK_MEDIA_BIT(STK_MEDIA_VIDEO) |
             STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_TENSOR,
    .args = crop_arguments,
    .size = sizeof(struct crop_args),
    .shape = crop_shape,
    .draw = crop_draw,
    .run = crop_run,
};

/* ---- Noise --------------------------------------------------------------------------------- */

struct noise_args {
    double sigma, p;
};

static const struct transform_arg noise_arguments[] = {
    {.name = "sigma",
     .type = ARG_FLOAT,
     .offset = offsetof(struct noise_args, sigma),
     .preset = "0.1",
     .least = 0,
     .most = 1e9},
    {.name = "p",
     .type = ARG_FLOAT,
     .offset = offsetof(struct noise_args, p),
     .preset = "1.0",
     .least = 0,
     .most = 1},
    {.name = NULL},
};

static stk_status noise_shape(const void *args, const void *params, struct stk_flow *flow,
                              struct stk_error *err)
{
    enum stk_dtype dtype = flow->tensor.dtype;
    (void)args;
    (void)params;
    if (dtype == STK_F32 || dtype == STK_F16 || dtype == STK_BF16)
        return STK_OK;
    fail(err, STK_SHAPE, "Noise is added to float32, float16 or bfloat16, not to %s",
         stk_dtype_name(dtype));
    fail_remedy(err, "write Cast(float32) before it");
    return STK_SHAPE;
}

static void noise_draw(const void *from, uint64_t key, const struct stk_flow *in, void *to)
{
    const struct noise_args *args = from;
    (void)in;
    *(struct noise_params *)to =
        (struct noise_params){.key = random_key(key, 1), .applied = random_unit(key, 0) < args->p};
}

#define NOISE_BLOCK 512

/* Element i of the tensor takes number i of the stream (gaussian.h). */
static void noise_add(enum stk_dtype dtype, uint64_t key, float sigma, void *data, uint64_t first,
                      uint64_t count)
{
    float noise[NOISE_BLOCK], *floats = data;
    uint16_t *halves = data;
    for (uint64_t len; count > 0; first += len, count -= len) {
        len = count < NOISE_BLOCK ? count : NOISE_BLOCK;
        gaussian_fill(key, first, len, noise);
        if (dtype == STK_F32)
            for (uint64_t i = 0; i < len; i++)
                floats[first + i] += noise[i] * sigma;
        else if (dtype == STK_F16)
            for (uint64_t i = 0; i < len; i++)
                halves[first + i] =
                    half_of_float(half_to_float(halves[first + i]) + noise[i] * sigma);
        else
            for (uint64_t i = 0; i < len; i++)
                halves[first + i] =
                    bfloat_of_float(bfloat_to_float(halves[first + i]) + noise[i] * sigma);
    }
}

/* Padding of points (rows behind the real ones) and of recordings (frames behind them) stays zero:
 * noise is added to the first `real` of every `step` elements. */
static void noise_span(const struct stk_flow *flow, uint64_t *step, uint64_t *real)
{
    uint64_t all = stk_tensor_size(&flow->tensor) / stk_dtype_size(flow->tensor.dtype);
    int rank = flow->tensor.rank;
    *step = *real = all;
    if (flow->real < 0 || rank < 1)
        return;
    if (flow->media == STK_MEDIA_POINTS && flow->real < flow->tensor.shape[0])
        *real = (uint64_t)flow->real * (all / (uint64_t)flow->tensor.shape[0]);
    if (flow->media == STK_MEDIA_AUDIO && flow->real < flow->tensor.shape[rank - 1]) {
        *step = (uint64_t)flow->tensor.shape[rank - 1];
        *real = (uint64_t)flow->real;
    }
}

static stk_status noise_run(const void *from, const void *drawn, const struct stk_flow *in,
                            struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct noise_args *args = from;
    const struct noise_params *params = drawn;
    uint64_t size = stk_tensor_size(&in->tensor), step, real;
    uint64_t all = size / stk_dtype_size(in->tensor.dtype);
    (void)scratch;
    (void)err;
    if (out->tensor.data != in->tensor.data && size)
        memcpy(out->tensor.data, in->tensor.data, size);
    if (!params->applied)
        return STK_OK;
    noise_span(in, &step, &real);
    for (uint64_t at = 0; at < all; at += step)
        noise_add(in->tensor.dtype, params->key, (float)args->sigma, out->tensor.data, at, real);
    return STK_OK;
}

static stk_status noise_run_device(const struct transform_device_step *step, struct stk_error *err)
{
    return signal_device_noise(step, ((const struct noise_args *)step->args)->sigma, err);
}

/* The device is not told where a sample's padding begins. */
static int noise_refuses(const void *args, const struct stk_flow *in)
{
    (void)args;
    return in->real >= 0;
}

const struct transform_ops noise_transform = {
    .name = "Noise",
    .help = "Adds normal noise of deviation sigma, with probability p.",
    .media = STK_MEDIA_ANY,
    .stage = TRANSFORM_TENSOR,
    .args = noise_arguments,
    .size = sizeof(struct noise_args),
    .shape = noise_shape,
    .draw = noise_draw,
    .run = noise_run,
    .in_place = 1,
    .run_device = noise_run_device,
    .device_refuses = noise_refuses,
};
