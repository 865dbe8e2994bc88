#include "base/testing.h"

#include "base/hash.h"

static void one_bit_changes_half_of_the_hash(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 3, 4, 7, 8, 12, 16, 17, 31, 64, 65, 80, 128, 200, 300};
    uint8_t data[300];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        size_t bits = lengths[k] * 8;
        uint64_t changed = 0, before = hash_bytes(data, lengths[k], 1);
        for (size_t bit = 0; bit < bits; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            uint64_t after = hash_bytes(data, lengths[k], 1);
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            int count = __builtin_popcountll(before ^ after);
            assert_in_range(count, 10, 54); /* each bit has to show */
            changed += (uint64_t)count;
        }
        double mean = (double)changed / (double)bits;
        assert_true(mean > 32 - 16 / __builtin_sqrt((double)bits) * 1.5);
        assert_true(mean < 32 + 16 / __builtin_sqrt((double)bits) * 1.5);
    }
}

static void length_seed_and_place_matter(void **state)
{
    (void)state;
    static const uint8_t zeros[300];
    uint64_t seen[600];
    size_t count = 0;
    for (size_t len = 0; len < 300; len++) { /* only zeros: the length alone tells them apart */
        seen[count++] = hash_bytes(zeros, len, 0);
        seen[count++] = hash_bytes(zeros, len, 1);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
    uint8_t swapped[256], data[256];
    for (size_t i = 0; i < 256; i++)
        data[i] = (uint8_t)i;
    for (size_t lane = 8; lane < 128; lane += 8) { /* two words change places */
        memcpy(swapped, data, 256);
        memcpy(swapped, data + lane, 8);
        memcpy(swapped + lane, data, 8);
        assert_true(hash_bytes(swapped, 256, 0) != hash_bytes(data, 256, 0));
    }
}

static void the_hash_does_not_hang_on_alignment(void **state)
{
    (void)state;
    uint8_t data[400];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t len = 0; len < 200; len += 13) {
        uint8_t moved[400];
        for (size_t shift = 0; shift < 8; shift++) {
            memcpy(moved + shift, data, len);
            assert_true(hash_bytes(moved + shift, len, 5) == hash_bytes(data, len, 5));
        }
    }
}

/* Index files keep these: a change would make every index of a user look broken. */
static void known_values_stay_the_same(void **state)
{
    (void)state;
    uint8_t data[1000], out[16];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 131 >> 3);
    assert_true(hash_bytes(NULL, 0, 0) == 0x7e323cec533a506fu);
    assert_true(hash_bytes(data, 3, 0) == 0xd0e68da6e8f1826fu);
    assert_true(hash_bytes(data, 20, 7) == 0x572600825b993b98u);
    assert_true(hash_bytes(data, 1000, 7) == 0xfaa87ca3892662b8u);
    struct hash128 hash;
    hash128_init(&hash, 1);
    hash128_add(&hash, data, 10);
    hash128_add_number(&hash, 5);
    hash128_out(&hash, out);
    static const uint8_t known[16] = {0xef, 0x61, 0xe3, 0xb7, 0x84, 0xc4, 0x41, 0x07,
                                      0x48, 0xdc, 0x83, 0x00, 0x12, 0x1a, 0x9b, 0xda};
    assert_memory_equal(out, known, 16);
}

static void joined_hash(uint8_t out[16], const char *a, const char *b)
{
    struct hash128 hash;
    hash128_init(&hash, 0);
    hash128_add(&hash, a, strlen(a));
    hash128_add(&hash, b, strlen(b));
    hash128_out(&hash, out);
}

static void parts_matter_by_order_and_by_where_they_end(void **state)
{
    (void)state;
    uint8_t a[16], b[16];
    joined_hash(a, "one", "two");
    joined_hash(b, "two", "one");
    assert_memory_not_equal(a, b, 16);
    joined_hash(b, "onet", "wo");
    assert_memory_not_equal(a, b, 16);
    joined_hash(b, "onetwo", "");
    assert_memory_not_equal(a, b, 16);
    joined_hash(b, "one", "two");
    assert_memory_equal(a, b, 16);
    assert_memory_not_equal(a, a + 8, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bit_changes_half_of_the_hash),
        cmocka_unit_test(length_seed_and_place_matter),
        cmocka_unit_test(the_hash_does_not_hang_on_alignment),
        cmocka_unit_test(known_values_stay_the_same),
        cmocka_unit_test(parts_matter_by_order_and_by_where_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
