#include "base/testing.h"

#include "base/random.h"

static void every_n_up_to_4096_gives_a_bijection(void **state)
{
    (void)state;
    static uint32_t seen[4096];
    uint32_t mark = 0;
    for (uint64_t n = 1; n <= 4096; n++) {
        for (uint64_t key = 0; key < 2; key++) {
            struct permutation permutation;
            permutation_init(&permutation, n, random_key(key, n));
            mark++;
            for (uint64_t i = 0; i < n; i++) {
                uint64_t j = permutation_at(&permutation, i);
                assert_true(j < n);
                assert_true(seen[j] != mark);
                seen[j] = mark;
            }
        }
    }
    struct permutation none;
    permutation_init(&none, 0, 1); /* must not divide by 0 */
    assert_int_equal(none.n, 0);
}

static void what_was_permuted_is_found_again(void **state)
{
    (void)state;
    struct permutation permutation;
    for (uint64_t n = 1; n <= 300; n++) {
        permutation_init(&permutation, n, random_key(5, n));
        for (uint64_t i = 0; i < n; i++)
            assert_int_equal(permutation_find(&permutation, permutation_at(&permutation, i)), i);
    }
    for (int bits = 9; bits <= 63; bits++) {
        uint64_t n = ((uint64_t)1 << bits) - (uint64_t)(bits % 3);
        permutation_init(&permutation, n, (uint64_t)bits);
        for (uint64_t i = 0; i < 200; i++) {
            uint64_t at = random_below(9, i, n);
            assert_int_equal(permutation_find(&permutation, permutation_at(&permutation, at)), at);
        }
    }
}

/* Every way there is; how many of them could. */
static uint32_t many_is_as_one_by_one(const struct permutation *permutation, uint64_t first,
                                      uint32_t count, uint64_t *out)
{
    const struct permutation_range range = {first, count};
    uint32_t ways = 0;
    for (enum permutation_way way = PERMUTATION_PLAIN; way <= PERMUTATION_AVX512 + 1; way++) {
        memset(out, 0x5e, (count + 1) * sizeof *out);
        if (way > PERMUTATION_AVX512)
            permutation_many(permutation, first, count, out);
        else if (!permutation_many_by(way, permutation, &range, out))
            continue;
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(out[i], permutation_at(permutation, first + i));
        assert_int_equal(out[count], 0x5e5e5e5e5e5e5e5e);
        ways++;
    }
    return ways;
}

/* Ranges of every length up to three turns of vectors and a rest, at both ends and anywhere. */
static void many_at_once_are_the_same_as_one_by_one(void **state)
{
    enum { MOST = 110 };
    uint64_t out[MOST + 1];
    (void)state;
    for (uint64_t k = 0; k < 6000; k++) {
        uint64_t bits = random_below(1, k, 64);
        uint64_t n = ((uint64_t)1 << bits) - random_below(2, k, ((uint64_t)1 << bits) / 2 + 1);
        uint64_t count = random_below(3, k, (n < MOST ? n : MOST) + 1);
        uint64_t first = random_below(4, k, n - count + 1);
        struct permutation permutation;
        if (k % 8 == 0)
            first = k % 16 ? n - count : 0;
        permutation_init(&permutation, n, k);
        assert_true(many_is_as_one_by_one(&permutation, first, (uint32_t)count, out) >= 2);
    }
}

/* Whole epochs of sizes where many values lie outside, and are walked over. */
static void many_at_once_walk_on_where_one_would(void **state)
{
    static uint64_t out[6001];
    (void)state;
    for (uint64_t n = 900; n <= 6000; n += 47) {
        struct permutation permutation;
        permutation_init(&permutation, n, n);
        assert_true(many_is_as_one_by_one(&permutation, 0, (uint32_t)n, out) >= 2);
    }
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void large_n_is_injective_on_samples(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    uint64_t *out = malloc(COUNT * sizeof *out);
    for (int bits = 13; bits <= 63; bits += 2) {
        for (int shift = -1; shift <= 1; shift++) {
            uint64_t n = ((uint64_t)1 << bits) + (uint64_t)(shift * (bits < 63 || shift < 0));
            uint64_t count = n < COUNT ? n : COUNT, jump = n / count;
            struct permutation permutation;
            permutation_init(&permutation, n, (uint64_t)bits);
            for (uint64_t i = 0; i < count; i++) {
                out[i] = permutation_at(&permutation, i * jump);
                assert_true(out[i] < n);
            }
            qsort(out, count, sizeof *out, compare);
            for (uint64_t i = 1; i < count; i++)
                assert_true(out[i - 1] < out[i]);
        }
    }
    free(out);
}

/* Chi-square over `cells`, as a multiple of what chance gives: near 1. */
static double unevenness(const uint32_t *counts, uint32_t cells, double expected)
{
    double sum = 0;
    for (uint32_t i = 0; i < cells; i++)
        sum += (counts[i] - expected) * (counts[i] - expected) / expected;
    return sum / (cells - 1);
}

static void every_place_is_as_likely_for_every_sample(void **state)
{
    (void)state;
    for (uint64_t n = 2; n <= 12; n++) {
        for (uint64_t i = 0; i < n; i++) {
            uint32_t counts[12] = {0};
            for (uint64_t key = 0; key < 1000 * n; key++) {
                struct permutation permutation;
                permutation_init(&permutation, n, key);
                counts[permutation_at(&permutation, i)]++;
            }
            assert_true(unevenness(counts, (uint32_t)n, 1000) < (n == 2 ? 12 : 6));
        }
    }
}

static void every_order_of_few_samples_is_as_likely(void **state)
{
    (void)state;
    static uint32_t counts[720];
    uint32_t orders = 1;
    for (uint64_t n = 2; n <= 6; n++) {
        orders *= (uint32_t)n;
        memset(counts, 0, sizeof counts);
        for (uint64_t key = 0; key < 200 * orders; key++) {
            uint64_t out[6];
            uint32_t order = 0;
            struct permutation permutation;
            permutation_init(&permutation, n, key);
            for (uint64_t i = 0; i < n; i++)
                out[i] = permutation_at(&permutation, i);
            for (uint64_t i = 0; i < n; i++) {
                uint32_t smaller = 0;
                for (uint64_t j = i + 1; j < n; j++)
                    smaller += out[j] < out[i];
                order = order * (uint32_t)(n - i) + smaller;
            }
            counts[order]++;
        }
        assert_true(unevenness(counts, orders, 200) < (n < 4 ? 5 : 1.6));
    }
}

/* Where neighbours go: the distance between their places is as likely to be small as large. */
static void neighbours_part_company(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {256, 1000, 4096, 1000003};
    for (size_t k = 0; k < 4; k++) {
        uint32_t counts[64] = {0};
        for (uint64_t key = 0; key < 64000; key++) {
            struct permutation permutation;
            permutation_init(&permutation, sizes[k], key);
            uint64_t i = key % (sizes[k] - 1);
            uint64_t gap =
                permutation_at(&permutation, i + 1) + sizes[k] - permutation_at(&permutation, i);
            counts[(gap % sizes[k]) * 64 / sizes[k]]++;
        }
        /* A gap of 0 is impossible: worth 1 in n of the first cell. */
        assert_true(unevenness(counts, 64, 1000) < 2.0);
    }
}

static void streams_are_uniform_and_differ(void **state)
{
    (void)state;
    uint32_t counts[256] = {0}, ones[64] = {0};
    for (uint64_t key = 0; key < 64; key++) {
        for (uint64_t i = 0; i < 4000; i++) {
            uint64_t value = random_at(key, i);
            counts[value >> 56]++;
            for (int bit = 0; bit < 64; bit++)
                ones[bit] += value >> bit & 1;
        }
    }
    assert_true(unevenness(counts, 256, 1000) < 1.5);
    for (int bit = 0; bit < 64; bit++)
        assert_in_range(ones[bit], 128000 - 1500, 128000 + 1500);
    assert_true(random_at(1, 2) != random_at(2, 1));
    assert_true(random_key(1, 2) != random_key(2, 1));
    assert_true(random_key(0, 0) != 0);
    assert_true(random_key(random_key(0, 1), 2) != random_key(random_key(0, 2), 1));
}

static void one_bit_of_key_or_counter_changes_half_the_bits(void **state)
{
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        uint64_t by_key = 0, by_counter = 0, flip = (uint64_t)1 << bit;
        for (uint64_t i = 0; i < 500; i++) {
            by_key += (uint64_t)__builtin_popcountll(random_at(i, 3) ^ random_at(i ^ flip, 3));
            by_counter += (uint64_t)__builtin_popcountll(random_at(3, i) ^ random_at(3, i ^ flip));
        }
        assert_in_range(by_key, 500 * 31, 500 * 33);
        assert_in_range(by_counter, 500 * 31, 500 * 33);
    }
}

static void bounds_are_kept(void **state)
{
    (void)state;
    uint32_t counts[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) {
        counts[random_below(5, i, 7)]++;
        double unit = random_unit(5, i);
        assert_true(unit >= 0 && unit < 1);
        assert_int_equal(random_below(5, i, 1), 0);
    }
    assert_true(unevenness(counts, 7, 1000) < 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_n_up_to_4096_gives_a_bijection),
        cmocka_unit_test(what_was_permuted_is_found_again),
        cmocka_unit_test(many_at_once_are_the_same_as_one_by_one),
        cmocka_unit_test(many_at_once_walk_on_where_one_would),
        cmocka_unit_test(large_n_is_injective_on_samples),
        cmocka_unit_test(every_place_is_as_likely_for_every_sample),
        cmocka_unit_test(every_order_of_few_samples_is_as_likely),
        cmocka_unit_test(neighbours_part_company),
        cmocka_unit_test(streams_are_uniform_and_differ),
        cmocka_unit_test(one_bit_of_key_or_counter_changes_half_the_bits),
        cmocka_unit_test(bounds_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
