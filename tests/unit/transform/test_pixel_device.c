/* The device twins of ColorJitter, Grayscale, GaussianBlur and RandomErasing, against their CPU
 * twins: images of any size, 1 to 4 channels, videos, and rows that begin anywhere. */
#include "transform/twin_testing.h"

enum { TRIALS = 60 };

/* Of any size; most are no multiple of 4 pixels, and some begin between words. */
static void check_chain(void **state, const char *chain, int32_t least_side, double tolerance)
{
    struct device *device = device_or_skip(state);
    struct dice dice = {.key = 7};
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        int32_t height = dice_within(&dice, least_side, least_side + 40);
        int32_t width = dice_within(&dice, least_side, least_side + 60);
        int32_t channels = dice_within(&dice, 1, 4);
        struct twin twin = {.chain = chain,
                            .in = twin_image(height, width, channels),
                            .count = (uint32_t)dice_within(&dice, 1, 5),
                            .key = random_key(11, trial),
                            .shift = trial % 3 ? 0 : (uint64_t)dice_within(&dice, 1, 5),
                            .tolerance = tolerance};
        if (trial % 5 == 0)
            twin.in = twin_video(dice_within(&dice, 1, 4), height, width, channels);
        twin_check(device, &twin);
    }
}

static void color_jitter_gives_the_cpus_pixels_to_the_bit(void **state)
{
    check_chain(state, "ColorJitter(0.4, 0.4, 0.4, 0.1)", 1, 0);
    check_chain(state, "ColorJitter(0.9, (0, 3), (0, 5), 0.5)", 1, 0);
}

static void what_color_jitter_leaves_alone_stays(void **state)
{
    check_chain(state, "ColorJitter", 1, 0);
    check_chain(state, "ColorJitter(0.5)", 1, 0);
    check_chain(state, "ColorJitter(0, 0.5)", 1, 0);
    check_chain(state, "ColorJitter(0, 0, 0.5)", 1, 0);
    check_chain(state, "ColorJitter(0, 0, 0, 0.3)", 1, 0);
}

static void the_mean_of_large_images_is_the_cpus(void **state)
{
    struct device *device = device_or_skip(state);
    for (int64_t channels = 1; channels <= 4; channels++)
        twin_check(device, &(struct twin){.chain = "ColorJitter(0.2, (0.1, 2), 0.2, 0.1)",
                                          .in = twin_image(97, 128, channels),
                                          .count = 3,
                                          .key = (uint64_t)channels});
}

static void grayscale_gives_the_cpus_pixels_to_the_bit(void **state)
{
    check_chain(state, "Grayscale", 1, 0);
    check_chain(state, "Grayscale(3)", 1, 0);
}

static void blurred_pixels_are_the_cpus_within_a_level(void **state)
{
    check_chain(state, "GaussianBlur(3)", 2, 1);
    check_chain(state, "GaussianBlur((9, 5), sigma=(0.1, 5))", 5, 1);
    check_chain(state, "GaussianBlur((1, 23), sigma=3)", 12, 1);
}

/* Finished images: any type, either layout, frames and clips. */
static void check_erasing(void **state, const char *chain, int64_t channels)
{
    static const enum stk_dtype dtypes[] = {STK_U8, STK_F32, STK_F16, STK_BF16};
    struct device *device = device_or_skip(state);
    struct dice dice = {.key = 5};
    for (uint64_t trial = 0; trial < TRIALS; trial++) {
        int64_t height = dice_within(&dice, 2, 40), width = dice_within(&dice, 2, 40);
        int64_t frames = dice_within(&dice, 1, 3), clips = dice_within(&dice, 1, 3);
        int64_t own = channels ? channels : dice_within(&dice, 1, 4);
        int first = trial % 2, video = trial % 3 == 0, several = trial % 6 == 3;
        struct twin twin = {.chain = chain,
                            .in = twin_image(height, width, own),
                            .count = (uint32_t)dice_within(&dice, 1, 4),
                            .key = random_key(3, trial)};
        int64_t *shape = twin.in.tensor.shape;
        if (video)
            twin.in = twin_video(frames, height, width, own);
        if (first && video)
            memcpy(shape, (int64_t[]){own, frames, height, width}, 4 * sizeof *shape);
        else if (first)
            memcpy(shape, (int64_t[]){own, height, width}, 3 * sizeof *shape);
        if (several) {
            memmove(shape + 1, shape, 4 * sizeof *shape);
            shape[0] = clips;
            twin.in.tensor.rank = 5;
        }
        twin.in.channels_first = first;
        twin.in.tensor.dtype = dtypes[dice_below(&dice, 4)];
        twin.tolerance = twin.in.tensor.dtype == STK_BF16 ? 0.008 : 1e-3;
        twin_check(device, &twin);
    }
}

static void what_is_erased_is_what_the_cpu_erases(void **state)
{
    check_erasing(state, "RandomErasing(p=1)", 0);
    check_erasing(state, "RandomErasing(p=0.5, value=0.7)", 0);
    check_erasing(state, "RandomErasing(p=1, value=(1, 20, 300))", 3);
}

static void erased_noise_is_the_cpus(void **state)
{
    check_erasing(state, "RandomErasing(p=0.9, scale=(0.1, 0.8), value=random)", 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(color_jitter_gives_the_cpus_pixels_to_the_bit),
        cmocka_unit_test(what_color_jitter_leaves_alone_stays),
        cmocka_unit_test(the_mean_of_large_images_is_the_cpus),
        cmocka_unit_test(grayscale_gives_the_cpus_pixels_to_the_bit),
        cmocka_unit_test(blurred_pixels_are_the_cpus_within_a_level),
        cmocka_unit_test(what_is_erased_is_what_the_cpu_erases),
        cmocka_unit_test(erased_noise_is_the_cpus),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
