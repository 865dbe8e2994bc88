/* test_cell_draw.c -- values of every kind, drawn as what they are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "show/cell_draw.h"
#include "show/color_map.h"
#include "show/plot.h"

#define SIDE 64

static const struct pixel_levels unknown;

struct drawn {
    struct canvas canvas;
    struct stk_error err;
    stk_status status;
};

static struct drawn draw_with(const struct stk_flow *flow, const struct pixel_levels *levels)
{
    struct drawn drawn = {0};
    struct scratch scratch = {0};
    assert_int_equal(canvas_init(&drawn.canvas, SIDE, SIDE, &drawn.err), STK_OK);
    drawn.status = cell_draw(&drawn.canvas, (struct box){0, 0, SIDE, SIDE}, flow, levels, &scratch,
                             &drawn.err);
    scratch_free(&scratch);
    return drawn;
}

static color at(const struct drawn *drawn, int32_t x, int32_t y)
{
    const uint8_t *pixel = drawn->canvas.pixels + (y * SIDE + x) * 3;
    return (color)pixel[0] << 16 | (color)pixel[1] << 8 | pixel[2];
}

/* 4 x 4 pixels, each 16 x 16 in a cell of 64: three colours that tell axes and channels apart. */
static uint8_t level_of(int y, int x, int c)
{
    return (uint8_t)(c == 0 ? 60 * y : c == 1 ? 60 * x : 200);
}

static color color_of(int y, int x)
{
    return (color)level_of(y, x, 0) << 16 | (color)level_of(y, x, 1) << 8 | level_of(y, x, 2);
}

static void check_pixels(const struct stk_flow *flow, const struct pixel_levels *levels)
{
    struct drawn drawn = draw_with(flow, levels);
    assert_int_equal(drawn.status, STK_OK);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            assert_int_equal(at(&drawn, x, y), color_of(y / 16, x / 16));
    canvas_reset(&drawn.canvas);
}

static struct stk_flow image_flow(void *data, enum stk_dtype dtype, int channels_first)
{
    struct stk_flow flow = {.media = STK_MEDIA_IMAGE, .channels_first = channels_first, .real = -1};
    flow.tensor = (struct stk_tensor){data, dtype, 3, {4, 4, 3}};
    if (channels_first)
        flow.tensor.shape[0] = 3, flow.tensor.shape[2] = 4;
    return flow;
}

static int place(int first, int y, int x, int c)
{
    return first ? c * 16 + y * 4 + x : (y * 4 + x) * 3 + c;
}

static void images_of_any_type_and_layout_show_the_same_pixels(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) {
        uint8_t bytes[48];
        uint16_t words[48], halves[48];
        float levels[48], shares[48], normal[48];
        struct pixel_levels undo = {.count = PICTURE_CHANNELS};
        for (int c = 0; c < PICTURE_CHANNELS; c++) {
            undo.multiply[c] = 255 * (0.2 + 0.01 * c);
            undo.add[c] = 255 * (0.4 + 0.02 * c);
        }
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 4; x++)
                for (int c = 0; c < 3; c++) {
                    int i = place(first, y, x, c);
                    bytes[i] = level_of(y, x, c);
                    words[i] = (uint16_t)(bytes[i] * 257);
                    halves[i] = half_of_float(bytes[i]);
                    levels[i] = bytes[i];
                    shares[i] = bytes[i] / 255.0f;
                    normal[i] = (float)((bytes[i] - undo.add[c]) / undo.multiply[c]);
                }
        struct stk_flow flow = image_flow(bytes, STK_U8, first);
        check_pixels(&flow, &unknown);
        flow = image_flow(words, STK_U16, first);
        check_pixels(&flow, &unknown);
        flow = image_flow(halves, STK_F16, first);
        check_pixels(&flow, &unknown);
        flow = image_flow(levels, STK_F32, first);
        check_pixels(&flow, &unknown);
        flow = image_flow(shares, STK_F32, first);
        check_pixels(&flow, &unknown);
        flow = image_flow(normal, STK_F32, first);
        check_pixels(&flow, &undo);
    }
}

static void floats_of_no_known_range_are_stretched(void **state)
{
    (void)state;
    float values[] = {-3, -1, 0, 1, NAN, INFINITY};
    struct stk_flow flow = {.media = STK_MEDIA_IMAGE, .real = -1};
    flow.tensor = (struct stk_tensor){values, STK_F32, 3, {1, 4, 1}};
    struct drawn drawn = draw_with(&flow, &unknown);
    assert_int_equal(drawn.status, STK_OK);
    assert_int_equal(at(&drawn, 8, 32), 0x000000);
    assert_int_equal(at(&drawn, 24, 32), 0x808080);
    assert_int_equal(at(&drawn, 56, 32), 0xffffff);
    canvas_reset(&drawn.canvas);
    flow.tensor.shape[1] = 6; /* what is not finite does not stretch the rest */
    drawn = draw_with(&flow, &unknown);
    assert_int_equal(drawn.status, STK_OK);
    canvas_reset(&drawn.canvas);
}

static void a_wide_image_lies_in_the_middle_of_its_cell(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(100 * 200 * 3);
    memset(bytes, 0xff, 100 * 200 * 3);
    struct stk_flow flow = {.media = STK_MEDIA_IMAGE, .real = -1};
    flow.tensor = (struct stk_tensor){bytes, STK_U8, 3, {100, 200, 3}};
    struct drawn drawn = draw_with(&flow, &unknown);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x += 9)
            assert_true((at(&drawn, x, y) == 0xffffff) == (y >= 16 && y < 48));
    canvas_reset(&drawn.canvas);
    free(bytes);
}

static void a_video_shows_its_frames_in_order_in_both_layouts(void **state)
{
    (void)state;
    /* 4 frames of one colour each, (T, H, W, C) or (C, T, H, W) */
    for (int first = 0; first < 2; first++) {
        uint8_t bytes[4 * 8 * 8 * 3];
        for (int t = 0; t < 4; t++)
            for (int p = 0; p < 64; p++)
                for (int c = 0; c < 3; c++)
                    bytes[first ? (c * 4 + t) * 64 + p : (t * 64 + p) * 3 + c] =
                        (uint8_t)(50 * t + c);
        struct stk_flow flow = {.media = STK_MEDIA_VIDEO, .channels_first = first, .real = -1};
        flow.tensor = (struct stk_tensor){bytes, STK_U8, 4, {4, 8, 8, 3}};
        if (first)
            flow.tensor.shape[0] = 3, flow.tensor.shape[1] = 4, flow.tensor.shape[3] = 8;
        struct drawn drawn = draw_with(&flow, &unknown);
        assert_int_equal(drawn.status, STK_OK);
        for (int t = 0; t < 4; t++)
            assert_int_equal(at(&drawn, 16 + t % 2 * 32, 16 + t / 2 * 32),
                             (50 * t) << 16 | (50 * t + 1) << 8 | (50 * t + 2));
        canvas_reset(&drawn.canvas);
    }
}

static void a_spectrum_has_its_low_frequencies_at_the_bottom(void **state)
{
    (void)state;
    float values[8 * 8] = {0};
    values[0 * 8 + 7] = 1; /* lowest band, last moment */
    struct stk_flow flow = {.media = STK_MEDIA_AUDIO, .real = -1};
    flow.tensor = (struct stk_tensor){values, STK_F32, 3, {1, 8, 8}};
    struct drawn drawn = draw_with(&flow, &unknown);
    assert_int_equal(at(&drawn, 60, 60), color_of_share(1));
    assert_int_equal(at(&drawn, 60, 4), color_of_share(0));
    assert_int_equal(at(&drawn, 4, 60), color_of_share(0));
    canvas_reset(&drawn.canvas);
}

static void a_wave_is_drawn_around_its_middle(void **state)
{
    (void)state;
    float values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = (i < 500 ? 0.5f : 0.05f) * (i % 2 ? 1 : -1);
    struct stk_flow flow = {.media = STK_MEDIA_AUDIO, .rate = 8000, .real = -1};
    flow.tensor = (struct stk_tensor){values, STK_F32, 2, {1, 1000}};
    struct drawn drawn = draw_with(&flow, &unknown);
    assert_int_not_equal(at(&drawn, 16, 24), PLOT_PAPER); /* loud: half of the height */
    assert_int_equal(at(&drawn, 16, 10), PLOT_PAPER);
    assert_int_equal(at(&drawn, 48, 24), PLOT_PAPER); /* quiet */
    assert_int_not_equal(at(&drawn, 48, 32), PLOT_PAPER);
    canvas_reset(&drawn.canvas);
}

static void points_lie_where_x_and_y_say_and_padding_is_left_out(void **state)
{
    (void)state;
    float values[] = {0, 0, 0, 10, 10, 1, 10, 0, 0.5f, 99, 99, 99, NAN, 1, 1};
    struct stk_flow flow = {.media = STK_MEDIA_POINTS, .real = 3};
    flow.tensor = (struct stk_tensor){values, STK_F32, 2, {5, 3}};
    struct drawn drawn = draw_with(&flow, &unknown);
    int32_t edge = SIDE / 20 + 1, far = SIDE - 1 - edge;
    assert_int_not_equal(at(&drawn, edge, far), PLOT_NIGHT);    /* (0, 0): left and low */
    assert_int_equal(at(&drawn, far, edge), color_of_share(1)); /* (10, 10): the highest */
    assert_int_not_equal(at(&drawn, far, far), PLOT_NIGHT);
    assert_int_equal(at(&drawn, edge, edge), PLOT_NIGHT);
    assert_int_equal(at(&drawn, SIDE / 2, SIDE / 2), PLOT_NIGHT);
    canvas_reset(&drawn.canvas);
}

static void tables_become_lines_or_maps(void **state)
{
    (void)state;
    double rising[100], map[20 * 20];
    for (int i = 0; i < 100; i++)
        rising[i] = i;
    for (int i = 0; i < 400; i++)
        map[i] = i == 399;
    struct stk_flow flow = {.real = -1};
    flow.tensor = (struct stk_tensor){rising, STK_F64, 1, {100}};
    struct drawn drawn = draw_with(&flow, &unknown);
    assert_int_not_equal(at(&drawn, 32, 31) & at(&drawn, 32, 32), PLOT_PAPER); /* the diagonal */
    assert_int_equal(at(&drawn, 20, 20), PLOT_PAPER);
    canvas_reset(&drawn.canvas);
    flow.tensor = (struct stk_tensor){map, STK_F64, 2, {20, 20}};
    drawn = draw_with(&flow, &unknown);
    assert_int_equal(at(&drawn, 63, 63), color_of_share(1));
    assert_int_equal(at(&drawn, 0, 0), color_of_share(0));
    canvas_reset(&drawn.canvas);
}

static void what_cannot_be_drawn_says_so(void **state)
{
    (void)state;
    float values[4] = {0};
    struct stk_flow empty = {.real = -1}, complex = {.real = -1}, flat = {.media = STK_MEDIA_IMAGE};
    empty.tensor = (struct stk_tensor){values, STK_F32, 2, {0, 3}};
    complex.tensor = (struct stk_tensor){values, STK_C64, 1, {2}};
    flat.tensor = (struct stk_tensor){values, STK_U8, 3, {0, 4, 3}};
    const struct stk_flow *flows[] = {&empty, &complex, &flat};
    for (int i = 0; i < 3; i++) {
        struct drawn drawn = draw_with(flows[i], &unknown);
        assert_int_not_equal(drawn.status, STK_OK);
        assert_int_equal(drawn.err.status, drawn.status);
        assert_true(*drawn.err.what);
        canvas_reset(&drawn.canvas);
    }
}

static void descriptions_name_shape_type_and_rate(void **state)
{
    (void)state;
    char text[64], little[8];
    struct stk_flow flow = {.media = STK_MEDIA_AUDIO, .rate = 44100, .real = -1};
    flow.tensor = (struct stk_tensor){NULL, STK_F32, 2, {2, 44100}};
    cell_describe(&flow, text, sizeof text);
    assert_string_equal(text, "2x44100 float32, 44.1 kHz");
    cell_describe(&flow, little, sizeof little);
    assert_string_equal(little, "2x44100");
    flow = (struct stk_flow){.tensor = {NULL, STK_F32, 2, {100, 4}}, .real = 42};
    cell_describe(&flow, text, sizeof text);
    assert_string_equal(text, "100x4 float32, 42 real");
    flow = (struct stk_flow){.tensor = {NULL, STK_I64, 0, {0}}, .real = -1};
    cell_describe(&flow, text, sizeof text);
    assert_string_equal(text, "int64");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_of_any_type_and_layout_show_the_same_pixels),
        cmocka_unit_test(floats_of_no_known_range_are_stretched),
        cmocka_unit_test(a_wide_image_lies_in_the_middle_of_its_cell),
        cmocka_unit_test(a_video_shows_its_frames_in_order_in_both_layouts),
        cmocka_unit_test(a_spectrum_has_its_low_frequencies_at_the_bottom),
        cmocka_unit_test(a_wave_is_drawn_around_its_middle),
        cmocka_unit_test(points_lie_where_x_and_y_say_and_padding_is_left_out),
        cmocka_unit_test(tables_become_lines_or_maps),
        cmocka_unit_test(what_cannot_be_drawn_says_so),
        cmocka_unit_test(descriptions_name_shape_type_and_rate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
