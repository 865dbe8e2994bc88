#include "base/testing.h"

#include <math.h>

#include "pack/element_table.h"

static float float_of_half(uint16_t half)
{
    int exponent = half >> 10 & 31, mantissa = half & 1023;
    float value = exponent == 0    ? ldexpf((float)mantissa, -24)
                  : exponent == 31 ? (mantissa ? NAN : INFINITY)
                                   : ldexpf((float)(mantissa + 1024), exponent - 25);

    return half & 0x8000 ? -value : value;
}

static void every_half_comes_back_as_itself(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 65536; half++) {
        float value = float_of_half((uint16_t)half);
        if (isnan(value))
            assert_true((element_half(value) & 0x7FFF) > 0x7C00);
        else
            assert_int_equal(element_half(value), half);
    }
}

static void between_two_halves_the_nearest_wins_and_ties_go_to_even(void **state)
{
    (void)state;
    for (uint32_t half = 0; half < 0x7BFF; half++) {
        float low = float_of_half((uint16_t)half), high = float_of_half((uint16_t)(half + 1));
        float middle = (low + high) / 2;
        assert_int_equal(element_half(nextafterf(middle, low)), half);
        assert_int_equal(element_half(nextafterf(middle, high)), half + 1);
        assert_int_equal(element_half(middle), half + (half & 1));
    }
    assert_int_equal(element_half(65519.0f), 0x7BFF);
    assert_int_equal(element_half(65520.0f), 0x7C00);
    assert_int_equal(element_half(-1e30f), 0xFC00);
    assert_int_equal(element_half(INFINITY), 0x7C00);
}

static void bfloats_round_to_nearest_and_keep_what_is_no_number(void **state)
{
    (void)state;
    assert_int_equal(element_bfloat(1.0f), 0x3F80);
    assert_int_equal(element_bfloat(1.00390625f), 0x3F80); /* a tie: to even */
    assert_int_equal(element_bfloat(1.01171875f), 0x3F82); /* a tie: to even, upwards */
    assert_int_equal(element_bfloat(1.004f), 0x3F81);
    assert_int_equal(element_bfloat(INFINITY), 0x7F80);
    assert_true((element_bfloat(NAN) & 0x7FFF) > 0x7F80);
}

static void integers_use_the_whole_range_and_grow_with_the_value(void **state)
{
    static int16_t table16[ELEMENT_COUNT];
    static uint8_t table8[ELEMENT_COUNT];
    static int64_t table64[ELEMENT_COUNT];

    (void)state;
    element_table_fill(table16, STK_I16);
    element_table_fill(table8, STK_U8);
    element_table_fill(table64, STK_I64);
    assert_int_equal(table16[0], INT16_MIN);
    assert_int_equal(table16[ELEMENT_COUNT - 1], INT16_MAX);
    assert_int_equal(table8[0], 0);
    assert_int_equal(table8[ELEMENT_COUNT - 1], 255);
    assert_true(table64[0] == INT64_MIN && table64[ELEMENT_COUNT - 1] == INT64_MAX);
    for (int i = 1; i < ELEMENT_COUNT; i++) {
        assert_true(table16[i] > table16[i - 1]);
        assert_true(table8[i] >= table8[i - 1]);
        assert_true(table64[i] > table64[i - 1]);
    }
}

static void elements_of_every_size_are_looked_up(void **state)
{
    int16_t values[100];
    uint8_t *table = malloc(ELEMENT_COUNT * ELEMENT_MAX_SIZE), to[100 * ELEMENT_MAX_SIZE];

    (void)state;
    for (int i = 0; i < 100; i++)
        values[i] = (int16_t)(i * 61 - ELEMENT_LIMIT);
    for (int dtype = 0; dtype < STK_DTYPE_COUNT; dtype++) {
        size_t size = stk_dtype_size((enum stk_dtype)dtype);
        element_table_fill(table, (enum stk_dtype)dtype);
        element_table_map(table, (enum stk_dtype)dtype, values, to, 100);
        for (int i = 0; i < 100; i++)
            assert_memory_equal(to + i * size, table + (values[i] + ELEMENT_LIMIT) * size, size);
    }
    float single;
    element_table_fill(table, STK_F32);
    memcpy(&single, table + (ELEMENT_LIMIT + 512) * sizeof(single), sizeof(single));
    assert_true(single == 0.5f);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_comes_back_as_itself),
        cmocka_unit_test(between_two_halves_the_nearest_wins_and_ties_go_to_even),
        cmocka_unit_test(bfloats_round_to_nearest_and_keep_what_is_no_number),
        cmocka_unit_test(integers_use_the_whole_range_and_grow_with_the_value),
        cmocka_unit_test(elements_of_every_size_are_looked_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
