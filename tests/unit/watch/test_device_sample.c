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
        cmocka_unit_test(only_devices_that_the_command_sees_are_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
