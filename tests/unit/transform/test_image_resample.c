#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/image_passes.h"
#include "transform/image_resample.h"

/* --- another way to the same pixels: double weights over every pixel, no tables -----------------
 */

static double weight_at(enum image_filter filter, double x)
{
    double pi_x = acos(-1) * x, a = -0.5;
    x = fabs(x);
    switch (filter) {
    case IMAGE_BILINEAR:
        return fmax(0, 1 - x);
    case IMAGE_BICUBIC:
        return x < 1   ? (a + 2) * pow(x, 3) - (a + 3) * pow(x, 2) + 1
               : x < 2 ? a * pow(x, 3) - 5 * a * pow(x, 2) + 8 * a * x - 4 * a
                       : 0;
    case IMAGE_AREA:
        return pi_x > acos(-1) * -0.5 && x <= 0.5;
    default:
        return x == 0 ? 1 : x < 3 ? 3 * sin(pi_x) * sin(pi_x / 3) / (pi_x * pi_x) : 0;
    }
}

static double reach_of(enum image_filter filter)
{
    return filter == IMAGE_BILINEAR  ? 1
           : filter == IMAGE_BICUBIC ? 2
           : filter == IMAGE_AREA    ? 0.5
                                     : 3;
}

/* from: `count` values a stride apart. */
static uint8_t naive_one(const uint8_t *from, int64_t stride, int32_t count, double start,
                         double stop, int32_t to, int32_t i, enum image_filter filter)
{
    double scale = (stop - start) / to, wide = scale > 1 ? scale : 1;
    double middle = start + (i + 0.5) * scale, sum = 0, weights = 0;
    double reach = reach_of(filter) * wide;
    for (int32_t k = 0; k < count; k++) { /* whole pixels from the nearest edges on */
        if (k < floor(middle - reach + 0.5) || k >= floor(middle + reach + 0.5))
            continue;
        double weight = weight_at(filter, (k + 0.5 - middle) / wide);
        sum += weight * from[k * stride];
        weights += weight;
    }
    return (uint8_t)fmin(255, fmax(0, floor(sum / weights + 0.5)));
}

struct picture {
    int32_t width, height, channels;
    uint8_t *pixels;
};

static struct picture picture_new(int32_t width, int32_t height, int32_t channels)
{
    struct picture picture = {width, height, channels, NULL};
    picture.pixels = calloc((size_t)width * (size_t)height * (size_t)channels + 16, 1);
    return picture;
}

static struct picture picture_random(uint64_t key, int32_t width, int32_t height, int32_t channels)
{
    struct picture picture = picture_new(width, height, channels);
    for (int64_t i = 0; i < (int64_t)width * height * channels; i++)
        picture.pixels[i] = (uint8_t)random_below(key, (uint64_t)i, 256);
    return picture;
}

static struct picture naive_across(const struct picture *from, double start, double stop,
                                   int32_t to, enum image_filter filter)
{
    struct picture made = picture_new(to, from->height, from->channels);
    for (int32_t y = 0; y < from->height; y++)
        for (int32_t x = 0; x < to; x++)
            for (int32_t c = 0; c < from->channels; c++)
                made.pixels[((int64_t)y * to + x) * from->channels + c] =
                    naive_one(from->pixels + (int64_t)y * from->width * from->channels + c,
                              from->channels, from->width, start, stop, to, x, filter);
    return made;
}

static struct picture naive_down(const struct picture *from, double start, double stop, int32_t to,
                                 enum image_filter filter)
{
    int64_t row = (int64_t)from->width * from->channels;
    struct picture made = picture_new(from->width, to, from->channels);
    for (int32_t y = 0; y < to; y++)
        for (int64_t i = 0; i < row; i++)
            made.pixels[y * row + i] =
                naive_one(from->pixels + i, row, from->height, start, stop, to, y, filter);
    return made;
}

/* --- what is tested -----------------------------------------------------------------------------
 */

struct trial {
    struct picture from, made;
    struct image_view view;
    struct image_geometry geometry;
    struct scratch scratch;
};

static void trial_begin(struct trial *trial, struct picture from)
{
    *trial = (struct trial){.from = from};
    trial->view = (struct image_view){.pixels = from.pixels,
                                      .stride = (int64_t)from.width * from.channels,
                                      .width = from.width,
                                      .height = from.height,
                                      .channels = from.channels,
                                      .x1 = from.width,
                                      .y1 = from.height};
    geometry_init(&trial->geometry, from.width, from.height);
}

static void trial_run(struct trial *trial)
{
    const struct image_geometry *g = &trial->geometry;
    struct image_writer writer;
    trial->made = picture_new(g->out_width, g->out_height, trial->from.channels);
    image_writer_init(&writer, STK_U8, g->out_width, g->out_height, trial->from.channels, 0);
    assert_int_equal(
        image_resample(&trial->view, g, &writer, trial->made.pixels, &trial->scratch, NULL),
        STK_OK);
}

static void trial_end(struct trial *trial)
{
    free(trial->from.pixels);
    free(trial->made.pixels);
    scratch_free(&trial->scratch);
}

static const uint8_t *pixel(const struct picture *picture, int32_t x, int32_t y)
{
    return picture->pixels + ((int64_t)y * picture->width + x) * picture->channels;
}

/* The window of `whole`, flipped, is what was made; to `levels` of difference. */
static void assert_window(const struct trial *trial, const struct picture *whole, int levels)
{
    const struct image_geometry *g = &trial->geometry;
    for (int32_t y = 0; y < g->out_height; y++)
        for (int32_t x = 0; x < g->out_width; x++) {
            int32_t from_x = g->out_x + (g->flip_x ? g->out_width - 1 - x : x);
            int32_t from_y = g->out_y + (g->flip_y ? g->out_height - 1 - y : y);
            int inside =
                from_x >= 0 && from_x < whole->width && from_y >= 0 && from_y < whole->height;
            const uint8_t *wanted = inside ? pixel(whole, from_x, from_y) : g->fill;
            const uint8_t *found = pixel(&trial->made, x, y);
            for (int32_t c = 0; c < trial->from.channels; c++)
                assert_in_range(found[c], wanted[c] > levels ? wanted[c] - levels : 0,
                                wanted[c] + levels);
        }
}

static int32_t between(uint64_t key, uint64_t counter, int32_t low, int32_t high)
{
    return low + (int32_t)random_below(key, counter, (uint64_t)(high - low + 1));
}

static void window_choose(struct trial *trial, uint64_t key)
{
    struct image_geometry *g = &trial->geometry;
    g->out_width = between(key, 1, 1, g->to_width);
    g->out_height = between(key, 2, 1, g->to_height);
    g->out_x = between(key, 3, 0, g->to_width - g->out_width);
    g->out_y = between(key, 4, 0, g->to_height - g->out_height);
    g->flip_x = between(key, 5, 0, 1);
    g->flip_y = between(key, 6, 0, 1);
}

static void resized(uint64_t seed, enum image_filter filter)
{
    uint64_t key = random_key(seed, filter);
    static const int32_t channels[] = {3, 1, 4, 2, 3};
    int32_t most = seed % 4 ? 90 : 9;
    struct trial trial;
    trial_begin(&trial, picture_random(key, between(key, 7, 1, most), between(key, 8, 1, most),
                                       channels[seed % 5]));
    int32_t width = between(key, 9, 1, 100), height = between(key, 10, 1, 100);
    if (seed % 3 == 0) {
        trial.view.x0 = random_unit(key, 11) * trial.from.width / 2;
        trial.view.x1 = trial.from.width - random_unit(key, 12) * trial.from.width / 3;
        trial.view.y0 = random_unit(key, 13) * trial.from.height / 2;
        trial.view.y1 = trial.from.height - random_unit(key, 14) * trial.from.height / 3;
    }
    assert_true(geometry_resize(&trial.geometry, width, height, filter, 1));
    window_choose(&trial, key);
    trial_run(&trial);
    int down_first =
        trial.from.height > height && trial.from.height - height > 2 * (trial.from.width - width);
    const struct image_view *v = &trial.view;
    struct picture half = down_first ? naive_down(&trial.from, v->y0, v->y1, height, filter)
                                     : naive_across(&trial.from, v->x0, v->x1, width, filter);
    struct picture whole = down_first ? naive_across(&half, v->x0, v->x1, width, filter)
                                      : naive_down(&half, v->y0, v->y1, height, filter);
    assert_window(&trial, &whole, 1);
    free(half.pixels);
    free(whole.pixels);
    trial_end(&trial);
}

static void a_resize_is_the_weighed_sum_of_its_pixels(void **state)
{
    static const enum image_filter filters[] = {IMAGE_BILINEAR, IMAGE_BICUBIC, IMAGE_AREA,
                                                IMAGE_LANCZOS};
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++)
        for (size_t f = 0; f < sizeof filters / sizeof *filters; f++)
            resized(seed, filters[f]);
}

static void nearest_takes_the_pixel_under_the_middle(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct trial trial;
        /* Odd: no middle lies on the edge of two pixels. */
        trial_begin(&trial, picture_random(seed, 2 * between(seed, 1000000, 0, 25) + 1,
                                           2 * between(seed, 1000001, 0, 25) + 1, 3));
        int32_t width = between(seed, 1000002, 1, 70), height = between(seed, 1000003, 1, 70);
        geometry_resize(&trial.geometry, width, height, IMAGE_NEAREST, 1);
        window_choose(&trial, random_key(seed, 1));
        trial_run(&trial);
        struct picture whole = picture_new(width, height, 3);
        for (int32_t y = 0; y < height; y++)
            for (int32_t x = 0; x < width; x++) {
                int32_t at_x = (int32_t)((2 * x + 1) * (int64_t)trial.from.width / (2 * width));
                int32_t at_y = (int32_t)((2 * y + 1) * (int64_t)trial.from.height / (2 * height));
                memcpy(whole.pixels + ((int64_t)y * width + x) * 3, pixel(&trial.from, at_x, at_y),
                       3);
            }
        assert_window(&trial, &whole, 0);
        free(whole.pixels);
        trial_end(&trial);
    }
}

static void without_a_resize_pixels_are_copied(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct trial trial;
        trial_begin(&trial, picture_random(seed, 37, 21, (int32_t)(seed % 4) + 1));
        window_choose(&trial, random_key(seed, 2));
        trial_run(&trial);
        assert_window(&trial, &trial.from, 0);
        trial_end(&trial);
    }
}

static void what_lies_outside_is_filled(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct trial trial;
        trial_begin(&trial, picture_random(seed, 30, 20, 3));
        struct image_geometry *g = &trial.geometry;
        int resize = seed % 2;
        if (resize)
            geometry_resize(g, 17, 33, IMAGE_BILINEAR, 1);
        struct picture whole = resize ? naive_across(&trial.from, 0, 30, 17, IMAGE_BILINEAR)
                                      : picture_random(seed, 30, 20, 3);
        if (resize) {
            struct picture half = whole;
            whole = naive_down(&half, 0, 20, 33, IMAGE_BILINEAR);
            free(half.pixels);
        }
        memcpy(g->fill, "\x11\x22\x33\x44", 4);
        g->out_width = between(seed, 9000, 1, 60);
        g->out_height = between(seed, 9001, 1, 60);
        g->out_x = between(seed, 9002, -70, 40);
        g->out_y = between(seed, 9003, -70, 40);
        g->flip_x = seed % 3 == 0;
        g->flip_y = seed % 5 == 0;
        trial_run(&trial);
        assert_window(&trial, &whole, 1);
        free(whole.pixels);
        trial_end(&trial);
    }
}

/* Values of torch.nn.functional.interpolate(mode=..., antialias=False) on 0, 10, 40, 90, 160, 250,
 * rounded, for sizes 3 and 9. */
static void without_antialias_pixels_between_are_skipped(void **state)
{
    static const uint8_t from[6] = {0, 10, 40, 90, 160, 250};
    static const uint8_t linear3[3] = {5, 65, 205},
                         linear9[9] = {0, 5, 15, 35, 65, 102, 148, 205, 250};
    static const uint8_t cubic3[3] = {2, 61, 212},
                         cubic9[9] = {0, 2, 14, 32, 61, 103, 143, 212, 255};
    const struct {
        enum image_filter filter;
        int32_t count;
        const uint8_t *wanted;
    } cases[] = {{IMAGE_BILINEAR, 3, linear3},
                 {IMAGE_BILINEAR, 9, linear9},
                 {IMAGE_BICUBIC, 3, cubic3},
                 {IMAGE_BICUBIC, 9, cubic9}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct trial trial;
        struct picture picture = picture_new(6, 1, 1);
        memcpy(picture.pixels, from, 6);
        trial_begin(&trial, picture);
        geometry_resize(&trial.geometry, cases[i].count, 1, cases[i].filter, 0);
        trial_run(&trial);
        for (int32_t x = 0; x < cases[i].count; x++)
            assert_in_range(trial.made.pixels[x] + 1, cases[i].wanted[x], cases[i].wanted[x] + 2);
        trial_end(&trial);
    }
}

/* --- vectors ------------------------------------------------------------------------------------
 */

static void passes_compare(const struct image_passes *wide, uint64_t seed)
{
    uint64_t key = random_key(seed, 77);
    int32_t channels = between(key, 1, 1, 4), width = between(key, 2, 1, 120);
    int32_t height = between(key, 3, 1, 30), to = between(key, 4, 1, 130);
    struct axis axis = {.from = width,
                        .stop = width,
                        .to = to,
                        .count = to,
                        .filter = (enum image_filter)(seed % 3),
                        .antialias = 1};
    struct scratch scratch = {0};
    struct coefficients table;
    struct picture from = picture_random(key, width, height, channels);
    assert_int_equal(coefficients_make(&table, &axis, &scratch, NULL), STK_OK);
    int64_t stride = (int64_t)to * channels + PASS_SLACK;
    struct pass_rows rows = {.from = from.pixels,
                             .from_stride = (int64_t)width * channels,
                             .to_stride = stride,
                             .count = height,
                             .width = width,
                             .channels = channels};
    uint8_t *one = calloc((size_t)stride, (size_t)height),
            *other = calloc((size_t)stride, (size_t)height);
    rows.to = one;
    image_passes_plain.across(&rows, &table);
    rows.to = other;
    wide->across(&rows, &table);
    for (int32_t y = 0; y < height; y++)
        assert_memory_equal(one + y * stride, other + y * stride, (size_t)to * (size_t)channels);
    axis.from = height;
    axis.stop = height;
    assert_int_equal(coefficients_make(&table, &axis, &scratch, NULL), STK_OK);
    int64_t bytes = (int64_t)width * channels;
    uint8_t *row = malloc((size_t)bytes), *twin = malloc((size_t)bytes); /* nothing beyond them */
    for (int32_t i = 0; i < to; i++) {
        image_passes_plain.down(from.pixels, bytes, height, &table, i, bytes, row);
        wide->down(from.pixels, bytes, height, &table, i, bytes, twin);
        assert_memory_equal(row, twin, (size_t)bytes);
    }
    free(row);
    free(twin);
    free(one);
    free(other);
    free(from.pixels);
    scratch_free(&scratch);
}

static void vectors_give_the_bytes_of_plain_c(void **state)
{
    const struct image_passes *sets[] = {image_passes_avx2(), image_passes_vnni()};
    (void)state;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        for (uint64_t seed = 0; sets[i] && seed < 150; seed++)
            passes_compare(sets[i], seed);
}

/* --- memory -------------------------------------------------------------------------------------
 */

static int count_hook(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void a_second_image_allocates_nothing(void **state)
{
    struct trial trial;
    int count = 0;
    (void)state;
    trial_begin(&trial, picture_random(1, 300, 250, 3));
    geometry_resize(&trial.geometry, 224, 224, IMAGE_BILINEAR, 1);
    trial_run(&trial);
    free(trial.made.pixels);
    scratch_reset(&trial.scratch);
    memory_set_hook(count_hook, &count);
    trial_run(&trial);
    memory_set_hook(NULL, NULL);
    assert_int_equal(count, 0);
    assert_int_equal(trial.scratch.used, 0); /* what it took is given back: the next frame's */
    trial_end(&trial);
}

static int resample_once(void *user)
{
    struct trial *trial = user;
    struct image_writer writer;
    struct stk_error err = {0};
    uint8_t to[50 * 60 * 3];
    struct scratch scratch = {0};
    image_writer_init(&writer, STK_U8, 50, 60, 3, 0);
    stk_status status = image_resample(&trial->view, &trial->geometry, &writer, to, &scratch, &err);
    scratch_free(&scratch);
    assert_true(status == STK_OK || (status == STK_MEMORY && err.status == STK_MEMORY));
    return status == STK_OK;
}

static void a_failed_allocation_is_told(void **state)
{
    struct trial trial;
    (void)state;
    for (int32_t height = 30; height < 300; height += 200) { /* across first, then down first */
        trial_begin(&trial, picture_random(1, 70, height, 3));
        geometry_resize(&trial.geometry, 50, 60, IMAGE_BILINEAR, 1);
        fail_each_allocation(resample_once, &trial);
        trial_end(&trial);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_resize_is_the_weighed_sum_of_its_pixels),
        cmocka_unit_test(nearest_takes_the_pixel_under_the_middle),
        cmocka_unit_test(without_a_resize_pixels_are_copied),
        cmocka_unit_test(what_lies_outside_is_filled),
        cmocka_unit_test(without_antialias_pixels_between_are_skipped),
        cmocka_unit_test(vectors_give_the_bytes_of_plain_c),
        cmocka_unit_test(a_second_image_allocates_nothing),
        cmocka_unit_test(a_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
