/* Images whose chains end on a device, against the same loader without one; on the simulated driver
 * or a real one. */
#include "media_fixture.h"

#include <math.h>

#include "base/half.h"

static double element_of(const void *data, enum stk_dtype dtype, uint64_t at)
{
    switch (dtype) {
    case STK_U8:
        return ((const uint8_t *)data)[at];
    case STK_I64:
        return (double)((const int64_t *)data)[at];
    case STK_F16:
        return half_to_float(((const uint16_t *)data)[at]);
    case STK_BF16:
        return bfloat_to_float(((const uint16_t *)data)[at]);
    default:
        return ((const float *)data)[at];
    }
}

/* Largest difference; of uint8 in levels. */
static double apart(struct stk_batch *there, const struct stk_batch *here, uint32_t f)
{
    const struct stk_tensor *a = &there->fields[f].tensor, *b = &here->fields[f].tensor;
    struct stk_error err;
    double most = 0;
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    assert_memory_equal(a->shape, b->shape, sizeof(int64_t) * (size_t)a->rank);
    uint64_t size = stk_tensor_size(a);
    void *copy = malloc(size);
    if (stk_batch_copy_out(there, copy, a->data, size, &err))
        fixture_fail(&err);
    for (uint64_t i = 0; i < size / stk_dtype_size(a->dtype); i++)
        most = fmax(most, fabs(element_of(copy, a->dtype, i) - element_of(b->data, a->dtype, i)));
    free(copy);
    return most;
}

/* Two epochs; returns how far apart images were. */
static double largest_difference(struct fixture *fixture, struct stk_loader_options options)
{
    struct stk_batch *here, *there;
    double most = 0;
    struct stk_loader *host = fixture_loader(fixture, &options);
    options.device = STK_DEVICE_CUDA;
    struct stk_loader *device = fixture_loader(fixture, &options);
    for (int epoch = 0; epoch < 2; epoch++) {
        while ((here = fixture_next(host)) != NULL) {
            there = fixture_next(device);
            assert_non_null(there);
            assert_int_equal(there->count, here->count);
            assert_int_equal(there->bytes, here->bytes);
            assert_memory_equal(there->samples, here->samples, here->count * sizeof(uint64_t));
            for (uint32_t f = 0; f < here->field_count; f++)
                most = fmax(most, apart(there, here, f));
            stk_batch_release(here);
            stk_batch_release(there);
        }
        assert_null(fixture_next(device));
    }
    stk_loader_close(device);
    stk_loader_close(host);
    return most;
}

static double with_chain(struct fixture *fixture, const char *chain, const char *mix)
{
    const struct stk_field_chain transforms = {"jpg", chain};
    struct stk_loader_options options = {.batch_size = 7,
                                         .shuffle = 1,
                                         .seed = 3,
                                         .threads = 2,
                                         .last = STK_LAST_MASK,
                                         .transforms = &transforms,
                                         .transform_count = 1,
                                         .decode = STK_DECODE_CPU,
                                         .batch_transforms = mix};
    return largest_difference(fixture, options);
}

static const struct image_set images = {
    .shards = 2, .each = 15, .width = 40, .height = 30, .grows = 1};

static void chains_that_end_on_the_device_give_the_pixels_of_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    static const struct {
        const char *chain;
        double most;
    } cases[] = {
        {"Resize((24, 20))", 0},
        {"RandomResizedCrop(24) | RandomHorizontalFlip()", 0},
        {"RandomResizedCrop(24) | Normalize(imagenet) | Layout(CHW)", 1e-3},
        {"RandomResizedCrop(16) | Normalize(imagenet) | Cast(float16) | Layout(CHW)", 4e-3},
        {"Resize((24, 20)) | Cast(float32, scale=True)", 1e-3},
        {"Resize((24, 20)) | ColorJitter(0.4, 0.4, 0.4, 0.1) | Layout(CHW)", 1},
        {"Resize((24, 20)) | GaussianBlur(3) | Normalize(imagenet)", 0.03},
    };
    fixture_images(&fixture, &images);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double most = with_chain(&fixture, cases[i].chain, NULL);
        if (most > cases[i].most)
            print_error("%s: %g apart\n", cases[i].chain, most);
        assert_true(most <= cases[i].most);
    }
    fixture_close(&fixture);
}

static void batches_are_mixed_on_the_device_as_on_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_images(&fixture, &images);
    assert_true(with_chain(&fixture, "RandomResizedCrop(24)", "MixUp(0.4, classes=10)") <= 1);
    assert_true(with_chain(&fixture, "RandomResizedCrop(24) | Normalize(imagenet) | Layout(CHW)",
                           "MixUp(0.4, classes=10) | CutMix(1.0, classes=10)") <= 2e-3);
    fixture_close(&fixture);
}

static enum flaw every_fifth(uint32_t number)
{
    return number % 5 == 2 ? number % 2 ? FLAW_CUT : FLAW_HTML : FLAW_NONE;
}

static void bad_images_are_replaced_on_the_device_too(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = images;
    const struct stk_field_chain transforms = {"jpg", "RandomResizedCrop(24) | Layout(CHW)"};
    set.flaw = every_fifth;
    fixture_images(&fixture, &set);
    struct stk_loader_options options = {.batch_size = 8,
                                         .shuffle = 1,
                                         .threads = 3,
                                         .bad = STK_BAD_REPLACE,
                                         .transforms = &transforms,
                                         .transform_count = 1,
                                         .decode = STK_DECODE_CPU};
    assert_true(largest_difference(&fixture, options) <= 0);
    fixture_close(&fixture);
}

/* nvJPEG interpolates colour another way: a few levels at edges. */
static void the_device_decodes_what_the_cpu_decodes(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = images;
    const struct stk_field_chain transforms = {"jpg", "RandomResizedCrop(24) | Layout(CHW)"};
    static const enum stk_decode decodes[] = {STK_DECODE_GPU, STK_DECODE_AUTO};
    set.flaw = every_fifth;
    fixture_images(&fixture, &set);
    for (int i = 0; i < 2; i++) {
        struct stk_loader_options options = {.batch_size = 8,
                                             .shuffle = 1,
                                             .threads = 2,
                                             .bad = STK_BAD_REPLACE,
                                             .transforms = &transforms,
                                             .transform_count = 1,
                                             .decode = decodes[i]};
        assert_true(largest_difference(&fixture, options) <= 24);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_that_end_on_the_device_give_the_pixels_of_the_cpu),
        cmocka_unit_test(batches_are_mixed_on_the_device_as_on_the_cpu),
        cmocka_unit_test(bad_images_are_replaced_on_the_device_too),
        cmocka_unit_test(the_device_decodes_what_the_cpu_decodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
