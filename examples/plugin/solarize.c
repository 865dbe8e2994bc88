/* A plugin: two transforms in one shared library. Copy this folder to begin your own.
 *     cc -std=c11 -O2 -shared -fPIC -Iinclude examples/plugin/solarize.c -o solarize.so
 * It links with nothing of Stoker's; stoker/plugin.h is all that it needs. */
#include <stdio.h>

#include "stoker/plugin.h"

/* Solarize(threshold=128, p=1): with probability p, values at and above the threshold are turned
 * over, as in torchvision. No shape: uint8 (H, W, C) comes in and goes out, of a video each frame.
 */
static int solarize(const double *arguments, uint64_t key, const struct stk_flow *in,
                    struct stk_flow *out, char *words)
{
    const uint8_t *from = in->tensor.data;
    uint8_t *to = out->tensor.data;
    uint64_t count = 1;
    int turn = stk_plugin_random(key, 0) < arguments[1];
    (void)words; /* nothing can go wrong */
    for (int32_t i = 0; i < in->tensor.rank; i++)
        count *= (uint64_t)in->tensor.shape[i];
    for (uint64_t i = 0; i < count; i++)
        to[i] = turn && from[i] >= arguments[0] ? (uint8_t)(255 - from[i]) : from[i];
    return STK_OK;
}

/* Energy: audio (channels, frames) -> a plain tensor (channels), the mean square of each. */
static int energy_shape(const double *arguments, struct stk_flow *flow, char *words)
{
    (void)arguments;
    if (flow->tensor.rank != 2 || flow->tensor.dtype != STK_F32) {
        snprintf(words, STK_PLUGIN_WORDS, "it takes float32 (channels, frames)");
        return STK_USAGE;
    }
    flow->media = STK_MEDIA_TENSOR;
    flow->tensor.rank = 1; /* the first axis stays */
    return STK_OK;
}

static int energy(const double *arguments, uint64_t key, const struct stk_flow *in,
                  struct stk_flow *out, char *words)
{
    int64_t channels = in->tensor.shape[0], frames = in->tensor.shape[1];
    const float *from = in->tensor.data;
    float *to = out->tensor.data;
    (void)arguments, (void)key;
    if (frames == 0) { /* the sample's fault: the loader's policy decides what becomes of it */
        snprintf(words, STK_PLUGIN_WORDS, "a recording without frames");
        return STK_CORRUPT;
    }
    for (int64_t c = 0; c < channels; c++, from += frames) {
        double sum = 0;
        for (int64_t i = 0; i < frames; i++)
            sum += (double)from[i] * from[i];
        to[c] = (float)(sum / (double)frames);
    }
    return STK_OK;
}

static const struct stk_plugin_argument solarize_arguments[] = {
    {.name = "threshold", .preset = 128, .least = 0, .most = 256},
    {.name = "p", .preset = 1, .least = 0, .most = 1},
};

static const struct stk_plugin_transform transforms[] = {
    {
        .name = "Solarize",
        .help = "Turns over the values at and above a threshold.",
        .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
        .arguments = solarize_arguments,
        .argument_count = 2,
        .run = solarize,
    },
    {
        .name = "Energy",
        .help = "The mean square of each channel.",
        .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO) | STK_MEDIA_BIT(STK_MEDIA_TENSOR),
        .shape = energy_shape,
        .run = energy,
    },
};

STK_API const struct stk_plugin stoker_plugin = {
    .version = STK_PLUGIN_VERSION,
    .size = sizeof(struct stk_plugin),
    .name = "example",
    .transforms = transforms,
    .transform_count = 2,
    .transform_size = sizeof transforms[0],
};
