#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/quantile_sketch.h"

static const double shares[] = {0.01, 0.25, 0.5, 0.75, 0.99};
#define SHARES (sizeof shares / sizeof *shares)

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Values with a given way of being spread and ordered. */
enum shape { UNIFORM, HEAVY, RISING, FALLING, WAVES, TEETH, FEW, SHAPES };

static double value_of(enum shape shape, uint64_t key, uint64_t i, uint64_t n)
{
    double unit = random_unit(key, i);
    switch (shape) {
    case UNIFORM:
        return unit * 10 - 5;
    case HEAVY: /* of both signs, over many powers of ten */
        return (unit - 0.5) / (1e-6 + random_unit(key + 1, i));
    case RISING:
        return (double)i;
    case FALLING:
        return -1e6 * (double)i / (double)n;
    case WAVES: /* as a sensor's day: 24 steps up and down */
        return sin((double)i / 24 * 6.283185307179586) + 0.1 * unit;
    case TEETH: /* in step with whoever takes one in 2, 4 or 8 */
        return (double)(i % 8) + 1e-3 * unit;
    default:
        return (double)(random_at(key, i) % 7);
    }
}

static double *values_new(enum shape shape, uint64_t key, uint64_t n)
{
    double *values = malloc(n * sizeof *values);
    for (uint64_t i = 0; i < n; i++)
        values[i] = value_of(shape, key, i, n);
    return values;
}

static void add_all(struct quantile_sketch *sketch, const double *values, uint64_t n)
{
    for (uint64_t at = 0; at < n; at += 1024)
        quantile_sketch_add(sketch, values + at, n - at < 1024 ? n - at : 1024);
}

/* How far the quantile's rank is from the share: 0 where it lies among equal values of that rank,
 * or between two neighbours. */
static double rank_error(const double *values, uint64_t n, double share, double found)
{
    uint64_t below = 0, not_above = 0;
    for (uint64_t i = 0; i < n; i++) {
        below += values[i] < found;
        not_above += values[i] <= found;
    }
    double wanted = share * (double)(n - 1);
    if (wanted + 1 < (double)below)
        return ((double)below - wanted - 1) / (double)n;
    return wanted > (double)not_above ? (wanted - (double)not_above) / (double)n : 0;
}

static uint32_t count_errors(const struct quantile_sketch *sketch, const double *values, uint64_t n,
                             double *worst)
{
    double found[SHARES];
    uint32_t over = 0;
    assert_int_equal(quantile_sketch_at(sketch, shares, SHARES, found, NULL), STK_OK);
    for (size_t i = 0; i < SHARES; i++) {
        double error = rank_error(values, n, shares[i], found[i]);
        over += error > QUANTILE_SKETCH_ERROR;
        *worst = error > *worst ? error : *worst;
    }
    return over;
}

static struct quantile_sketch *sketch_new(uint64_t seed)
{
    struct quantile_sketch *sketch;
    assert_int_equal(quantile_sketch_new(&sketch, seed, NULL), STK_OK);
    return sketch;
}

/* python: np.quantile([3, 1, 2, 10], [0.01, .25, .5, .75, .99]) and so on. */
static void few_values_give_numpys_quantiles(void **state)
{
    (void)state;
    const double wanted[] = {1.03, 1.75, 2.5, 4.75, 9.79};
    struct quantile_sketch *sketch = sketch_new(1);
    double found[SHARES];
    assert_int_equal(quantile_sketch_at(sketch, shares, SHARES, found, NULL), STK_OK);
    assert_true(found[2] == 0); /* nothing was seen */
    quantile_sketch_add(sketch, (double[]){3, 1, 2, 10}, 4);
    assert_int_equal(quantile_sketch_at(sketch, shares, SHARES, found, NULL), STK_OK);
    for (size_t i = 0; i < SHARES; i++)
        assert_true(fabs(found[i] - wanted[i]) < 1e-12);
    quantile_sketch_reset(sketch);
    quantile_sketch_add(sketch, (double[]){7}, 1);
    assert_int_equal(quantile_sketch_at(sketch, shares, SHARES, found, NULL), STK_OK);
    assert_true(found[0] == 7 && found[4] == 7);
    quantile_sketch_free(sketch);
}

static void quantiles_are_exact_until_the_promised_count(void **state)
{
    (void)state;
    for (enum shape shape = 0; shape < SHAPES; shape++) {
        uint64_t n = QUANTILE_SKETCH_EXACT;
        double *values = values_new(shape, 9, n), found[SHARES];
        struct quantile_sketch *one = sketch_new(1), *other = sketch_new(1);
        add_all(one, values, n / 3);
        add_all(other, values + n / 3, n - n / 3);
        quantile_sketch_merge(one, other);
        assert_int_equal(quantile_sketch_seen(one), n);
        assert_int_equal(quantile_sketch_at(one, shares, SHARES, found, NULL), STK_OK);
        qsort(values, n, sizeof *values, compare);
        for (size_t i = 0; i < SHARES; i++) {
            double rank = shares[i] * (double)(n - 1);
            size_t low = (size_t)rank;
            double wanted = values[low] + (values[low + 1] - values[low]) * (rank - (double)low);
            assert_true(fabs(found[i] - wanted) <= 1e-12 * (1 + fabs(wanted)));
        }
        quantile_sketch_free(one);
        quantile_sketch_free(other);
        free(values);
    }
}

/* 7 shapes x 5 shares x 10 runs: of 350 trials 1 % may be over. */
static void ranks_are_as_near_as_promised(void **state)
{
    (void)state;
    const uint64_t lengths[] = {9000, 70000, 700000};
    for (int length = 0; length < 3; length++) {
        uint64_t n = lengths[length];
        uint32_t over = 0, runs = length == 2 ? 1 : 10;
        double worst = 0;
        for (enum shape shape = 0; shape < SHAPES; shape++)
            for (uint64_t run = 0; run < runs; run++) {
                double *values = values_new(shape, run * 2 + 100, n);
                struct quantile_sketch *sketch = sketch_new(run);
                add_all(sketch, values, n);
                over += count_errors(sketch, values, n, &worst);
                quantile_sketch_free(sketch);
                free(values);
            }
        print_message("%7llu values: worst rank error %.5f, %u over\n", (unsigned long long)n,
                      worst, over);
        assert_true(over <= 3);
        assert_true(worst < 2 * QUANTILE_SKETCH_ERROR);
    }
}

static void a_rhythm_does_not_fool_the_sampler(void **state)
{
    (void)state;
    uint64_t n = 3000000; /* one in 8 by the end */
    double *values = values_new(TEETH, 1, n), worst = 0;
    struct quantile_sketch *sketch = sketch_new(4);
    add_all(sketch, values, n);
    assert_int_equal(count_errors(sketch, values, n, &worst), 0);
    quantile_sketch_free(sketch);
    free(values);
}

/* Parts of many lengths, each with a sketch of its own that has the same seed. */
static void merged_parts_are_as_near_as_the_whole(void **state)
{
    (void)state;
    const uint64_t parts[] = {1000, 40000, 9000, 65536};
    uint32_t over = 0;
    double worst = 0;
    for (enum shape shape = 0; shape < SHAPES; shape++)
        for (int kind = 0; kind < 4; kind++) {
            uint64_t n = 400000;
            double *values = values_new(shape, 55, n);
            struct quantile_sketch *whole = sketch_new(3), *part = sketch_new(3);
            for (uint64_t at = 0; at < n; at += parts[kind]) {
                quantile_sketch_reset(part);
                add_all(part, values + at, n - at < parts[kind] ? n - at : parts[kind]);
                quantile_sketch_merge(whole, part);
            }
            assert_int_equal(quantile_sketch_seen(whole), n);
            over += count_errors(whole, values, n, &worst);
            quantile_sketch_free(whole);
            quantile_sketch_free(part);
            free(values);
        }
    print_message("merged: worst rank error %.5f, %u over\n", worst, over);
    assert_true(over <= 1);
    assert_true(worst < 2 * QUANTILE_SKETCH_ERROR);
}

/* A large one into a small one: items of the small one are lighter than any of the other. */
static void sketches_of_any_two_sizes_merge(void **state)
{
    (void)state;
    const uint64_t sizes[] = {0, 1, 3, 4097, 600001, 1100003};
    double *values = values_new(UNIFORM, 77, 1100003 * 2);
    double worst = 0;
    for (int a = 0; a < 6; a++)
        for (int b = 0; b < 6; b += 2 - (a == 5)) {
            struct quantile_sketch *one = sketch_new(1), *other = sketch_new(2);
            uint64_t n = sizes[a] + sizes[b];
            add_all(one, values, sizes[a]);
            add_all(other, values + sizes[a], sizes[b]);
            quantile_sketch_merge(one, other);
            assert_int_equal(quantile_sketch_seen(one), n);
            if (n)
                assert_int_equal(count_errors(one, values, n, &worst), 0);
            quantile_sketch_free(one);
            quantile_sketch_free(other);
        }
    free(values);
}

static void the_same_calls_give_the_same_bits(void **state)
{
    (void)state;
    double *values = values_new(HEAVY, 5, 300000), found[2][SHARES];
    for (int i = 0; i < 2; i++) {
        struct quantile_sketch *sketch = sketch_new(8);
        add_all(sketch, values, i ? 1000 : 0);
        quantile_sketch_reset(sketch); /* leaves nothing behind */
        add_all(sketch, values, 300000);
        assert_int_equal(quantile_sketch_at(sketch, shares, SHARES, found[i], NULL), STK_OK);
        quantile_sketch_free(sketch);
    }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    free(values);
}

static int make_and_ask(void *user)
{
    struct quantile_sketch *sketch;
    double found[SHARES];
    (void)user;
    if (quantile_sketch_new(&sketch, 1, NULL))
        return 0;
    quantile_sketch_add(sketch, (double[]){1, 2}, 2);
    stk_status status = quantile_sketch_at(sketch, shares, SHARES, found, NULL);
    quantile_sketch_free(sketch);
    return status == STK_OK;
}

static void every_failed_allocation_is_told(void **state)
{
    (void)state;
    fail_each_allocation(make_and_ask, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_values_give_numpys_quantiles),
        cmocka_unit_test(quantiles_are_exact_until_the_promised_count),
        cmocka_unit_test(ranks_are_as_near_as_promised),
        cmocka_unit_test(a_rhythm_does_not_fool_the_sampler),
        cmocka_unit_test(merged_parts_are_as_near_as_the_whole),
        cmocka_unit_test(sketches_of_any_two_sizes_merge),
        cmocka_unit_test(the_same_calls_give_the_same_bits),
        cmocka_unit_test(every_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
