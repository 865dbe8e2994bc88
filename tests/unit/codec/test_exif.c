/* test_exif.c -- the orientation is found in either byte order, and whatever is malformed counts as
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/exif.h"

static const uint8_t little[] = {'I',  'I', 42, 0, 8, 0, 0, 0, 2, 0, /* two entries */ 0,
                                 1,    3,   0,  1, 0, 0, 0, 9, 0, 0, 0,
                                 0x12, 1,   3,  0, 1, 0, 0, 0, 6, 0, 0,
                                 0,    0,   0,  0, 0};
static const uint8_t big[] = {'E', 'x', 'i', 'f',  0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                              0,   1,   1,   0x12, 0, 3, 0,   0,   0, 1,  0, 8, 0, 0};

/* From memory of exactly that size, so that a read beyond it is seen. */
static int orientation(const uint8_t *data, size_t len)
{
    uint8_t *copy = malloc(len ? len : 1);
    memcpy(copy, data, len);
    struct stk_bytes bytes = {copy, len};
    int found = exif_orientation(&bytes);
    free(copy);
    return found;
}

static void both_byte_orders_are_read(void **state)
{
    (void)state;
    assert_int_equal(orientation(little, sizeof little), 6);
    assert_int_equal(orientation(big, sizeof big), 8);
}

static void what_is_cut_off_counts_as_none(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof big; len++)
        assert_int_equal(orientation(big, len), 0);
    for (size_t len = 0; len < 34; len++)
        assert_int_equal(orientation(little, len), 0);
}

static void any_byte_may_be_anything(void **state)
{
    (void)state;
    for (size_t at = 0; at < sizeof little; at++)
        for (int value = 0; value < 256; value++) {
            uint8_t changed[sizeof little];
            memcpy(changed, little, sizeof little);
            changed[at] = (uint8_t)value;
            assert_in_range(orientation(changed, sizeof changed), 0, 8);
        }
}

static void a_value_that_is_no_orientation_counts_as_none(void **state)
{
    (void)state;
    uint8_t changed[sizeof big];
    static const struct {
        size_t at;
        uint8_t value;
    } cases[] = {{25, 0}, {25, 9}, {24, 1}, {19, 4}, {23, 2}, {10, 0xff}, {9, 43}, {6, 'N'}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        memcpy(changed, big, sizeof big);
        changed[cases[i].at] = cases[i].value;
        assert_int_equal(orientation(changed, sizeof changed), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_byte_orders_are_read),
        cmocka_unit_test(what_is_cut_off_counts_as_none),
        cmocka_unit_test(any_byte_may_be_anything),
        cmocka_unit_test(a_value_that_is_no_orientation_counts_as_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
