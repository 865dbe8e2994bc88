#include "base/testing.h"

#include <math.h>

#include "pack/pattern.h"

static struct pattern *make(const struct stk_tensor *shape, uint64_t samples, uint64_t seed)
{
    struct pattern *pattern;
    struct stk_error err;

    assert_int_equal(pattern_new(&pattern, shape, 4, samples, seed, &err), STK_OK);
    return pattern;
}

static float *fill(const struct pattern *pattern, const struct stk_tensor *shape, uint64_t sample)
{
    float *values = malloc(stk_tensor_size(shape));
    void *scratch = malloc(pattern_scratch_size(pattern));

    memset(scratch, 0xA5, pattern_scratch_size(pattern)); /* it may hold anything before */
    pattern_fill(pattern, sample, values, scratch);
    free(scratch);
    return values;
}

static const struct stk_tensor shape = {.dtype = STK_F32, .rank = 3, .shape = {5, 200, 30}};

static void a_sample_is_a_function_of_seed_and_number(void **state)
{
    struct pattern *one = make(&shape, 100, 7), *same = make(&shape, 100, 7);
    struct pattern *other = make(&shape, 100, 8);

    (void)state;
    for (uint64_t sample = 0; sample < 3; sample++) {
        float *a = fill(one, &shape, sample), *b = fill(same, &shape, sample);
        float *c = fill(other, &shape, sample), *d = fill(one, &shape, sample + 50);
        assert_memory_equal(a, b, stk_tensor_size(&shape));
        assert_memory_not_equal(a, c, stk_tensor_size(&shape));
        assert_memory_not_equal(a, d, stk_tensor_size(&shape));
        free(a), free(b), free(c), free(d);
    }
    pattern_free(one), pattern_free(same), pattern_free(other);
}

static void labels_are_dealt_out_evenly_and_out_of_order(void **state)
{
    struct pattern *pattern = make(&shape, 1002, 0);
    uint64_t counts[4] = {0}, turns = 0;

    (void)state;
    for (uint64_t i = 0; i < 1002; i++) {
        assert_in_range(pattern_label(pattern, i), 0, 3);
        counts[pattern_label(pattern, i)]++;
        turns += i && pattern_label(pattern, i) != (pattern_label(pattern, i - 1) + 1) % 4;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(counts[i], 250, 251);
    assert_true(turns > 500);
    pattern_free(pattern);
}

static void values_lie_within_three_and_vary(void **state)
{
    struct pattern *pattern = make(&shape, 100, 0);
    uint64_t count = stk_tensor_size(&shape) / sizeof(float);

    (void)state;
    for (uint64_t sample = 0; sample < 5; sample++) {
        float *values = fill(pattern, &shape, sample);
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < count; i++) {
            assert_true(fabsf(values[i]) <= 3);
            sum += values[i];
            squares += values[i] * values[i];
        }
        assert_true(fabs(sum / (double)count) < 0.4);
        assert_true(squares / (double)count > 0.3 && squares / (double)count < 1.0);
        free(values);
    }
    pattern_free(pattern);
}

/* Every element is written, whatever way the shape is cut into rows. */
static void every_shape_is_filled_to_its_last_element(void **state)
{
    static const struct stk_tensor shapes[] = {
        {.dtype = STK_F32, .rank = 1, .shape = {1}},
        {.dtype = STK_F32, .rank = 1, .shape = {4095}},
        {.dtype = STK_F32, .rank = 1, .shape = {4096}},
        {.dtype = STK_F32, .rank = 1, .shape = {4097}},
        {.dtype = STK_F32, .rank = 2, .shape = {3, 10000}},
        {.dtype = STK_F32, .rank = 2, .shape = {5000, 1}},
        {.dtype = STK_F32, .rank = 4, .shape = {2, 3, 65, 64}},
        {.dtype = STK_F32, .rank = 8, .shape = {2, 1, 2, 1, 3, 1, 2, 2}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct pattern *pattern = make(&shapes[i], 10, 0);
        uint64_t size = stk_tensor_size(&shapes[i]);
        uint32_t *values = malloc(size + sizeof(uint32_t));
        void *scratch = malloc(pattern_scratch_size(pattern));
        memset(values, 0xFF, size + sizeof(uint32_t)); /* a NaN that no pattern makes */
        pattern_fill(pattern, 3, values, scratch);
        for (uint64_t at = 0; at < size / sizeof(uint32_t); at++)
            assert_int_not_equal(values[at], UINT32_MAX);
        assert_int_equal(values[size / sizeof(uint32_t)], UINT32_MAX);
        free(values);
        free(scratch);
        pattern_free(pattern);
    }
}

static int make_and_free(void *user)
{
    struct pattern *pattern;
    stk_status status = pattern_new(&pattern, user, 4, 10, 0, NULL);

    assert_true((status == STK_OK) == (pattern != NULL));
    pattern_free(pattern);
    return status == STK_OK;
}

static void memory_that_runs_out_is_told(void **state)
{
    struct stk_tensor copy = shape;

    (void)state;
    fail_each_allocation(make_and_free, &copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sample_is_a_function_of_seed_and_number),
        cmocka_unit_test(labels_are_dealt_out_evenly_and_out_of_order),
        cmocka_unit_test(values_lie_within_three_and_vary),
        cmocka_unit_test(every_shape_is_filled_to_its_last_element),
        cmocka_unit_test(memory_that_runs_out_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
