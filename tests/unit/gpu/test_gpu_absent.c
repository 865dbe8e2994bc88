/* Runs where no driver can be opened, or one that is older than CUDA 11: cmake/tests.cmake puts
 * such a thing in front. */
#include "base/testing.h"

#include "stoker/check.h"
#include "stoker/device.h"
#include "gpu/gpu.h"
#include "gpu/library.h"

static int old_driver(void)
{
    const char *kind = getenv("STOKER_TEST_DRIVER");
    return kind && !strcmp(kind, "old");
}

static void words_are_clear(const struct stk_error *err)
{
    assert_int_equal(err->status, STK_UNSUPPORTED);
    const char *what =
        old_driver() ? "the NVIDIA driver is too old: it has no cuD" : "no NVIDIA driver";
    if (!strstr(err->what, what))
        print_error("%s\n", err->what);
    assert_non_null(strstr(err->what, what));
    assert_non_null(strstr(err->remedy, "driver"));
}

static void opening_a_device_says_what_is_missing(void **state)
{
    struct stk_error err = {0};
    struct gpu *gpu;
    (void)state;
    for (int i = 0; i < 2; i++) { /* the same answer each time */
        assert_int_equal(gpu_open(&gpu, 0, &err), STK_UNSUPPORTED);
        assert_null(gpu);
        words_are_clear(&err);
    }
    assert_int_equal(gpu_open(&gpu, 0, NULL), STK_UNSUPPORTED);
}

static void there_are_no_devices(void **state)
{
    struct stk_error err = {0};
    struct stk_device_info info;
    struct stk_device_sample sample;
    (void)state;
    assert_int_equal(stk_device_count(&err), 0);
    words_are_clear(&err);
    assert_int_equal(stk_device_info(0, &info, &err), STK_UNSUPPORTED);
    assert_int_equal(stk_device_sample(0, &sample, &err), STK_UNSUPPORTED);
    words_are_clear(&err);
    assert_int_equal(stk_device_count(NULL), 0);
}

static void a_folder_without_libraries_changes_nothing(void **state)
{
    struct stk_error err = {0};
    void *handle;
    void (*function)(void) = (void (*)(void))abort;
    (void)state;
    assert_int_equal(stk_device_folders("/nowhere::/proc/self/", NULL), STK_OK);
    if (gpu_library_open(GPU_NVJPEG, &handle, &err)) {
        assert_null(handle);
        assert_int_equal(err.status, STK_UNSUPPORTED);
        assert_non_null(strstr(err.remedy, "pip install nvidia-nvjpeg"));
        assert_string_equal(gpu_library_path(GPU_NVJPEG), "");
        assert_int_equal(gpu_library_function(GPU_NVJPEG, "x", &function, &err), STK_UNSUPPORTED);
        assert_null(function);
    } else { /* a machine with the toolkit and no driver */
        assert_int_equal(gpu_library_function(GPU_NVJPEG, "no_such", &function, &err),
                         STK_UNSUPPORTED);
        assert_non_null(strstr(err.what, "no_such"));
        assert_null(function);
    }
    assert_int_equal(stk_device_folders(NULL, NULL), STK_OK);
}

static void see_row(void *user, const struct stk_check_row *row)
{
    int *seen = user;
    if (strcmp(row->group, "gpu"))
        return;
    ++*seen;
    assert_int_equal(row->state, STK_CHECK_ABSENT);
    assert_true(row->value[0]);
}

static void the_check_tells_it_and_is_no_error(void **state)
{
    int seen = 0;
    (void)state;
    stk_check(NULL, see_row, &seen);
    assert_int_equal(seen, 3 + GPU_LIBRARY_COUNT); /* driver, device, kernels */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_a_device_says_what_is_missing),
        cmocka_unit_test(there_are_no_devices),
        cmocka_unit_test(a_folder_without_libraries_changes_nothing),
        cmocka_unit_test(the_check_tells_it_and_is_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
