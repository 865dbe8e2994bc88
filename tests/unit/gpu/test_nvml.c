#include "gpu/gpu_fixture.h"

#include <sys/wait.h>

#include "gpu/nvml.h"

static void a_sample_is_what_nvml_tells(void **state)
{
    struct stk_device_sample sample;
    (void)state;
    NEEDS_SIMULATION();
    OK(stk_device_sample(0, &sample, &err));
    assert_int_equal(sample.busy, 97);
    assert_int_equal(sample.memory_busy, 41);
    assert_int_equal(sample.memory_used, 3ull << 30);
    assert_int_equal(sample.memory_total, 8ull << 30);
    assert_true(sample.power == STK_DEVICE_UNKNOWN); /* this device does not tell */
    assert_int_equal(sample.clock, 1980);
    assert_int_equal(sample.memory_clock, 3201);
    assert_int_equal(sample.temperature, 35);
}

static void a_real_device_has_memory_in_use(void **state)
{
    struct stk_device_sample sample;
    (void)state;
    if (sim_function("sim_cuda_counts"))
        skip();
    OK(stk_device_sample(0, &sample, &err));
    assert_true(sample.memory_total > 0 && sample.memory_used <= sample.memory_total);
}

static void a_device_that_nvml_does_not_know_is_an_error(void **state)
{
    struct stk_device_sample sample;
    struct stk_error err = {0};
    (void)state;
    NEEDS_SIMULATION();
    assert_int_equal(nvml_sample("00000000:77:00.0", &sample, &err), STK_RESOURCE);
    assert_non_null(strstr(err.what, "00000000:77:00.0"));
    assert_non_null(strstr(err.what, "Not Found"));
}

/* In a process of its own, before NVML was started in it. */
static void nvml_that_does_not_start_says_why_each_time(void **state)
{
    int status;
    (void)state;
    NEEDS_SIMULATION();
    pid_t child = fork();
    if (!child) {
        struct stk_device_sample sample;
        int good = 1;
        setenv("FAKE_NVML", "refuse", 1);
        for (int i = 0; i < 2; i++) {
            struct stk_error err = {0};
            good &= nvml_sample("00000000:01:00.0", &sample, &err) == STK_UNSUPPORTED;
            good &= strstr(err.what, "Driver Not Loaded") && strstr(err.remedy, "nvidia-smi");
        }
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nvml_that_does_not_start_says_why_each_time), /* first: see above */
        cmocka_unit_test(a_sample_is_what_nvml_tells),
        cmocka_unit_test(a_real_device_has_memory_in_use),
        cmocka_unit_test(a_device_that_nvml_does_not_know_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
