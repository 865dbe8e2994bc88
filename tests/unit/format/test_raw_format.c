/* The numbers are those of the list of faults that the engine must survive. */
#include "format_fixture.h"

static struct fixture fixture;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    fixture.input.raw = (struct stk_tensor){.dtype = STK_F32, .rank = 2, .shape = {2, 3}};
    return 0;
}

static int end(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

static void several_files_are_one_long_array(void **state)
{
    (void)state;
    static const uint8_t zeros[240];
    fixture_file(&fixture, "a.raw", zeros, 48);
    fixture_file(&fixture, "empty.raw", zeros, 0);
    fixture_file(&fixture, "b.raw", zeros, 240);
    assert_int_equal(fixture_build(&fixture, "raw"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 12);
    assert_int_equal(index_field(fixture.index, 0)->row.rank, 2);
    assert_int_equal(fixture_extent(&fixture, 1, "raw").object, 0);
    struct extent extent = fixture_extent(&fixture, 2, "raw");
    assert_int_equal(extent.object, 2);
    assert_int_equal(extent.offset, 0);
    extent = fixture_extent(&fixture, 11, "raw");
    assert_int_equal(extent.offset, 216);
    assert_int_equal(extent.length, 24);
}

static void a_file_that_is_no_whole_number_of_samples_is_refused(void **state) /* 34 */
{
    (void)state;
    static const uint8_t zeros[49];
    fixture_file(&fixture, "a.raw", zeros, 49);
    fixture_refuses(&fixture, "raw", STK_CORRUPT);
    assert_int_equal(fixture.error.offset, 48);
}

static void a_missing_or_empty_shape_is_bad_usage(void **state) /* 34 */
{
    (void)state;
    const struct stk_tensor shapes[] = {
        {.rank = -1},
        {.dtype = STK_F32, .rank = 2, .shape = {0, 3}},
        {.dtype = STK_F32, .rank = 1, .shape = {-1}},
        {.dtype = STK_F64, .rank = 2, .shape = {INT64_MAX, INT64_MAX}},
    };
    fixture_file(&fixture, "a.raw", "123456789012", 12);
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        fixture.input.raw = shapes[i];
        assert_int_equal(fixture_build(&fixture, "raw"), STK_USAGE);
    }
    fixture.input.raw = (struct stk_tensor){.dtype = STK_F32, .rank = 0};
    assert_int_equal(fixture_build(&fixture, "raw"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(several_files_are_one_long_array),
        TEST(a_file_that_is_no_whole_number_of_samples_is_refused),
        TEST(a_missing_or_empty_shape_is_bad_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
