/* test_batch_transform.c -- MixUp and CutMix against what their definition says of each place. */
#include "media_fixture.h"

#include <math.h>

#include "transform/mix_transform.h"

#define HEIGHT 8
#define WIDTH 6
#define CLASSES 5

/* uint8 or float32 images (H, W, 3) or (3, H, W), every element the sample's number times 9 + 1;
 * classes number % 5, but `odd` where number is 7. */
struct plain_set {
    int is_float, channels_first, odd;
};

static void make_plain(struct fixture *fixture, const struct plain_set *set)
{
    static char value[128 + HEIGHT * WIDTH * 3 * 4], zeros[1024];
    char path[256], name[64], text[32];
    fixture_folder(fixture);
    fixture_path(fixture, "a.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    for (uint32_t i = 0; i < 22; i++) {
        memset(value, ' ', 128);
        memcpy(value, "\x93NUMPY\x01\x00\x76\x00", 10);
        int len =
            snprintf(value + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                     set->is_float ? "<f4" : "|u1", set->channels_first ? "3, 8, 6" : "8, 6, 3");
        value[10 + len] = ' ';
        value[127] = '\n';
        for (int e = 0; e < HEIGHT * WIDTH * 3; e++) {
            float element = (float)(i * 9 + 1);
            if (set->is_float)
                memcpy(value + 128 + e * 4, &element, 4);
            else
                value[128 + e] = (char)(uint8_t)element;
        }
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, value,
                       128 + (size_t)HEIGHT * WIDTH * 3 * (set->is_float ? 4 : 1));
        snprintf(name, sizeof name, "%06u.cls", i);
        snprintf(text, sizeof text, "%d", i == 7 && set->odd ? set->odd : (int)i % CLASSES);
        fixture_member(file, name, text, strlen(text));
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "a.tar", NULL);
}

static struct stk_loader_options with_mix(const char *chain)
{
    return (struct stk_loader_options){
        .batch_size = 8, .shuffle = 1, .seed = 5, .threads = 2, .batch_transforms = chain};
}

static double element(const struct stk_batch *batch, uint32_t place, uint32_t at)
{
    const struct stk_tensor *tensor = &batch->fields[0].tensor;
    uint64_t number = (uint64_t)place * HEIGHT * WIDTH * 3 + at;
    return tensor->dtype == STK_U8 ? ((const uint8_t *)tensor->data)[number]
                                   : (double)((const float *)tensor->data)[number];
}

static double plain(uint64_t sample)
{
    return (double)(sample * 9 + 1);
}

/* The share of each place's own, told by the labels; the same in the whole batch. */
static double check_labels(const struct stk_batch *batch)
{
    const struct stk_tensor *tensor = &batch->fields[1].tensor;
    const float *labels = tensor->data;
    double lam = -1;
    assert_int_equal(tensor->dtype, STK_F32);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->shape[1], CLASSES);
    for (uint32_t i = 0; i < batch->real; i++) {
        uint32_t own = (uint32_t)(batch->samples[i] % CLASSES);
        uint32_t other = (uint32_t)(batch->samples[i ? i - 1 : batch->real - 1] % CLASSES);
        double sum = 0;
        for (uint32_t c = 0; c < CLASSES; c++) {
            sum += (double)labels[i * CLASSES + c];
            if (c != own && c != other)
                assert_true(labels[i * CLASSES + c] == 0);
        }
        assert_true(fabs(sum - 1) < 1e-6);
        if (own == other)
            continue;
        double here = (double)labels[i * CLASSES + own];
        assert_true(lam < 0 || here == lam);
        lam = here;
    }
    return lam;
}

static void mixed_images_and_labels_share_one_number(void **state)
{
    (void)state;
    for (int is_float = 0; is_float < 2; is_float++) {
        struct fixture fixture;
        struct stk_batch *batch;
        double first = -1;
        int differ = 0;
        make_plain(&fixture, &(struct plain_set){.is_float = is_float});
        struct stk_loader_options options = with_mix("MixUp(alpha=0.7, classes=5)");
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        while ((batch = fixture_next(loader)) != NULL) {
            double lam = check_labels(batch);
            assert_true(lam >= 0 && lam <= 1);
            differ |= first >= 0 && lam != first;
            first = lam;
            for (uint32_t i = 0; i < batch->real; i++) {
                uint64_t other = batch->samples[i ? i - 1 : batch->real - 1];
                double expected = lam * plain(batch->samples[i]) + (1 - lam) * plain(other);
                for (uint32_t e = 0; e < HEIGHT * WIDTH * 3; e++)
                    assert_true(fabs(element(batch, i, e) - expected) <= (is_float ? 1e-3 : 0.502));
            }
            stk_batch_release(batch);
        }
        assert_true(differ);
        stk_loader_close(loader);
        fixture_close(&fixture);
    }
}

/* Where a pixel lies, whatever the layout. */
static uint32_t pixel_at(int channels_first, uint32_t y, uint32_t x, uint32_t c)
{
    return channels_first ? (c * HEIGHT + y) * WIDTH + x : (y * WIDTH + x) * 3 + c;
}

/* One box, the same in every place, of the other's pixels; returns its pixels. */
static uint32_t check_box(const struct stk_batch *batch, int channels_first)
{
    uint8_t box[HEIGHT][WIDTH] = {{0}};
    uint32_t pixels = 0, top = HEIGHT, left = WIDTH, bottom = 0, right = 0;
    for (uint32_t i = 0; i < batch->real; i++) {
        double own = plain(batch->samples[i]);
        double other = plain(batch->samples[i ? i - 1 : batch->real - 1]);
        for (uint32_t y = 0; y < HEIGHT; y++)
            for (uint32_t x = 0; x < WIDTH; x++) {
                double value = element(batch, i, pixel_at(channels_first, y, x, 0));
                assert_true(value == own || value == other);
                for (uint32_t c = 1; c < 3; c++)
                    assert_true(element(batch, i, pixel_at(channels_first, y, x, c)) == value);
                if (i == 0)
                    box[y][x] = value == other;
                assert_int_equal(box[y][x], value == other);
            }
    }
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            if (box[y][x]) {
                pixels++;
                top = y < top ? y : top;
                left = x < left ? x : left;
                bottom = y + 1 > bottom ? y + 1 : bottom;
                right = x + 1 > right ? x + 1 : right;
            }
    if (pixels)
        assert_int_equal(pixels, (bottom - top) * (right - left));
    return pixels;
}

static void a_box_is_cut_and_labels_follow_its_area(void **state)
{
    (void)state;
    /* bytes of three channels at the end are pixels; other tensors have their channels in front */
    const struct plain_set sets[] = {{0}, {.is_float = 1, .channels_first = 1}};
    for (int kind = 0; kind < 2; kind++) {
        const struct plain_set set = sets[kind];
        struct fixture fixture;
        struct stk_batch *batch;
        uint32_t cut = 0;
        make_plain(&fixture, &set);
        struct stk_loader_options options = with_mix("CutMix(classes=5, image=npy, label='cls')");
        options.last = STK_LAST_MASK;
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        for (int epoch = 0; epoch < 3; epoch++)
            while ((batch = fixture_next(loader)) != NULL) {
                uint32_t pixels = check_box(batch, set.channels_first);
                double lam = check_labels(batch);
                assert_true(fabs(lam - (1 - (double)pixels / (HEIGHT * WIDTH))) < 1e-6);
                cut += pixels;
                stk_batch_release(batch);
            }
        assert_true(cut > 0);
        stk_loader_close(loader);
        fixture_close(&fixture);
    }
}

static void what_is_drawn_does_not_depend_on_threads_or_position_reached(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 40, .width = 40, .height = 30, .grows = 1};
    const struct stk_field_chain chain = {"jpg", "RandomResizedCrop(12) | Normalize(imagenet)"};
    char first[33], other[33];
    struct stk_error err;
    fixture_images(&fixture, &set);
    struct stk_loader_options options =
        with_mix("MixUp(0.4, 10, p=0.5) | CutMix(classes=10, p=0.5)");
    options.transforms = &chain;
    options.transform_count = 1;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        options.threads = threads;
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        fixture_digest(loader, other);
        assert_int_equal(stk_loader_seek(loader, 0, 16, &err), STK_OK);
        stk_batch_release(fixture_next(loader));
        assert_int_equal(stk_loader_seek(loader, 0, 0, &err), STK_OK);
        if (threads == 1)
            strcpy(first, other);
        assert_string_equal(first, other);
        fixture_digest(loader, other);
        assert_string_equal(first, other);
        stk_loader_close(loader);
    }
    fixture_close(&fixture);
}

static void a_chance_of_zero_only_spreads_the_labels(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    make_plain(&fixture, &(struct plain_set){0});
    struct stk_loader_options options = with_mix("MixUp(classes=5, p=0)");
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        assert_true(check_labels(batch) == 1);
        for (uint32_t i = 0; i < batch->real; i++)
            assert_true(element(batch, i, 3) == plain(batch->samples[i]));
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void a_class_out_of_range_is_a_bad_sample(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_quarantined bad;
    struct stk_error err = {0};
    make_plain(&fixture, &(struct plain_set){.odd = 5});
    struct stk_loader_options options = with_mix("MixUp(classes=5)");
    options.shuffle = 0;
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_CORRUPT);
    assert_int_equal(err.sample, 7);
    assert_string_equal(err.field, "cls");
    assert_string_equal(err.what, "class 5 of 5 classes");
    stk_loader_close(loader);
    options.bad = STK_BAD_REPLACE;
    loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        check_labels(batch);
        stk_batch_release(batch);
    }
    assert_int_equal(stk_loader_quarantine(loader, &bad, 1), 1);
    assert_int_equal(bad.sample, 7);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void check_refused(struct fixture *fixture, const char *chain, const char *words)
{
    struct stk_loader_options options = with_mix(chain);
    struct stk_loader *loader;
    struct stk_error err = {0};
    char text[2048];
    assert_int_equal(stk_loader_open(fixture->context, fixture->dataset, &loader, &options, &err),
                     STK_USAGE);
    stk_error_format(&err, text, sizeof text);
    if (!strstr(text, words))
        fixture_fail(&err);
}

static void a_chain_that_does_not_fit_batches_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    make_plain(&fixture, &(struct plain_set){0});
    check_refused(&fixture, "MixUp", "num_classes is missing");
    check_refused(&fixture, "MixUp(num_classes=5, labels_getter=npy)", "no int field");
    check_refused(&fixture, "MixUp(num_classes=5, labels_getter=klass)", "there is no field");
    check_refused(&fixture, "MixUp(classes=0)", "classes");
    check_refused(&fixture, "Resize(4)", "whole batches");
    check_refused(&fixture, "MixUp(classes=5, image=jpg)", "there is no field");
    check_refused(&fixture, "MixUp(classes=5, label=npy)", "no int field");
    check_refused(&fixture, "MixUp(classes=5, image=cls)", "no tensor");
    check_refused(&fixture, "MixUp(classes=5) | CutMix(classes=6)", "5");
    fixture_close(&fixture);
}

/* Beta(a, a): mean 1/2, variance 1 / (4 (2 a + 1)). */
static void the_numbers_are_of_the_beta_distribution(void **state)
{
    (void)state;
    static const double alphas[] = {0.01, 0.2, 0.5, 1, 2, 8};
    for (size_t a = 0; a < sizeof alphas / sizeof alphas[0]; a++) {
        double sum = 0, squares = 0, variance = 1 / (4 * (2 * alphas[a] + 1));
        int n = 20000;
        for (int i = 0; i < n; i++) {
            double lam = mix_beta(alphas[a], (uint64_t)i * 7919, 3);
            assert_true(lam >= 0 && lam <= 1);
            sum += lam;
            squares += (lam - 0.5) * (lam - 0.5);
        }
        assert_true(fabs(sum / n - 0.5) < 5 * sqrt(variance / n));
        assert_true(fabs(squares / n - variance) < 0.04 * variance);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_images_and_labels_share_one_number),
        cmocka_unit_test(a_box_is_cut_and_labels_follow_its_area),
        cmocka_unit_test(what_is_drawn_does_not_depend_on_threads_or_position_reached),
        cmocka_unit_test(a_chance_of_zero_only_spreads_the_labels),
        cmocka_unit_test(a_class_out_of_range_is_a_bad_sample),
        cmocka_unit_test(a_chain_that_does_not_fit_batches_is_refused),
        cmocka_unit_test(the_numbers_are_of_the_beta_distribution),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
