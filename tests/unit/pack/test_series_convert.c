#include "base/testing.h"

#include <math.h>

#include "pack/series_convert.h"

/* --- rounding, against exact searches over every value of the type -------------------------------
 */

static float half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    float value = exponent ? ldexpf(1024.f + (float)(bits & 1023), exponent - 25)
                           : ldexpf((float)(bits & 1023), -24);

    return bits & 0x8000 ? -value : value;
}

static float bf16_value(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof(value));
    return value;
}

/* The nearest finite value of a 16-bit type, to even when two are as near. `infinite`: the bits of
 * its infinity. */
static uint16_t nearest(double value, float (*of)(uint16_t), uint16_t infinite)
{
    uint16_t low = 0, high = infinite; /* of(low) <= |value| < of(high), in order of bits */
    double size = fabs(value);
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double top = 2 * (double)of((uint16_t)(infinite - 1)) - (double)of((uint16_t)(infinite - 2));

    while (high - low > 1) {
        uint16_t mid = (uint16_t)((low + high) / 2);
        if ((double)of(mid) <= size)
            low = mid;
        else
            high = mid;
    }
    double above = high == infinite ? top : (double)of(high);
    double down = size - (double)of(low), up = above - size;
    if (up < down || (up == down && (low & 1)))
        low = high;
    return sign | low;
}

static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Values around which rounding is delicate: near those of the type, and halfway between them. */
static double delicate(uint64_t *state, float (*of)(uint16_t), uint16_t infinite)
{
    uint16_t bits = (uint16_t)(random_bits(state) % (uint64_t)(infinite - 1));
    double value = of(bits), next = of((uint16_t)(bits + 1));

    switch (random_bits(state) % 6) {
    case 0:
        break;
    case 1:
        value = (value + next) / 2;
        break;
    case 2:
        value = nextafter((value + next) / 2, 0);
        break;
    case 3:
        value = nextafter((value + next) / 2, INFINITY);
        break;
    case 4:
        value = (value + next) / 2 * (1 + 0x1p-30);
        break;
    default:
        value += (next - value) * (double)(random_bits(state) % 1000) / 1000;
    }
    return random_bits(state) % 2 ? -value : value;
}

static void check_rounding(enum stk_dtype dtype, float (*of)(uint16_t), uint16_t infinite)
{
    struct series_convert convert = {.from = STK_F64, .to = dtype};
    uint64_t state = 88172645463325252u;
    double in[1001], value;
    uint16_t out[1001];
    float back[1001];

    assert_int_equal(series_convert_init(&convert, 7, NULL, NULL, NULL), STK_OK);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 1001; i++)
            in[i] = delicate(&state, of, infinite);
        in[0] = 0;
        in[1] = -0.0;
        in[2] = of(1) / 2.0;
        in[3] = nextafter(in[2], 1);
        in[4] = 1e-300;
        assert_int_equal(series_convert_run(&convert, 3, 1001, in, out, &value), 1001);
        series_convert_back(out, dtype, 1001, back);
        for (int i = 0; i < 1001; i++) {
            assert_int_equal(out[i], nearest(in[i], of, infinite));
            assert_true(back[i] == of(out[i]));
        }
    }
    series_convert_reset(&convert);
}

static void float16_is_the_nearest_even(void **state)
{
    (void)state;
    check_rounding(STK_F16, half_value, 0x7c00);
}

static void bfloat16_is_the_nearest_even(void **state)
{
    (void)state;
    check_rounding(STK_BF16, bf16_value, 0x7f80);
}

/* --- where values no longer fit ------------------------------------------------------------------
 */

static void check_bound(enum stk_dtype dtype, double least)
{
    struct series_convert convert = {.from = STK_F64, .to = dtype};
    double in[30] = {0}, value = 0;
    float out[30];

    assert_int_equal(series_convert_init(&convert, 30, NULL, NULL, NULL), STK_OK);
    for (int at = 0; at < 30; at++) {
        in[at] = nextafter(least, 0);
        assert_int_equal(series_convert_run(&convert, 0, 30, in, out, &value), 30);
        in[at] = -least;
        assert_int_equal(series_convert_run(&convert, 0, 30, in, out, &value), at);
        assert_true(value == -least);
        in[at] = 0;
    }
    series_convert_reset(&convert);
}

static void values_past_the_largest_are_found(void **state)
{
    (void)state;
    check_bound(STK_F16, 65520);          /* halfway to 2^16 */
    check_bound(STK_BF16, 0x1.ffp127);    /* halfway to 2^128 */
    check_bound(STK_F32, 0x1.ffffffp127); /* halfway to 2^128 */
}

/* --- fill and scale, for rows of any length and from any element ---------------------------------
 */

static void columns_keep_their_fill_and_scale(void **state)
{
    static const uint32_t widths[] = {1, 2, 3, 5, 8, 16, 17, 100, 255, 256, 257, 1000};

    (void)state;
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
        uint32_t columns = widths[w];
        struct scaler scaler;
        double *fill = malloc(columns * sizeof(*fill)), value;
        float *in = malloc(5000 * sizeof(*in)), *out = malloc(5000 * sizeof(*out));
        assert_int_equal(scaler_init(&scaler, SCALER_STANDARD, columns, NULL), STK_OK);
        for (uint32_t c = 0; c < columns; c++) {
            scaler.columns[c].center = 0.1 * c;
            scaler.columns[c].scale = 1.0 / 3 + c;
            fill[c] = 1e6 + c;
        }
        for (uint64_t first = 0; first < 3000; first += 777) {
            uint64_t n = 5000 - first - w;
            struct series_convert convert = {.from = STK_F32, .to = STK_F32};
            assert_int_equal(series_convert_init(&convert, columns, &scaler, fill, NULL), STK_OK);
            for (uint64_t i = 0; i < n; i++)
                in[i] = i % 7 == 3 ? NAN : (float)i * 0.37f;
            assert_int_equal(series_convert_run(&convert, first, n, in, out, &value), n);
            for (uint64_t i = 0; i < n; i++) {
                uint32_t c = (uint32_t)((first + i) % columns);
                double raw = i % 7 == 3 ? fill[c] : (double)in[i];
                assert_true(out[i] ==
                            (float)((raw - scaler.columns[c].center) / scaler.columns[c].scale));
            }
            /* in place */
            assert_int_equal(series_convert_run(&convert, first, n, in, in, &value), n);
            assert_memory_equal(in, out, n * sizeof(*in));
            series_convert_reset(&convert);
        }
        scaler_reset(&scaler);
        free(fill);
        free(in);
        free(out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float16_is_the_nearest_even),
        cmocka_unit_test(bfloat16_is_the_nearest_even),
        cmocka_unit_test(values_past_the_largest_are_found),
        cmocka_unit_test(columns_keep_their_fill_and_scale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
