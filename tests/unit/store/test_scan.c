#include "base/testing.h"

#include "store/scan.h"

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    text_write(path_in(folder, "ten"), "0123456789");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void a_file_is_read_at_any_offset(void **state)
{
    (void)state;
    struct scan *scan;
    char buf[16];
    size_t got;
    assert_int_equal(scan_open(&scan, folder, "ten", NULL), STK_OK);
    assert_int_equal(scan_size(scan), 10);
    assert_string_equal(scan_name(scan), path_in(folder, "ten"));
    assert_int_equal(scan_read(scan, 3, buf, 4, &got, NULL), STK_OK);
    assert_int_equal(got, 4);
    assert_memory_equal(buf, "3456", 4);
    assert_int_equal(scan_read(scan, 8, buf, 16, &got, NULL), STK_OK);
    assert_int_equal(got, 2);
    static const uint64_t beyond[] = {10, 1000, (uint64_t)1 << 63, UINT64_MAX};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(scan_read(scan, beyond[i], buf, 16, &got, NULL), STK_OK);
        assert_int_equal(got, 0);
    }
    scan_close(scan);
    assert_int_equal(scan_open(&scan, "", path_in(folder, "ten"), NULL), STK_OK);
    scan_close(scan);
    assert_int_equal(scan_open(&scan, "/elsewhere", path_in(folder, "ten"), NULL), STK_OK);
    scan_close(scan);
    scan_close(NULL);
}

static void an_early_end_names_object_and_offset(void **state)
{
    (void)state;
    struct scan *scan;
    struct stk_error err;
    char buf[16];
    assert_int_equal(scan_open(&scan, folder, "ten", NULL), STK_OK);
    assert_int_equal(scan_read_all(scan, 2, buf, 8, &err), STK_OK);
    assert_int_equal(scan_read_all(scan, 5, buf, 8, &err), STK_TRUNCATED);
    assert_string_equal(err.object, scan_name(scan));
    assert_int_equal(err.offset, 5);
    scan_close(scan);
}

static void what_cannot_be_opened_is_named(void **state)
{
    (void)state;
    struct scan *scan;
    struct stk_error err;
    assert_int_equal(scan_open(&scan, folder, "missing", &err), STK_NOT_FOUND);
    assert_null(scan);
    assert_string_equal(err.object, path_in(folder, "missing"));
    assert_int_equal(scan_open(&scan, "", folder, &err), STK_USAGE);
    assert_int_equal(mkfifo(path_in(folder, "pipe"), 0600), 0);
    assert_int_equal(scan_open(&scan, folder, "pipe", &err), STK_UNSUPPORTED); /* and no hang */
    if (geteuid() != 0) {
        text_write(path_in(folder, "locked"), "x");
        chmod(path_in(folder, "locked"), 0);
        assert_int_equal(scan_open(&scan, folder, "locked", &err), STK_DENIED);
    }
}

static void a_version_hangs_on_size_time_and_inode(void **state)
{
    (void)state;
    uint64_t version = scan_file_version(1, 2, 3, 4);
    assert_true(version == scan_file_version(1, 2, 3, 4));
    assert_true(version != scan_file_version(2, 2, 3, 4));
    assert_true(version != scan_file_version(1, 3, 3, 4));
    assert_true(version != scan_file_version(1, 2, 4, 4));
    assert_true(version != scan_file_version(1, 2, 3, 5));
    struct scan *scan;
    assert_int_equal(scan_open(&scan, folder, "ten", NULL), STK_OK);
    uint64_t before = scan_version(scan);
    scan_close(scan);
    text_write(path_in(folder, "new"), "0123456789");
    assert_int_equal(rename(path_in(folder, "new"), path_in(folder, "ten")), 0);
    assert_int_equal(scan_open(&scan, folder, "ten", NULL), STK_OK);
    assert_true(before != scan_version(scan));
    scan_close(scan);
}

static int open_once(void *user)
{
    struct scan *scan;
    (void)user;
    stk_status status = scan_open(&scan, folder, "ten", NULL);
    scan_close(scan);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(open_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_at_any_offset),
        cmocka_unit_test(an_early_end_names_object_and_offset),
        cmocka_unit_test(what_cannot_be_opened_is_named),
        cmocka_unit_test(a_version_hangs_on_size_time_and_inode),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
