/* test_subset.c -- splits are disjoint and complete, selections keep their order, in every way to
 * keep them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "dataset/subset.h"

static uint64_t at(const struct subset *subset, uint64_t position)
{
    subset_map(subset, &position, 1);
    return position;
}

/* The first place of each of n positions, by trying all. */
static void check_find(const struct subset *subset, uint64_t n)
{
    for (uint64_t position = 0; position < n; position++) {
        uint64_t expected = STK_NOWHERE;
        for (uint64_t i = 0; i < subset->count && expected == STK_NOWHERE; i++)
            expected = at(subset, i) == position ? i : STK_NOWHERE;
        assert_int_equal(subset_find(subset, position), expected);
    }
}

/* ---- split --------------------------------------------------------------------------------- */

static void check_split(uint64_t n, const double *shares, uint32_t parts, uint64_t total)
{
    uint8_t *seen = calloc(n + 1, 1);
    uint64_t count = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct subset subset;
        assert_int_equal(subset_split(&subset, n, shares, parts, part, 7, NULL), STK_OK);
        for (uint64_t i = 0; i < subset.count; i++) {
            uint64_t sample = at(&subset, i);
            assert_true(sample < n);
            assert_int_equal(seen[sample]++, 0);
        }
        count += subset.count;
        subset_reset(&subset);
    }
    assert_int_equal(count, total);
    free(seen);
}

static void the_parts_of_a_split_are_disjoint_and_complete(void **state)
{
    (void)state;
    const double halves[] = {0.9, 0.1}, thirds[] = {1.0 / 3, 1.0 / 3, 1.0 / 3};
    const double tenths[] = {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1};
    for (uint64_t n = 0; n < 200; n++) {
        check_split(n, halves, 2, n);
        check_split(n, thirds, 3, n);
        check_split(n, tenths, 10, n);
    }
    check_split(100003, thirds, 3, 100003);
}

static void shares_that_leave_a_rest_leave_it(void **state)
{
    (void)state;
    const double shares[] = {0.5, 0.2}, none[] = {0, 1};
    check_split(100, shares, 2, 70);
    check_split(10, none, 2, 10);
}

static void the_sizes_of_parts_are_rounded_at_their_bounds(void **state)
{
    (void)state;
    const double shares[] = {0.25, 0.25, 0.5};
    const uint64_t sizes[] = {3, 2, 5}; /* bounds 2.5 -> 3, 5, 10 */
    for (uint32_t part = 0; part < 3; part++) {
        struct subset subset;
        assert_int_equal(subset_split(&subset, 10, shares, 3, part, 0, NULL), STK_OK);
        assert_int_equal(subset.count, sizes[part]);
    }
}

static void a_seed_makes_another_split_and_the_same_seed_the_same(void **state)
{
    (void)state;
    const double shares[] = {0.5, 0.5};
    struct subset a, b, c;
    int same = 1, differ = 0;
    assert_int_equal(subset_split(&a, 1000, shares, 2, 0, 1, NULL), STK_OK);
    assert_int_equal(subset_split(&b, 1000, shares, 2, 0, 1, NULL), STK_OK);
    assert_int_equal(subset_split(&c, 1000, shares, 2, 0, 2, NULL), STK_OK);
    for (uint64_t i = 0; i < 500; i++) {
        same &= at(&a, i) == at(&b, i);
        differ |= at(&a, i) != at(&c, i);
    }
    assert_true(same);
    assert_true(differ);
}

static void shares_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const double over[] = {0.9, 0.2}, negative[] = {-0.1, 0.5}, nan[] = {0.0 / 0.0, 0.5};
    struct subset subset;
    assert_int_equal(subset_split(&subset, 10, over, 2, 0, 0, NULL), STK_USAGE);
    assert_int_equal(subset_split(&subset, 10, negative, 2, 0, 0, NULL), STK_USAGE);
    assert_int_equal(subset_split(&subset, 10, nan, 2, 0, 0, NULL), STK_USAGE);
    assert_int_equal(subset_split(&subset, 10, over, 1, 1, 0, NULL), STK_USAGE);
}

/* ---- select -------------------------------------------------------------------------------- */

static void check_select(uint64_t n, const uint64_t *positions, uint64_t count,
                         enum subset_kind kind)
{
    struct subset subset;
    assert_int_equal(subset_select(&subset, n, positions, count, NULL), STK_OK);
    assert_int_equal(subset.kind, kind);
    assert_int_equal(subset.count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(at(&subset, i), positions[i]);
    subset_reset(&subset);
}

static void a_selection_keeps_order_and_repeats(void **state)
{
    (void)state;
    const uint64_t any[] = {5, 1, 1, 9}, range[] = {3, 4, 5}, sparse[] = {1, 500, 99999};
    check_select(10, any, 4, SUBSET_LIST);
    check_select(10, range, 3, SUBSET_RANGE);
    check_select(10, range, 1, SUBSET_RANGE);
    check_select(10, NULL, 0, SUBSET_RANGE);
    check_select(100000, sparse, 3, SUBSET_LIST); /* shorter than bits */
}

static void a_sorted_selection_takes_a_bit_a_sample(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {3, 64, 65, 2047, 2048, 2049, 5000, 70000};
    static const uint64_t ones_in[] = {2, 3, 20, 60}; /* one of so many is taken */
    uint64_t *positions = malloc(70000 * sizeof *positions);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t k = 0; k < sizeof ones_in / sizeof ones_in[0]; k++) {
            uint64_t count = 0;
            for (uint64_t i = 0; i < sizes[s]; i++)
                if (random_below(s * 4 + k, i, ones_in[k]) == 0 || i == 0 || i == sizes[s] - 1)
                    positions[count++] = i;
            if (positions[count - 1] - positions[0] != count - 1 && count > sizes[s] / 64)
                check_select(sizes[s], positions, count, SUBSET_BITS);
        }
    free(positions);
}

static void runs_and_gaps_longer_than_a_block_are_found(void **state)
{
    (void)state;
    uint64_t *positions = malloc(20000 * sizeof *positions), count = 0;
    for (uint64_t i = 0; i < 6000; i++)
        positions[count++] = i;
    for (uint64_t i = 90000; i < 99000; i++)
        positions[count++] = i;
    check_select(100000, positions, count, SUBSET_BITS);
    free(positions);
}

static void a_position_past_the_end_is_refused(void **state)
{
    (void)state;
    const uint64_t positions[] = {1, 10};
    struct stk_error err = {0};
    struct subset subset;
    assert_int_equal(subset_select(&subset, 10, positions, 2, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "10"));
}

static void positions_are_found_in_every_kind_of_subset(void **state)
{
    (void)state;
    enum { N = 5000 };
    static uint64_t chosen[N];
    const double shares[] = {0.3, 0.7};
    struct subset subset;
    for (uint32_t part = 0; part < 2; part++) {
        assert_int_equal(subset_split(&subset, 700, shares, 2, part, 3, NULL), STK_OK);
        check_find(&subset, 700);
        subset_reset(&subset);
    }
    for (int kind = 0; kind < 3; kind++) {
        uint64_t count = 0;
        for (uint64_t i = 0; i < N; i++)
            if (kind == 0 ? i >= 40 && i < 60 : kind == 1 ? i % 3 == 1 : i % 1000 == 7)
                chosen[count++] = i;
        if (kind == 2) /* a list: one comes twice, and out of order */
            chosen[count++] = 7;
        assert_int_equal(subset_select(&subset, N, chosen, count, NULL), STK_OK);
        assert_int_equal(subset.kind, kind == 0   ? SUBSET_RANGE
                                      : kind == 1 ? SUBSET_BITS
                                                  : SUBSET_LIST);
        check_find(&subset, N);
        subset_reset(&subset);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_of_a_split_are_disjoint_and_complete),
        cmocka_unit_test(shares_that_leave_a_rest_leave_it),
        cmocka_unit_test(the_sizes_of_parts_are_rounded_at_their_bounds),
        cmocka_unit_test(a_seed_makes_another_split_and_the_same_seed_the_same),
        cmocka_unit_test(shares_that_make_no_sense_are_refused),
        cmocka_unit_test(a_selection_keeps_order_and_repeats),
        cmocka_unit_test(a_sorted_selection_takes_a_bit_a_sample),
        cmocka_unit_test(runs_and_gaps_longer_than_a_block_are_found),
        cmocka_unit_test(a_position_past_the_end_is_refused),
        cmocka_unit_test(positions_are_found_in_every_kind_of_subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
