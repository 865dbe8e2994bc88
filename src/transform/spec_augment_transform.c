/* SpecAugment: bands of frequencies and of time are masked (Park et al., 2019). */
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/signal_device.h"
#include "transform/transform.h"

enum mask_fill { FILL_ZERO, FILL_MEAN };

struct spec_augment_args {
    int64_t freq_masks, freq_width, time_masks, time_width;
    double p; /* that a sample is masked at all */
    int fill;
};
_Static_assert(sizeof(struct spec_params) <= TRANSFORM_PARAMS, "params fit");

#define ARG(member) offsetof(struct spec_augment_args, member)
static const struct transform_arg spec_augment_args[] = {
    {"freq_masks", ARG_INT, ARG(freq_masks), "2", 0, SPEC_MASKS, NULL, 0, 0},
    {"freq_width", ARG_INT, ARG(freq_width), "27", 0, 1e6, NULL, 0, 0},
    {"time_masks", ARG_INT, ARG(time_masks), "2", 0, SPEC_MASKS, NULL, 0, 0},
    {"time_width", ARG_INT, ARG(time_width), "100", 0, 1e6, NULL, 0, 0},
    {"p", ARG_FLOAT, ARG(p), "1", 0, 1, NULL, 0, 0},
    {"fill", ARG_CHOICE, ARG(fill), "zero", 0, 0, "zero|mean", 0, 0},
    {0}};

static stk_status spec_augment_shape(const void *args, const void *params, struct stk_flow *flow,
                                     struct stk_error *err)
{
    (void)args, (void)params;
    if (flow->tensor.dtype == STK_F32 && flow->tensor.rank == 3)
        return STK_OK;
    (void)fail(err, STK_USAGE, "SpecAugment takes a spectrogram, float32 (channels, bands, time)");
    fail_remedy(err, "put LogMel in front of it");
    return STK_USAGE;
}

/* A width uniform in 0 to `width`, at most the length; then a place uniform in what is left. */
static struct spec_mask draw_mask(uint64_t key, uint64_t counter, int64_t width, int64_t length)
{
    int64_t count = (int64_t)(random_unit(key, counter) * (double)(width + 1));
    count = count < length ? count : length;
    int64_t first = (int64_t)(random_unit(key, counter + 1) * (double)(length - count + 1));
    return (struct spec_mask){.first = (int32_t)first, .count = (int32_t)count};
}

static void spec_augment_draw(const void *arguments, uint64_t key, const struct stk_flow *in,
                              void *params)
{
    const struct spec_augment_args *args = arguments;
    struct spec_params *drawn = params;
    int64_t time = in->real >= 0 ? in->real : in->tensor.shape[2]; /* not in the padding */
    uint64_t counter = 1;
    if (random_unit(key, 0) >= args->p)
        return;
    for (int64_t i = 0; i < args->freq_masks; i++, counter += 2)
        drawn->freq[i] = draw_mask(key, counter, args->freq_width, in->tensor.shape[1]);
    for (int64_t i = 0; i < args->time_masks; i++, counter += 2)
        drawn->time[i] = draw_mask(key, counter, args->time_width, time);
}

static void fill_values(float *at, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        at[i] = value;
}

static float mean_of(const float *data, uint64_t count)
{
    double sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += data[i];
    return count ? (float)(sum / (double)count) : 0;
}

static stk_status spec_augment_run(const void *arguments, const void *params,
                                   const struct stk_flow *in, struct stk_flow *out,
                                   struct scratch *scratch, struct stk_error *err)
{
    const struct spec_augment_args *args = arguments;
    const struct spec_params *drawn = params;
    int64_t channels = in->tensor.shape[0], bands = in->tensor.shape[1], time = in->tensor.shape[2];
    uint64_t size = stk_tensor_size(&in->tensor);
    float *to = out->tensor.data;
    (void)scratch, (void)err;
    if (to != in->tensor.data)
        memcpy(to, in->tensor.data, size);
    float value = args->fill == FILL_MEAN ? mean_of(to, size / sizeof(float)) : 0;
    for (int64_t c = 0; c < channels; c++) {
        float *channel = to + c * bands * time;
        for (int i = 0; i < SPEC_MASKS; i++)
            fill_values(channel + drawn->freq[i].first * time, drawn->freq[i].count * time, value);
        for (int i = 0; i < SPEC_MASKS; i++)
            for (int64_t band = 0; drawn->time[i].count && band < bands; band++)
                fill_values(channel + band * time + drawn->time[i].first, drawn->time[i].count,
                            value);
    }
    return STK_OK;
}

static stk_status spec_augment_run_device(const struct transform_device_step *step,
                                          struct stk_error *err)
{
    const struct spec_augment_args *args = step->args;
    return signal_device_mask(step, args->fill == FILL_MEAN, err);
}

static uint64_t spec_augment_scratch(const void *args, const struct stk_flow *in, uint32_t count)
{
    (void)in;
    return ((const struct spec_augment_args *)args)->fill == FILL_MEAN
               ? signal_device_scratch(count)
               : 0;
}

const struct transform_ops spec_augment_transform = {
    .name = "SpecAugment",
    .help = "Masks random bands of frequencies and stretches of time of a spectrogram.",
    .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_TENSOR,
    .args = spec_augment_args,
    .size = sizeof(struct spec_augment_args),
    .shape = spec_augment_shape,
    .draw = spec_augment_draw,
    .run = spec_augment_run,
    .in_place = 1,
    .run_device = spec_augment_run_device,
    .device_scratch = spec_augment_scratch,
};
