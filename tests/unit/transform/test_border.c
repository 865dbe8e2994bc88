#include "base/testing.h"

#include "transform/border.h"

#define HEIGHT 3
#define WIDTH 4
#define CHANNELS 3

/* One step of a walk along an image of len pixels that turns back at its ends. */
static int64_t walked(enum border_mode mode, int64_t at, int64_t len)
{
    int64_t place = 0, step = 1;
    if (mode == BORDER_EDGE)
        return at < 0 ? 0 : at >= len ? len - 1 : at;
    for (int64_t i = 0; i < (at < 0 ? -at : at); i++) {
        int64_t next = place + (at < 0 ? -step : step);
        if (next >= 0 && next < len) {
            place = next;
        } else {
            step = -step;
            if (mode == BORDER_REFLECT && len > 1)
                place += at < 0 ? -step : step;
        }
    }
    return place;
}

static void check_window(const struct border *border, struct pixels from, int64_t width,
                         int64_t height)
{
    uint8_t *result = malloc((size_t)(width * height * CHANNELS)); /* its end is watched */
    struct pixels to = {.data = result, .width = width, .height = height, .channels = CHANNELS};
    assert_non_null(result);
    border_run(border, from, to);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t row = border->y + y, column = border->x + x;
            int inside = row >= 0 && row < from.height && column >= 0 && column < from.width;
            const uint8_t *wanted = border->fill;
            if (border->mode != BORDER_CONSTANT || inside)
                wanted = from.data + (walked(border->mode, row, from.height) * from.width +
                                      walked(border->mode, column, from.width)) *
                                         CHANNELS;
            assert_memory_equal(result + (y * width + x) * CHANNELS, wanted, CHANNELS);
        }
    free(result);
}

/* Inside, over each edge, and beyond all of them. */
static void a_window_shows_what_a_walk_along_the_image_meets(void **state)
{
    uint8_t pixels[HEIGHT * WIDTH * CHANNELS];
    struct pixels image = {
        .data = pixels, .width = WIDTH, .height = HEIGHT, .channels = CHANNELS, .colors = 3};
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i + 1);
    for (int mode = BORDER_CONSTANT; mode <= BORDER_SYMMETRIC; mode++)
        for (int64_t x = -12; x <= 12; x++)
            for (int64_t y = -12; y <= 12; y++) {
                struct border border = {(enum border_mode)mode, x, y, {201, 202, 203, 204}};
                check_window(&border, image, 1 + (x + 12) % 7, 1 + (y + 12) % 5);
            }
}

static void one_pixel_is_repeated_in_every_mode(void **state)
{
    uint8_t pixel[CHANNELS] = {7, 8, 9};
    struct pixels image = {.data = pixel, .width = 1, .height = 1, .channels = CHANNELS};
    (void)state;
    for (int mode = BORDER_EDGE; mode <= BORDER_SYMMETRIC; mode++) {
        struct border border = {.mode = (enum border_mode)mode, .x = -3, .y = -2};
        check_window(&border, image, 6, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_shows_what_a_walk_along_the_image_meets),
        cmocka_unit_test(one_pixel_is_repeated_in_every_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
