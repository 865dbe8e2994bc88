#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/moments.h"

#define COUNT 20000

/* Another way to the same numbers: two passes in long double. */
struct truth {
    uint64_t count;
    long double mean, m2, min, max;
};

static struct truth truth_of(const double *values, size_t n)
{
    struct truth truth = {.min = INFINITY, .max = -INFINITY};
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i])) {
            truth.count++;
            truth.mean += values[i];
            truth.min = values[i] < truth.min ? values[i] : truth.min;
            truth.max = values[i] > truth.max ? values[i] : truth.max;
        }
    truth.mean /= truth.count;
    for (size_t i = 0; i < n; i++)
        if (!isnan(values[i]))
            truth.m2 += (values[i] - truth.mean) * (values[i] - truth.mean);
    return truth;
}

static void add_all(struct moments *moments, const double *values, size_t n)
{
    for (size_t at = 0; at < n; at += MOMENTS_BLOCK)
        moments_add(moments, values + at, STK_F64, n - at < MOMENTS_BLOCK ? n - at : MOMENTS_BLOCK);
}

static void assert_near(double found, long double wanted, long double slack)
{
    assert_true(fabsl(found - wanted) <= slack);
}

static void assert_truth(const struct moments *moments, const double *values, size_t n)
{
    struct truth truth = truth_of(values, n);
    assert_int_equal(moments->count, truth.count);
    long double digit = 1.2e-16L * fabsl(truth.mean); /* half of one: no double is nearer */
    assert_near(moments->mean, truth.mean, digit + 1e-14L * sqrtl(truth.m2 / truth.count));
    assert_near(moments->m2, truth.m2, 1e-13L * truth.m2);
    assert_true(moments->min == (double)truth.min);
    assert_true(moments->max == (double)truth.max);
}

static double *column(double mean, double spread)
{
    double *values = malloc(COUNT * sizeof *values);
    for (size_t i = 0; i < COUNT; i++)
        values[i] = mean + spread * (random_unit(3, i) + random_unit(4, i) - 1);
    return values;
}

static void a_large_mean_leaves_a_small_variance_exact(void **state)
{
    (void)state;
    const double means[] = {0.25, -3e4, 1e9, -1e12};
    for (size_t i = 0; i < sizeof means / sizeof *means; i++) {
        double *values = column(means[i], 2.5);
        struct moments moments = {0};
        add_all(&moments, values, COUNT);
        assert_truth(&moments, values, COUNT);
        free(values);
    }
}

static void every_length_of_a_block_is_summed_whole(void **state)
{
    (void)state;
    double *values = column(10, 3);
    for (size_t n = 1; n <= 40; n++) {
        struct moments moments = {0};
        moments_add(&moments, values, STK_F64, n);
        assert_truth(&moments, values, n);
    }
    struct moments none = {0};
    moments_add(&none, values, STK_F64, 0);
    assert_int_equal(none.count, 0);
    free(values);
}

static void float32_gives_the_bits_of_the_same_numbers_in_float64(void **state)
{
    (void)state;
    double *values = column(100, 30);
    float *small = malloc(COUNT * sizeof *small);
    for (size_t i = 0; i < COUNT; i++) {
        small[i] = (float)values[i];
        values[i] = small[i];
    }
    values[777] = small[777] = NAN;
    for (size_t n = 1; n <= MOMENTS_BLOCK; n += 341) {
        struct moments one = {0}, other = {0};
        moments_add(&one, values, STK_F64, n);
        moments_add(&other, small, STK_F32, n);
        assert_memory_equal(&one, &other, sizeof one);
    }
    free(values);
    free(small);
}

static double lanes_sum(const double lane[8])
{
    double even = (lane[0] + lane[2]) + (lane[4] + lane[6]);
    double odd = (lane[1] + lane[3]) + (lane[5] + lane[7]);
    return even + odd;
}

/* One by one, in the order that every machine is to keep, whatever vectors it has. */
static void vectors_add_in_the_order_that_is_written_down(void **state)
{
    (void)state;
    double *values = column(1000, 77);
    values[5] = -0.0;
    for (size_t n = 2; n <= MOMENTS_BLOCK; n += 73) {
        double sums[8] = {0}, firsts[8] = {0}, seconds[8] = {0};
        size_t whole = n / 8 * 8;
        for (size_t i = 0; i < whole; i++)
            sums[i % 8] += values[i];
        double sum = lanes_sum(sums);
        for (size_t i = whole; i < n; i++)
            sum += values[i];
        double mean = sum / (double)n;
        for (size_t i = 0; i < whole; i++) {
            double distance = values[i] - mean, square = distance * distance;
            firsts[i % 8] += distance;
            seconds[i % 8] += square;
        }
        double first = lanes_sum(firsts), second = lanes_sum(seconds);
        for (size_t i = whole; i < n; i++) {
            double distance = values[i] - mean, square = distance * distance;
            first += distance;
            second += square;
        }
        double shift = first / (double)n, lost = shift * first;
        struct moments moments = {0};
        moments_add(&moments, values, STK_F64, n);
        assert_true(moments.mean == mean + shift);
        assert_true(moments.m2 == second - lost);
    }
    free(values);
}

static void zero_has_no_sign(void **state)
{
    (void)state;
    for (size_t at = 0; at < 40; at++) {
        double values[40] = {0};
        struct moments moments = {0};
        values[at] = -0.0;
        moments_add(&moments, values, STK_F64, 40);
        assert_false(signbit(moments.min) || signbit(moments.max) || signbit(moments.mean));
    }
}

static void values_at_any_address_are_read(void **state)
{
    (void)state;
    double *values = column(5, 1);
    char *shifted = malloc(100 * sizeof *values + 3);
    memcpy(shifted + 3, values, 100 * sizeof *values);
    struct moments one = {0}, other = {0};
    moments_add(&one, values, STK_F64, 100);
    moments_add(&other, shifted + 3, STK_F64, 100);
    assert_memory_equal(&one, &other, sizeof one);
    free(shifted);
    free(values);
}

static void missing_values_are_skipped_wherever_they_lie(void **state)
{
    (void)state;
    for (int share = 2; share <= 50; share += 6) {
        double *values = column(7, 1);
        for (size_t i = 0; i < COUNT; i++)
            if (random_below((uint64_t)share, i, (uint64_t)share) == 0)
                values[i] = NAN;
        values[0] = values[COUNT - 1] = NAN;
        struct moments moments = {0};
        add_all(&moments, values, COUNT);
        assert_truth(&moments, values, COUNT);
        free(values);
    }
}

static void a_block_of_missing_values_adds_nothing(void **state)
{
    (void)state;
    double nothing[64];
    for (int i = 0; i < 64; i++)
        nothing[i] = NAN;
    struct moments moments = {0};
    moments_add(&moments, nothing, STK_F64, 64);
    assert_int_equal(moments.count, 0);
    assert_true(moments.mean == 0 && moments.m2 == 0 && moments.min == 0 && moments.max == 0);
}

static void a_constant_has_no_variance_at_all(void **state)
{
    (void)state;
    double values[1000];
    for (int i = 0; i < 1000; i++)
        values[i] = 0.1;
    struct moments moments = {0};
    for (int i = 0; i < 50; i++)
        moments_add(&moments, values, STK_F64, 1000 - (size_t)i);
    assert_true(moments.mean == 0.1);
    assert_true(moments.m2 == 0);
}

static void parts_merge_to_the_whole(void **state)
{
    (void)state;
    double *values = column(1e6, 40);
    size_t cuts[] = {0, 1, 1025, 9000, 9000, COUNT};
    struct moments moments = {0};
    for (int i = 0; i < 5; i++) {
        struct moments part = {0};
        add_all(&part, values + cuts[i], cuts[i + 1] - cuts[i]);
        moments_merge(&moments, &part);
    }
    assert_truth(&moments, values, COUNT);
    free(values);
}

static void an_infinite_value_shows(void **state)
{
    (void)state;
    const double some[][3] = {{1, INFINITY, 2},
                              {-INFINITY, 1, INFINITY},
                              {NAN, -INFINITY, 4},
                              {NAN, INFINITY, -INFINITY}};
    for (int i = 0; i < 4; i++) {
        struct moments moments = {0};
        moments_add(&moments, some[i], STK_F64, 3);
        moments_add(&moments, (double[]){1, 2}, STK_F64, 2);
        assert_false(isfinite(moments.mean) && isfinite(moments.m2));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_mean_leaves_a_small_variance_exact),
        cmocka_unit_test(every_length_of_a_block_is_summed_whole),
        cmocka_unit_test(float32_gives_the_bits_of_the_same_numbers_in_float64),
        cmocka_unit_test(vectors_add_in_the_order_that_is_written_down),
        cmocka_unit_test(zero_has_no_sign),
        cmocka_unit_test(values_at_any_address_are_read),
        cmocka_unit_test(missing_values_are_skipped_wherever_they_lie),
        cmocka_unit_test(a_block_of_missing_values_adds_nothing),
        cmocka_unit_test(a_constant_has_no_variance_at_all),
        cmocka_unit_test(parts_merge_to_the_whole),
        cmocka_unit_test(an_infinite_value_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
