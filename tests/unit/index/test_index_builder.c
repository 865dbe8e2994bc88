#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include "base/memory.h"
#include "index/index_writer.h"
#include "index_fixture.h"

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

static void what_was_added_comes_back(void **state)
{
    (void)state;
    fixture_small(&fixture);
    WORKS(index_open(&fixture.index, fixture.path, &fixture.error));
    const struct index *index = fixture.index;
    assert_int_equal(index_samples(index), 3);
    assert_int_equal(index_field_count(index), 2);
    assert_string_equal(index_field(index, 0)->name, "npy");
    assert_int_equal(index_field(index, 0)->min_length, 1000);
    assert_int_equal(index_field(index, 0)->max_length, 1002);
    assert_int_equal(index_field(index, 0)->missing, 0);
    assert_int_equal(index_field(index, 0)->row.rank, -1);
    assert_null(index_field(index, 2));
    assert_string_equal(index_root(index), "/data");
    assert_string_equal(index_format(index), "tar");
    assert_string_equal(index_path(index), fixture.path);
    struct index_object object;
    WORKS(index_object(index, 0, &object, NULL));
    assert_string_equal(object.name, "shard-0.tar");
    assert_int_equal(object.size, (uint64_t)1 << 40);
    assert_int_equal(object.version, 7);
    assert_int_equal(index_object(index, 1, &object, NULL), STK_NOT_FOUND);
    uint64_t samples[] = {2, 0};
    struct extent extents[4];
    WORKS(index_resolve(index, samples, 2, extents, &fixture.error));
    assert_int_equal(extents[0].offset, 512 + 4096);
    assert_int_equal(extents[0].length, 1002);
    assert_int_equal(extents[3].offset, 2048);
    fixture_key_is(&fixture, 1, "001");
    WORKS(index_verify(index, &fixture.error));
}

static void a_field_that_appears_later_is_missing_before(void **state)
{
    (void)state;
    fixture_builder(&fixture);
    for (int i = 0; i < 10000; i++) {
        fixture_sample(&fixture, "k");
        fixture_extent(&fixture, "a", 0, 1);
        if (i >= 5000)
            fixture_extent(&fixture, "b", 1, 2);
        if (i == 9999)
            fixture_extent(&fixture, "c", 2, 3);
        if (i % 1000 == 999)
            fixture_join(&fixture);
    }
    fixture_open(&fixture);
    assert_int_equal(index_field_count(fixture.index), 3);
    assert_int_equal(index_field(fixture.index, 1)->missing, 5000);
    assert_int_equal(index_field(fixture.index, 2)->missing, 9999);
    uint64_t samples[] = {0, 4999, 5000, 9998, 9999};
    struct extent extents[15];
    WORKS(index_resolve(fixture.index, samples, 5, extents, &fixture.error));
    uint32_t wanted[15] = {0,           EXTENT_NONE, EXTENT_NONE, 0,           EXTENT_NONE,
                           EXTENT_NONE, 0,           0,           EXTENT_NONE, 0,
                           0,           EXTENT_NONE, 0,           0,           0};
    for (int i = 0; i < 15; i++)
        assert_int_equal(extents[i].object, wanted[i]);
    assert_int_equal(extents[14].length, 3);
}

static void lengths_over_4_gib_are_kept(void **state)
{
    (void)state;
    uint64_t lengths[] = {UINT32_MAX - 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1, (uint64_t)1 << 39};
    fixture_builder(&fixture);
    for (int i = 0; i < 4; i++) {
        fixture_sample(&fixture, "k");
        if (i == 2)
            fixture_extent(&fixture, "late", 5, 6);
        fixture_extent(&fixture, "npy", 1, lengths[i]);
        fixture_join(&fixture);
    }
    fixture_open(&fixture);
    for (uint64_t i = 0; i < 4; i++) {
        struct extent extents[2];
        WORKS(index_resolve(fixture.index, &i, 1, extents, &fixture.error));
        assert_int_equal(extents[0].length, lengths[i]);
        assert_int_equal(extents[1].object, i == 2 ? 0 : EXTENT_NONE);
    }
}

static void values_need_no_object(void **state)
{
    (void)state;
    struct extent value = {(uint64_t)-5, 8, EXTENT_VALUE}, got;
    fixture_builder(&fixture);
    fixture_sample(&fixture, "k");
    WORKS(index_part_extent(fixture.part, "cls", 3, &value, &fixture.error));
    fixture_join(&fixture);
    fixture_open(&fixture);
    WORKS(index_resolve(fixture.index, &(uint64_t){0}, 1, &got, &fixture.error));
    assert_int_equal((int64_t)got.offset, -5);
    assert_int_equal(got.length, 8);
    assert_int_equal(got.object, EXTENT_VALUE);
}

static void chunks_of_parts_are_renumbered(void **state)
{
    (void)state;
    fixture_builder(&fixture);
    for (int i = 0; i < 3; i++) {
        struct chunk chunk = {.offset = 10, .length = 20, .decoded = 1000, .count = 2, .filter = 1};
        struct extent extent = {100, 200, INDEX_PART_CHUNK};
        uint32_t number;
        for (int k = 0; k < 2; k++) {
            fixture_sample(&fixture, "k");
            WORKS(index_part_extent(fixture.part, "npy", 3, &extent, &fixture.error));
        }
        WORKS(index_part_chunk(fixture.part, &chunk, &number, &fixture.error));
        assert_int_equal(number, 0);
        fixture_join(&fixture);
    }
    fixture_open(&fixture);
    assert_int_equal(index_chunk_count(fixture.index), 3);
    for (uint64_t i = 0; i < 6; i++) {
        struct extent extent;
        struct chunk chunk;
        WORKS(index_resolve(fixture.index, &i, 1, &extent, &fixture.error));
        assert_int_equal(extent.object, 1 + i / 2);
        WORKS(index_chunk(fixture.index, extent.object - 1, &chunk, &fixture.error));
        assert_int_equal(chunk.first, i / 2 * 2);
        assert_int_equal(chunk.count, 2);
    }
}

static void an_extent_of_no_object_or_chunk_is_refused(void **state)
{
    (void)state;
    uint32_t objects[] = {1, INDEX_PART_CHUNK, INDEX_PART_CHUNK | 5};
    for (int i = 0; i < 3; i++) {
        struct extent extent = {0, 1, objects[i]};
        fixture_builder(&fixture);
        fixture_sample(&fixture, "k");
        WORKS(index_part_extent(fixture.part, "npy", 3, &extent, &fixture.error));
        assert_int_equal(index_builder_join(fixture.builder, fixture.part, &fixture.error),
                         STK_USAGE);
    }
}

static void a_field_twice_in_a_sample_is_refused(void **state)
{
    (void)state;
    struct extent extent = {0, 1, 0};
    fixture_builder(&fixture);
    fixture_sample(&fixture, "a");
    fixture_extent(&fixture, "npy", 0, 1);
    fixture_extent(&fixture, "cls", 0, 1);
    fixture_sample(&fixture, "b");
    fixture_extent(&fixture, "cls", 0, 1);
    fixture_extent(&fixture, "npy", 0, 1);
    assert_int_equal(index_part_extent(fixture.part, "cls", 3, &extent, &fixture.error),
                     STK_CORRUPT);
    assert_string_equal(fixture.error.field, "cls");
}

static void more_than_1024_fields_are_refused(void **state)
{
    (void)state;
    stk_status status = STK_OK;
    struct extent extent = {0, 1, 0};
    int i = 0;
    fixture_builder(&fixture);
    for (; !status && i < 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", i);
        fixture_sample(&fixture, "k");
        status = index_part_extent(fixture.part, name, strlen(name), &extent, &fixture.error);
        if (!status && i % 100 == 0) /* the limit holds over parts too */
            status = index_builder_join(fixture.builder, fixture.part, &fixture.error);
    }
    if (!status)
        status = index_builder_join(fixture.builder, fixture.part, &fixture.error);
    assert_int_equal(status, STK_LIMIT);
    assert_true(i > 1024);
}

static void keys_may_be_taken_from_the_objects_names(void **state)
{
    (void)state;
    uint32_t number;
    struct stat info;
    WORKS(index_builder_new(&fixture.builder, fixture.path, "folder", "/d", &fixture.error));
    WORKS(index_part_new(&fixture.part, &fixture.error));
    index_builder_keys_from_names(fixture.builder);
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "cat/%05d.x.jpg", i);
        WORKS(index_builder_object(fixture.builder, name, 5, 1, &number, &fixture.error));
        WORKS(index_part_sample(fixture.part, name, 9, &fixture.error));
        struct extent extent = {0, 5, number};
        WORKS(index_part_extent(fixture.part, "x.jpg", 5, &extent, &fixture.error));
    }
    fixture_join(&fixture);
    fixture_open(&fixture);
    fixture_key_is(&fixture, 0, "cat/00000");
    fixture_key_is(&fixture, 9999, "cat/09999");
    WORKS(stat(fixture.path, &info));
    assert_true(info.st_size <= 64 * 10000);
}

static void a_tar_with_two_fields_takes_few_bytes_a_field(void **state)
{
    (void)state;
    struct stat info;
    fixture_builder(&fixture);
    for (int i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof(key), "%06d", i);
        fixture_sample(&fixture, key);
        fixture_extent(&fixture, "npy", (uint64_t)i * 2048, 160);
        fixture_extent(&fixture, "cls", (uint64_t)i * 2048 + 1024, 1);
        if (i % 1000 == 999)
            fixture_join(&fixture);
    }
    fixture_open(&fixture);
    WORKS(stat(fixture.path, &info));
    assert_true(info.st_size <= 24 * 200000);
    fixture_key_is(&fixture, 77777, "077777");
    WORKS(index_verify(fixture.index, &fixture.error));
}

static void rows_of_arrays_follow_each_other(void **state)
{
    (void)state;
    struct index_array array = {.field = "raw", .offset = 128, .rows = 10};
    array.row = (struct stk_tensor){.dtype = STK_F32, .rank = 1, .shape = {4}};
    fixture_builder(&fixture);
    WORKS(index_builder_array(fixture.builder, &array, &fixture.error));
    struct index_array other = array;
    other.field = "label";
    other.row.rank = 0;
    other.rows = 15;
    other.byteswap = 1;
    WORKS(index_builder_array(fixture.builder, &other, &fixture.error));
    array.offset = 4096;
    array.rows = 5;
    WORKS(index_builder_array(fixture.builder, &array, &fixture.error));
    fixture_open(&fixture);
    assert_int_equal(index_samples(fixture.index), 15);
    assert_int_equal(index_field(fixture.index, 0)->row.rank, 1);
    assert_int_equal(index_field(fixture.index, 1)->byteswap, 1);
    uint64_t samples[] = {9, 10, 14};
    struct extent extents[6];
    WORKS(index_resolve(fixture.index, samples, 3, extents, &fixture.error));
    assert_int_equal(extents[0].offset, 128 + 9 * 16);
    assert_int_equal(extents[1].offset, 128 + 9 * 4);
    assert_int_equal(extents[2].offset, 4096);
    assert_int_equal(extents[4].offset, 4096 + 4 * 16);
    assert_int_equal(extents[4].length, 16);
    fixture_key_is(&fixture, 14, "14");
    assert_int_equal(index_resolve(fixture.index, &(uint64_t){15}, 1, extents, NULL),
                     STK_NOT_FOUND);
}

static void arrays_that_differ_in_rows_or_shape_are_refused(void **state)
{
    (void)state;
    struct index_array array = {.field = "a", .rows = 10};
    array.row = (struct stk_tensor){.dtype = STK_F32, .rank = 1, .shape = {4}};
    fixture_builder(&fixture);
    WORKS(index_builder_array(fixture.builder, &array, &fixture.error));
    array.row.shape[0] = 5;
    assert_int_equal(index_builder_array(fixture.builder, &array, &fixture.error), STK_SHAPE);
    array.field = "b";
    array.rows = 11;
    WORKS(index_builder_array(fixture.builder, &array, &fixture.error));
    assert_int_equal(index_builder_finish(fixture.builder, &fixture.error), STK_SHAPE);
    assert_non_null(strstr(fixture.error.what, "a has 10"));
    assert_non_null(strstr(fixture.error.what, "b has 11"));
    assert_int_not_equal(access(fixture.path, F_OK), 0);
}

/* The fingerprint of one small index; `change` says what differs from the first. */
static void print_of(int change, uint8_t out[16])
{
    uint32_t number;
    fixture_reset(&fixture);
    WORKS(index_builder_new(&fixture.builder, fixture.path, "tar", change == 1 ? "/b" : "/a",
                            &fixture.error));
    WORKS(index_part_new(&fixture.part, &fixture.error));
    WORKS(index_builder_object(fixture.builder, change == 3 ? "t" : "s", change == 4 ? 999 : 1000,
                               change == 2 ? 8 : 7, &number, &fixture.error));
    fixture_sample(&fixture, change == 5 ? "k" : "key");
    fixture_extent(&fixture, change == 6 ? "cls" : "npy", 0, change == 7 ? 6 : 5);
    fixture_join(&fixture);
    fixture_open(&fixture);
    index_fingerprint(fixture.index, out);
}

static void the_fingerprint_is_of_the_samples_not_of_the_place(void **state)
{
    (void)state;
    uint8_t first[16], other[16];
    print_of(0, first);
    for (int change = 1; change <= 7; change++) {
        print_of(change, other);
        int same = !memcmp(first, other, 16); /* 1: the root, 2: the version (mtime, inode) */
        assert_int_equal(same, change <= 2);
    }
}

static int count_files(void)
{
    int count = 0;
    DIR *dir = opendir(fixture.folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return count;
}

static void nothing_but_the_index_is_left_behind(void **state)
{
    (void)state;
    fixture_small(&fixture);
    assert_int_equal(count_files(), 1);
    fixture_builder(&fixture);
    for (int i = 0; i < 50000; i++) {
        fixture_sample(&fixture, "0123456789");
        fixture_extent(&fixture, "npy", 0, 1);
    }
    fixture_join(&fixture); /* the spools are files by now */
    fixture_reset(&fixture);
    assert_int_equal(count_files(), 1);
}

static void leave_file(const char *name, time_t age)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/%s", fixture.folder, name);
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    assert_true(fd >= 0);
    close(fd);
    struct utimbuf times = {time(NULL) - age, time(NULL) - age};
    assert_int_equal(utime(path, &times), 0);
}

static void what_a_dead_builder_left_is_swept_away(void **state)
{
    (void)state;
    struct index_writer writer;
    pid_t child = fork();
    if (child == 0) /* dies with its temporary file open */
        _exit(index_writer_open(&writer, fixture.path, fixture.folder, NULL) != STK_OK);
    int result = -1;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    assert_int_equal(count_files(), 1);
    WORKS(index_writer_open(&writer, fixture.path, fixture.folder, NULL)); /* alive: ours */
    leave_file(".data.index.00000000-1-abcdef", 7200);  /* old, of another machine */
    leave_file(".data.index.00000000-1-ghijkl", 10);    /* young, of another machine: alive? */
    leave_file(".other.index.00000000-1-abcdef", 7200); /* not of this index */
    leave_file(".data.index.note", 7200);               /* no temporary name */
    fixture_builder(&fixture);
    assert_int_equal(count_files(), 4);
    index_writer_close(&writer);
    assert_int_equal(count_files(), 3);
}

static void two_processes_may_build_the_same_index(void **state)
{
    (void)state;
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int round = 0; round < 20; round++)
                fixture_small(&fixture);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int result = -1;
        assert_int_equal(waitpid(children[i], &result, 0), children[i]);
        assert_int_equal(result, 0);
    }
    WORKS(index_open(&fixture.index, fixture.path, &fixture.error));
    assert_int_equal(index_samples(fixture.index), 3);
    assert_int_equal(count_files(), 1);
}

static void a_folder_that_cannot_be_written_is_told(void **state)
{
    (void)state;
    snprintf(fixture.path, sizeof(fixture.path), "%s/missing/data.index", fixture.folder);
    fixture_builder(&fixture);
    assert_int_equal(index_builder_finish(fixture.builder, &fixture.error), STK_NOT_FOUND);
    assert_string_equal(fixture.error.object, fixture.path);
}

struct countdown {
    int left, failed;
};

static int fail_nth(void *user, size_t size)
{
    (void)size;
    struct countdown *countdown = user;
    if (countdown->left-- > 0)
        return 0;
    countdown->failed = 1;
    return 1;
}

/* All of it; STK_OK or STK_MEMORY. */
static stk_status build_and_open(void)
{
    uint32_t number;
    struct extent extent = {0, 5, 0};
    struct stk_error *err = &fixture.error;
    stk_status status = index_builder_new(&fixture.builder, fixture.path, "tar", "/a", err);
    if (!status)
        status = index_part_new(&fixture.part, err);
    if (!status)
        status = index_builder_object(fixture.builder, "s", 1000, 1, &number, err);
    if (!status)
        status = index_builder_class(fixture.builder, "cat", &number, err);
    for (int i = 0; !status && i < 100; i++) {
        status = index_part_sample(fixture.part, "key", 3, err);
        if (!status)
            status = index_part_extent(fixture.part, "npy", 3, &extent, err);
        if (!status && i == 50)
            status = index_builder_join(fixture.builder, fixture.part, err);
    }
    if (!status)
        status = index_builder_join(fixture.builder, fixture.part, err);
    if (!status)
        status = index_builder_finish(fixture.builder, err);
    if (!status)
        status = index_open(&fixture.index, fixture.path, err);
    return status;
}

static void memory_that_runs_out_at_any_call_is_an_error(void **state) /* fault 85 */
{
    (void)state;
    struct countdown countdown = {0};
    for (int n = 0;; n++) {
        countdown = (struct countdown){.left = n};
        memory_set_hook(fail_nth, &countdown);
        stk_status status = build_and_open();
        memory_set_hook(NULL, NULL);
        fixture_reset(&fixture);
        assert_int_equal(status, countdown.failed ? STK_MEMORY : STK_OK);
        if (!countdown.failed)
            break;
        assert_true(n < 1000);
    }
    assert_int_equal(count_files(), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_was_added_comes_back),
        TEST(a_field_that_appears_later_is_missing_before),
        TEST(lengths_over_4_gib_are_kept),
        TEST(values_need_no_object),
        TEST(chunks_of_parts_are_renumbered),
        TEST(an_extent_of_no_object_or_chunk_is_refused),
        TEST(a_field_twice_in_a_sample_is_refused),
        TEST(more_than_1024_fields_are_refused),
        TEST(keys_may_be_taken_from_the_objects_names),
        TEST(a_tar_with_two_fields_takes_few_bytes_a_field),
        TEST(rows_of_arrays_follow_each_other),
        TEST(arrays_that_differ_in_rows_or_shape_are_refused),
        TEST(the_fingerprint_is_of_the_samples_not_of_the_place),
        TEST(nothing_but_the_index_is_left_behind),
        TEST(what_a_dead_builder_left_is_swept_away),
        TEST(two_processes_may_build_the_same_index),
        TEST(a_folder_that_cannot_be_written_is_told),
        TEST(memory_that_runs_out_at_any_call_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
