/* test_canvas.c -- what is drawn lands where it should, and nowhere else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "show/bitmap_font.h"
#include "show/canvas.h"
#include "show/color_map.h"

#define PAPER 0x102030

static struct canvas blank(int32_t width, int32_t height)
{
    struct canvas canvas;
    struct stk_error err;
    assert_int_equal(canvas_init(&canvas, width, height, &err), STK_OK);
    canvas_fill(&canvas, (struct box){0, 0, width, height}, PAPER);
    return canvas;
}

static color at(const struct canvas *canvas, int32_t x, int32_t y)
{
    const uint8_t *pixel = canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)x) * 3;
    return (color)pixel[0] << 16 | (color)pixel[1] << 8 | pixel[2];
}

/* Pixels of the canvas that are not paper, and the box around them. */
static int32_t inked(const struct canvas *canvas, struct box *around)
{
    int32_t count = 0, left = canvas->width, top = canvas->height, right = 0, bottom = 0;
    for (int32_t y = 0; y < canvas->height; y++)
        for (int32_t x = 0; x < canvas->width; x++)
            if (at(canvas, x, y) != PAPER) {
                count++;
                left = x < left ? x : left;
                right = x + 1 > right ? x + 1 : right;
                top = y < top ? y : top;
                bottom = y + 1 > bottom ? y + 1 : bottom;
            }
    *around = (struct box){left, top, right - left, bottom - top};
    return count;
}

static void what_lies_outside_is_not_drawn(void **state)
{
    (void)state;
    struct canvas canvas = blank(20, 10);
    struct box around;
    uint8_t rgb[6 * 6 * 3];
    memset(rgb, 0xff, sizeof rgb);
    canvas_fill(&canvas, (struct box){-5, -5, 8, 7}, 0xffffff);
    assert_int_equal(inked(&canvas, &around), 3 * 2);
    canvas_fill(&canvas, (struct box){18, 9, 100, 100}, 0xffffff);
    assert_int_equal(inked(&canvas, &around), 3 * 2 + 2);
    canvas_copy(&canvas, 17, -4, rgb, 6, 6);
    assert_int_equal(inked(&canvas, &around), 3 * 2 + 2 + 3 * 2);
    canvas_fill(&canvas, (struct box){40, 40, 5, 5}, 0xffffff);
    canvas_line(&canvas, (struct box){0, 0, 20, 10}, (struct point){-9, -9}, (struct point){-1, 30},
                0xffffff);
    canvas_disc(&canvas, (struct box){0, 0, 20, 10}, (struct point){10, 200}, 3, 0xffffff);
    assert_int_equal(inked(&canvas, &around), 3 * 2 + 2 + 3 * 2);
    canvas_reset(&canvas);
}

static void a_frame_is_as_thick_as_asked_and_hollow(void **state)
{
    (void)state;
    struct canvas canvas = blank(30, 30);
    struct box around;
    canvas_frame(&canvas, (struct box){5, 6, 12, 10}, 2, 0xff0000);
    assert_int_equal(inked(&canvas, &around), 12 * 10 - 8 * 6);
    assert_memory_equal(&around, &((struct box){5, 6, 12, 10}), sizeof around);
    assert_int_equal(at(&canvas, 7, 8), PAPER);
    canvas_reset(&canvas);
}

static void lines_stay_in_their_box_and_reach_both_ends(void **state)
{
    (void)state;
    struct canvas canvas = blank(50, 50);
    struct box around, within = {10, 10, 30, 30};
    canvas_line(&canvas, within, (struct point){12, 12}, (struct point){36, 30}, 0xffffff);
    assert_int_equal(at(&canvas, 12, 12), 0xffffff);
    assert_int_equal(at(&canvas, 36, 30), 0xffffff);
    canvas_line(&canvas, within, (struct point){0, 45}, (struct point){49, 2}, 0xffffff);
    inked(&canvas, &around);
    assert_true(around.x >= 10 && around.y >= 10 && around.x + around.width <= 40 &&
                around.y + around.height <= 40);
    canvas_reset(&canvas);
}

static void every_letter_differs_from_every_other(void **state)
{
    (void)state;
    for (char a = ' '; a < 127; a++)
        for (char b = (char)(a + 1); b < 127; b++)
            assert_memory_not_equal(font_glyph(a), font_glyph(b), FONT_HEIGHT);
    assert_ptr_equal(font_glyph('\n'), font_glyph('?'));
    assert_ptr_equal(font_glyph((char)0xc3), font_glyph('?'));
    for (char a = ' '; a < 127; a++)
        for (int row = 0; row < FONT_HEIGHT; row++)
            assert_in_range(font_glyph(a)[row], 0, (1 << FONT_WIDTH) - 1);
}

static void text_that_is_too_long_is_cut_with_two_dots(void **state)
{
    (void)state;
    struct canvas whole = blank(200, 20), cut = blank(200, 20), dots = blank(200, 20);
    struct text_style style = {1, 0xffffff};
    struct box around;
    assert_int_equal(canvas_text(&whole, 3, 4, 190, "abcdefgh", style), text_width("", 8, 1));
    inked(&whole, &around);
    assert_true(around.x >= 3 && around.y >= 4 && around.width <= text_width("", 8, 1));
    int32_t used = canvas_text(&cut, 3, 4, text_width("", 5, 1), "abcdefgh", style);
    assert_int_equal(used, text_width("", 5, 1));
    canvas_text(&dots, 3, 4, 190, "abc..", style);
    assert_memory_equal(cut.pixels, dots.pixels, 200 * 20 * 3);
    assert_int_equal(canvas_text(&cut, 3, 4, 2, "abcdefgh", style), 0); /* no room for anything */
    canvas_reset(&whole);
    canvas_reset(&cut);
    canvas_reset(&dots);
}

static void lines_break_at_spaces_and_measuring_agrees_with_drawing(void **state)
{
    (void)state;
    struct canvas canvas = blank(100, 100);
    struct text_style style = {1, 0xffffff};
    struct box box = {10, 10, text_width("", 9, 1), 85}, around;
    int32_t drawn = canvas_wrapped(&canvas, box, "four five six\nend", style);
    assert_int_equal(drawn, 3 * text_height(1)); /* "four five", "six", "end" */
    assert_int_equal(canvas_wrapped(NULL, box, "four five six\nend", style), drawn);
    inked(&canvas, &around);
    assert_true(around.x >= 10 && around.x + around.width <= box.x + box.width);
    assert_int_equal(canvas_wrapped(NULL, box, "aaaa bbbbbb cccccc", style), 3 * text_height(1));
    assert_int_equal(canvas_wrapped(NULL, box, "one-word-of-twentyfive-let", style),
                     3 * text_height(1));
    box.height = text_height(1) + 3;
    assert_int_equal(canvas_wrapped(NULL, box, "four five six\nend", style), text_height(1));
    canvas_reset(&canvas);
}

static void colours_grow_brighter_with_their_numbers(void **state)
{
    (void)state;
    int32_t before = -1;
    for (int i = 0; i <= 100; i++) {
        color color = color_of_share(i / 100.0);
        int32_t light =
            (int32_t)(299 * (color >> 16) + 587 * (color >> 8 & 255) + 114 * (color & 255));
        assert_true(light > before);
        before = light;
    }
    assert_int_equal(color_of_share(-3), color_of_share(0));
    assert_int_equal(color_of_share(7), color_of_share(1));
    for (uint64_t a = 0; a < 12; a++)
        for (uint64_t b = a + 1; b < 12; b++)
            assert_int_not_equal(color_of_class(a), color_of_class(b));
    assert_int_equal(color_of_class(12), color_of_class(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_lies_outside_is_not_drawn),
        cmocka_unit_test(a_frame_is_as_thick_as_asked_and_hollow),
        cmocka_unit_test(lines_stay_in_their_box_and_reach_both_ends),
        cmocka_unit_test(every_letter_differs_from_every_other),
        cmocka_unit_test(text_that_is_too_long_is_cut_with_two_dots),
        cmocka_unit_test(lines_break_at_spaces_and_measuring_agrees_with_drawing),
        cmocka_unit_test(colours_grow_brighter_with_their_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
