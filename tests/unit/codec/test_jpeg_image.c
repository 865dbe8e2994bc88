/* test_jpeg_image.c -- JPEG: every box equals the same part of libjpeg's own full decode, whatever
 * the sampling, the scale and the colours. */
#include "codec/image_checking.h"
#include "codec/jpeg_making.h"

static int worst_of_boxes(const struct jpeg_recipe *recipe, int boxes)
{
    struct stk_bytes bytes = jpeg_made(recipe);
    int width, height, worst = 0;
    uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
    for (int i = 0; i < boxes; i++) {
        struct image_header header = begin_ok(&bytes);
        assert_int_equal(header.width, recipe->width);
        assert_int_equal(header.height, recipe->height);
        struct image_want want = random_box(width, height);
        if (i == 0)
            want = (struct image_want){.width = width, .height = height};
        struct image_view view = read_ok(&want);
        assert_int_equal(view.width, want.width);
        assert_int_equal(view.height, want.height);
        assert_true(view.x0 == 0 && view.y0 == 0 && view.x1 == want.width &&
                    view.y1 == want.height);
        int error = view_error(&view, full, width, want.x, want.y);
        worst = error > worst ? error : worst;
    }
    free(full);
    free((void *)bytes.data);
    return worst;
}

static const int samplings[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1},
                                   {4, 2}, {1, 4}, {2, 4}, {3, 1}};
static const int sizes[][2] = {{64, 48}, {75, 61}, {133, 97}, {17, 130}, {1, 1}, {7, 3}};

static void every_box_equals_the_same_part_of_a_full_decode(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            for (int progressive = 0; progressive < 4; progressive++)
                for (int restart = 0; restart < 4; restart += 3) {
                    struct jpeg_recipe recipe = {.width = sizes[k][0],
                                                 .height = sizes[k][1],
                                                 .h = samplings[s][0],
                                                 .v = samplings[s][1],
                                                 .progressive = progressive,
                                                 .restart = restart};
                    assert_int_equal(worst_of_boxes(&recipe, 30), 0);
                }
}

static void colours_of_different_sampling_are_cut_right_too(void **state)
{
    (void)state;
    static const int mixed[][4] = {{2, 2, 4, 1}, {1, 2, 2, 1}, {4, 1, 2, 1}, {2, 1, 1, 2}};
    for (size_t i = 0; i < sizeof mixed / sizeof mixed[0]; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            struct jpeg_recipe recipe = {.width = sizes[k][0],
                                         .height = sizes[k][1],
                                         .h = mixed[i][0],
                                         .v = mixed[i][1],
                                         .second_h = mixed[i][2],
                                         .second_v = mixed[i][3]};
            assert_int_equal(worst_of_boxes(&recipe, 60), 0);
        }
}

/* Where the box begins and ends at this scale. */
static void check_scaled(const struct image_want *want, const struct image_view *view,
                         const struct stk_bytes *bytes, unsigned scale)
{
    int width, height;
    uint8_t *full = jpeg_oracle(bytes, JCS_RGB, scale, &width, &height);
    int x = want->x * (int)scale / 8, y = want->y * (int)scale / 8;
    assert_true(view->x0 == want->x * scale / 8.0 - x);
    assert_true(view->y0 == want->y * scale / 8.0 - y);
    assert_true(view->x1 == (want->x + want->width) * scale / 8.0 - x);
    assert_true(view->y1 == (want->y + want->height) * scale / 8.0 - y);
    assert_true(view->x1 <= view->width && view->x1 > view->width - 1);
    assert_true(view->y1 <= view->height && view->y1 > view->height - 1);
    assert_int_equal(view_error(view, full, width, x, y), 0);
    free(full);
}

static void a_smaller_box_equals_a_full_decode_at_that_scale(void **state)
{
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int progressive = 0; progressive < 2; progressive++) {
            struct jpeg_recipe recipe = {.width = 211,
                                         .height = 173,
                                         .h = samplings[s][0],
                                         .v = samplings[s][1],
                                         .progressive = progressive};
            struct stk_bytes bytes = jpeg_made(&recipe);
            for (int i = 0; i < 40; i++) {
                struct image_want want = random_box(recipe.width, recipe.height);
                want.least_width = 1 + random_below(want.width);
                want.least_height = 1 + random_below(want.height);
                unsigned scale = 8;
                while (recipe.h <= 2 && recipe.v <= 2 && scale > 1 &&
                       want.width * (int)scale / 2 >= want.least_width * 8 &&
                       want.height * (int)scale / 2 >= want.least_height * 8)
                    scale /= 2;
                begin_ok(&bytes);
                struct image_view view = read_ok(&want);
                assert_true(view.width >= want.least_width && view.height >= want.least_height);
                check_scaled(&want, &view, &bytes, scale);
            }
            free((void *)bytes.data);
        }
}

/* Decodes a random box and compares it with the oracle's pixels in that colour space. */
static void check_colors(const struct jpeg_recipe *recipe, enum image_channels channels,
                         J_COLOR_SPACE out, int stored, int count)
{
    struct stk_bytes bytes = jpeg_made(recipe);
    int width, height;
    uint8_t *full = jpeg_oracle(&bytes, out, 8, &width, &height);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(begin_ok(&bytes).channels, stored);
        struct image_want want = random_box(width, height);
        want.channels = channels;
        struct image_view view = read_ok(&want);
        assert_int_equal(view.channels, count);
        assert_int_equal(view_error(&view, full, width, want.x, want.y), 0);
    }
    free(full);
    free((void *)bytes.data);
}

static void gray_and_colour_come_with_the_channels_asked_for(void **state)
{
    (void)state;
    struct jpeg_recipe gray = {.width = 61, .height = 45, .in = JCS_GRAYSCALE};
    check_colors(&gray, IMAGE_CHANNELS_KEEP, JCS_GRAYSCALE, 1, 1);
    check_colors(&gray, IMAGE_CHANNELS_GRAY, JCS_GRAYSCALE, 1, 1);
    check_colors(&gray, IMAGE_CHANNELS_RGB, JCS_RGB, 1, 3);
    check_colors(&gray, IMAGE_CHANNELS_RGBA, JCS_EXT_RGBA, 1, 4);
    gray.h = gray.v = 2; /* a factor that means nothing with one component */
    check_colors(&gray, IMAGE_CHANNELS_RGB, JCS_RGB, 1, 3);
    struct jpeg_recipe color = {.width = 61, .height = 45};
    check_colors(&color, IMAGE_CHANNELS_KEEP, JCS_RGB, 3, 3);
    check_colors(&color, IMAGE_CHANNELS_RGBA, JCS_EXT_RGBA, 3, 4);
    struct jpeg_recipe plain = {.width = 61, .height = 45, .stored = JCS_RGB};
    check_colors(&plain, IMAGE_CHANNELS_RGB, JCS_RGB, 3, 3);
}

static void gray_of_a_colour_image_is_its_luminance(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 61, .height = 45};
    struct stk_bytes bytes = jpeg_made(&recipe);
    int width, height;
    uint8_t *full = jpeg_oracle(&bytes, JCS_RGB, 8, &width, &height);
    begin_ok(&bytes);
    struct image_want want = {IMAGE_CHANNELS_GRAY, 5, 7, 40, 30, 0, 0};
    struct image_view view = read_ok(&want);
    assert_int_equal(view.channels, 1);
    for (int y = 0; y < 30; y++)
        for (int x = 0; x < 40; x++) {
            const uint8_t *from = full + ((size_t)(y + 7) * 61 + (size_t)x + 5) * 3;
            double light = from[0] * 0.299 + from[1] * 0.587 + from[2] * 0.114;
            assert_true(view.pixels[y * view.stride + x] - light < 0.51);
            assert_true(light - view.pixels[y * view.stride + x] < 0.51);
        }
    free(full);
    free((void *)bytes.data);
}

/* Ink is stored inverted: light is what is left by the colour's ink and by black. */
static void inks_become_light(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct jpeg_recipe recipe = {
            .width = 61, .height = 45, .in = JCS_CMYK, .stored = kind ? JCS_YCCK : JCS_CMYK};
        struct stk_bytes bytes = jpeg_made(&recipe);
        int width, height;
        uint8_t *inks = jpeg_oracle(&bytes, JCS_CMYK, 8, &width, &height);
        for (int alpha = 0; alpha < 2; alpha++) {
            assert_int_equal(begin_ok(&bytes).channels, 3);
            struct image_want want = {
                alpha ? IMAGE_CHANNELS_RGBA : IMAGE_CHANNELS_RGB, 9, 3, 50, 40, 0, 0};
            struct image_view view = read_ok(&want);
            assert_int_equal(view.channels, 3 + alpha);
            for (int i = 0; i < 50 * 40; i++) {
                const uint8_t *is = view.pixels + i / 50 * view.stride + i % 50 * view.channels;
                const uint8_t *ink = inks + ((size_t)(i / 50 + 3) * 61 + (size_t)(i % 50) + 9) * 4;
                for (int c = 0; c < 3; c++) {
                    double light = ink[c] * ink[3] / 255.0;
                    assert_true(is[c] - light <= 0.51 && light - is[c] <= 0.51);
                }
                assert_true(!alpha || is[3] == 255);
            }
        }
        free(inks);
        free((void *)bytes.data);
    }
}

static void pixels_end_with_bytes_that_may_be_read(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 700, .height = 1}; /* a page is not filled by accident */
    struct stk_bytes bytes = jpeg_made(&recipe);
    begin_ok(&bytes);
    struct image_want want = {.width = 700, .height = 1};
    struct image_view view = read_ok(&want);
    uint8_t behind[16];
    memcpy(behind, view.pixels + 700 * 3, sizeof behind);
    assert_memory_equal(behind, view.pixels + 700 * 3, sizeof behind);
    free((void *)bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_box_equals_the_same_part_of_a_full_decode),
        cmocka_unit_test(colours_of_different_sampling_are_cut_right_too),
        cmocka_unit_test(a_smaller_box_equals_a_full_decode_at_that_scale),
        cmocka_unit_test(gray_and_colour_come_with_the_channels_asked_for),
        cmocka_unit_test(gray_of_a_colour_image_is_its_luminance),
        cmocka_unit_test(inks_become_light),
        cmocka_unit_test(pixels_end_with_bytes_that_may_be_read),
    };
    return cmocka_run_group_tests(tests, make_decoder, free_decoder);
}
