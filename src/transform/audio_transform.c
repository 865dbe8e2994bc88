/* Gain and Resample. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "transform/audio_resample.h"
#include "transform/signal_device.h"
#include "transform/transform.h"

/* --- Gain(db=0, clip=False) ------------------------------------------------------------------- */

struct gain_args {
    struct transform_list db; /* one: always; two: uniform between them */
    int clip;                 /* values end at -1 and 1 */
};

static const struct transform_arg gain_args[] = {
    {"db", ARG_FLOATS, offsetof(struct gain_args, db), "0", -200, 200, NULL, 1, 2},
    {"clip", ARG_BOOL, offsetof(struct gain_args, clip), "False", 0, 0, NULL, 0, 0},
    {0}};

static stk_status gain_check(void *arguments, struct stk_error *err)
{
    const struct gain_args *args = arguments;
    if (args->db.count == 2 && args->db.values[0] > args->db.values[1])
        return fail(err, STK_USAGE, "db is (%g, %g), but the lower comes first", args->db.values[0],
                    args->db.values[1]);
    return STK_OK;
}

static stk_status gain_shape(const void *args, const void *params, struct stk_flow *flow,
                             struct stk_error *err)
{
    (void)args, (void)params;
    if (flow->tensor.dtype != STK_F32)
        return fail(err, STK_USAGE, "Gain takes float32, not %s",
                    stk_dtype_name(flow->tensor.dtype));
    return STK_OK;
}

static void gain_draw(const void *arguments, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct gain_args *args = arguments;
    struct gain_params *drawn = params;
    double db = args->db.values[0];
    (void)in;
    if (args->db.count == 2)
        db += random_unit(key, 0) * (args->db.values[1] - db);
    drawn->factor = (float)pow(10, db / 20);
}

static stk_status gain_run(const void *arguments, const void *params, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct gain_args *args = arguments;
    const struct gain_params *drawn = params;
    uint64_t count = stk_tensor_size(&in->tensor) / sizeof(float);
    const float *from = in->tensor.data;
    float *to = out->tensor.data, factor = drawn->factor;
    (void)scratch, (void)err;
    for (uint64_t i = 0; i < count; i++)
        to[i] = from[i] * factor;
    for (uint64_t i = 0; args->clip && i < count; i++) {
        float least = to[i] < -1 ? -1 : to[i]; /* not a number stays so */
        to[i] = least > 1 ? 1 : least;
    }
    return STK_OK;
}

static stk_status gain_run_device(const struct transform_device_step *step, struct stk_error *err)
{
    return signal_device_gain(step, ((const struct gain_args *)step->args)->clip, err);
}

const struct transform_ops gain_transform = {
    .name = "Gain",
    .help = "Makes a recording louder or softer by db decibels, or by a random number of them.",
    .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_TENSOR,
    .args = gain_args,
    .size = sizeof(struct gain_args),
    .check = gain_check,
    .shape = gain_shape,
    .draw = gain_draw,
    .run = gain_run,
    .in_place = 1,
    .run_device = gain_run_device,
};

/* --- Resample(rate, orig_rate=None) ----------------------------------------------------------- */

/* Resamplers that no thread uses now, kept for the next sample: a step has no state of its own a
 * thread. A place is emptied and filled by exchange alone. */
#define IDLE_MAX 64
struct resample_idle {
    _Atomic(struct audio_resampler *) places[IDLE_MAX];
};
struct resample_args {
    double rate, orig_rate;
    struct resample_idle *idle; /* made by check */
};

static const struct transform_arg resample_args[] = {
    {"rate", ARG_FLOAT, offsetof(struct resample_args, rate), NULL, 1, 1e6, NULL, 0, 0},
    {"orig_rate", ARG_FLOAT, offsetof(struct resample_args, orig_rate), "None", 1, 1e6, NULL, 0, 0},
    {0}};

static stk_status resample_check(void *arguments, struct stk_error *err)
{
    struct resample_args *args = arguments;
    if (args->rate != floor(args->rate) || args->orig_rate != floor(args->orig_rate))
        return fail(err, STK_USAGE, "a rate must be a whole number of frames a second");
    args->idle = memory_zero(1, sizeof *args->idle);
    return args->idle ? STK_OK : fail_memory(err, sizeof *args->idle);
}

static void resample_release(void *arguments)
{
    struct resample_args *args = arguments;
    for (int i = 0; args->idle && i < IDLE_MAX; i++)
        audio_resampler_free(atomic_load(&args->idle->places[i]));
    memory_free(args->idle);
    args->idle = NULL;
}

static stk_status take_resampler(struct resample_idle *idle, struct audio_resampler **out,
                                 struct stk_error *err)
{
    for (int i = 0; i < IDLE_MAX; i++) {
        *out = atomic_exchange(&idle->places[i], NULL);
        if (*out)
            return STK_OK;
    }
    return audio_resampler_new(out, err);
}

static void give_resampler(struct resample_idle *idle, struct audio_resampler *resampler)
{
    for (int i = 0; i < IDLE_MAX; i++) {
        struct audio_resampler *none = NULL;
        if (atomic_compare_exchange_strong(&idle->places[i], &none, resampler))
            return;
    }
    audio_resampler_free(resampler);
}

static stk_status resample_shape(const void *arguments, const void *params, struct stk_flow *flow,
                                 struct stk_error *err)
{
    const struct resample_args *args = arguments;
    double from = args->orig_rate ? args->orig_rate : flow->rate;
    int64_t frames = flow->tensor.shape[1];
    if (flow->tensor.dtype != STK_F32 || flow->tensor.rank != 2)
        return fail(err, STK_USAGE, "Resample takes float32 (channels, frames)");
    if (params && !from) {
        (void)fail(err, STK_USAGE, "Resample does not know the rate of these values");
        fail_remedy(err, "say Resample(%.15g, orig_rate=44100)", args->rate);
        return STK_USAGE;
    }
    stk_status status = from ? audio_rates_check(from, args->rate, err) : STK_OK;
    if (status)
        return status;
    if (params && flow->tensor.shape[0] > 64)
        return fail(err, STK_LIMIT, "Resample takes 64 channels at most");
    flow->tensor.shape[1] = frames < 0 || !from ? -1 : audio_resampled(frames, from, args->rate);
    if (flow->real >= 0 && from)
        flow->real = audio_resampled(flow->real, from, args->rate);
    flow->rate = args->rate;
    return STK_OK;
}

static stk_status resample_run(const void *arguments, const void *params, const struct stk_flow *in,
                               struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct resample_args *args = arguments;
    struct audio_resample_job job = {.from = args->orig_rate ? args->orig_rate : in->rate,
                                     .to = args->rate,
                                     .channels = (int32_t)in->tensor.shape[0],
                                     .in = in->tensor.data,
                                     .in_frames = in->tensor.shape[1],
                                     .out = out->tensor.data,
                                     .out_frames = out->tensor.shape[1]};
    (void)params, (void)scratch;
    if (job.from == job.to || !job.channels || !job.out_frames) {
        memcpy(job.out, job.in, stk_tensor_size(&out->tensor));
        return STK_OK;
    }
    struct audio_resampler *resampler = NULL;
    stk_status status = take_resampler(args->idle, &resampler, err);
    if (status)
        return status;
    status = audio_resample(resampler, &job, err);
    give_resampler(args->idle, resampler);
    return status;
}

const struct transform_ops resample_transform = {
    .name = "Resample",
    .help = "Changes the sampling rate of a recording, by libsoxr at high quality.",
    .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_TENSOR,
    .args = resample_args,
    .size = sizeof(struct resample_args),
    .check = resample_check,
    .shape = resample_shape,
    .run = resample_run,
    .release = resample_release,
};
