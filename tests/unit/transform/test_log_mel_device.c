/* The device twins of transforms of recordings, against their CPU twins. */
#include "transform/twin_testing.h"

#include "gpu/gpu_fixture.h"
#include "gpu/library.h"

/* (channels, frames) of floats. */
static struct stk_flow recording(int64_t channels, int64_t frames, double rate)
{
    return (struct stk_flow){.media = STK_MEDIA_AUDIO,
                             .tensor = {.dtype = STK_F32, .rank = 2, .shape = {channels, frames}},
                             .rate = rate,
                             .real = -1};
}

static struct device *fft_or_skip(void **state)
{
    struct device *device = device_or_skip(state);
    struct stk_error err = {0};
    void *handle;
    if (gpu_library_open(GPU_CUFFT, &handle, &err)) {
        print_message("%s\n", err.what);
        skip();
    }
    return device;
}

static void spectrograms_are_the_cpus(void **state)
{
    static const char *const chains[] = {
        "LogMel(n_fft=64, hop_length=16, n_mels=10)",
        "LogMel(n_fft=64, hop_length=20, win_length=40, n_mels=8, pad_mode=reflect)",
        "LogMel(n_fft=50, hop_length=25, n_mels=6, pad_mode=edge, top_db=20)",
        "LogMel(n_fft=63, hop_length=32, n_mels=5, center=False, htk=True, norm=none)",
        "LogMel(n_fft=128, hop_length=64, n_mels=20, power=1, ref=2, top_db=0)",
        "LogMel(n_fft=32, hop_length=40, n_mels=4, power=1.5, fmin=100, fmax=3000, amin=1e-3)",
    };
    struct device *device = fft_or_skip(state);
    struct dice dice = {.key = 21};
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++)
        for (uint64_t trial = 0; trial < 6; trial++)
            twin_check(device, &(struct twin){.chain = chains[i],
                                              .in = recording(dice_within(&dice, 1, 3),
                                                              dice_within(&dice, 130, 400), 8000),
                                              .count = (uint32_t)dice_within(&dice, 1, 5),
                                              .key = random_key(9, trial),
                                              .tolerance = 1e-3});
}

/* More columns than go into a lot of transforms. */
static void batches_of_many_lots_are_the_cpus(void **state)
{
    struct device *device = fft_or_skip(state);
    twin_check(device, &(struct twin){.chain = "LogMel(n_fft=16, hop_length=8, n_mels=3)",
                                      .in = recording(1, 24, 8000),
                                      .count = 150,
                                      .key = 4,
                                      .tolerance = 1e-3});
}

static void silence_lies_at_the_floor(void **state)
{
    struct device *device = fft_or_skip(state);
    struct twin twin = {.chain = "LogMel(n_fft=32, hop_length=16, n_mels=4)",
                        .in = recording(1, 100, 8000),
                        .count = 2,
                        .tolerance = 1e-3};
    struct twin_run run;
    twin_begin(&run, &twin);
    memset(run.from, 0, run.in_size * twin.count);
    twin_cpu(&run);
    twin_device(&run, device);
    twin_compare(&run);
    assert_true(fabs(twin_value(STK_F32, run.want, 0) + 100) < 1e-3);
    twin_end(&run);
}

static void without_a_rate_the_device_refuses(void **state)
{
    struct chain chain = {0};
    struct stk_flow in = recording(1, 4000, 0);
    (void)fft_or_skip(state);
    assert_int_equal(chain_parse(&chain, "LogMel | LogMel(rate=8000)", NULL, NULL), STK_OK);
    assert_true(chain.steps[0].ops->device_refuses(chain.steps[0].args, &in));
    assert_false(chain.steps[1].ops->device_refuses(chain.steps[1].args, &in));
    chain_reset(&chain);
}

/* A chain that is parsed, made ready for the device and freed. 1: it worked. */
static int make_ready(void *user)
{
    struct device *device = user;
    struct chain chain = {0};
    struct stk_flow in = recording(1, 400, 8000), out = in;
    struct stk_error err = {0};
    stk_status status = chain_parse(&chain, "LogMel(n_fft=64, n_mels=8)", NULL, &err);
    if (!status)
        status = chain.steps[0].ops->shape(chain.steps[0].args, NULL, &out, &err);
    if (!status) {
        struct transform_device_step step = {
            .args = chain.steps[0].args, .in = &in, .out = &out, .gpu = device->gpu};
        status = chain.steps[0].ops->run_device(&step, &err);
    }
    chain_reset(&chain);
    assert_true(!status || err.what[0]);
    return !status;
}

static void what_fails_half_way_leaves_nothing(void **state)
{
    static const char *const faults[] = {"cuMemAlloc_v2:1:2", "cuStreamCreateWithPriority:1:2",
                                         "cuMemcpyHtoDAsync_v2:1:2", "cuStreamSynchronize:1:2",
                                         "cuEventCreate:1:2"};
    struct device *device = fft_or_skip(state);
    NEEDS_SIMULATION();
    struct sim_cuda_counts before = counts_now(), after;
    assert_true(make_ready(device)); /* kernels are loaded */
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        fail_driver(faults[i]);
        assert_false(make_ready(device));
        after = counts_now();
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.events, before.events);
        assert_int_equal(after.streams, before.streams);
        assert_int_equal(after.contexts, before.contexts);
    }
    fail_driver(NULL);
    fail_each_allocation(make_ready, device);
    assert_int_equal(counts_now().allocations, before.allocations);
}

/* Of any length; some of one value. */
static void check_signals(void **state, const char *chain, enum stk_dtype dtype)
{
    struct device *device = device_or_skip(state);
    struct dice dice = {.key = 17};
    for (uint64_t trial = 0; trial < 20; trial++) {
        struct twin twin = {.chain = chain,
                            .in = recording(dice_within(&dice, 1, 3),
                                            trial % 5 ? dice_within(&dice, 1, 1500) : 1, 8000),
                            .count = (uint32_t)dice_within(&dice, 1, 6),
                            .key = random_key(2, trial),
                            .tolerance = dtype == STK_BF16 ? 0.008 : 1e-3};
        twin.in.tensor.dtype = dtype;
        if (dtype != STK_F32)
            twin.in.media = STK_MEDIA_TENSOR;
        twin_check(device, &twin);
    }
}

static void gain_is_the_cpus(void **state)
{
    check_signals(state, "Gain", STK_F32);
    check_signals(state, "Gain(6, clip=True)", STK_F32);
    check_signals(state, "Gain((-20, 20))", STK_F32);
}

static void noise_is_the_cpus(void **state)
{
    check_signals(state, "Noise", STK_F32);
    check_signals(state, "Noise(0.3, p=0.5)", STK_F16);
    check_signals(state, "Noise(0.5, p=0.9)", STK_BF16);
}

static void noise_over_padding_is_left_to_the_cpu(void **state)
{
    const struct transform_ops *noise = transform_find("Noise");
    struct stk_flow in = recording(1, 100, 8000);
    (void)state;
    assert_false(noise->device_refuses(NULL, &in));
    in.real = 0;
    assert_true(noise->device_refuses(NULL, &in));
}

static void masks_are_the_cpus(void **state)
{
    static const char *const chains[] = {
        "SpecAugment(freq_width=5, time_width=20)", "SpecAugment(8, 9, 8, 9, p=0.7, fill=mean)",
        "SpecAugment(freq_masks=0, time_masks=1, time_width=1000, fill=mean)"};
    struct device *device = device_or_skip(state);
    struct dice dice = {.key = 19};
    for (uint64_t trial = 0; trial < 30; trial++) {
        struct twin twin = {.chain = chains[trial % 3],
                            .in = recording(dice_within(&dice, 1, 3), 1, 8000),
                            .count = (uint32_t)dice_within(&dice, 1, 5),
                            .key = random_key(6, trial),
                            .offset = 3, /* so that their mean is not near 0 */
                            .tolerance = 1e-3};
        twin.in.tensor.rank = 3;
        twin.in.tensor.shape[1] = dice_within(&dice, 1, 40);
        twin.in.tensor.shape[2] = dice_within(&dice, 1, 60);
        twin_check(device, &twin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spectrograms_are_the_cpus),
        cmocka_unit_test(batches_of_many_lots_are_the_cpus),
        cmocka_unit_test(silence_lies_at_the_floor),
        cmocka_unit_test(without_a_rate_the_device_refuses),
        cmocka_unit_test(what_fails_half_way_leaves_nothing),
        cmocka_unit_test(gain_is_the_cpus),
        cmocka_unit_test(noise_is_the_cpus),
        cmocka_unit_test(noise_over_padding_is_left_to_the_cpu),
        cmocka_unit_test(masks_are_the_cpus),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
