#include "base/testing.h"

#include "base/checked.h"
#include "base/parse.h"

static void numbers_are_read_whole_or_not_at_all(void **state)
{
    (void)state;
    uint64_t u = 7;
    int64_t i = 7;
    assert_true(parse_u64("0", 1, &u) && u == 0);
    assert_true(parse_u64("18446744073709551615", 20, &u) && u == UINT64_MAX);
    u = 7;
    static const char *const bad[] = {"",   " 1", "1 ", "+1", "-1", "1x", "18446744073709551616",
                                      "0x1"};
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_false(parse_u64(bad[k], strlen(bad[k]), &u));
    assert_int_equal(u, 7);
    assert_true(parse_u64("12345", 2, &u) && u == 12);
    assert_true(parse_i64("-9223372036854775808", 20, &i) && i == INT64_MIN);
    assert_true(parse_i64("9223372036854775807", 19, &i) && i == INT64_MAX);
    assert_true(parse_i64("+5", 2, &i) && i == 5);
    assert_false(parse_i64("9223372036854775808", 19, &i));
    assert_false(parse_i64("-9223372036854775809", 20, &i));
    assert_false(parse_i64("-", 1, &i));
    assert_false(parse_i64("+-1", 3, &i));
    assert_false(parse_i64("", 0, &i));
    assert_int_equal(i, 5);
}

static void sizes_know_both_kinds_of_units(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t size;
    } good[] = {
        {"4096", 4096},
        {"0", 0},
        {"512MiB", 512u << 20},
        {"2GiB", (uint64_t)2 << 30},
        {"1.5GB", 1500000000},
        {"64k", 65536},
        {"64K", 65536},
        {"64kB", 64000},
        {"1Mi", 1 << 20},
        {"0.5k", 512},
        {"10B", 10},
        {"15EiB", (uint64_t)15 << 60},
        {"1.000000001GB", 1000000001},
        {"2t", (uint64_t)2 << 40},
    };
    static const char *const bad[] = {"",
                                      "MiB",
                                      "1.GiB",
                                      "1.5",
                                      "16EiB",
                                      "-1",
                                      "1 k",
                                      "1kiBx",
                                      "1bB",
                                      "1i",
                                      ".5k",
                                      "1e3",
                                      "1kk",
                                      "1.5B",
                                      "99999999999999999999",
                                      "1.0000000000000000001k"};
    uint64_t size;
    for (size_t k = 0; k < sizeof good / sizeof good[0]; k++) {
        assert_true(parse_size(good[k].text, strlen(good[k].text), &size));
        assert_true(size == good[k].size);
    }
    size = 7;
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_false(parse_size(bad[k], strlen(bad[k]), &size));
    assert_int_equal(size, 7);
}

static void sums_and_products_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    uint64_t out = 7;
    assert_false(checked_add(UINT64_MAX, 1, &out));
    assert_false(checked_mul(UINT64_MAX, 2, &out));
    assert_int_equal(out, 7);
    assert_true(checked_add(1, 2, &out) && out == 3);
    assert_true(checked_mul(4, 5, &out) && out == 20);
    assert_true(checked_inside(5, 5, 10));
    assert_false(checked_inside(5, 6, 10));
    assert_false(checked_inside(11, 0, 10));
    assert_false(checked_inside(UINT64_MAX, UINT64_MAX, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_whole_or_not_at_all),
        cmocka_unit_test(sizes_know_both_kinds_of_units),
        cmocka_unit_test(sums_and_products_that_do_not_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
