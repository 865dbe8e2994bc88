#include "gpu/gpu_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "stoker/device.h"
#include "gpu/cuda_fail.h"

#define SIZE 100000

static void remedy_is_there(const struct stk_error *err, stk_status status, const char *words)
{
    if (!strstr(err->what, words))
        print_error("\"%s\" does not say \"%s\"\n", err->what, words);
    assert_int_equal(err->status, status);
    assert_non_null(strstr(err->what, words));
    assert_true(err->remedy[0]);
}

/* --- devices ---------------------------------------------------------------------------------- */

static void a_device_tells_what_it_is(void **state)
{
    struct stk_device_info told;
    struct gpu *gpu = gpu_begin();
    const struct gpu_info *info = gpu_info(gpu);
    (void)state;
    assert_true(gpu_count(NULL) >= 1);
    assert_true(info->name[0] && info->memory > 0 && info->major >= 5 && info->driver >= 11000);
    OK(stk_device_info(0, &told, &err));
    assert_string_equal(told.name, info->name);
    assert_int_equal(told.memory, info->memory);
    assert_int_equal(strlen(told.bus), 16);
    gpu_end(gpu);
}

static void a_number_that_no_device_has_is_refused(void **state)
{
    struct stk_error err = {0};
    struct gpu *gpu;
    (void)state;
    assert_int_equal(gpu_open(&gpu, 4711, &err), STK_UNSUPPORTED);
    assert_null(gpu);
    remedy_is_there(&err, STK_UNSUPPORTED, "no GPU number 4711");
}

static void a_device_that_is_open_twice_has_one_context(void **state)
{
    struct gpu *first, *second;
    (void)state;
    NEEDS_SIMULATION();
    OK(gpu_open(&first, 0, &err));
    OK(gpu_open(&second, 0, &err));
    assert_ptr_equal(first, second);
    assert_int_equal(counts_now().contexts, 1);
    assert_ptr_equal(gpu_keep(first), first);
    gpu_close(first);
    gpu_close(second);
    assert_int_equal(counts_now().contexts, 1);
    gpu_close(first);
    gpu_close(NULL);
    nothing_is_left();
}

static void what_the_driver_says_at_the_start_becomes_words(void **state)
{
    static const struct {
        const char *fail, *words;
    } cases[] = {
        {"cuInit:1:100", "no GPU"},        {"cuInit:1:35", "too old"},
        {"cuInit:1:803", "one version"},   {"cuInit:1:34", "stub"},
        {"cuInit:1:802", "not ready"},     {"cuInit:1:3", "forked process"},
        {"cuInit:1:804", "compatibility"},
    };
    (void)state;
    NEEDS_SIMULATION();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_error err = {0};
        struct gpu *gpu;
        fail_driver(cases[i].fail);
        assert_int_equal(gpu_open(&gpu, 0, &err), STK_UNSUPPORTED);
        assert_null(gpu);
        remedy_is_there(&err, STK_UNSUPPORTED, cases[i].words);
        fail_driver(cases[i].fail);
        assert_int_equal(stk_device_count(&err), 0);
        fail_driver(NULL);
    }
    nothing_is_left();
}

/* Whole pages: what is locked shares none with anything else. */
static unsigned char *pages_new(void)
{
    unsigned char *pages = aligned_alloc(4096, (SIZE + 4095) / 4096 * 4096);
    assert_non_null(pages);
    return pages;
}

/* --- memory, streams, events ------------------------------------------------------------------ */

static void bytes_come_back_as_they_went(void **state)
{
    struct gpu *gpu = gpu_begin();
    struct gpu_stream *stream;
    gpu_address here, there;
    unsigned char *data = pages_new(), *back = pages_new();
    (void)state;
    for (int i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 7 + i / 251);
    OK(gpu_alloc(gpu, SIZE, &here, &err));
    OK(gpu_alloc(gpu, SIZE, &there, &err));
    OK(gpu_pin(gpu, data, SIZE, &err));
    OK(gpu_stream_new(gpu, GPU_URGENT, &stream, &err));
    OK(gpu_copy_in(gpu, here, data, SIZE, stream, &err));
    OK(gpu_clear(gpu, there, SIZE, stream, &err));
    OK(gpu_copy_within(gpu, there + 100, here, SIZE - 200, stream, &err));
    OK(gpu_copy_out(gpu, back, there, SIZE, stream, &err));
    OK(gpu_copy_in(gpu, there, data, 0, stream, &err)); /* nothing is fine */
    OK(gpu_stream_sync(gpu, stream, &err));
    assert_memory_equal(back + 100, data, SIZE - 200);
    for (int i = 0; i < 100; i++)
        assert_true(!back[i] && !back[SIZE - 100 + i]);
    gpu_stream_free(gpu, stream);
    gpu_stream_free(gpu, NULL);
    gpu_unpin(gpu, data);
    gpu_free(gpu, here);
    gpu_free(gpu, there);
    gpu_free(gpu, 0);
    gpu_end(gpu);
    free(data);
    free(back);
}

static void a_stream_waits_for_an_event_of_another(void **state)
{
    struct gpu *gpu = gpu_begin();
    struct gpu_stream *from, *to;
    struct gpu_event *event;
    gpu_address memory;
    unsigned char *data = pages_new(), *back = pages_new();
    (void)state;
    OK(gpu_alloc(gpu, SIZE, &memory, &err));
    OK(gpu_pin(gpu, data, SIZE, &err)); /* else the copy is over when the call is */
    OK(gpu_pin(gpu, back, SIZE, &err));
    OK(gpu_stream_new(gpu, GPU_NORMAL, &from, &err));
    OK(gpu_stream_new(gpu, GPU_IDLE, &to, &err));
    OK(gpu_event_new(gpu, &event, &err));
    assert_true(gpu_event_over(gpu, event)); /* it was never recorded */
    OK(gpu_event_follow(gpu, to, event, &err));
    for (int round = 1; round < 20; round++) {
        memset(data, round, SIZE);
        OK(gpu_copy_in(gpu, memory, data, SIZE, from, &err));
        OK(gpu_event_record(gpu, event, from, &err));
        OK(gpu_event_follow(gpu, to, event, &err));
        OK(gpu_copy_out(gpu, back, memory, SIZE, to, &err));
        OK(gpu_stream_sync(gpu, to, &err));
        assert_memory_equal(back, data, SIZE);
        OK(gpu_event_sync(gpu, event, &err));
        assert_true(gpu_event_over(gpu, event));
    }
    gpu_event_free(gpu, event);
    gpu_event_free(gpu, NULL);
    gpu_stream_free(gpu, from);
    gpu_stream_free(gpu, to);
    gpu_free(gpu, memory);
    gpu_unpin(gpu, data);
    gpu_unpin(gpu, back);
    gpu_end(gpu);
    free(data);
    free(back);
}

static void too_much_memory_is_refused_with_the_sizes(void **state)
{
    struct gpu *gpu = gpu_begin();
    struct stk_error err = {0};
    uint64_t free_bytes, total;
    gpu_address memory = 1;
    (void)state;
    assert_int_equal(gpu_alloc(gpu, (uint64_t)1 << 46, &memory, &err), STK_MEMORY);
    assert_int_equal(memory, 0);
    remedy_is_there(&err, STK_MEMORY, "70368744177664 bytes are wanted");
    assert_non_null(strstr(err.what, gpu_info(gpu)->name));
    assert_non_null(strstr(err.remedy, "empty_cache"));
    OK(gpu_memory(gpu, &free_bytes, &total, &err));
    assert_true(free_bytes <= total && total > 0);
    gpu_end(gpu);
}

static void memory_that_cannot_be_locked_names_the_limit(void **state)
{
    struct stk_error err = {0};
    char data[4096];
    (void)state;
    NEEDS_SIMULATION();
    struct gpu *gpu = gpu_begin();
    fail_driver("cuMemHostRegister_v2:1:2");
    assert_int_equal(gpu_pin(gpu, data, sizeof data, &err), STK_RESOURCE);
    fail_driver(NULL);
    remedy_is_there(&err, STK_RESOURCE, "4096 bytes of memory cannot be locked");
    assert_non_null(strstr(err.remedy, "ulimit -l"));
    gpu_end(gpu);
    nothing_is_left();
}

static void a_lost_device_says_to_start_again_and_closes(void **state)
{
    static const int errors[] = {214, 700, 719, 999};
    char data[64] = {0}, text[64];
    (void)state;
    NEEDS_SIMULATION();
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct stk_error err = {0};
        struct gpu *gpu = gpu_begin();
        struct gpu_event *event;
        gpu_address memory;
        OK(gpu_event_new(gpu, &event, &err));
        OK(gpu_alloc(gpu, sizeof data, &memory, &err));
        snprintf(text, sizeof text, "cuMemcpyHtoDAsync_v2:1:%d", errors[i]);
        fail_driver(text);
        assert_int_equal(gpu_copy_in(gpu, memory, data, sizeof data, NULL, &err), STK_RESOURCE);
        remedy_is_there(&err, STK_RESOURCE, "the GPU is lost");
        assert_non_null(strstr(err.remedy, "restart the process"));
        assert_true(gpu_event_over(gpu, event));
        gpu_event_free(gpu, event);
        gpu_free(gpu, memory);
        gpu_end(gpu);
        fail_driver(NULL);
        nothing_is_left();
    }
}

/* --- threads, processes, graphs --------------------------------------------------------------- */

static void a_forked_child_is_refused_and_may_close(void **state)
{
    struct gpu *gpu = gpu_begin();
    gpu_address memory;
    int status;
    (void)state;
    OK(gpu_alloc(gpu, 64, &memory, &err));
    pid_t child = fork();
    if (!child) {
        struct stk_error err = {0};
        struct gpu *other;
        int good = gpu_open(&other, 0, &err) == STK_UNSUPPORTED && !other &&
                   strstr(err.what, "forked") && strstr(err.remedy, "spawn");
        good = good && gpu_enter(gpu, &err) == STK_UNSUPPORTED && gpu_count(&err) == 0;
        gpu_free(gpu, memory); /* all of these do nothing */
        gpu_close(gpu);
        gpu_close(gpu);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gpu_free(gpu, memory);
    gpu_end(gpu);
}

static void *work_in_a_thread(void *user)
{
    struct gpu *gpu = user;
    for (int i = 0; i < 50; i++) {
        struct gpu *own;
        gpu_address memory;
        OK(gpu_open(&own, 0, &err));
        assert_ptr_equal(own, gpu);
        OK(gpu_enter(own, &err));
        OK(gpu_enter(own, &err)); /* they nest */
        OK(gpu_alloc(own, 1000, &memory, &err));
        gpu_leave(own);
        gpu_free(own, memory);
        gpu_leave(own);
        gpu_close(own);
    }
    return NULL;
}

static void threads_open_and_close_at_once(void **state)
{
    pthread_t threads[4];
    struct gpu *gpu;
    (void)state;
    OK(gpu_open(&gpu, 0, &err));
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_in_a_thread, gpu), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    gpu_close(gpu);
}

static void a_capture_elsewhere_forbids_nothing_and_stays_whole(void **state)
{
    (void)state;
    NEEDS_SIMULATION();
    struct gpu *gpu = gpu_begin();
    struct gpu_stream *theirs, *ours;
    struct gpu_event *event;
    gpu_address memory;
    OK(gpu_stream_new(gpu, GPU_NORMAL, &theirs, &err));
    OK(gpu_stream_new(gpu, GPU_NORMAL, &ours, &err));
    assert_int_equal(gpu_stream_capturing(gpu, theirs), 0);
    assert_int_equal(sim_call("sim_cuda_begin_capture", theirs), 0);
    assert_true(gpu_stream_capturing(gpu, theirs));
    assert_int_equal(gpu_stream_capturing(gpu, ours), 0);
    OK(gpu_alloc(gpu, 100, &memory, &err));
    OK(gpu_event_new(gpu, &event, &err));
    OK(gpu_event_record(gpu, event, ours, &err));
    OK(gpu_event_sync(gpu, event, &err));
    assert_true(gpu_event_over(gpu, event));
    OK(gpu_stream_sync(gpu, ours, &err));
    gpu_event_free(gpu, event);
    gpu_free(gpu, memory);
    assert_int_equal(sim_call("sim_cuda_end_capture", theirs), 0); /* not spoiled */
    assert_int_equal(gpu_stream_capturing(gpu, theirs), 0);
    gpu_stream_free(gpu, theirs);
    gpu_stream_free(gpu, ours);
    gpu_end(gpu);
    nothing_is_left();
}

static void leaving_gives_the_thread_its_capture_mode_back(void **state)
{
    const struct cuda_api *api;
    struct gpu *gpu;
    int mode = CUDA_CAPTURE_MODE_THREAD_LOCAL;
    (void)state;
    OK(gpu_open(&gpu, 0, &err));
    OK(cuda_api_load(&api, &err));
    assert_int_equal(api->cuThreadExchangeStreamCaptureMode(&mode), 0);
    int before = mode;
    OK(gpu_enter(gpu, &err));
    OK(gpu_enter(gpu, &err));
    gpu_leave(gpu);
    gpu_leave(gpu);
    mode = before;
    assert_int_equal(api->cuThreadExchangeStreamCaptureMode(&mode), 0);
    assert_int_equal(mode, CUDA_CAPTURE_MODE_THREAD_LOCAL);
    gpu_close(gpu);
}

/* --- nothing stays behind --------------------------------------------------------------------- */

/* All that can be had of a device, up to the first failure, and back. 1: there was none. */
static int use_all(void *user)
{
    struct gpu *gpu = NULL;
    struct gpu_stream *stream = NULL;
    struct gpu_event *event = NULL;
    gpu_address memory = 0;
    char data[256] = {0};
    (void)user;
    if (gpu_open(&gpu, 0, NULL))
        return 0;
    if (gpu_enter(gpu, NULL)) {
        gpu_close(gpu);
        return 0;
    }
    int good = !gpu_alloc(gpu, sizeof data, &memory, NULL) &&
               !gpu_stream_new(gpu, GPU_NORMAL, &stream, NULL) &&
               !gpu_event_new(gpu, &event, NULL) &&
               !gpu_copy_in(gpu, memory, data, sizeof data, stream, NULL) &&
               !gpu_event_record(gpu, event, stream, NULL) && !gpu_event_sync(gpu, event, NULL) &&
               !gpu_stream_sync(gpu, stream, NULL);
    gpu_event_free(gpu, event);
    gpu_stream_free(gpu, stream);
    gpu_free(gpu, memory);
    gpu_leave(gpu);
    gpu_close(gpu);
    return good;
}

static void any_call_of_the_driver_may_fail(void **state)
{
    (void)state;
    NEEDS_SIMULATION();
    for (int error = 2; error <= 700; error += 698)
        for (int n = 1; n < 60; n++) {
            char text[32];
            snprintf(text, sizeof text, "*:%d:%d", n, error);
            fail_driver(text);
            (void)use_all(NULL);
            fail_driver(NULL);
            nothing_is_left();
        }
    assert_int_equal(use_all(NULL), 1);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    fail_each_allocation(use_all, NULL);
}

static void a_thousand_opens_leave_nothing(void **state)
{
    (void)state;
    NEEDS_SIMULATION();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(use_all(NULL), 1);
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_tells_what_it_is),
        cmocka_unit_test(a_number_that_no_device_has_is_refused),
        cmocka_unit_test(a_device_that_is_open_twice_has_one_context),
        cmocka_unit_test(what_the_driver_says_at_the_start_becomes_words),
        cmocka_unit_test(bytes_come_back_as_they_went),
        cmocka_unit_test(a_stream_waits_for_an_event_of_another),
        cmocka_unit_test(too_much_memory_is_refused_with_the_sizes),
        cmocka_unit_test(memory_that_cannot_be_locked_names_the_limit),
        cmocka_unit_test(a_lost_device_says_to_start_again_and_closes),
        cmocka_unit_test(a_forked_child_is_refused_and_may_close),
        cmocka_unit_test(threads_open_and_close_at_once),
        cmocka_unit_test(a_capture_elsewhere_forbids_nothing_and_stays_whole),
        cmocka_unit_test(leaving_gives_the_thread_its_capture_mode_back),
        cmocka_unit_test(any_call_of_the_driver_may_fail),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(a_thousand_opens_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
