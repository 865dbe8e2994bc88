/* MixUp and CutMix on a device, against loops of their definition: sample i is mixed with the one
 * before it, the first with the last. */
#include "transform/twin_testing.h"

#include "transform/mix_device.h"

struct mix_trial {
    const struct transform_ops *ops;
    struct mix_params params;
    struct stk_flow flow;
    uint32_t count;
};

static double rounded_to(enum stk_dtype dtype, double value)
{
    switch (dtype) {
    case STK_U8:
        return floor(value + 0.5);
    case STK_F16:
        return half_to_float(half_of_float((float)value));
    case STK_BF16:
        return bfloat_to_float(bfloat_of_float((float)value));
    default:
        return value;
    }
}

/* Height and width are the axes before the channels, or the last two. */
static int is_cut(const struct mix_trial *trial, uint64_t element)
{
    const int64_t *shape = trial->flow.tensor.shape;
    int32_t rank = trial->flow.tensor.rank;
    uint64_t channels = trial->flow.channels_first ? 1 : (uint64_t)shape[rank - 1];
    int32_t last = trial->flow.channels_first ? rank - 1 : rank - 2;
    uint64_t width = (uint64_t)shape[last], height = (uint64_t)shape[last - 1];
    int64_t x = (int64_t)(element / channels % width);
    int64_t y = (int64_t)(element / channels / width % height);
    return x >= trial->params.x0 && x < trial->params.x1 && y >= trial->params.y0 &&
           y < trial->params.y1;
}

/* Element i of all; `other` is the same element of the sample before. */
static int cut_is_right(const struct mix_trial *trial, const uint8_t *before, const uint8_t *after,
                        uint64_t i, uint64_t other)
{
    uint64_t size = stk_dtype_size(trial->flow.tensor.dtype);
    uint64_t from = is_cut(trial, i % twin_elements(&trial->flow.tensor)) ? other : i;
    return !memcmp(after + i * size, before + from * size, size);
}

static int mix_is_right(const struct mix_trial *trial, const uint8_t *before, const uint8_t *after,
                        uint64_t i, uint64_t other)
{
    enum stk_dtype dtype = trial->flow.tensor.dtype;
    double tolerance = dtype == STK_U8 ? 1 : dtype == STK_BF16 ? 0.008 : 1e-3;
    double lam = trial->params.lam, got = twin_value(dtype, after, i);
    double want = twin_value(dtype, before, i) * lam + twin_value(dtype, before, other) * (1 - lam);
    return fabs(got - rounded_to(dtype, want)) <= tolerance;
}

static void check_mix(struct device *device, const struct mix_trial *trial, uint64_t key)
{
    const struct stk_tensor *image = &trial->flow.tensor;
    uint64_t elements = twin_elements(image), item = stk_tensor_size(image), wrong = 0;
    uint64_t size = item * trial->count;
    uint8_t *before = malloc(size), *after = malloc(size + TWIN_GUARD);
    memset(after, 0xa5, size + TWIN_GUARD);
    if (trial->ops == &cutmix_transform) /* whatever the bytes mean */
        twin_fill(STK_U8, before, size, key);
    else
        twin_fill(image->dtype, before, elements * trial->count, key);
    memcpy(after, before, size);
    gpu_address images = device_put(device, after, size + TWIN_GUARD);
    struct stk_error err = {0};
    const struct mix_device_run run = {.ops = trial->ops,
                                       .params = &trial->params,
                                       .flow = &trial->flow,
                                       .images = images,
                                       .count = trial->count,
                                       .stream = device->stream};
    assert_int_equal(mix_device_run(device->gpu, &run, &err), STK_OK);
    device_get(device, after, images, size + TWIN_GUARD);
    for (uint64_t i = 0; i < trial->count * elements; i++) {
        uint64_t partner = (i / elements + trial->count - 1) % trial->count;
        uint64_t other = partner * elements + i % elements;
        wrong += !(trial->ops == &cutmix_transform ? cut_is_right(trial, before, after, i, other)
                                                   : mix_is_right(trial, before, after, i, other));
    }
    assert_int_equal(wrong, 0);
    for (uint64_t i = size; i < size + TWIN_GUARD; i++)
        assert_int_equal(after[i], 0xa5);
    gpu_free(device->gpu, images);
    free(before);
    free(after);
}

/* Images and videos of either layout. */
static struct stk_flow random_flow(struct dice *dice, enum stk_dtype dtype)
{
    int64_t height = dice_within(dice, 1, 30), width = dice_within(dice, 1, 30);
    int64_t channels = dice_within(dice, 1, 4), frames = dice_within(dice, 1, 3);
    struct stk_flow flow = twin_image(height, width, channels);
    int first = dice_below(dice, 2), video = dice_below(dice, 2);
    int64_t *shape = flow.tensor.shape;
    if (video)
        flow = twin_video(frames, height, width, channels);
    if (first && video)
        memcpy(shape, (int64_t[]){channels, frames, height, width}, 4 * sizeof *shape);
    else if (first)
        memcpy(shape, (int64_t[]){channels, height, width}, 3 * sizeof *shape);
    flow.channels_first = first;
    flow.tensor.dtype = dtype;
    return flow;
}

static void check_all(void **state, const struct transform_ops *ops)
{
    static const enum stk_dtype dtypes[] = {STK_U8, STK_F16, STK_BF16, STK_F32, STK_F64};
    struct device *device = device_or_skip(state);
    struct dice dice = {.key = 13};
    struct chain chain = {0};
    char text[64];
    snprintf(text, sizeof text, "%s(classes=10, alpha=1)", ops->name);
    assert_int_equal(chain_parse(&chain, text, NULL, NULL), STK_OK);
    for (uint32_t count = 2; count <= 7; count++)
        for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
            struct mix_trial trial = {
                .ops = ops, .flow = random_flow(&dice, dtypes[i]), .count = count};
            uint64_t key = random_key(count, i);
            ops->draw(chain.steps[0].args, key, &trial.flow, &trial.params);
            check_mix(device, &trial, key);
        }
    chain_reset(&chain);
}

static void mixup_blends_each_image_with_the_one_before(void **state)
{
    check_all(state, &mixup_transform);
}

static void cutmix_takes_a_box_of_the_image_before(void **state)
{
    check_all(state, &cutmix_transform);
}

/* Elements that cannot be blended can be cut. */
static void cutmix_takes_any_type(void **state)
{
    static const enum stk_dtype dtypes[] = {STK_BOOL, STK_I16, STK_U32, STK_I64};
    struct device *device = device_or_skip(state);
    struct mix_trial trial = {.ops = &cutmix_transform,
                              .params = {.lam = 0.5, .x0 = 2, .y0 = 1, .x1 = 9, .y1 = 7},
                              .flow = twin_image(8, 11, 3),
                              .count = 3};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        trial.flow.tensor.dtype = dtypes[i];
        check_mix(device, &trial, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixup_blends_each_image_with_the_one_before),
        cmocka_unit_test(cutmix_takes_a_box_of_the_image_before),
        cmocka_unit_test(cutmix_takes_any_type),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
