#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/window_gather.h"
#include "transform/window_scale.h"

enum { MOST_COLUMNS = 64, ROWS = 37 };

static struct scaler_column columns_of_scaler[MOST_COLUMNS];

/* Every column has a center and a scale of its own. */
static struct scaler scaler_of(uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        columns_of_scaler[i] =
            (struct scaler_column){.center = 0.1 * i - 1, .scale = 0.5 + 0.3 * i};
    return (struct scaler){.count = count, .columns = columns_of_scaler};
}

static struct window_gather *gather_of(enum stk_dtype dtype, uint32_t row_columns,
                                       const uint32_t *columns, uint32_t count,
                                       const struct scaler *scaler)
{
    struct window_gather *gather;
    struct window_gather_options options = {.dtype = dtype,
                                            .row_columns = row_columns,
                                            .columns = columns,
                                            .count = count,
                                            .scaler = scaler};
    assert_int_equal(window_gather_new(&gather, &options, NULL), STK_OK);
    return gather;
}

static void numbers(uint32_t *out, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        out[i] = first + i;
}

/* Selections of 20 columns: all, one, neighbours, some in another order, one twice. */
static uint32_t selection(int which, uint32_t *out)
{
    static const uint32_t mixed[] = {3, 4, 5, 6, 19, 0, 1, 7}, twice[] = {2, 2, 18};
    switch (which) {
    case 0:
        numbers(out, 0, 20);
        return 20;
    case 1:
        out[0] = 13;
        return 1;
    case 2:
        numbers(out, 6, 9);
        return 9;
    case 3:
        memcpy(out, mixed, sizeof mixed);
        return 8;
    default:
        memcpy(out, twice, sizeof twice);
        return 3;
    }
}

static void every_selection_of_columns_goes_over_as_it_is(void **state)
{
    (void)state;
    static const enum stk_dtype dtypes[] = {STK_F32, STK_F16, STK_BF16, STK_F64};
    uint8_t from[1 + ROWS * 20 * 8], to[ROWS * 20 * 8];
    uint32_t columns[MOST_COLUMNS];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)random_key(5, i);
    for (int t = 0; t < 4; t++)
        for (int which = 0; which < 5; which++) {
            size_t size = stk_dtype_size(dtypes[t]);
            uint32_t count = selection(which, columns);
            struct window_gather *gather = gather_of(dtypes[t], 20, columns, count, NULL);
            assert_int_equal(window_gather_row_bytes(gather), 20 * size);
            assert_int_equal(window_gather_in_place(gather), which == 0);
            window_gather_copy(gather, from + 1, ROWS, to); /* from an odd address */
            for (uint32_t r = 0; r < ROWS; r++)
                for (uint32_t c = 0; c < count; c++)
                    assert_memory_equal(to + (r * count + c) * size,
                                        from + 1 + (r * 20 + columns[c]) * size, size);
            window_gather_free(gather);
        }
}

static void floats_are_scaled_by_their_own_column(void **state)
{
    (void)state;
    float from[ROWS * 20], to[ROWS * 20];
    uint32_t columns[MOST_COLUMNS];
    struct scaler scaler = scaler_of(20);
    for (size_t i = 0; i < ROWS * 20; i++)
        from[i] = (float)random_unit(9, i) * 8 - 4;
    for (int which = 0; which < 5; which++) {
        uint32_t count = selection(which, columns);
        struct window_gather *gather = gather_of(STK_F32, 20, columns, count, &scaler);
        window_gather_copy(gather, (const uint8_t *)from, ROWS, (uint8_t *)to);
        for (uint32_t r = 0; r < ROWS; r++)
            for (uint32_t c = 0; c < count; c++) {
                const struct scaler_column *column = &scaler.columns[columns[c]];
                double right = (from[r * 20 + columns[c]] - column->center) / column->scale;
                assert_true(fabs(to[r * count + c] - right) <= 1e-6 * (fabs(right) + 0.1));
            }
        window_gather_free(gather);
    }
}

static void doubles_are_scaled_as_doubles(void **state)
{
    (void)state;
    double from[11 * 3], to[11 * 3];
    uint32_t columns[] = {0, 1, 2};
    struct scaler scaler = scaler_of(3);
    struct window_gather *gather = gather_of(STK_F64, 3, columns, 3, &scaler);
    for (int i = 0; i < 33; i++)
        from[i] = 1e6 + i;
    window_gather_copy(gather, (const uint8_t *)from, 11, (uint8_t *)to);
    for (int i = 0; i < 33; i++) {
        double right = (from[i] - scaler.columns[i % 3].center) / scaler.columns[i % 3].scale;
        assert_true(fabs(to[i] - right) <= 1e-15 * fabs(right));
    }
    window_gather_free(gather);
}

/* 40,000.37 is no float32: the rest of the center must not be lost. */
static void a_column_far_from_zero_keeps_its_digits(void **state)
{
    (void)state;
    struct scaler_column far = {.center = 40000.37, .scale = 0.25};
    struct scaler scaler = {.count = 1, .columns = &far};
    uint32_t column = 0;
    struct window_gather *gather = gather_of(STK_F32, 1, &column, 1, &scaler);
    float from[19], to[19];
    for (int i = 0; i < 19; i++)
        from[i] = (float)(40000 + 0.125 * i);
    window_gather_copy(gather, (const uint8_t *)from, 19, (uint8_t *)to);
    for (int i = 0; i < 19; i++)
        assert_true(fabs(to[i] - ((double)from[i] - 40000.37) / 0.25) < 1e-6);
    window_gather_free(gather);
}

static void scaling_in_place_gives_the_same(void **state)
{
    (void)state;
    float from[ROWS * 7], to[ROWS * 7];
    uint32_t columns[7];
    struct scaler scaler = scaler_of(7);
    numbers(columns, 0, 7);
    for (size_t i = 0; i < ROWS * 7; i++)
        from[i] = (float)random_unit(1, i);
    struct window_gather *gather = gather_of(STK_F32, 7, columns, 7, &scaler);
    assert_true(window_gather_in_place(gather));
    window_gather_copy(gather, (const uint8_t *)from, ROWS, (uint8_t *)to);
    window_gather_copy(gather, (const uint8_t *)from, ROWS, (uint8_t *)from);
    assert_memory_equal(from, to, sizeof from);
    window_gather_free(gather);
}

/* All 65,536 halves and bfloats, subnormal, infinite and not numbers included. */
static void both_twins_of_the_halves_agree_on_every_bit(void **state)
{
    (void)state;
    static const enum stk_dtype dtypes[] = {STK_F16, STK_BF16};
    static uint16_t from[65536], fast[65536], plain[65536];
    uint32_t columns[5] = {0, 1, 2, 3, 4};
    struct scaler_column rows[] = {{.center = 0, .scale = 1},
                                   {.center = 0.3, .scale = 1e-3},
                                   {.center = -7, .scale = 3e4},
                                   {.center = 1e-5, .scale = 1e-8},
                                   {.center = 0, .scale = 1e30}};
    struct scaler scaler = {.count = 5, .columns = rows};
    for (uint32_t i = 0; i < 65536; i++)
        from[i] = (uint16_t)i;
    for (int t = 0; t < 2; t++)
        for (uint32_t c = 0; c < 5; c++) {
            struct window_scale scale;
            stk_status status = window_scale_init(&scale, &scaler, columns + c, 1, dtypes[t], NULL);
            assert_int_equal(status, STK_OK);
            scale.run(&scale, from, 65536, fast);
            scale.plain(&scale, from, 65536, plain);
            assert_memory_equal(fast, plain, sizeof fast);
            for (uint32_t i = 0; i < 65536 && c == 0;
                 i++) { /* center 0, scale 1: nothing changes */
                uint32_t nan = i & (t ? 0x7f : 0x3ff) &&
                               (i & (t ? 0x7f80 : 0x7c00)) == (t ? 0x7f80u : 0x7c00u);
                assert_int_equal(plain[i], nan ? i | (t ? 0x40 : 0x200) : i);
            }
            window_scale_reset(&scale);
        }
}

/* Of one rounding each: halves of floats that lie between two halves, or past the largest. */
static void halves_are_rounded_to_nearest_ties_to_even(void **state)
{
    (void)state;
    static const struct {
        double factor; /* of the half 1.0 */
        uint16_t half, bfloat;
    } cases[] = {
        {1 + 0x1p-11, 0x3c00, 0x3f80},           /* a tie: to even, down */
        {1 + 0x1p-10 + 0x1p-11, 0x3c02, 0x3f80}, /* a tie: to even, up */
        {1 + 0x1p-8, 0x3c04, 0x3f80},            /* a bfloat's tie, down */
        {1 + 0x1p-7 + 0x1p-8, 0x3c0c, 0x3f82},   /* and up */
        {65519, 0x7bff, 0x4780},
        {65520, 0x7c00, 0x4780},
        {0x1p-24, 0x0001, 0x3380},
        {0x1p-25, 0x0000, 0x3300},
        {0x1.8p-25, 0x0001, 0x3340},
        {0x1.8p-24, 0x0002, 0x33c0},
    };
    uint32_t column = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int t = 0; t < 2; t++) {
            struct scaler_column one = {.scale = 1 / cases[i].factor};
            struct scaler scaler = {.count = 1, .columns = &one};
            struct window_scale scale;
            uint16_t value = t ? 0x3f80 : 0x3c00, got; /* 1.0 */
            stk_status status =
                window_scale_init(&scale, &scaler, &column, 1, t ? STK_BF16 : STK_F16, NULL);
            assert_int_equal(status, STK_OK);
            scale.plain(&scale, &value, 1, &got);
            assert_int_equal(got, t ? cases[i].bfloat : cases[i].half);
            window_scale_reset(&scale);
        }
}

static void both_twins_of_the_floats_agree_for_any_number_of_columns(void **state)
{
    (void)state;
    static const enum stk_dtype dtypes[] = {STK_F32, STK_F16, STK_BF16, STK_F64};
    static _Alignas(64) uint8_t fast[ROWS * MOST_COLUMNS * 8];
    static uint8_t from[sizeof fast], plain[sizeof fast], odd[sizeof from + 1];
    uint32_t columns[MOST_COLUMNS];
    struct scaler scaler = scaler_of(MOST_COLUMNS);
    numbers(columns, 0, MOST_COLUMNS);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)random_key(17, i); /* any bits: NaN and infinity too */
    for (int t = 0; t < 4; t++)
        for (uint32_t count = 1; count <= MOST_COLUMNS; count++) {
            struct window_scale scale;
            uint64_t n = ROWS * count, size = stk_dtype_size(dtypes[t]);
            stk_status status = window_scale_init(&scale, &scaler, columns, count, dtypes[t], NULL);
            assert_int_equal(status, STK_OK);
            assert_int_equal(scale.period % count, 0);
            memset(fast, 0, sizeof fast);
            memset(plain, 0, sizeof plain);
            memcpy(odd + 1, from, n * size);
            scale.run(&scale, odd + 1, n, fast); /* from an odd address */
            scale.plain(&scale, from, n, plain);
            assert_memory_equal(fast, plain, n * size + (n * size < sizeof fast));
            memset(fast, 0, sizeof fast);
            window_scale_stream(&scale, odd + 1, n, fast, n % 2 ? odd + 1 : NULL);
            window_scale_fence();
            assert_memory_equal(fast, plain, n * size + (n * size < sizeof fast));
            window_scale_reset(&scale);
        }
}

static void a_long_row_needs_no_repeated_table(void **state)
{
    (void)state;
    enum { LONG = 1029 };
    static struct scaler_column rows[LONG];
    static uint32_t columns[LONG];
    static float from[3 * LONG], to[3 * LONG];
    struct scaler scaler = {.count = LONG, .columns = rows};
    numbers(columns, 0, LONG);
    for (uint32_t i = 0; i < LONG; i++)
        rows[i] = (struct scaler_column){.center = i, .scale = 1};
    for (uint32_t i = 0; i < 3 * LONG; i++)
        from[i] = (float)(i % LONG) + (float)(i / LONG);
    struct window_gather *gather = gather_of(STK_F32, LONG, columns, LONG, &scaler);
    window_gather_copy(gather, (const uint8_t *)from, 3, (uint8_t *)to);
    for (uint32_t i = 0; i < 3 * LONG; i++)
        assert_true(to[i] == (float)(i / LONG));
    window_gather_free(gather);
}

static int make_one(void *user)
{
    (void)user;
    uint32_t columns[3] = {2, 0, 1};
    struct scaler scaler = scaler_of(3);
    struct window_gather_options options = {
        .dtype = STK_F32, .row_columns = 3, .columns = columns, .count = 3, .scaler = &scaler};
    struct window_gather *gather;
    struct stk_error err;
    stk_status status = window_gather_new(&gather, &options, &err);
    assert_true(status ? status == STK_MEMORY && !gather : gather != NULL);
    window_gather_free(gather);
    return !status;
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    fail_each_allocation(make_one, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_selection_of_columns_goes_over_as_it_is),
        cmocka_unit_test(floats_are_scaled_by_their_own_column),
        cmocka_unit_test(doubles_are_scaled_as_doubles),
        cmocka_unit_test(a_column_far_from_zero_keeps_its_digits),
        cmocka_unit_test(scaling_in_place_gives_the_same),
        cmocka_unit_test(both_twins_of_the_halves_agree_on_every_bit),
        cmocka_unit_test(halves_are_rounded_to_nearest_ties_to_even),
        cmocka_unit_test(both_twins_of_the_floats_agree_for_any_number_of_columns),
        cmocka_unit_test(a_long_row_needs_no_repeated_table),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
