/* Where the injected library looks for CUPTI, by what a program has loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../../inject/inject_find.h"

#define MAPPED "7f00-7f10 r-xp 00000000 08:01 123    "

static int is_listed(const struct find_loaded *loaded, const char *folder)
{
    for (size_t i = 0; i < sizeof loaded->folders / sizeof loaded->folders[0]; i++)
        if (!strcmp(loaded->folders[i], folder))
            return 1;
    return 0;
}

static void cupti_lies_beside_torch(void **state)
{
    (void)state;
    struct find_loaded loaded = {0};
    inject_find_line(&loaded, MAPPED "/env/site-packages/torch/lib/libtorch_cpu.so");
    inject_find_line(&loaded, MAPPED "/env/site-packages/torch/lib/libtorch_cpu.so");
    assert_true(is_listed(&loaded, "/env/site-packages/torch/lib/../../nvidia/cu13/lib"));
    assert_true(is_listed(&loaded, "/env/site-packages/torch/lib/../../nvidia/cuda_cupti/lib"));
    assert_int_equal(loaded.folders[2][0], 0); /* once is enough */
}

static void cupti_lies_beside_the_runtime(void **state)
{
    (void)state;
    struct find_loaded loaded = {0};
    inject_find_line(&loaded, MAPPED "/env/nvidia/cuda_runtime/lib/libcudart.so.12");
    assert_int_equal(loaded.runtime, 12);
    assert_true(is_listed(&loaded, "/env/nvidia/cuda_runtime/lib/../../cuda_cupti/lib"));
    struct find_loaded newer = {0};
    inject_find_line(&newer, MAPPED "/env/nvidia/cu13/lib/libcudart.so.13.0.96");
    assert_int_equal(newer.runtime, 13);
    assert_true(is_listed(&newer, "/env/nvidia/cu13/lib"));
}

static void the_driver_says_which_cuda_it_runs(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int cuda;
    } drivers[] = {
        {MAPPED "/usr/lib/libcuda.so.580.65.06", 13},
        {MAPPED "/usr/lib/libcuda.so.535.183.01", 12},
        {MAPPED "/usr/lib/libcuda.so.470.82", 11},
        {MAPPED "/usr/lib/libcuda.so.1", 0}, /* a name that says nothing */
    };
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        struct find_loaded loaded = {0};
        inject_find_line(&loaded, drivers[i].line);
        assert_int_equal(loaded.driver, drivers[i].cuda);
    }
}

static void other_lines_say_nothing(void **state)
{
    (void)state;
    static const char *const lines[] = {"", "7ffd-7fff rw-p 0 00:00 0 [stack]", MAPPED "/",
                                        MAPPED "/usr/lib/libc.so.6", "libcudart.so.13"};
    const struct find_loaded nothing = {0};
    struct find_loaded loaded = {0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        inject_find_line(&loaded, lines[i]);
    assert_memory_equal(&loaded, &nothing, sizeof loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cupti_lies_beside_torch),
        cmocka_unit_test(cupti_lies_beside_the_runtime),
        cmocka_unit_test(the_driver_says_which_cuda_it_runs),
        cmocka_unit_test(other_lines_say_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
