#include <math.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/audio_range.h"
#include "transform/audio_resample.h"
#include "transform/decode_transform.h"

#define ARG(member) offsetof(struct decode_audio_args, member)
static const struct transform_arg decode_audio_args[] = {
    {"rate", ARG_FLOAT, ARG(rate), "None", 1, 1e6, NULL, 0, 0},
    {"mono", ARG_BOOL, ARG(mono), "False", 0, 0, NULL, 0, 0},
    {"seconds", ARG_FLOAT, ARG(seconds), "None", 1e-6, 1e6, NULL, 0, 0},
    {"frames", ARG_INT, ARG(frames), "None", 1, 1e9, NULL, 0, 0},
    {"crop", ARG_CHOICE, ARG(crop), "start", 0, 0, CLIP_FROM_CHOICES, 0, 0},
    {"pad", ARG_BOOL, ARG(pad), "True", 0, 0, NULL, 0, 0},
    {0}};

static stk_status decode_audio_check(void *arguments, struct stk_error *err)
{
    struct decode_audio_args *args = arguments;
    if (args->rate != floor(args->rate))
        return fail(err, STK_USAGE, "rate is %g, but must be a whole number of frames a second",
                    args->rate);
    if (args->seconds && args->frames)
        return fail(err, STK_USAGE, "seconds and frames both say how long: give one of them");
    if (args->seconds * (args->rate ? args->rate : 1) > 1e9)
        return fail(err, STK_USAGE, "%g seconds at %g frames a second are too long", args->seconds,
                    args->rate);
    return STK_OK;
}

/* The length that is asked for, at least 1; 0: none is, or the rate that seconds need is not known.
 */
static int64_t fixed_length(const struct decode_audio_args *args, double rate)
{
    if (args->frames || !args->seconds || !rate)
        return args->frames;
    int64_t frames = llround(args->seconds * rate);
    return frames > 1 ? frames : 1;
}

void audio_range_find(const struct decode_audio_args *args,
                      const struct decode_audio_params *params, const struct stk_flow *stored,
                      struct audio_range *range)
{
    double rate = args->rate ? args->rate : stored->rate;
    int64_t whole = audio_resampled(stored->tensor.shape[1], stored->rate, rate);
    int64_t fixed = fixed_length(args, rate);
    *range = (struct audio_range){.count = whole, .length = fixed ? fixed : whole};
    if (whole <= range->length)
        return;
    int64_t room = whole - range->length; /* there are room + 1 places to begin at */
    int64_t first = (int64_t)(params->start * ((double)room + 1));
    range->first = first < room ? first : room;
    range->count = range->length;
}

static stk_status decode_audio_shape(const void *arguments, const void *params,
                                     struct stk_flow *flow, struct stk_error *err)
{
    const struct decode_audio_args *args = arguments;
    double rate = args->rate ? args->rate : flow->rate;
    int64_t fixed = fixed_length(args, rate);
    int64_t *shape = flow->tensor.shape;
    flow->real = -1;
    if (params) {
        struct audio_range range;
        audio_range_find(args, params, flow, &range);
        if (range.count < range.length && !args->pad) {
            (void)fail(err, STK_SHAPE, "a recording of %lld frames, where %lld are asked for",
                       (long long)range.count, (long long)range.length);
            fail_remedy(err, "DecodeAudio(pad=True) fills it up with zeros");
            return STK_SHAPE;
        }
        shape[1] = range.length;
        if (fixed && args->pad)
            flow->real = range.count;
    } else {
        shape[1] = fixed ? fixed : -1;
        if ((args->frames || args->seconds) && args->pad)
            flow->real = fixed; /* 0 where the rate is not known yet: it pads all the same */
    }
    if (args->mono)
        shape[0] = 1;
    flow->rate = rate;
    return STK_OK;
}

static void decode_audio_draw(const void *arguments, uint64_t key, const struct stk_flow *in,
                              void *params)
{
    const struct decode_audio_args *args = arguments;
    struct decode_audio_params *drawn = params;
    (void)in;
    if (args->crop == CLIP_RANDOM)
        drawn->start = random_unit(key, 0);
    else
        drawn->start = args->crop == CLIP_CENTER ? 0.5 : 0;
}

const struct transform_ops decode_audio_transform = {
    .name = "DecodeAudio",
    .help =
        "Decodes a recording to float32 (channels, frames): resampled, mixed to mono, and cut or "
        "padded to a fixed length.",
    .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_DECODE,
    .args = decode_audio_args,
    .size = sizeof(struct decode_audio_args),
    .check = decode_audio_check,
    .shape = decode_audio_shape,
    .draw = decode_audio_draw,
};
