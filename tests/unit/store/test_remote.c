#include "store/remote_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/sanitized.h"

/* Each test runs without a cache and with one; *state says which. */
static int is_cached(void **state)
{
    return *(int *)*state;
}

static void reads_are_those_of_the_same_files(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    struct store_queue *queue = remote_queue_of(fixture, 8);
    static const int64_t waits[] = {-1, 0, 1000000, INT64_MAX};
    for (uint64_t i = 0; i < 4; i++)
        run_jobs(fixture, queue, i, 40, waits[i]);
    store_queue_close(queue);
    remote_free(fixture);
}

/* Some answers are errors, some break off; so few that the budget of retries lasts. */
static void spoil(struct answering_step *step, uint32_t number, const char *head, void *user)
{
    (void)user;
    if (strncmp(head, "GET", 3))
        return;
    if (number % 17 == 3)
        *step = (struct answering_step){.status = 500};
    else if (number % 23 == 5) {
        step->cut = CUT_RESET;
        step->cut_after = step->length / 3;
    }
}

static void servers_that_fail_now_and_then_change_nothing(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        fixture->steps[i].change = spoil;
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    struct store_queue *queue = remote_queue_of(fixture, 16);
    run_jobs(fixture, queue, 5, 30, -1);
    store_queue_close(queue);
    remote_free(fixture);
}

static void queues_of_several_threads_share_a_store(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    pthread_t threads[4];
    struct remote_reader readers[4];
    if (is_cached(state))
        store_buffers(fixture->store, 1); /* so few that they wait for each other */
    for (uint64_t i = 0; i < 4; i++) {
        readers[i] = (struct remote_reader){fixture, i / 2, 25}; /* two of them read the same */
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &readers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    remote_free(fixture);
}

static void a_long_read_is_cut_into_ranges_that_are_asked_for_at_once(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    struct store_queue *queue = remote_queue_of(fixture, 1);
    struct job job;
    job_init(&job, 7, 1, remote_sizes[7] - 1, 5);
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        fixture->steps[i].holds = 1;
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    struct store_read *read = &job.read, *back;
    assert_int_equal(store_submit(queue, &read, 1), 1);
    answering_await(fixture->server, 3);
    answering_release(fixture->server);
    while (store_reap(queue, &back, 1, -1) == 0)
        ;
    assert_int_equal(read->status, STK_OK);
    assert_true(job_is_right(&job, fixture->local));
    free(job.data);
    store_queue_close(queue);
    remote_free(fixture);
}

static void what_the_cache_has_is_not_asked_for_again(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(1);
    for (int round = 0; round < 3; round++) {
        struct store_queue *queue = remote_queue_of(fixture, 8);
        struct job whole[REMOTE_OBJECTS];
        for (uint32_t i = 0; i < REMOTE_OBJECTS; i++) {
            job_init(&whole[i], i, 0, remote_sizes[i], 3);
            assert_int_equal(read_one(queue, &whole[i]), STK_OK);
            assert_true(job_is_right(&whole[i], fixture->local));
            free(whole[i].data);
        }
        run_jobs(fixture, queue, 3, 30, -1);
        store_queue_close(queue);
        struct answering_step none = {.status = 404};
        answering_script(fixture->server, &none, 1); /* from now on there is the cache alone */
        remote_reopen(fixture);                      /* another store finds it, too */
    }
    remote_free(fixture);
}

static void closing_cancels_what_a_server_keeps_waiting(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        fixture->steps[i].holds = 1;
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    struct store_queue *queue = remote_queue_of(fixture, 8);
    struct job jobs[4];
    struct store_read *reads[4], *back[4];
    for (uint32_t i = 0; i < 4; i++) {
        job_init(&jobs[i], 4 + i, 0, remote_sizes[4 + i], 3);
        reads[i] = &jobs[i].read;
    }
    assert_int_equal(store_submit(queue, reads, 4), 4);
    answering_await(fixture->server, 4);
    assert_int_equal(store_reap(queue, back, 4, 1000000), 0); /* the time is over */
    store_wake(queue);
    assert_int_equal(store_reap(queue, back, 4, -1), 0);
    int64_t begin = clock_now();
    store_queue_close(queue);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(reads[i]->status, STK_CANCELLED);
        free(jobs[i].data); /* a late write would be seen by a sanitizer */
    }
    remote_reopen(fixture);
    assert_true(clock_now() - begin < INT64_C(10000000000)); /* far below the 60 s of a range */
    remote_free(fixture);
}

static void an_object_that_changed_is_stale_and_says_so(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    fixture->steps[6].headers = "ETag: \"two\"\r\n";
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    struct store_queue *queue = remote_queue_of(fixture, 2);
    struct stk_error err = {0};
    struct job job;
    job_init(&job, 6, 100, 2000000, 2);
    assert_int_equal(read_one(queue, &job), STK_STALE);
    assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_STALE);
    assert_non_null(strstr(err.object, "/6.bin"));
    free(job.data);
    store_queue_close(queue);
    remote_free(fixture);
}

static void a_lost_object_is_named_and_not_asked_for_twice(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    struct answering_step none = {.status = 404};
    answering_script(fixture->server, &none, 1);
    struct store_queue *queue = remote_queue_of(fixture, 2);
    struct stk_error err = {0};
    struct job job;
    job_init(&job, 4, 5, 1000, 1);
    assert_int_equal(read_one(queue, &job), STK_NOT_FOUND);
    assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.object, "/4.bin"));
    assert_true(err.what[0] && err.status == STK_NOT_FOUND);
    uint32_t asked = answering_requests(fixture->server);
    job.parts[0] = (struct iovec){job.data, job.length};
    assert_int_equal(store_read_now(fixture->store, &job.read), STK_NOT_FOUND);
    assert_int_equal(answering_requests(fixture->server), asked); /* that was tried just now */
    assert_int_equal(store_read_now(fixture->store, &job.read), STK_NOT_FOUND);
    assert_true(answering_requests(fixture->server) > asked);
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS); /* it is there again */
    assert_int_equal(store_read_now(fixture->store, &job.read), STK_OK);
    free(job.data);
    store_queue_close(queue);
    remote_free(fixture);
}

static void ranges_beyond_the_end_are_truncated(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    struct store_queue *queue = remote_queue_of(fixture, 2);
    static const uint64_t offsets[] = {0, 1, 1 << 20, (uint64_t)1 << 62, UINT64_MAX - 1};
    struct stk_error err;
    for (size_t i = 0; i < 5; i++) {
        struct job job;
        job_init(&job, 3, offsets[i], remote_sizes[3], 2);
        assert_int_equal(read_one(queue, &job), i == 0 ? STK_OK : STK_TRUNCATED);
        if (i > 0) {
            assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_TRUNCATED);
            assert_non_null(strstr(err.object, "/3.bin"));
        }
        free(job.data);
    }
    store_queue_close(queue);
    remote_free(fixture);
}

static void a_single_read_needs_no_queue(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    assert_true(store_is_remote(fixture->store) && !store_is_remote(fixture->local));
    assert_null(store_map(fixture->store, 4));
    for (uint64_t i = 0; i < 10; i++) {
        struct job job;
        job_random(&job, 77, i);
        assert_int_equal(store_read_now(fixture->store, &job.read), STK_OK);
        assert_true(job_is_right(&job, fixture->local));
        free(job.data);
    }
    remote_free(fixture);
}

static void a_forked_child_reads_with_threads_of_its_own(void **state)
{
    struct remote_fixture *fixture = remote_new(is_cached(state));
    struct job job;
    job_init(&job, 4, 10, 5000, 2);
    assert_int_equal(store_read_now(fixture->store, &job.read), STK_OK);
    pid_t child = CAN_FORK ? fork() : -1;
    if (child == 0) {
        struct job own;
        alarm(30);
        job_init(&own, 6, 10, 5000, 2);
        int good = !store_read_now(fixture->store, &own.read) && job_is_right(&own, fixture->local);
        store_close(fixture->store);
        _exit(good ? 0 : 1);
    }
    int result = 0;
    assert_true(!CAN_FORK || waitpid(child, &result, 0) == child);
    assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
    free(job.data);
    remote_free(fixture);
}

#define BOTH(test)                                                                                 \
    {#test " (no cache)", test, NULL, NULL, &plain},                                               \
    {                                                                                              \
#test " (cache)", test, NULL, NULL, &cached                                                \
    }

int main(void)
{
    int plain = 0, cached = 1;
    const struct CMUnitTest tests[] = {
        BOTH(reads_are_those_of_the_same_files),
        BOTH(servers_that_fail_now_and_then_change_nothing),
        BOTH(queues_of_several_threads_share_a_store),
        BOTH(a_long_read_is_cut_into_ranges_that_are_asked_for_at_once),
        cmocka_unit_test(what_the_cache_has_is_not_asked_for_again),
        BOTH(closing_cancels_what_a_server_keeps_waiting),
        BOTH(an_object_that_changed_is_stale_and_says_so),
        BOTH(a_lost_object_is_named_and_not_asked_for_twice),
        BOTH(ranges_beyond_the_end_are_truncated),
        BOTH(a_single_read_needs_no_queue),
        BOTH(a_forked_child_reads_with_threads_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
