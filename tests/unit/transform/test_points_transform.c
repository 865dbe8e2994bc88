/* test_points_transform.c -- Rotate, Scale, Jitter and Drop of clouds, the choice of points, and
 * the normal numbers behind them. */
#include <math.h>

#include "base/fail.h"
#include "base/random.h"
#include "base/testing.h"
#include "transform/chain.h"
#include "transform/gaussian.h"
#include "transform/points_choose.h"

struct cloud {
    struct chain chain;
    struct stk_flow in, out;
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS];
    float *from, *to;
};

static float value_at(int64_t i)
{
    return (float)(random_unit(99, (uint64_t)i) * 20 - 10);
}

static void cloud_new(struct cloud *cloud, const char *text, int64_t count, int64_t columns,
                      int64_t real)
{
    struct stk_error err = {0};
    *cloud = (struct cloud){0};
    stk_status status = chain_parse(&cloud->chain, text, NULL, &err);
    if (status)
        fprintf(stderr, "%s\n", err.what);
    assert_int_equal(status, STK_OK);
    cloud->from = malloc((size_t)(count * columns) * sizeof(float) + 1);
    cloud->to = malloc((size_t)(count * columns) * sizeof(float) + 1);
    for (int64_t i = 0; i < count * columns; i++)
        cloud->from[i] = real >= 0 && i >= real * columns ? 0 : value_at(i);
    cloud->in = (struct stk_flow){
        .media = STK_MEDIA_POINTS,
        .tensor = {.dtype = STK_F32, .rank = 2, .shape = {count, columns}, .data = cloud->from},
        .real = real};
}

static void cloud_run(struct cloud *cloud, uint64_t key, int in_place)
{
    const struct chain_step *step = &cloud->chain.steps[0];
    struct scratch scratch = {0};
    memset(cloud->params, 0, sizeof cloud->params);
    cloud->out = cloud->in;
    step->ops->draw(step->args, key, &cloud->in, cloud->params);
    assert_int_equal(step->ops->shape(step->args, cloud->params, &cloud->out, NULL), STK_OK);
    cloud->out.tensor.data = in_place ? cloud->from : cloud->to;
    assert_int_equal(
        step->ops->run(step->args, cloud->params, &cloud->in, &cloud->out, &scratch, NULL), STK_OK);
    scratch_free(&scratch);
}

static void cloud_free(struct cloud *cloud)
{
    chain_reset(&cloud->chain);
    free(cloud->from);
    free(cloud->to);
}

/* ---- Rotate, Scale ------------------------------------------------------------------------- */

static void rotate_turns_two_axes_and_keeps_the_third(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int a, b, still;
    } cases[] = {{"Rotate((90, 90))", 0, 1, 2},
                 {"Rotate((90, 90), axis=x)", 1, 2, 0},
                 {"Rotate((90, 90), axis='y')", 2, 0, 1}};
    for (int k = 0; k < 3; k++) {
        struct cloud cloud;
        cloud_new(&cloud, cases[k].text, 10, 4, -1);
        cloud_run(&cloud, 1, 0);
        for (int i = 0; i < 10; i++) {
            const float *from = cloud.from + 4 * i, *to = cloud.to + 4 * i;
            assert_true(fabsf(to[cases[k].a] + from[cases[k].b]) < 1e-5f);
            assert_true(fabsf(to[cases[k].b] - from[cases[k].a]) < 1e-5f);
            assert_true(to[cases[k].still] == from[cases[k].still] && to[3] == from[3]);
        }
        cloud_free(&cloud);
    }
}

static void angles_fill_their_range(void **state)
{
    (void)state;
    struct cloud cloud;
    double least = 1e9, most = -1e9;
    cloud_new(&cloud, "Rotate(30)", 1, 3, -1);
    cloud.from[0] = 1;
    cloud.from[1] = cloud.from[2] = 0;
    for (uint64_t key = 0; key < 500; key++) {
        cloud_run(&cloud, key, 0);
        double angle = atan2((double)cloud.to[1], (double)cloud.to[0]) * 180 / acos(-1);
        least = angle < least ? angle : least;
        most = angle > most ? angle : most;
    }
    assert_true(least >= -30.001 && least < -29 && most <= 30.001 && most > 29);
    cloud_free(&cloud);
}

static void scale_is_one_factor_of_x_y_z(void **state)
{
    (void)state;
    struct cloud cloud;
    cloud_new(&cloud, "Scale((2, 3))", 10, 5, 8);
    cloud_run(&cloud, 3, 0);
    float factor = cloud.to[0] / cloud.from[0];
    assert_true(factor >= 2 && factor <= 3);
    for (int i = 0; i < 50; i++) {
        float expected = cloud.from[i] * (i % 5 < 3 ? factor : 1);
        assert_true(fabsf(cloud.to[i] - expected) < 1e-5f);
    }
    cloud_free(&cloud);
}

static void the_same_key_gives_the_same_bits_in_place_too(void **state)
{
    (void)state;
    static const char *const texts[] = {"Rotate", "Scale", "Jitter", "Drop(0.5)",
                                        "Drop(0.5, replace=False)"};
    for (size_t i = 0; i < 5; i++) {
        struct cloud first, second;
        cloud_new(&first, texts[i], 200, 4, -1);
        cloud_new(&second, texts[i], 200, 4, -1);
        cloud_run(&first, 17, 0);
        cloud_run(&second, 17, 1);
        assert_int_equal(first.out.tensor.shape[0], second.out.tensor.shape[0]);
        assert_memory_equal(first.to, second.from, stk_tensor_size(&first.out.tensor));
        cloud_run(&first, 18, 0);
        assert_true(first.out.tensor.shape[0] != second.out.tensor.shape[0] ||
                    memcmp(first.to, second.from, stk_tensor_size(&first.out.tensor)));
        cloud_free(&first);
        cloud_free(&second);
    }
}

/* ---- Jitter -------------------------------------------------------------------------------- */

static void jitter_moves_normally_and_not_beyond_its_clip(void **state)
{
    (void)state;
    struct cloud cloud;
    double sum = 0, squares = 0, most = 0;
    cloud_new(&cloud, "Jitter(sigma=0.5, clip=1)", 20000, 4, 15000);
    cloud_run(&cloud, 4, 0);
    for (int i = 0; i < 80000; i++) {
        double move = (double)cloud.to[i] - (double)cloud.from[i];
        if (i % 4 == 3 || i >= 60000) {
            assert_true(cloud.to[i] == cloud.from[i]);
            continue;
        }
        sum += move;
        squares += move * move;
        most = fabs(move) > most ? fabs(move) : most;
    }
    assert_true(fabs(sum / 45000) < 0.01);
    /* the variance of a normal number clipped at two deviations is 0.9205 of the plain one's */
    assert_true(fabs(squares / 45000 / 0.25 - 0.9205) < 0.02);
    assert_true(most > 0.99 && most < 1.0001);
    cloud_free(&cloud);
}

static void normal_numbers_are_those_of_the_definition(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    static float made[COUNT], again[COUNT];
    double sum = 0, squares = 0, fourth = 0;
    gaussian_fill(11, 0, COUNT, made);
    for (uint64_t i = 0; i < COUNT / 2; i++) {
        uint64_t bits = random_at(11, i);
        double u = ((double)(bits >> 33) + 0.5) * 0x1p-31, v = (double)(uint32_t)bits * 0x1p-32;
        double radius = sqrt(-2 * log(u)), angle = 2 * acos(-1) * v;
        assert_true(fabs(radius * cos(angle) - (double)made[2 * i]) < 2e-5);
        assert_true(fabs(radius * sin(angle) - (double)made[2 * i + 1]) < 2e-5);
    }
    for (int i = 0; i < COUNT; i++) {
        double x = (double)made[i];
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / COUNT) < 0.03 && fabs(squares / COUNT - 1) < 0.03);
    assert_true(fabs(fourth / COUNT - 3) < 0.2);
    for (uint64_t at = 0, len; at < COUNT; at += len) { /* whatever the pieces are */
        len = 1 + random_below(12, at, 200);
        len = len < COUNT - at ? len : COUNT - at;
        gaussian_fill(11, at, len, again + at);
    }
    assert_memory_equal(made, again, sizeof made);
}

/* ---- Drop ---------------------------------------------------------------------------------- */

static void drop_puts_the_first_kept_point_where_one_goes(void **state)
{
    (void)state;
    struct cloud cloud;
    int dropped = 0;
    cloud_new(&cloud, "Drop(0.3)", 1000, 4, 900);
    cloud_run(&cloud, 5, 0);
    int first = 0;
    while (memcmp(cloud.to + 4 * first, cloud.from + 4 * first, 16))
        first++;
    assert_int_equal(cloud.out.tensor.shape[0], 1000);
    assert_int_equal(cloud.out.real, 900);
    for (int i = 0; i < 1000; i++) {
        int same = !memcmp(cloud.to + 4 * i, cloud.from + 4 * i, 16);
        assert_true(same || !memcmp(cloud.to + 4 * i, cloud.from + 4 * first, 16));
        assert_true(same || i < 900);
        dropped += !same;
    }
    assert_in_range(dropped, 200, 340);
    cloud_free(&cloud);
}

static void drop_without_replacement_leaves_fewer_points(void **state)
{
    (void)state;
    struct cloud cloud;
    cloud_new(&cloud, "Drop(p=0.3, replace=False)", 1000, 4, 900);
    cloud_run(&cloud, 5, 0);
    int64_t kept = cloud.out.tensor.shape[0], from = 0;
    assert_in_range(kept, 560, 700);
    assert_int_equal(cloud.out.real, -1);
    for (int64_t i = 0; i < kept; i++, from++) { /* a subsequence of the real ones */
        while (memcmp(cloud.to + 4 * i, cloud.from + 4 * from, 16))
            assert_true(++from < 900);
    }
    cloud_free(&cloud);
}

static void one_point_is_left_of_those_that_all_go(void **state)
{
    (void)state;
    static const char *const texts[] = {"Drop(1)", "Drop(1, replace=False)"};
    for (int i = 0; i < 2; i++) {
        struct cloud cloud;
        cloud_new(&cloud, texts[i], 5, 3, -1);
        cloud_run(&cloud, 5, 0);
        assert_int_equal(cloud.out.tensor.shape[0], i ? 1 : 5);
        for (int64_t k = 0; k < cloud.out.tensor.shape[0]; k++)
            assert_memory_equal(cloud.to + 3 * k, cloud.from, 12);
        cloud_free(&cloud);
        cloud_new(&cloud, texts[i], 0, 3, -1); /* nothing is left of nothing */
        cloud_run(&cloud, 5, 0);
        assert_int_equal(cloud.out.tensor.shape[0], 0);
        cloud_free(&cloud);
    }
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void wrong_arguments_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"Rotate((9, 1))", "Rotate(axis=w)", "Scale((2, 1))",
                                        "Scale(3)",       "Drop(1.5)",      "Jitter(-1)"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct chain chain;
        struct stk_error err = {0};
        assert_int_equal(chain_parse(&chain, texts[i], NULL, &err), STK_USAGE);
        assert_true(err.what[0]);
    }
}

static void what_is_no_cloud_is_refused_with_a_remedy(void **state)
{
    (void)state;
    struct cloud cloud;
    struct stk_error err;
    cloud_new(&cloud, "Rotate", 4, 3, -1);
    const struct chain_step *step = &cloud.chain.steps[0];
    struct stk_flow flow = cloud.in;
    flow.tensor.shape[0] = flow.tensor.shape[1] = -1;
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, &err), STK_OK);
    flow.tensor.shape[1] = 2;
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, &err), STK_SHAPE);
    flow = cloud.in;
    flow.tensor.dtype = STK_F16;
    assert_int_equal(step->ops->shape(step->args, NULL, &flow, &err), STK_SHAPE);
    assert_non_null(strstr(err.what, "float16"));
    assert_non_null(strstr(err.remedy, "Cast"));
    cloud_free(&cloud);
}

static void drop_without_replacement_is_ragged(void **state)
{
    (void)state;
    struct cloud cloud;
    cloud_new(&cloud, "Drop(replace=False)", 4, 3, 4);
    struct stk_flow flow = cloud.in;
    assert_int_equal(cloud.chain.steps[0].ops->shape(cloud.chain.steps[0].args, NULL, &flow, NULL),
                     STK_OK);
    assert_int_equal(flow.tensor.shape[0], -1);
    cloud_free(&cloud);
}

/* ---- the choice ---------------------------------------------------------------------------- */

static void a_choice_is_ascending_without_repeats(void **state)
{
    (void)state;
    uint64_t bits[POINTS_CHOOSE_BITS(1000)];
    uint32_t rows[1000];
    for (uint64_t n = 0; n < 1000; n += n < 70 ? 1 : 77) {
        for (uint64_t count = 0; count <= n; count += 1 + count / 8) {
            points_choose(n * 1000 + count, n, count, bits, rows);
            for (uint64_t i = 0; i < count; i++)
                assert_true(rows[i] < n && (i == 0 || rows[i - 1] < rows[i]));
        }
    }
}

/* Of 6 numbers, 2 and 4 are chosen in 15 ways each: a test of chi squared with 14 degrees. */
static void every_choice_is_equally_likely(void **state)
{
    (void)state;
    for (uint64_t count = 2; count <= 4; count += 2) {
        int found[64] = {0};
        uint64_t bits[1];
        uint32_t rows[4];
        double chi = 0;
        for (uint64_t key = 0; key < 30000; key++) {
            int set = 0;
            points_choose(random_key(3, key), 6, count, bits, rows);
            for (uint64_t i = 0; i < count; i++)
                set |= 1 << rows[i];
            found[set]++;
        }
        for (int set = 0; set < 64; set++)
            if (__builtin_popcount((unsigned)set) == (int)count)
                chi += (found[set] - 2000.0) * (found[set] - 2000.0) / 2000.0;
        assert_true(chi < 36.1); /* one in a thousand */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rotate_turns_two_axes_and_keeps_the_third),
        cmocka_unit_test(angles_fill_their_range),
        cmocka_unit_test(scale_is_one_factor_of_x_y_z),
        cmocka_unit_test(the_same_key_gives_the_same_bits_in_place_too),
        cmocka_unit_test(jitter_moves_normally_and_not_beyond_its_clip),
        cmocka_unit_test(normal_numbers_are_those_of_the_definition),
        cmocka_unit_test(drop_puts_the_first_kept_point_where_one_goes),
        cmocka_unit_test(drop_without_replacement_leaves_fewer_points),
        cmocka_unit_test(one_point_is_left_of_those_that_all_go),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(what_is_no_cloud_is_refused_with_a_remedy),
        cmocka_unit_test(drop_without_replacement_is_ragged),
        cmocka_unit_test(a_choice_is_ascending_without_repeats),
        cmocka_unit_test(every_choice_is_equally_likely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
