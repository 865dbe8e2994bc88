#include "base/testing.h"

#include <sys/file.h>

#include "pack/numbered.h"
#include "pack/staging.h"
#include "pack/write_all.h"

static void put(const struct staging *staging, const char *name)
{
    int fd = openat(staging_fd(staging), name, O_WRONLY | O_CREAT | O_EXCL, 0666);

    assert_true(fd >= 0);
    assert_int_equal(write_all(fd, name, strlen(name)), 0);
    close(fd);
}

static int there(const char *folder, const char *name)
{
    return access(path_in(folder, name), F_OK) == 0;
}

static void files_appear_only_when_published(void **state)
{
    char folder[PATH_MAX];
    struct staging *staging;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    assert_int_equal(staging_open(&staging, folder, "shard", &err), STK_OK);
    put(staging, "0");
    put(staging, "1");
    assert_false(there(folder, "a.tar"));
    assert_int_equal(staging_publish(staging, "0", "a.tar", &err), STK_OK);
    assert_true(there(folder, "a.tar"));
    staging_close(staging);
    assert_false(there(folder, "1") || there(folder, ".shard.part"));
    assert_true(there(folder, "a.tar"));
    folder_remove(folder);
}

static void a_target_that_was_made_for_nothing_is_removed(void **state)
{
    char folder[PATH_MAX];
    struct staging *staging;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    assert_int_equal(staging_open(&staging, path_in(folder, "x/y/z/"), "shard", &err), STK_OK);
    put(staging, "0");
    staging_close(staging);
    assert_true(there(folder, "x/y"));
    assert_false(there(folder, "x/y/z"));
    folder_remove(folder);
}

static void what_a_killed_run_left_is_removed(void **state)
{
    char folder[PATH_MAX];
    struct staging *staging;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    mkdir(path_in(folder, ".shard.part"), 0777);
    text_write(path_in(folder, ".shard.part/0"), "half");
    assert_int_equal(staging_open(&staging, folder, "shard", &err), STK_OK);
    assert_false(there(folder, ".shard.part/0"));
    put(staging, "0");
    staging_close(staging);
    folder_remove(folder);
}

static void two_writers_of_one_name_do_not_meet(void **state)
{
    char folder[PATH_MAX];
    struct staging *first, *second, *other;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    assert_int_equal(staging_open(&first, folder, "shard", &err), STK_OK);
    put(first, "0");
    assert_int_equal(staging_open(&second, folder, "shard", &err), STK_BUSY);
    assert_null(second);
    assert_true(there(folder, ".shard.part/0")); /* the first one's file is still there */
    assert_int_equal(staging_open(&other, folder, "other", &err), STK_OK);
    staging_close(other);
    staging_close(first);
    assert_int_equal(staging_open(&second, folder, "shard", &err), STK_OK);
    staging_close(second);
    folder_remove(folder);
}

static void a_target_that_is_a_file_is_told(void **state)
{
    char folder[PATH_MAX];
    struct staging *staging;
    struct stk_error err;

    (void)state;
    folder_new(folder);
    text_write(path_in(folder, "file"), "");
    assert_int_not_equal(staging_open(&staging, path_in(folder, "file"), "shard", &err), STK_OK);
    assert_null(staging);
    assert_non_null(strstr(err.object, "/file"));
    assert_int_not_equal(staging_open(&staging, path_in(folder, "file/x"), "shard", &err), STK_OK);
    folder_remove(folder);
}

static int open_and_close(void *user)
{
    struct staging *staging;
    stk_status status = staging_open(&staging, user, "shard", NULL);

    staging_close(staging);
    assert_false(there(user, ".shard.part"));
    return status == STK_OK;
}

static void memory_that_runs_out_leaves_nothing(void **state)
{
    char folder[PATH_MAX];

    (void)state;
    folder_new(folder);
    fail_each_allocation(open_and_close, folder);
    folder_remove(folder);
}

static void numbers_have_as_many_digits_as_they_need(void **state)
{
    struct numbered names = {"shard-", ".tar", numbered_digits(10, 4)};
    char name[64];

    (void)state;
    numbered_name(&names, 7, name, sizeof(name));
    assert_string_equal(name, "shard-0007.tar");
    assert_int_equal(numbered_digits(10000, 4), 4);
    assert_int_equal(numbered_digits(10001, 4), 5);
    assert_int_equal(numbered_digits(0, 6), 6);
    assert_int_equal(numbered_digits(UINT64_MAX, 1), 20);
}

static void only_numbered_files_are_found_and_removed(void **state)
{
    const struct numbered names = {"shard-", ".tar", 4};
    const char *others[] = {"shard-001.tar", "shard-0001.tar.gz", "shard-00x1.tar", "my-0001.tar"};
    char folder[PATH_MAX];

    (void)state;
    folder_new(folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < 4; i++)
        text_write(path_in(folder, others[i]), "");
    assert_false(numbered_any(&names, fd));
    text_write(path_in(folder, "shard-0001.tar"), "");
    text_write(path_in(folder, "shard-12345.tar"), "");
    assert_true(numbered_any(&names, fd));
    numbered_remove(&names, fd);
    assert_false(there(folder, "shard-0001.tar") || there(folder, "shard-12345.tar"));
    for (size_t i = 0; i < 4; i++)
        assert_true(there(folder, others[i]));
    close(fd);
    folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_appear_only_when_published),
        cmocka_unit_test(a_target_that_was_made_for_nothing_is_removed),
        cmocka_unit_test(what_a_killed_run_left_is_removed),
        cmocka_unit_test(two_writers_of_one_name_do_not_meet),
        cmocka_unit_test(a_target_that_is_a_file_is_told),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing),
        cmocka_unit_test(numbers_have_as_many_digits_as_they_need),
        cmocka_unit_test(only_numbered_files_are_found_and_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
