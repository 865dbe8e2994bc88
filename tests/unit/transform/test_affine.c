#include "base/testing.h"

#include "transform/affine.h"

#define HEIGHT 3
#define WIDTH 5

static void assert_grown(double degrees, int64_t width, int64_t height, int64_t to_width,
                         int64_t to_height)
{
    struct affine affine = {0};
    affine_turn(&affine, degrees, (double)width / 2, (double)height / 2);
    affine_expand(&affine, &width, &height);
    assert_int_equal(width, to_width);
    assert_int_equal(height, to_height);
}

/* The sizes of Pillow's Image.rotate(degrees, expand=True). */
static void a_turned_image_grows_as_pillows(void **state)
{
    (void)state;
    assert_grown(0, 45, 31, 45, 31);
    assert_grown(90, 45, 31, 31, 45);
    assert_grown(-90, 45, 31, 31, 45);
    assert_grown(180, 45, 31, 45, 31);
    assert_grown(360, 45, 31, 45, 31);
    assert_grown(17, 45, 31, 53, 43);
    assert_grown(45, 10, 10, 16, 16);
    assert_grown(45, 60000, 1, 42428, 42429);
}

/* By a right angle no pixel is lost, and none is made up. */
static void a_right_angle_moves_every_pixel_to_a_place_of_its_own(void **state)
{
    uint8_t pixels[HEIGHT * WIDTH], turned[HEIGHT * WIDTH];
    struct pixels in = {.data = pixels, .width = WIDTH, .height = HEIGHT, .channels = 1};
    struct pixels out = {.data = turned, .width = HEIGHT, .height = WIDTH, .channels = 1};
    (void)state;
    for (uint8_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i + 1);
    for (int bilinear = 0; bilinear < 2; bilinear++) {
        struct affine affine = {.bilinear = bilinear};
        int64_t width = WIDTH, height = HEIGHT;
        affine_turn(&affine, 90, WIDTH / 2.0, HEIGHT / 2.0);
        affine_expand(&affine, &width, &height);
        affine_run(&affine, in, out);
        for (int y = 0; y < WIDTH; y++)
            for (int x = 0; x < HEIGHT; x++)
                assert_int_equal(turned[y * HEIGHT + x], pixels[x * WIDTH + WIDTH - 1 - y]);
    }
}

/* Half a turn about (1, 1): what lies more than one pixel from it is outside. */
static void the_point_that_is_turned_about_stays(void **state)
{
    uint8_t pixels[HEIGHT * WIDTH], turned[HEIGHT * WIDTH];
    struct pixels in = {.data = pixels, .width = WIDTH, .height = HEIGHT, .channels = 1};
    struct pixels out = {.data = turned, .width = WIDTH, .height = HEIGHT, .channels = 1};
    struct affine affine = {.fill = {99}};
    (void)state;
    for (uint8_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i + 1);
    affine_turn(&affine, 180, 1, 1);
    affine_run(&affine, in, out);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int wanted = x < 2 && y < 2 ? pixels[(1 - y) * WIDTH + 1 - x] : 99;
            assert_int_equal(turned[y * WIDTH + x], wanted);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turned_image_grows_as_pillows),
        cmocka_unit_test(a_right_angle_moves_every_pixel_to_a_place_of_its_own),
        cmocka_unit_test(the_point_that_is_turned_about_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
