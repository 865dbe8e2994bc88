#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/image_geometry.h"

#define MOST 4096

/* An axis of an image, step by step: where in the first image the middle of each pixel lies; fill
 * is not a number. Crops cut it, flips turn it round, a resize spaces it anew. */
struct line {
    int32_t count;
    double at[MOST];
};

static void line_start(struct line *line, int32_t count)
{
    line->count = count;
    for (int32_t i = 0; i < count; i++)
        line->at[i] = i + 0.5;
}

static void line_cover(struct line *line, int32_t first, int32_t count)
{
    static struct line cut;
    cut.count = count;
    for (int32_t i = 0; i < count; i++) {
        int32_t from = first + i;
        cut.at[i] = from >= 0 && from < line->count ? line->at[from] : NAN;
    }
    *line = cut;
}

static void line_flip(struct line *line)
{
    for (int32_t i = 0, j = line->count - 1; i < j; i++, j--) {
        double kept = line->at[i];
        line->at[i] = line->at[j];
        line->at[j] = kept;
    }
}

/* Pixels are spaced evenly; one alone is as wide as `alone` says. */
static void line_resize(struct line *line, int32_t count, double alone)
{
    double step = line->count > 1 ? line->at[1] - line->at[0] : alone;
    double edge = line->at[0] - step / 2, scale = step * line->count / count;
    line->count = count;
    for (int32_t i = 0; i < count; i++)
        line->at[i] = edge + (i + 0.5) * scale;
}

/* What the geometry says of the same axis of an image whose pixels lie at from's places. */
static void line_apply(const struct line *from, int32_t box, int32_t box_len, int32_t to,
                       int32_t out, int32_t out_len, int flip, struct line *result)
{
    result->count = out_len;
    for (int32_t i = 0; i < out_len; i++) {
        int32_t place = out + (flip ? out_len - 1 - i : i);
        double source = box + (place + 0.5) * box_len / to;
        if (place < 0 || place >= to)
            result->at[i] = NAN;
        else if (to == box_len)
            result->at[i] = from->at[box + place];
        else /* only what lies evenly is resized */
            result->at[i] =
                from->at[0] + (from->count > 1 ? from->at[1] - from->at[0] : 1) * (source - 0.5);
    }
}

static void assert_lines(const struct line *found, const struct line *wanted)
{
    assert_int_equal(found->count, wanted->count);
    for (int32_t i = 0; i < found->count; i++)
        assert_true(isnan(wanted->at[i]) ? isnan(found->at[i])
                                         : fabs(found->at[i] - wanted->at[i]) < 1e-6);
}

struct model {
    struct line x, y;           /* step by step */
    struct line from_x, from_y; /* what the geometry begins with */
    struct image_geometry geometry;
    uint64_t key, counter;
};

static int32_t below(struct model *model, int32_t bound)
{
    return (int32_t)random_below(model->key, model->counter++, (uint64_t)bound);
}

static void model_lines(const struct model *model, struct line *x, struct line *y)
{
    const struct image_geometry *g = &model->geometry;
    line_apply(&model->from_x, g->x, g->box_width, g->to_width, g->out_x, g->out_width, g->flip_x,
               x);
    line_apply(&model->from_y, g->y, g->box_height, g->to_height, g->out_y, g->out_height,
               g->flip_y, y);
}

/* The image so far is made, and the next begins with it. */
static void model_settle(struct model *model)
{
    static struct line x, y;
    model_lines(model, &x, &y);
    model->from_x = x;
    model->from_y = y;
    geometry_init(&model->geometry, x.count, y.count);
}

static void step_crop(struct model *model)
{
    struct image_geometry *g = &model->geometry;
    int32_t width = 1 + below(model, g->out_width), height = 1 + below(model, g->out_height);
    int32_t x = below(model, g->out_width - width + 1),
            y = below(model, g->out_height - height + 1);
    line_cover(&model->x, x, width);
    line_cover(&model->y, y, height);
    geometry_crop(g, x, y, width, height);
}

static void step_cover(struct model *model)
{
    static const uint8_t fill[4] = {1, 2, 3, 4};
    int32_t x = below(model, 60) - 30, y = below(model, 60) - 30;
    int32_t width = 1 + below(model, 80), height = 1 + below(model, 80);
    if (!geometry_cover(&model->geometry, x, y, width, height, fill)) {
        model_settle(model);
        assert_true(geometry_cover(&model->geometry, x, y, width, height, fill));
    }
    line_cover(&model->x, x, width);
    line_cover(&model->y, y, height);
}

static int is_even(const struct line *line)
{
    for (int32_t i = 0; i < line->count; i++)
        if (isnan(line->at[i]))
            return 0;
    return line->count > 1;
}

static void step_resize(struct model *model)
{
    int32_t width = 2 + below(model, 90), height = 2 + below(model, 90);
    if (!is_even(&model->x) || !is_even(&model->y))
        return; /* the model has no places for mixtures with fill */
    if (!geometry_resize(&model->geometry, width, height, IMAGE_BILINEAR, 1)) {
        model_settle(model);
        assert_true(geometry_resize(&model->geometry, width, height, IMAGE_BILINEAR, 1));
    }
    if (width == model->x.count && height == model->y.count)
        return;
    line_resize(&model->x, width, 1);
    line_resize(&model->y, height, 1);
}

static void step_flip(struct model *model)
{
    if (below(model, 2)) {
        line_flip(&model->x);
        geometry_flip_x(&model->geometry);
    } else {
        line_flip(&model->y);
        geometry_flip_y(&model->geometry);
    }
}

static void assert_boxes(const struct image_geometry *g)
{
    assert_true(g->box_width > 0 && g->box_height > 0 && g->x >= 0 && g->y >= 0);
    assert_true(g->x + g->box_width <= g->width && g->y + g->box_height <= g->height);
}

static void any_chain_is_what_its_steps_are_one_by_one(void **state)
{
    static struct model model;
    static struct line x, y;
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        model.key = random_key(seed, 7);
        model.counter = 0;
        int32_t width = 1 + below(&model, 100), height = 1 + below(&model, 100);
        line_start(&model.x, width);
        line_start(&model.y, height);
        line_start(&model.from_x, width);
        line_start(&model.from_y, height);
        geometry_init(&model.geometry, width, height);
        for (int32_t steps = below(&model, 7); steps >= 0; steps--) {
            static void (*const kinds[])(struct model *) = {step_crop, step_cover, step_resize,
                                                            step_flip};
            kinds[below(&model, 4)](&model);
            assert_boxes(&model.geometry);
        }
        model_lines(&model, &x, &y);
        assert_lines(&x, &model.x);
        assert_lines(&y, &model.y);
    }
}

static void a_crop_narrows_what_is_decoded(void **state)
{
    struct image_geometry g;
    (void)state;
    geometry_init(&g, 500, 375);
    geometry_flip_x(&g);
    geometry_crop(&g, 10, 20, 100, 50);
    assert_int_equal(g.x, 500 - 10 - 100);
    assert_int_equal(g.y, 20);
    assert_int_equal(g.box_width, 100);
    assert_int_equal(g.box_height, 50);
    assert_int_equal(g.out_x, 0);
    assert_false(g.resized);
}

static void a_second_resize_is_refused_and_changes_nothing(void **state)
{
    struct image_geometry g, before;
    (void)state;
    geometry_init(&g, 500, 375);
    assert_true(geometry_resize(&g, 224, 224, IMAGE_BICUBIC, 1));
    before = g;
    assert_false(geometry_resize(&g, 100, 100, IMAGE_BILINEAR, 1));
    assert_memory_equal(&g, &before, sizeof g);
    assert_true(geometry_resize(&g, 224, 224, IMAGE_BILINEAR, 1)); /* nothing to do */
    assert_memory_equal(&g, &before, sizeof g);
}

static void what_takes_one_side_of_a_tie_is_not_folded_behind_a_flip(void **state)
{
    struct image_geometry g;
    (void)state;
    geometry_init(&g, 500, 375);
    geometry_flip_y(&g);
    assert_false(geometry_resize(&g, 250, 100, IMAGE_NEAREST, 1));
    assert_false(geometry_resize(&g, 250, 100, IMAGE_AREA, 1));
    assert_true(geometry_resize(&g, 250, 100, IMAGE_BILINEAR, 1));
}

static void only_an_untouched_image_is_the_identity(void **state)
{
    struct image_geometry g;
    static const uint8_t fill[4];
    (void)state;
    geometry_init(&g, 50, 40);
    assert_true(geometry_is_identity(&g));
    geometry_flip_x(&g);
    assert_false(geometry_is_identity(&g));
    geometry_flip_x(&g);
    assert_true(geometry_resize(&g, 50, 40, IMAGE_LANCZOS, 1));
    geometry_crop(&g, 0, 0, 50, 40);
    assert_true(geometry_is_identity(&g));
    geometry_crop(&g, 0, 0, 25, 40);
    assert_false(geometry_is_identity(&g));
    assert_true(
        geometry_cover(&g, 0, 0, 50, 40, fill)); /* the size again, but half of it is fill */
    assert_false(geometry_is_identity(&g));
    assert_true(geometry_is_filled(&g));
}

static void what_was_cut_off_does_not_come_back(void **state)
{
    struct image_geometry g;
    static const uint8_t fill[4], other[4] = {9};
    (void)state;
    geometry_init(&g, 50, 40);
    assert_true(geometry_resize(&g, 100, 80, IMAGE_BILINEAR, 1));
    geometry_crop(&g, 10, 10, 50, 50);
    assert_false(geometry_cover(&g, -5, -5, 60, 60, fill));
    geometry_init(&g, 50, 40);
    assert_true(geometry_cover(&g, -5, -5, 60, 60, fill));
    assert_false(geometry_cover(&g, -5, -5, 70, 70, other));
    assert_true(geometry_cover(&g, -5, -5, 70, 70, fill));
    assert_true(geometry_cover(&g, 5, 5, 60, 60, other)); /* inside: nothing is filled anew */
    assert_false(geometry_resize(&g, 30, 30, IMAGE_BILINEAR, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_chain_is_what_its_steps_are_one_by_one),
        cmocka_unit_test(a_crop_narrows_what_is_decoded),
        cmocka_unit_test(a_second_resize_is_refused_and_changes_nothing),
        cmocka_unit_test(what_takes_one_side_of_a_tie_is_not_folded_behind_a_flip),
        cmocka_unit_test(only_an_untouched_image_is_the_identity),
        cmocka_unit_test(what_was_cut_off_does_not_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
