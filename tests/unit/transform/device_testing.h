/* device_testing.h -- what tests of device twins share: the first device, and arrays there and
 * back. The same bodies run on a simulated driver and on a real one. Owns: a struct device holds
 * the device, entered, and a stream.   Threads: one.   Errors: a failed assertion; without a device
 * tests are skipped.   Not here: any test. */
#ifndef TESTS_TRANSFORM_DEVICE_TESTING_H
#define TESTS_TRANSFORM_DEVICE_TESTING_H

#include "base/testing.h"

#include "base/random.h"
#include "gpu/gpu.h"

struct device {
    struct gpu *gpu;
    struct gpu_stream *stream;
};

/* Numbers that follow from a key, one after the other. */
struct dice {
    uint64_t key, thrown;
};

TESTING int32_t dice_below(struct dice *dice, int32_t limit)
{
    return (int32_t)random_below(dice->key, dice->thrown++, (uint64_t)limit);
}

TESTING int32_t dice_within(struct dice *dice, int32_t least, int32_t most)
{
    return least + dice_below(dice, most - least + 1);
}

TESTING int device_setup(void **state)
{
    static struct device device;
    struct stk_error err = {0};
    *state = NULL;
    if (!gpu_count(&err)) {
        print_message("no device: %s\n", err.what);
        return 0;
    }
    assert_int_equal(gpu_open(&device.gpu, 0, &err), STK_OK);
    assert_int_equal(gpu_enter(device.gpu, &err), STK_OK);
    assert_int_equal(gpu_stream_new(device.gpu, GPU_NORMAL, &device.stream, &err), STK_OK);
    *state = &device;
    return 0;
}

TESTING int device_teardown(void **state)
{
    struct device *device = *state;
    if (!device)
        return 0;
    gpu_stream_free(device->gpu, device->stream);
    gpu_leave(device->gpu);
    gpu_close(device->gpu);
    return 0;
}

TESTING struct device *device_or_skip(void **state)
{
    if (!*state)
        skip();
    return *state;
}

/* Bytes that an allocation takes: kernels read whole words. */
TESTING uint64_t device_size(uint64_t size)
{
    return (size + 31) / 16 * 16;
}

TESTING gpu_address device_put(struct device *device, const void *data, uint64_t size)
{
    gpu_address address;
    assert_int_equal(gpu_alloc(device->gpu, device_size(size), &address, NULL), STK_OK);
    assert_int_equal(gpu_copy_in(device->gpu, address, data, size, device->stream, NULL), STK_OK);
    assert_int_equal(gpu_stream_sync(device->gpu, device->stream, NULL), STK_OK);
    return address;
}

/* Waits for all that was enqueued. */
TESTING void device_get(struct device *device, void *to, gpu_address from, uint64_t size)
{
    assert_int_equal(gpu_copy_out(device->gpu, to, from, size, device->stream, NULL), STK_OK);
    assert_int_equal(gpu_stream_sync(device->gpu, device->stream, NULL), STK_OK);
}

#endif
