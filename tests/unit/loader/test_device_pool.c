/* The memory of batches on a device, on the simulated driver (sim_cuda.h), whose streams stand
 * still when a test says so. */
#include "loader_fixture.h"

#include <dlfcn.h>
#include <semaphore.h>

#include "../../sim_cuda/sim_cuda.h"
#include "gpu/gpu.h"
#include "loader/device_pool.h"

#define SIZE 4096

/* A caller who runs ahead of the device: the work on batches is still to be done when they are
 * given back. */
struct ahead {
    struct fixture fixture;
    struct gpu *gpu;
    struct gpu_stream *stream;
    struct device_pool *pool;
    sem_t goes_on;
};

static void ahead_open(struct ahead *ahead)
{
    struct stk_error err;
    fixture_records(&ahead->fixture, 16);
    sem_init(&ahead->goes_on, 0, 0);
    assert_int_equal(gpu_open(&ahead->gpu, 0, &err), STK_OK);
    assert_int_equal(gpu_enter(ahead->gpu, &err), STK_OK);
    assert_int_equal(gpu_stream_new(ahead->gpu, GPU_NORMAL, &ahead->stream, &err), STK_OK);
    assert_int_equal(
        device_pool_new(&ahead->pool, ahead->gpu, ahead->fixture.dataset, 1 << 20, &err), STK_OK);
}

static void ahead_close(struct ahead *ahead)
{
    device_pool_close(ahead->pool);
    gpu_stream_free(ahead->gpu, ahead->stream);
    gpu_leave(ahead->gpu);
    gpu_close(ahead->gpu);
    sem_destroy(&ahead->goes_on);
    fixture_close(&ahead->fixture);
}

static void stand_still(void *data)
{
    sem_wait(*(sem_t **)data);
}

/* The caller's stream stands still, until device_goes_on. */
static void device_stops(struct ahead *ahead)
{
    int (*call)(struct gpu_stream *, void (*)(void *), void *);
    void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "sim_cuda_call_in_stream");
    memcpy(&call, &found, sizeof call);
    sem_t **data = malloc(sizeof *data);
    assert_non_null(data);
    *data = &ahead->goes_on;
    assert_int_equal(call(ahead->stream, stand_still, data), 0);
}

static void device_goes_on(struct ahead *ahead)
{
    struct stk_error err;
    sem_post(&ahead->goes_on);
    assert_int_equal(gpu_stream_sync(ahead->gpu, ahead->stream, &err), STK_OK);
}

/* NULL: not now. */
static struct device_slot *drawn(struct ahead *ahead)
{
    struct stk_error err;
    struct device_slot *slot;
    assert_int_equal(device_pool_take(ahead->pool, SIZE, SIZE, 0, &slot, &err), STK_OK);
    if (slot) {
        device_pool_hand_over(slot);
        assert_int_equal(device_slot_use(slot, ahead->stream, &err), STK_OK);
    }
    return slot;
}

/* How many batches the caller can draw and give back before one is waited for. */
static int turns(struct ahead *ahead)
{
    struct device_slot *slot;
    int count = 0;
    while ((slot = drawn(ahead))) {
        device_slot_release(slot);
        count++;
    }
    return count;
}

static void memory_is_used_in_turn_and_then_waited_for(void **state)
{
    struct ahead ahead;
    (void)state;
    ahead_open(&ahead);
    device_stops(&ahead);
    assert_int_equal(turns(&ahead), 6);
    device_goes_on(&ahead);
    ahead_close(&ahead);
}

static void a_device_that_was_done_with_all_of_it_gets_more_in_turn(void **state)
{
    struct ahead ahead;
    (void)state;
    ahead_open(&ahead);
    for (int i = 6; i < 20; i++) {
        device_stops(&ahead);
        assert_int_equal(turns(&ahead), i < 16 ? i : 16);
        device_goes_on(&ahead);
    }
    ahead_close(&ahead);
}

static void batches_that_the_caller_keeps_are_no_sign_that_the_device_waits(void **state)
{
    struct ahead ahead;
    struct device_slot *kept[4];
    (void)state;
    ahead_open(&ahead);
    device_stops(&ahead);
    for (int i = 0; i < 4; i++)
        assert_non_null(kept[i] = drawn(&ahead));
    assert_int_equal(turns(&ahead), 2);
    device_goes_on(&ahead);
    device_stops(&ahead);
    assert_int_equal(turns(&ahead), 2);
    for (int i = 0; i < 4; i++)
        device_slot_release(kept[i]);
    assert_null(drawn(&ahead));
    device_goes_on(&ahead);
    ahead_close(&ahead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_used_in_turn_and_then_waited_for),
        cmocka_unit_test(a_device_that_was_done_with_all_of_it_gets_more_in_turn),
        cmocka_unit_test(batches_that_the_caller_keeps_are_no_sign_that_the_device_waits),
    };
    return cmocka_run_group_tests_name("device_pool", tests, NULL, NULL);
}
