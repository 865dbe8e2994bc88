#include "gpu/gpu_fixture.h"

#include "watch/device_sample.h"

static void a_device_tells_what_nvml_tells(void **state)
{
    struct device_sample sample;
    struct watch_device device;
    (void)state;
    NEEDS_SIMULATION();
    device_sample_open(&sample, NULL);
    assert_int_equal(sample.count, 1);
    assert_string_equal(sample.name, "Simulated GPU");
    assert_string_equal(sample.driver, ""); /* this NVML lacks the function */
    device_sample_pcie(&sample);
    device_sample_pcie(&sample);
    assert_true(device_sample_take(&sample, 0, &device));
    assert_int_equal(device.busy_percent, 97);
    assert_int_equal(device.memory_used_bytes, 3ull << 30);
    assert_int_equal(device.power_mw, 0); /* it does not tell */
    assert_int_equal(device.clock_mhz, 1980);
    assert_int_equal(device.throttle, 4);
    assert_int_equal(device.pcie_in_bytes_s, 2000 * 1024);
    assert_int_equal(device.pcie_out_bytes_s, 1000 * 1024);
    device_sample_pcie(&sample);
    assert_true(device_sample_take(&sample, 0, &device)); /* each sample is told once */
    assert_int_equal(device.pcie_in_bytes_s, 2000 * 1024);
    assert_true(device.pcie_out_bytes_s == STK_DEVICE_UNKNOWN);
    assert_true(device_sample_take(&sample, 0, &device));
    assert_true(device.pcie_in_bytes_s == STK_DEVICE_UNKNOWN);
}

static void a_device_tells_whose_processes_it_serves(void **state)
{
    struct device_sample sample;
    struct watch_device device;
    char path[] = "/tmp/fake_nvml_XXXXXX";
    (void)state;
    NEEDS_SIMULATION();
    int fd = mkstemp(path);
    assert_true(fd >= 0 && dprintf(fd, "1 41\n0 40\n1 42\n") > 0);
    close(fd);
    setenv("FAKE_NVML_PROCESSES", path, 1);
    setenv("FAKE_NVML_BUSY", "3,-1", 1);
    device_sample_open(&sample, NULL);
    assert_int_equal(sample.count, 2);
    assert_true(device_sample_take(&sample, 0, &device));
    assert_true(device.pid_count == 1 && device.pids[0] == 40);
    assert_true(device.busy_percent == 3 && !device.busy_untold);
    assert_true(device_sample_take(&sample, 1, &device));
    assert_true(device.pid_count == 2 && device.pids[0] == 41 && device.pids[1] == 42);
    assert_true(device.busy_percent == 0 && device.busy_untold);
    unsetenv("FAKE_NVML_BUSY");
    unsetenv("FAKE_NVML_PROCESSES");
    unlink(path);
}

static uint32_t seen(const char *visible)
{
    struct device_sample sample;
    device_sample_open(&sample, visible);
    return sample.count;
}

static void only_devices_that_the_command_sees_are_watched(void **state)
{
    (void)state;
    NEEDS_SIMULATION();
    assert_int_equal(seen("0"), 1);
    assert_int_equal(seen(" 0 "), 1);
    assert_int_equal(seen("GPU-0123"), 1);
    assert_int_equal(seen(""), 0);
    assert_int_equal(seen("-1,0"), 0);
    assert_int_equal(seen("7,0"), 0); /* as CUDA reads it: it ends at what there is not */
    assert_int_equal(seen("GPU-9"), 0);
    assert_int_equal(seen("zero"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_tells_what_nvml_tells),
        cmocka_unit_test(a_device_tells_whose_processes_it_serves),
        cmocka_unit_test(only_devices_that_the_command_sees_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
