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

static void list(const char *const *names)
{
    for (; *names; names++)
        fixture_file(&fixture, *names, *names, strlen(*names));
}

static void build(void)
{
    stk_status status = fixture_build(&fixture, "folder");
    if (status)
        fail_msg("%s: %s", stk_status_name(status), fixture.error.what);
}

static void files_of_one_key_meet_however_their_names_sort(void **state)
{
    (void)state;
    list((const char *[]){"a-1.cls", "a-1.jpg", "a.cls", "a.jpg", "a/x.jpg", "a0.jpg", NULL});
    build();
    assert_int_equal(index_samples(fixture.index), 4);
    fixture_key_is(&fixture, 0, "a");
    fixture_key_is(&fixture, 1, "a-1");
    fixture_key_is(&fixture, 2, "a/x");
    fixture_key_is(&fixture, 3, "a0");
    assert_int_equal(fixture_extent(&fixture, 0, "jpg").length, 5);
    assert_int_equal(fixture_extent(&fixture, 0, "cls").length, 5);
    assert_int_equal(fixture_extent(&fixture, 2, "cls").object, EXTENT_NONE);
    assert_int_equal(index_class_count(fixture.index), 0);
}

static void hidden_files_metadata_and_names_without_dot_are_left_out(void **state)
{
    (void)state;
    list((const char *[]){".hidden.jpg", "a.jpg", "d/.x.jpg", "d/metadata.parquet",
                          "metadata.parquet", "README", NULL});
    build();
    assert_int_equal(index_samples(fixture.index), 1);
    assert_int_equal(index_skipped(fixture.index), 5);
    assert_int_equal(index_object_count(fixture.index), 1);
}

static void one_folder_a_class_gives_each_sample_its_number(void **state)
{
    (void)state;
    list((const char *[]){"a-b/1.jpg", "a/1.jpg", "a/2.jpg", "ab/1.jpg", "cat/1.jpg", NULL});
    build();
    const char *classes[] = {"a", "a-b", "ab", "cat"};
    assert_int_equal(index_class_count(fixture.index), 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(index_class(fixture.index, i), classes[i]);
    assert_null(index_class(fixture.index, 4));
    const uint64_t wanted[] = {1, 0, 0, 2, 3};
    for (uint64_t i = 0; i < 5; i++) {
        struct extent extent = fixture_extent(&fixture, i, "cls");
        assert_int_equal(extent.object, EXTENT_VALUE);
        assert_int_equal(extent.length, 8);
        assert_int_equal(extent.offset, wanted[i]);
    }
    fixture_key_is(&fixture, 0, "a-b/1");
}

static void there_are_no_classes_unless_all_files_lie_one_folder_deep(void **state)
{
    (void)state;
    const char *const lists[][4] = {
        {"a/1.jpg", "b/1.jpg", "c.jpg"},   /* one is not in a folder */
        {"a/1.jpg", "b/c/1.jpg", NULL},    /* one is too deep */
        {"a/1.jpg", "a/2.jpg", NULL},      /* one folder is no choice */
        {"a/1.jpg", "b/1.jpg", "b/1.cls"}, /* the samples bring their own */
    };
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        fixture.count = 0;
        list(lists[i]);
        build();
        assert_int_equal(index_class_count(fixture.index), 0);
    }
}

static void many_samples_are_joined_in_parts(void **state)
{
    (void)state;
    static struct format_object objects[10000];
    static char names[10000][16];
    for (int i = 0; i < 10000; i++) {
        snprintf(names[i], sizeof(names[i]), "%06d.npy", i);
        objects[i] = (struct format_object){names[i], (uint64_t)i, 1};
    }
    fixture.input.objects = objects;
    fixture.input.object_count = 10000;
    build();
    assert_int_equal(index_samples(fixture.index), 10000);
    fixture_key_is(&fixture, 9876, "009876");
    assert_int_equal(fixture_extent(&fixture, 9876, "npy").length, 9876);
    assert_int_equal(index_field(fixture.index, 0)->max_length, 9999);
    struct stat info;
    assert_int_equal(stat(fixture.index_path, &info), 0);
    assert_true(info.st_size <= 64 * 10000);
}

static void the_same_file_twice_is_an_error(void **state)
{
    (void)state;
    list((const char *[]){"a.jpg", "a.jpg", NULL});
    fixture_refuses(&fixture, "folder", STK_CORRUPT);
    assert_string_equal(fixture.error.key, "a");
}

static void progress_that_says_stop_stops_the_build(void **state)
{
    (void)state;
    list((const char *[]){"a.jpg", "b.jpg", NULL});
    fixture.stop = 1;
    assert_int_equal(fixture_build(&fixture, "folder"), STK_CANCELLED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(files_of_one_key_meet_however_their_names_sort),
        TEST(hidden_files_metadata_and_names_without_dot_are_left_out),
        TEST(one_folder_a_class_gives_each_sample_its_number),
        TEST(there_are_no_classes_unless_all_files_lie_one_folder_deep),
        TEST(many_samples_are_joined_in_parts),
        TEST(the_same_file_twice_is_an_error),
        TEST(progress_that_says_stop_stops_the_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
