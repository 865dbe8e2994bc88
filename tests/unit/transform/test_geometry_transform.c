#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/chain.h"
#include "transform/image_geometry.h"

static struct stk_flow image_flow(int64_t height, int64_t width, int64_t channels)
{
    return (struct stk_flow){
        .media = STK_MEDIA_IMAGE,
        .tensor = {.dtype = STK_U8, .rank = 3, .shape = {height, width, channels}},
        .real = -1};
}

struct steps {
    struct chain chain;
    struct image_geometry geometry;
    struct stk_flow flow;
    struct stk_error err;
};

/* Parses, and takes an image of a size through every step with one key. */
static stk_status steps_run(struct steps *steps, const char *text, int32_t width, int32_t height,
                            uint64_t key)
{
    steps->flow = image_flow(height, width, 3);
    steps->err = (struct stk_error){0};
    stk_status status = chain_parse(&steps->chain, text, NULL, &steps->err);
    geometry_init(&steps->geometry, width, height);
    for (uint32_t i = 0; i < steps->chain.count && !status; i++) {
        const struct chain_step *step = &steps->chain.steps[i];
        _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
        if (step->ops->draw)
            step->ops->draw(step->args, random_key(key, i), &steps->flow, params);
        assert_int_equal(step->ops->stage, TRANSFORM_GEOMETRY);
        assert_true(step->ops->fold(step->args, params, &steps->geometry));
        status = step->ops->shape(step->args, params, &steps->flow, &steps->err);
    }
    if (!status) {
        assert_int_equal(steps->flow.tensor.shape[0], steps->geometry.out_height);
        assert_int_equal(steps->flow.tensor.shape[1], steps->geometry.out_width);
    }
    chain_reset(&steps->chain);
    return status;
}

static struct image_geometry geometry_of(const char *text, int32_t width, int32_t height,
                                         uint64_t key)
{
    struct steps steps;
    stk_status status = steps_run(&steps, text, width, height, key);
    if (status)
        print_error("%s: %s\n", text, steps.err.what);
    assert_int_equal(status, STK_OK);
    return steps.geometry;
}

static void assert_refused(const char *text, int32_t width, int32_t height, stk_status wanted,
                           const char *words)
{
    struct steps steps;
    assert_int_equal(steps_run(&steps, text, width, height, 1), wanted);
    if (!strstr(steps.err.what, words))
        print_error("%s\n", steps.err.what);
    assert_non_null(strstr(steps.err.what, words));
}

/* --- Resize: torchvision's rule is int(size * long / short) -------------------------------- */

static void a_resize_keeps_the_ratio_of_the_edges(void **state)
{
    static const struct {
        const char *text;
        int32_t width, height, to_width, to_height;
    } cases[] = {
        {"Resize(256)", 500, 375, 341, 256}, /* 341.33 is rounded down */
        {"Resize(256)", 375, 500, 256, 341},
        {"Resize(256)", 333, 333, 256, 256},
        {"Resize(100)", 7, 1000, 100, 14285},
        {"Resize(256, max_size=300)", 500, 375, 300, 225}, /* 256 * 300 / 341 = 225.2 */
        {"Resize(256, max_size=300)", 300, 299, 256, 256}, /* 256.86 */
        {"Resize((30, 40))", 500, 375, 40, 30},
        {"Resize([30])", 500, 375, 40, 30},
        {"Resize(2, max_size=3)", 1000, 1, 3, 1}, /* the shorter edge does not vanish */
        {"Resize(None, max_size=20)", 45, 31, 20, 13},
        {"Resize(max_size=90)", 31, 45, 62, 90},
        {"Resize(max_size=3)", 1, 1000, 1, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct image_geometry g = geometry_of(cases[i].text, cases[i].width, cases[i].height, 0);
        assert_int_equal(g.out_width, cases[i].to_width);
        assert_int_equal(g.out_height, cases[i].to_height);
    }
}

static void a_resize_says_how(void **state)
{
    (void)state;
    struct image_geometry g = geometry_of("Resize(50, 'bicubic', antialias=False)", 100, 90, 0);
    assert_int_equal(g.filter, IMAGE_BICUBIC);
    assert_false(g.antialias);
    g = geometry_of("Resize(50)", 100, 90, 0);
    assert_int_equal(g.filter, IMAGE_BILINEAR);
    assert_true(g.antialias);
}

/* --- crops
 * ---------------------------------------------------------------------------------------- */

static void a_crop_of_the_middle_rounds_as_python_does(void **state)
{
    static const struct {
        int32_t has, want, first;
    } cases[] = {{10, 4, 3}, {11, 4, 4}, {13, 4, 4}, {9, 4, 2}, {4, 4, 0}, {3, 10, -3}, {4, 9, -2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        snprintf(text, sizeof text, "CenterCrop((%d, 5))", cases[i].want);
        struct image_geometry g = geometry_of(text, 5, cases[i].has, 0);
        assert_int_equal(g.y + g.out_y, cases[i].first);
        assert_int_equal(g.out_height, cases[i].want);
        assert_int_equal(geometry_is_filled(&g), cases[i].want > cases[i].has);
    }
}

static void a_random_crop_reaches_every_place_and_no_other(void **state)
{
    int seen[8][5] = {{0}};
    (void)state;
    for (uint64_t key = 0; key < 3000; key++) {
        struct image_geometry g = geometry_of("RandomCrop((16, 13))", 20, 20, key);
        assert_int_equal(g.box_width, 13);
        assert_int_equal(g.box_height, 16);
        seen[g.x][g.y]++;
    }
    for (int x = 0; x < 8; x++)
        for (int y = 0; y < 5; y++)
            assert_in_range(seen[x][y], 35, 125); /* 75 on average */
}

static void padding_moves_a_random_crop_outside(void **state)
{
    int32_t least_x = 0, least_y = 0, most_x = 0, most_y = 0;
    (void)state;
    for (uint64_t key = 0; key < 2000; key++) {
        struct image_geometry g =
            geometry_of("RandomCrop(32, padding=(1, 2, 3, 4), fill=(7, 8, 9))", 32, 32, key);
        int32_t x = g.x + g.out_x, y = g.y + g.out_y;
        least_x = x < least_x ? x : least_x;
        least_y = y < least_y ? y : least_y;
        most_x = x > most_x ? x : most_x;
        most_y = y > most_y ? y : most_y;
        assert_true(!geometry_is_filled(&g) || !memcmp(g.fill, "\7\10\11", 3));
    }
    assert_int_equal(least_x, -1);
    assert_int_equal(least_y, -2);
    assert_int_equal(most_x, 3);
    assert_int_equal(most_y, 4);
}

static void a_small_image_is_padded_when_that_is_allowed(void **state)
{
    (void)state;
    assert_refused("RandomCrop(32)", 31, 40, STK_SHAPE, "RandomCrop of 32 x 32");
    for (uint64_t key = 0; key < 200; key++) {
        struct image_geometry g = geometry_of("RandomCrop(32, pad_if_needed=True)", 30, 40, key);
        assert_in_range(g.x + g.out_x + 2, 0, 2); /* 2 missing are added on both sides */
        assert_in_range(g.y + g.out_y, 0, 8);
    }
}

/* --- RandomResizedCrop
 * ---------------------------------------------------------------------------- */

static void random_boxes_keep_to_scale_and_ratio(void **state)
{
    double areas = 0, logs = 0;
    int count = 4000;
    (void)state;
    for (uint64_t key = 0; key < (uint64_t)count; key++) {
        struct image_geometry g =
            geometry_of("RandomResizedCrop(224, scale=(0.1, 0.5))", 1000, 1000, key);
        double area = (double)g.box_width * g.box_height / 1e6;
        double ratio = (double)g.box_width / g.box_height;
        assert_true(area > 0.1 * 0.99 && area < 0.5 * 1.01);
        assert_true(ratio > 0.75 * 0.99 && ratio < 4 / 3.0 * 1.01);
        assert_true(g.x >= 0 && g.y >= 0 && g.x + g.box_width <= 1000);
        assert_int_equal(g.to_width, 224);
        areas += area;
        logs += log(ratio);
    }
    assert_true(fabs(areas / count - 0.3) < 0.01); /* uniform: 4 deviations are 0.0073 */
    assert_true(fabs(logs / count) < 0.0105);      /* even in its logarithm */
}

static void where_no_box_fits_the_middle_is_taken(void **state)
{
    (void)state;
    /* All of the area, but never in these ratios. */
    struct image_geometry g = geometry_of("RandomResizedCrop(10, scale=(1, 1))", 1000, 100, 5);
    assert_int_equal(g.box_height, 100);
    assert_int_equal(g.box_width, 133); /* round(100 * 4 / 3) */
    assert_int_equal(g.x, (1000 - 133) / 2);
    g = geometry_of("RandomResizedCrop(10, scale=(1, 1))", 100, 1000, 5);
    assert_int_equal(g.box_width, 100);
    assert_int_equal(g.box_height, 133);
    assert_int_equal(g.y, (1000 - 133) / 2);
    g = geometry_of("RandomResizedCrop((20, 30), scale=(100, 100))", 100, 110, 5);
    assert_int_equal(g.box_width, 100); /* within the ratios: all of it */
    assert_int_equal(g.box_height, 110);
    assert_int_equal(g.to_width, 30);
    assert_int_equal(g.to_height, 20);
    g = geometry_of("RandomResizedCrop(8)", 1, 1, 5);
    assert_int_equal(g.box_width, 1);
}

static void a_key_gives_one_box_and_another_key_another(void **state)
{
    (void)state;
    struct image_geometry a = geometry_of("RandomResizedCrop(224)", 500, 375, 1);
    struct image_geometry b = geometry_of("RandomResizedCrop(224)", 500, 375, 1);
    assert_memory_equal(&a, &b, sizeof a);
    b = geometry_of("RandomResizedCrop(224)", 500, 375, 2);
    assert_true(memcmp(&a, &b, sizeof a) != 0);
}

/* --- flips
 * ---------------------------------------------------------------------------------------- */

static void flips_come_as_often_as_they_should(void **state)
{
    int flips = 0, both = 0;
    (void)state;
    for (uint64_t key = 0; key < 4000; key++) {
        struct image_geometry g =
            geometry_of("RandomHorizontalFlip(0.25) | RandomVerticalFlip", 10, 10, key);
        flips += g.flip_x;
        both += g.flip_x && g.flip_y;
        assert_true(geometry_of("RandomHorizontalFlip(p=1)", 10, 10, key).flip_x);
        assert_false(geometry_of("RandomVerticalFlip(0)", 10, 10, key).flip_y);
    }
    assert_in_range(flips, 850, 1150);
    assert_in_range(both, 400, 600);
}

/* --- refusals
 * --------------------------------------------------------------------------------------- */

static void bad_arguments_are_refused_with_words(void **state)
{
    (void)state;
    assert_refused("Resize(0)", 9, 9, STK_USAGE, "size");
    assert_refused("Resize(2.5)", 9, 9, STK_USAGE, "whole pixels");
    assert_refused("Resize((2, 3), max_size=9)", 9, 9, STK_USAGE, "max_size");
    assert_refused("Resize(20, max_size=20)", 9, 9, STK_USAGE, "max_size");
    assert_refused("Resize(10, 'sharp')", 9, 9, STK_USAGE, "interpolation");
    assert_refused("RandomResizedCrop(10, scale=(1, 0.1))", 9, 9, STK_USAGE, "ranges");
    assert_refused("RandomResizedCrop()", 9, 9, STK_USAGE, "size");
    assert_refused("RandomCrop(3, padding=(1, 2, 3))", 9, 9, STK_USAGE, "padding");
    assert_refused("RandomCrop(3, fill=(1, 2))", 9, 9, STK_USAGE, "2 numbers for 3 channels");
    assert_refused("RandomHorizontalFlip(1.5)", 9, 9, STK_USAGE, "p is 1.5");
    assert_refused("Resize(20000)", 60000, 1, STK_LIMIT, "Resize makes");
}

static stk_status shape_of(const char *text, struct stk_flow *flow, struct stk_error *err)
{
    struct chain chain;
    assert_int_equal(chain_parse(&chain, text, NULL, err), STK_OK);
    stk_status status = chain.steps[0].ops->shape(chain.steps[0].args, NULL, flow, err);
    chain_reset(&chain);
    return status;
}

static void geometry_behind_a_format_is_refused_with_a_remedy(void **state)
{
    static const char *const texts[] = {"Resize(9)",
                                        "CenterCrop(9)",
                                        "RandomCrop(9)",
                                        "RandomResizedCrop(9)",
                                        "RandomHorizontalFlip",
                                        "RandomVerticalFlip"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct stk_error err = {0};
        struct stk_flow flow = image_flow(-1, -1, 3);
        flow.tensor.dtype = STK_F32;
        assert_int_equal(shape_of(texts[i], &flow, &err), STK_USAGE);
        assert_non_null(strstr(err.remedy, "before Normalize"));
        flow = image_flow(3, -1, -1);
        flow.channels_first = 1;
        assert_int_equal(shape_of(texts[i], &flow, &err), STK_USAGE);
    }
}

static void sizes_that_are_not_known_stay_unknown(void **state)
{
    struct stk_error err;
    struct stk_flow flow = image_flow(-1, -1, 3);
    (void)state;
    assert_int_equal(shape_of("Resize(9)", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[0], -1);
    assert_int_equal(shape_of("RandomVerticalFlip", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[1], -1);
    assert_int_equal(shape_of("CenterCrop((9, 8))", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[0], 9);
    assert_int_equal(flow.tensor.shape[1], 8);
    assert_int_equal(flow.tensor.shape[2], 3);
    flow = (struct stk_flow){.media = STK_MEDIA_VIDEO,
                             .tensor = {.dtype = STK_U8, .rank = 5, .shape = {2, 16, -1, -1, 3}}};
    assert_int_equal(shape_of("RandomResizedCrop((9, 8))", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[1], 16);
    assert_int_equal(flow.tensor.shape[2], 9);
    assert_int_equal(flow.tensor.shape[3], 8);
}

static void a_step_that_does_not_fold_changes_nothing(void **state)
{
    static const char *const texts[] = {"RandomResizedCrop(9)", "Resize(9)"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct chain chain;
        struct image_geometry geometry, before;
        struct stk_flow flow = image_flow(50, 60, 3);
        _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
        assert_int_equal(chain_parse(&chain, texts[i], NULL, NULL), STK_OK);
        const struct chain_step *step = &chain.steps[0];
        geometry_init(&geometry, 100, 90);
        assert_true(geometry_resize(&geometry, 60, 50, IMAGE_BILINEAR, 1));
        if (step->ops->draw)
            step->ops->draw(step->args, 3, &flow, params);
        before = geometry;
        assert_false(step->ops->fold(step->args, params, &geometry));
        assert_memory_equal(&before, &geometry, sizeof before);
        chain_reset(&chain);
    }
}

static void the_mode_of_decoding_sets_the_channels(void **state)
{
    struct stk_error err;
    struct stk_flow flow = image_flow(-1, -1, -1);
    (void)state;
    assert_int_equal(shape_of("DecodeImage(keep)", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[2], -1);
    assert_int_equal(shape_of("DecodeImage(mode='gray')", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[2], 1);
    assert_int_equal(shape_of("DecodeImage('rgba', fast=True)", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[2], 4);
    assert_int_equal(shape_of("DecodeImage", &flow, &err), STK_OK);
    assert_int_equal(flow.tensor.shape[2], 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resize_keeps_the_ratio_of_the_edges),
        cmocka_unit_test(a_resize_says_how),
        cmocka_unit_test(a_crop_of_the_middle_rounds_as_python_does),
        cmocka_unit_test(a_random_crop_reaches_every_place_and_no_other),
        cmocka_unit_test(padding_moves_a_random_crop_outside),
        cmocka_unit_test(a_small_image_is_padded_when_that_is_allowed),
        cmocka_unit_test(random_boxes_keep_to_scale_and_ratio),
        cmocka_unit_test(where_no_box_fits_the_middle_is_taken),
        cmocka_unit_test(a_key_gives_one_box_and_another_key_another),
        cmocka_unit_test(flips_come_as_often_as_they_should),
        cmocka_unit_test(bad_arguments_are_refused_with_words),
        cmocka_unit_test(geometry_behind_a_format_is_refused_with_a_remedy),
        cmocka_unit_test(sizes_that_are_not_known_stay_unknown),
        cmocka_unit_test(a_step_that_does_not_fold_changes_nothing),
        cmocka_unit_test(the_mode_of_decoding_sets_the_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
