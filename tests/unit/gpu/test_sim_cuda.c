/* The simulated CUDA driver itself: a test that it cannot fail shows nothing. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../sim_cuda/sim_cuda.h"
#include "../../sim_cuda/sim_kernel.h"
#include "base/sanitized.h"
#include "gpu/cuda_api.h"

enum { SIZE = 1 << 20 };

static struct {
    struct cuda_api api;
    void (*counts)(struct sim_cuda_counts *);
    int (*inject)(const char *);
    uint64_t (*calls)(void);
    int (*begin_capture)(struct gpu_stream *);
    int (*end_capture)(struct gpu_stream *);
} sim;

static struct cuda_context *context;
static struct gpu_stream *stream, *other;
static struct gpu_event *event;
static gpu_address device;
static uint8_t *host; /* registered */
static struct sim_cuda_counts before;

static int library_open(void **state)
{
    (void)state;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library || !dlsym(library, "sim_cuda_counts"))
        return 0;
#define X(name, arguments) *(void **)&sim.api.name = dlsym(library, #name);
    CUDA_API_LIST(X)
#undef X
    *(void **)&sim.counts = dlsym(library, "sim_cuda_counts");
    *(void **)&sim.inject = dlsym(library, "sim_cuda_fail");
    *(void **)&sim.calls = dlsym(library, "sim_cuda_calls");
    *(void **)&sim.begin_capture = dlsym(library, "sim_cuda_begin_capture");
    *(void **)&sim.end_capture = dlsym(library, "sim_cuda_end_capture");
    return 0;
}

static int setup(void **state)
{
    (void)state;
    if (!sim.counts)
        return 0;
    sim.inject(NULL);
    assert_int_equal(sim.api.cuInit(0), 0);
    sim.counts(&before);
    assert_int_equal(sim.api.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(sim.api.cuCtxPushCurrent_v2(context), 0);
    assert_int_equal(sim.api.cuStreamCreateWithPriority(&stream, CUDA_STREAM_NON_BLOCKING, 0), 0);
    assert_int_equal(sim.api.cuStreamCreateWithPriority(&other, CUDA_STREAM_NON_BLOCKING, 0), 0);
    assert_int_equal(sim.api.cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&device, SIZE), 0);
    host = malloc(SIZE);
    assert_non_null(host);
    assert_int_equal(sim.api.cuMemHostRegister_v2(host, SIZE, CUDA_HOST_REGISTER_PORTABLE), 0);
    return 0;
}

/* Everything goes back, whatever the device's state. */
static int teardown(void **state)
{
    (void)state;
    if (!sim.counts)
        return 0;
    sim.inject(NULL);
    assert_int_equal(sim.api.cuMemHostUnregister(host), 0);
    free(host);
    assert_int_equal(sim.api.cuMemFree_v2(device), 0);
    assert_int_equal(sim.api.cuEventDestroy_v2(event), 0);
    assert_int_equal(sim.api.cuStreamDestroy_v2(stream), 0);
    assert_int_equal(sim.api.cuStreamDestroy_v2(other), 0);
    assert_int_equal(sim.api.cuCtxPopCurrent_v2(&context), 0);
    assert_int_equal(sim.api.cuDevicePrimaryCtxRelease_v2(0), 0);
    struct sim_cuda_counts after;
    sim.counts(&after);
    assert_int_equal(after.contexts, before.contexts);
    assert_int_equal(after.allocated_bytes, before.allocated_bytes);
    assert_int_equal(after.registered_bytes, before.registered_bytes);
    assert_int_equal(after.streams, before.streams);
    assert_int_equal(after.events, before.events);
    return 0;
}

#define NEEDS_SIMULATOR()                                                                          \
    do {                                                                                           \
        if (!sim.counts)                                                                           \
            skip(); /* this is a real driver, or none */                                           \
    } while (0)

static void copies_in_a_stream_come_in_order(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    static uint8_t back[SIZE];
    memset(host, 7, SIZE);
    assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device, host, SIZE, stream), 0);
    assert_int_equal(sim.api.cuMemsetD8Async(device, 9, 16, stream), 0);
    assert_int_equal(sim.api.cuMemcpyDtoDAsync_v2(device + 32, device, 8, stream), 0);
    assert_int_equal(sim.api.cuMemcpyDtoHAsync_v2(back, device, SIZE, stream), 0); /* pageable */
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(back[i], i < 16 || (i >= 32 && i < 40) ? 9 : 7);
}

/* Two streams without an event between them, again and again: it must go wrong at least once. The
 * thread sanitizer sees the race itself, and would end the test. */
static void a_missing_wait_gives_wrong_bytes(void **state)
{
    NEEDS_SIMULATOR();
    if (UNDER_THREAD_SANITIZER)
        skip();
    (void)state;
    int wrong = 0;
    for (int i = 1; i < 250 && !wrong; i++) {
        host[0] = (uint8_t)i;
        assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device, host, 1, stream), 0);
        assert_int_equal(sim.api.cuMemcpyDtoHAsync_v2(host + 1, device, 1, other), 0);
        assert_int_equal(sim.api.cuStreamSynchronize(stream), 0);
        assert_int_equal(sim.api.cuStreamSynchronize(other), 0);
        wrong = host[1] != i;
    }
    assert_true(wrong);
}

static void a_query_says_that_work_is_under_way(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    int waited = 0;
    for (int i = 0; i < 250 && !waited; i++) {
        assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device, host, SIZE, stream), 0);
        assert_int_equal(sim.api.cuEventRecord(event, stream), 0);
        waited = sim.api.cuEventQuery(event) == CUDA_ERROR_NOT_READY;
        assert_int_equal(sim.api.cuEventSynchronize(event), 0);
    }
    assert_true(waited);
}

static void a_stream_that_waits_for_an_event_sees_what_came_before_it(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    for (int i = 0; i < 50; i++) {
        memset(host, i, 4096);
        assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device, host, 4096, stream), 0);
        assert_int_equal(sim.api.cuEventRecord(event, stream), 0);
        assert_int_equal(sim.api.cuStreamWaitEvent(other, event, 0), 0);
        assert_int_equal(sim.api.cuMemcpyDtoHAsync_v2(host + 4096, device, 4096, other), 0);
        assert_int_equal(sim.api.cuEventRecord(event, other), 0);
        assert_int_equal(sim.api.cuEventSynchronize(event), 0);
        assert_int_equal(sim.api.cuEventQuery(event), 0);
        assert_memory_equal(host, host + 4096, 4096);
    }
}

static void an_event_that_was_never_recorded_is_over(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    assert_int_equal(sim.api.cuEventQuery(event), 0);
    assert_int_equal(sim.api.cuEventSynchronize(event), 0);
    assert_int_equal(sim.api.cuStreamWaitEvent(stream, event, 0), 0);
}

static void a_blocking_stream_and_the_legacy_stream_wait_for_each_other(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    struct gpu_stream *blocking;
    assert_int_equal(sim.api.cuStreamCreateWithPriority(&blocking, 0, 0), 0);
    for (int i = 0; i < 50; i++) {
        host[0] = (uint8_t)i;
        assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device, host, 1, blocking), 0);
        assert_int_equal(sim.api.cuMemcpyDtoDAsync_v2(device + 1, device, 1, NULL), 0);
        assert_int_equal(
            sim.api.cuMemcpyDtoHAsync_v2(host + 1, device + 1, 1, CUDA_STREAM_PER_THREAD), 0);
        assert_int_equal(sim.api.cuStreamSynchronize(CUDA_STREAM_PER_THREAD), 0);
        assert_int_equal(host[1], i);
    }
    assert_int_equal(sim.api.cuStreamDestroy_v2(blocking), 0);
}

static void a_capture_is_told_and_refuses_foreign_events(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    int status = -1, mode = CUDA_CAPTURE_MODE_RELAXED;
    assert_int_equal(sim.api.cuEventRecord(event, other), 0);
    assert_int_equal(sim.begin_capture(stream), 0);
    assert_int_equal(sim.api.cuStreamIsCapturing(stream, &status), 0);
    assert_int_equal(status, CUDA_CAPTURE_ACTIVE);
    assert_int_equal(sim.api.cuStreamIsCapturing(other, &status), 0);
    assert_int_equal(status, CUDA_CAPTURE_NONE);

    assert_int_equal(sim.api.cuThreadExchangeStreamCaptureMode(&mode), 0);
    gpu_address more;
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, 16), 0); /* relaxed: allowed */
    assert_int_equal(sim.api.cuMemFree_v2(more), 0);
    assert_int_equal(sim.api.cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(sim.end_capture(stream), 0);

    assert_int_equal(sim.begin_capture(stream), 0);
    assert_int_equal(sim.api.cuStreamWaitEvent(stream, event, 0), 905);
    assert_int_equal(sim.end_capture(stream), 901);

    assert_int_equal(sim.begin_capture(stream), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, 16), 900);
    assert_int_equal(sim.end_capture(stream), 901);

    assert_int_equal(sim.begin_capture(stream), 0);
    assert_int_equal(sim.api.cuEventRecord(event, stream), 0);
    assert_int_equal(sim.api.cuEventQuery(event), 907);
    assert_int_equal(sim.end_capture(stream), 901);
}

static void memory_has_an_end(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    size_t left, total;
    gpu_address more;
    assert_int_equal(sim.api.cuMemGetInfo_v2(&left, &total), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, left + 1), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(sim.api.cuMemHostRegister_v2(host + 1, 1, 0),
                     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
}

static void a_wild_address_loses_the_device(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    assert_int_equal(sim.api.cuMemcpyHtoDAsync_v2(device + 1, host, SIZE, stream),
                     CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(sim.api.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    sim.inject(NULL);
    assert_int_equal(sim.api.cuMemFree_v2(device + 512), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void the_named_call_fails_and_a_lost_device_stays_lost(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    gpu_address more;
    assert_int_equal(sim.inject("cuMemAlloc_v2:2:2"), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, 16), 0);
    assert_int_equal(sim.api.cuMemFree_v2(more), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, 16), 2);
    assert_int_equal(sim.calls(), 3);
    assert_int_equal(sim.inject("*:2:719"), 0);
    assert_int_equal(sim.api.cuMemAlloc_v2(&more, 16), 0);
    assert_int_equal(sim.api.cuEventRecord(event, stream), 719);
    assert_int_equal(sim.api.cuEventQuery(event), 719);
    assert_int_equal(sim.api.cuMemFree_v2(more), 719); /* and it is freed */
    assert_int_equal(sim.inject("cuMemAlloc_v2"), CUDA_ERROR_INVALID_VALUE);
}

static void a_module_without_the_kernel_does_not_have_it(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    struct cuda_module *module;
    struct gpu_kernel *kernel;
    assert_int_equal(sim.api.cuModuleLoadDataEx(&module, "\177ELF", 0, NULL, NULL), 200);
    const char *text = ".version 9.0\n.target sm_75\n";
    assert_int_equal(sim.api.cuModuleLoadDataEx(&module, text, 0, NULL, NULL), 0);
    assert_int_equal(sim.api.cuModuleGetFunction(&kernel, module, "sim_count"), 500);
    assert_int_equal(sim.api.cuModuleUnload(module), 0);
}

static void a_kernel_runs_for_every_thread_of_its_grid(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    struct cuda_module *module;
    struct gpu_kernel *kernel;
    struct sim_count_job job = {.out = device, .count = 300, .rows = 3};
    size_t size = sizeof job;
    void *extra[] = {CUDA_LAUNCH_POINTER, &job, CUDA_LAUNCH_SIZE, &size, CUDA_LAUNCH_END};
    assert_int_equal(sim.api.cuModuleLoadDataEx(&module, "any text", 0, NULL, NULL), 0);
    assert_int_equal(sim.api.cuModuleGetFunction(&kernel, module, "sim_count"), 0);
    for (unsigned blocks = 1; blocks < 4; blocks++) { /* 128 to 384 threads for 300 places */
        assert_int_equal(sim.api.cuMemsetD8Async(device, 0xff, 4096, stream), 0);
        assert_int_equal(
            sim.api.cuLaunchKernel(kernel, blocks, 3, 1, 128, 1, 1, 0, stream, NULL, extra), 0);
        assert_int_equal(sim.api.cuStreamSynchronize(stream), 0);
        const uint32_t *out = (const uint32_t *)device;
        for (uint32_t i = 0; i < 900; i++)
            assert_int_equal(out[i], i / 300 * 1000 + i % 300);
        assert_int_equal(out[900], UINT32_MAX);
    }
    size--;
    assert_int_equal(sim.api.cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, stream, NULL, extra), 1);
    size++;
    assert_int_equal(sim.api.cuLaunchKernel(kernel, 1, 1, 1, 2048, 1, 1, 0, stream, NULL, extra),
                     1);
    assert_int_equal(sim.api.cuModuleUnload(module), 0);
    assert_int_equal(sim.api.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, extra),
                     400);
}

static void a_forked_child_has_no_driver(void **state)
{
    NEEDS_SIMULATOR();
    (void)state;
    pid_t child = fork();
    if (!child) {
        gpu_address more;
        _exit(sim.api.cuInit(0) == 3 && sim.api.cuMemAlloc_v2(&more, 16) == 3 ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(copies_in_a_stream_come_in_order),
        TEST(a_missing_wait_gives_wrong_bytes),
        TEST(a_query_says_that_work_is_under_way),
        TEST(a_stream_that_waits_for_an_event_sees_what_came_before_it),
        TEST(an_event_that_was_never_recorded_is_over),
        TEST(a_blocking_stream_and_the_legacy_stream_wait_for_each_other),
        TEST(a_capture_is_told_and_refuses_foreign_events),
        TEST(memory_has_an_end),
        TEST(a_wild_address_loses_the_device),
        TEST(the_named_call_fails_and_a_lost_device_stays_lost),
        TEST(a_module_without_the_kernel_does_not_have_it),
        TEST(a_kernel_runs_for_every_thread_of_its_grid),
        TEST(a_forked_child_has_no_driver),
    };
    return cmocka_run_group_tests(tests, library_open, NULL);
}
