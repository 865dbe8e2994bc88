/* The numbers are those of the list of faults that the engine must survive. */
#include "filter/filter.h"
#include "format_fixture.h"

static struct fixture fixture;

static int begin(void **state)
{
    (void)state;
    fixture_begin(&fixture);
    return 0;
}

static int end(void **state)
{
    (void)state;
    fixture_end(&fixture);
    return 0;
}

/* Lists an .npy file with this header and so many bytes of payload. */
static void list_npy(const char *name, const char *header, size_t payload)
{
    uint8_t file[4096] = "\x93NUMPY\x01";
    size_t len = (10 + strlen(header) + 1 + 63) / 64 * 64;
    assert_true(len + payload <= sizeof(file));
    file[8] = (uint8_t)((len - 10) & 255);
    file[9] = (uint8_t)((len - 10) >> 8);
    memset(file + 10, ' ', len - 10);
    memcpy(file + 10, header, strlen(header));
    file[len - 1] = '\n';
    fixture_file(&fixture, name, file, len + payload);
}

static void refuse(const char *header, size_t payload, stk_status wanted)
{
    fixture.count = 0;
    list_npy("a.npy", header, payload);
    fixture_refuses(&fixture, "npy", wanted);
}

static void rows_of_a_single_file_are_samples(void **state)
{
    (void)state;
    list_npy("a.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }", 60);
    assert_int_equal(fixture_build(&fixture, "npy"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 5);
    const struct index_field *field = index_field(fixture.index, 0);
    assert_string_equal(field->name, "npy");
    assert_int_equal(field->row.rank, 1);
    assert_int_equal(field->row.shape[0], 3);
    assert_int_equal(field->row.dtype, STK_F32);
    assert_int_equal(field->byteswap, 0);
    struct extent extent = fixture_extent(&fixture, 4, "npy");
    assert_int_equal(extent.offset, fixture.objects[0].size - 12);
    assert_int_equal(extent.length, 12);
    fixture_key_is(&fixture, 4, "4");
}

static void several_files_are_a_sample_each(void **state)
{
    (void)state;
    list_npy("b.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 20);
    list_npy("a.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }", 20);
    assert_int_equal(fixture_build(&fixture, "npy"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 2);
    fixture_key_is(&fixture, 0, "a");
    assert_int_equal(fixture_extent(&fixture, 0, "npy").length, fixture.objects[0].size);
}

static void object_arrays_are_refused_and_never_unpickled(void **state) /* 28 */
{
    (void)state;
    refuse("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 100, STK_UNSUPPORTED);
}

static void a_header_length_of_4_gib_is_refused_before_it_is_read(void **state) /* 29 */
{
    (void)state;
    uint8_t file[64] = "\x93NUMPY\x02";
    memset(file + 8, 0xff, 4);
    fixture_file(&fixture, "a.npy", file, sizeof(file));
    fixture_refuses(&fixture, "npy", STK_LIMIT);
}

static void shapes_that_overflow_or_are_negative_are_refused(void **state) /* 30 */
{
    (void)state;
    const char *shapes[] = {"(4294967296, 4294967296, 4294967296)", "(-1, 2)",
                            "(18446744073709551616,)", "(9223372036854775807, 8)"};
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        char header[256];
        snprintf(header, sizeof(header), "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
                 shapes[i]);
        refuse(header, 64, STK_CORRUPT);
    }
}

static void data_shorter_than_the_shape_is_refused(void **state) /* 31 */
{
    (void)state;
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }", 59, STK_TRUNCATED);
    uint8_t file[20] = "\x93NUMPY\x01";
    fixture.count = 0;
    fixture_file(&fixture, "a.npy", file, 9);
    fixture_refuses(&fixture, "npy", STK_TRUNCATED);
}

static void big_endian_rows_are_marked(void **state) /* 32 */
{
    (void)state;
    list_npy("a.npy", "{'descr': '>f4', 'fortran_order': False, 'shape': (5, 3), }", 60);
    assert_int_equal(fixture_build(&fixture, "npy"), STK_OK);
    assert_int_equal(index_field(fixture.index, 0)->byteswap, 1);
}

static void fortran_order_is_a_chunk_under_the_limit(void **state) /* 32 */
{
    (void)state;
    const char *header = "{'descr': '<f4', 'fortran_order': True, 'shape': (5, 3), }";
    struct chunk chunk;
    list_npy("a.npy", header, 60);
    assert_int_equal(fixture_build(&fixture, "npy"), STK_OK);
    assert_int_equal(index_chunk_count(fixture.index), 1);
    assert_int_equal(index_chunk(fixture.index, 0, &chunk, NULL), STK_OK);
    assert_int_equal(chunk.filter, FILTER_FORTRAN);
    assert_int_equal(chunk.offset, fixture.objects[0].size - 60);
    assert_int_equal(chunk.length, 60);
    assert_int_equal(chunk.decoded, 60);
    assert_int_equal(chunk.count, 5);
    assert_int_equal(chunk.shape.rank, 2);
    assert_int_equal(chunk.shape.shape[1], 3);
    struct extent extent = fixture_extent(&fixture, 1, "npy");
    assert_int_equal(extent.object, 1);
    assert_int_equal(extent.offset, 12);
    fixture.input.chunk_limit = 59;
    refuse(header, 60, STK_LIMIT);
    assert_non_null(strstr(fixture.error.remedy, "C order"));
}

static void structured_types_are_refused(void **state) /* 32 */
{
    (void)state;
    refuse("{'descr': [('a', '<i4'), ('b', '<f4')], 'fortran_order': False, 'shape': (2,), }", 16,
           STK_UNSUPPORTED);
}

static void an_array_without_dimensions_has_no_rows(void **state)
{
    (void)state;
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4, STK_UNSUPPORTED);
}

static void an_array_without_rows_gives_no_samples(void **state)
{
    (void)state;
    list_npy("a.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", 0);
    assert_int_equal(fixture_build(&fixture, "npy"), STK_OK);
    assert_int_equal(index_samples(fixture.index), 0);
}

static void what_is_no_npy_is_refused(void **state)
{
    (void)state;
    fixture_file(&fixture, "a.npy", "<html>404</html>", 16);
    fixture_refuses(&fixture, "npy", STK_CORRUPT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(rows_of_a_single_file_are_samples),
        TEST(several_files_are_a_sample_each),
        TEST(object_arrays_are_refused_and_never_unpickled),
        TEST(a_header_length_of_4_gib_is_refused_before_it_is_read),
        TEST(shapes_that_overflow_or_are_negative_are_refused),
        TEST(data_shorter_than_the_shape_is_refused),
        TEST(big_endian_rows_are_marked),
        TEST(fortran_order_is_a_chunk_under_the_limit),
        TEST(structured_types_are_refused),
        TEST(an_array_without_dimensions_has_no_rows),
        TEST(an_array_without_rows_gives_no_samples),
        TEST(what_is_no_npy_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
