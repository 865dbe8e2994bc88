/* The injected library in processes that end, fork, are killed, or have no CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "inject_fixture.h"

static void start(void)
{
    cupti_load();
    CHECK(InitializeInjection() == 1);
}

static struct sim_cupti_counts counts_now(void)
{
    struct sim_cupti_counts counts;
    test.counts(&counts);
    return counts;
}

static void absent_body(void)
{
    InitializeInjection(); /* no CUPTI is loaded; one that is installed finds no driver */
    for (int i = 0; i < 10; i++)
        stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    if (state_of(&seen, GPU_RECORDS))
        return; /* there is a GPU here */
    const struct record_gpu *absent = state_of(&seen, GPU_ABSENT);
    CHECK(absent && absent->len > 20 && memmem(absent->text, absent->len, "CUPTI", 5));
}

static void missing_cupti_is_told(void **state)
{
    (void)state;
    SUCCEEDS(absent_body);
}

static void unwatched_body(void)
{
    unsetenv("STOKER_WATCH");
    start();
    CHECK(counts_now().calls == 0);
    stoker_inject_flush();
    stoker_inject_resume();
    stoker_inject_stop();
    CHECK(counts_now().calls == 0);
    CHECK(rmdir(test.folder) == 0); /* nothing was put there */
    CHECK(mkdir(test.folder, 0700) == 0);
}

static void a_process_that_is_not_watched_is_left_alone(void **state)
{
    (void)state;
    SUCCEEDS(unwatched_body);
}

static void no_driver_body(void)
{
    cupti_load();
    if (dlopen("libcuda.so.1", RTLD_NOW))
        return; /* there is one here */
    CHECK(stoker_inject_start(test.folder) == -1);
    CHECK(counts_now().calls == 0);
    CHECK(rmdir(test.folder) == 0 && mkdir(test.folder, 0700) == 0);
}

static void a_start_without_a_driver_tells_nothing(void **state)
{
    (void)state;
    SUCCEEDS(no_driver_body);
}

static void fork_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    add_kernel("of the parent", now, now + 1);
    stoker_inject_flush();
    pid_t child = fork();
    if (!child) {
        uint64_t calls = counts_now().calls;
        stoker_inject_flush();
        stoker_inject_yield();
        stoker_inject_resume();
        stoker_inject_stop();
        CHECK(counts_now().calls == calls);
        add_kernel("of the child", now, now + 1);
        /* CUPTI may hand over what it has when the child ends. */
        int (*flush)(uint32_t flag) = NULL;
        void *library = dlopen(getenv("STOKER_TEST_CUPTI"), RTLD_NOW);
        *(void **)&flush = library ? dlsym(library, "cuptiActivityFlushAll") : NULL;
        CHECK(flush && !flush(1));
        exit(0); /* with the handlers of the parent */
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct seen seen = ring_copy(getpid());
    CHECK(seen.header.state == RING_OPEN && !state_of(&seen, GPU_ENDS));
    CHECK(count_of(&seen, RECORD_KERNEL) == 1);
    CHECK(access(test.ring_path, F_OK) == 0);
    add_kernel("of the parent", now + 5, now + 6);
    stoker_inject_flush();
    seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 2);
}

static void a_forked_child_is_left_alone(void **state)
{
    (void)state;
    SUCCEEDS(fork_body);
}

static void limit_body(void)
{
    const struct rlimit most = {100000, 100000};
    cupti_load();
    CHECK(setrlimit(RLIMIT_FSIZE, &most) == 0);
    (void)InitializeInjection(); /* SIGXFSZ would end us */
    CHECK(counts_now().calls == 0);
}

static void a_limit_on_the_size_of_files_does_not_end_the_program(void **state)
{
    (void)state;
    SUCCEEDS(limit_body);
}

static void ending_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    add_kernel("over", now, now + 1);
    struct cupti_kernel running = kernel_of("running", 0, 0);
    test.add(&running, sizeof running, 0);
    exit(0);
}

static void what_is_left_is_told_when_a_process_ends(void **state)
{
    (void)state;
    pid_t pid;
    folder_make();
    assert_int_equal(in_process(ending_body, &pid), 0);
    struct seen seen = ring_copy(pid);
    folder_remove();
    assert_int_equal(seen.header.state, RING_CLOSED);
    assert_int_equal(count_of(&seen, RECORD_KERNEL), 1);
    assert_int_equal(count_of(&seen, RECORD_LOST), 0); /* cut off with the process: no loss */
    assert_non_null(state_of(&seen, GPU_ENDS));
}

/* A device that always has something under way, as a training has. */
static void killed_body(void)
{
    start();
    for (int i = 0; i < 150; i++) {
        test.complete();
        uint64_t now = inject_clock_now();
        struct cupti_kernel kernel = kernel_of("step", now, now + 9000000);
        test.add(&kernel, sizeof kernel, 0);
        pause_ms(10);
    }
    raise(SIGKILL);
}

static void a_kill_loses_at_most_the_last_second(void **state)
{
    (void)state;
    pid_t pid;
    folder_make();
    int status = in_process(killed_body, &pid);
    assert_true(WIFSIGNALED(status));
    struct seen seen = ring_copy(pid);
    folder_remove();
    assert_int_equal(seen.header.state, RING_OPEN);
    assert_true(count_of(&seen, RECORD_KERNEL) >= 50); /* of 150 in 1.5 s */
    assert_true(inject_clock_now() - reached_of(&seen) < 1100000000);
}

static void reached_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    struct cupti_kernel kernel = kernel_of("long", now, now + 1);
    test.add(&kernel, sizeof kernel, 0);
    uint64_t added = inject_clock_now();
    pause_ms(300);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(reached_of(&seen) <= added && reached_of(&seen) >= now);
    test.complete();
    stoker_inject_flush();
    seen = ring_copy(getpid());
    CHECK(reached_of(&seen) > added + 200000000);
}

static void what_cupti_holds_is_not_told_as_reached(void **state)
{
    (void)state;
    SUCCEEDS(reached_body);
}

static void stop_file_body(void)
{
    start();
    char path[100];
    snprintf(path, sizeof path, "%s/stop", test.folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    struct seen seen = {0};
    for (int waited = 0; waited < 3000 && seen.header.state != RING_CLOSED; waited += 100) {
        pause_ms(100);
        seen = ring_copy(getpid());
    }
    CHECK(seen.header.state == RING_CLOSED && counts_now().enabled == 0);
    uint64_t now = inject_clock_now();
    add_kernel("later", now, now + 1);
    stoker_inject_flush();
    stoker_inject_resume();
    CHECK(counts_now().enabled == 0);
}

static void it_is_quiet_once_the_parent_has_seen_enough(void **state)
{
    (void)state;
    SUCCEEDS(stop_file_body);
}

static void no_folder_body(void)
{
    setenv("STOKER_WATCH", "/nowhere/at/all", 1);
    start();
    stoker_inject_flush();
    stoker_inject_yield();
    CHECK(counts_now().calls == 0);
}

static void a_folder_that_is_gone_does_no_harm(void **state)
{
    (void)state;
    SUCCEEDS(no_folder_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_cupti_is_told),
        cmocka_unit_test(a_process_that_is_not_watched_is_left_alone),
        cmocka_unit_test(a_start_without_a_driver_tells_nothing),
        cmocka_unit_test(a_forked_child_is_left_alone),
        cmocka_unit_test(a_limit_on_the_size_of_files_does_not_end_the_program),
        cmocka_unit_test(what_is_left_is_told_when_a_process_ends),
        cmocka_unit_test(a_kill_loses_at_most_the_last_second),
        cmocka_unit_test(what_cupti_holds_is_not_told_as_reached),
        cmocka_unit_test(it_is_quiet_once_the_parent_has_seen_enough),
        cmocka_unit_test(a_folder_that_is_gone_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
