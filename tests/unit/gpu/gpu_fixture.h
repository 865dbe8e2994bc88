/* gpu_fixture.h -- what the tests of this folder share: an opened device and, where the driver is
 * the simulated one, its counts and failures. The same bodies run on a real GPU; what only the
 * simulation can show is skipped there.
 * Owns: nothing.   Threads: one.   Errors: a failed assertion.   Not here: any test. */
#ifndef TESTS_GPU_FIXTURE_H
#define TESTS_GPU_FIXTURE_H

#include "base/testing.h"

#include <dlfcn.h>

#include "../../sim_cuda/sim_cuda.h"
#include "gpu/cuda_api.h"
#include "gpu/gpu.h"
#include "gpu/gpu_impl.h"

TESTING void *sim_function(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

#define NEEDS_SIMULATION()                                                                         \
    if (!sim_function("sim_cuda_counts"))                                                          \
    skip()

TESTING struct sim_cuda_counts counts_now(void)
{
    struct sim_cuda_counts counts;
    void (*get)(struct sim_cuda_counts *);
    void *found = sim_function("sim_cuda_counts");
    memcpy(&get, &found, sizeof get);
    get(&counts);
    return counts;
}

/* "cuMemAlloc_v2:1:2"; NULL: none. */
TESTING void fail_driver(const char *text)
{
    int (*set)(const char *);
    void *found = sim_function("sim_cuda_fail");
    memcpy(&set, &found, sizeof set);
    assert_int_equal(set(text), 0);
}

TESTING int sim_call(const char *name, struct gpu_stream *stream)
{
    int (*call)(struct gpu_stream *);
    void *found = sim_function(name);
    memcpy(&call, &found, sizeof call);
    return call(stream);
}

TESTING void nothing_is_left(void)
{
    struct sim_cuda_counts counts = counts_now();
    assert_int_equal(counts.contexts, 0);
    assert_int_equal(counts.allocations, 0);
    assert_int_equal(counts.registrations, 0);
    assert_int_equal(counts.streams, 0);
    assert_int_equal(counts.events, 0);
    assert_int_equal(counts.modules, 0);
    assert_int_equal(counts.queued, 0);
}

/* Says what went wrong before it fails. */
#define OK(call)                                                                                   \
    do {                                                                                           \
        struct stk_error err = {0};                                                                \
        stk_status call_status = call;                                                             \
        if (call_status)                                                                           \
            print_error("%s\n", err.what);                                                         \
        assert_int_equal(call_status, STK_OK);                                                     \
    } while (0)

/* Opened and entered. */
TESTING struct gpu *gpu_begin(void)
{
    struct gpu *gpu;
    OK(gpu_open(&gpu, 0, &err));
    OK(gpu_enter(gpu, &err));
    return gpu;
}

TESTING void gpu_end(struct gpu *gpu)
{
    gpu_leave(gpu);
    gpu_close(gpu);
}

#endif
