#include "net/web_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/sanitized.h"

/* --- time */

static void a_stalled_answer_is_slow(void **state)
{
    static const struct answering_step steps[] = {
        {.holds = 1},                   /* not even headers */
        {.pause_ms = 3600000},          /* no body */
        {.trickle = 1, .every_ms = 20}, /* a slow loris */
        {.status = 500, .body = "x", .length = 1, .pause_ms = 3600000},
    };
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct fixture *fixture = fixture_with(&steps[i], &(struct web_options){.stall_ms = 300});
        struct web_answer *answer = get_range(fixture, 0, 100000);
        assert_int_equal(answer->failure, WEB_SLOW);
        assert_memory_equal(fixture->memory, fixture->object, answer->received);
        fixture_free(fixture);
    }
}

static void a_slow_answer_that_moves_is_waited_for(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.trickle = 20000, .every_ms = 250},
                     &(struct web_options){.stall_ms = 3000});
    struct web_answer *answer = get_range(fixture, 0, 270000); /* takes longer than that */
    assert_int_equal(answer->failure, WEB_FINE);
    assert_memory_equal(fixture->memory, fixture->object, 270000);
    fixture_free(fixture);
}

static void a_deadline_ends_a_request(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){.holds = 1});
    int64_t start = clock_now();
    fixture->request.deadline_ns = start + 200 * MS;
    struct web_answer *answer = get_range(fixture, 0, 100);
    assert_int_equal(answer->failure, WEB_LATE);
    assert_true(clock_now() - start >= 200 * MS);
    fixture_free(fixture);
}

/* --- many at once */

struct many {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t over, failures[WEB_FAILURES]; /* lock */
};

static void one_of_many_done(struct web_request *request)
{
    struct many *many = request->owner;
    pthread_mutex_lock(&many->lock);
    many->over++;
    many->failures[request->answer.failure]++;
    pthread_cond_signal(&many->changed);
    pthread_mutex_unlock(&many->lock);
}

static void many_await(struct many *many, uint32_t count)
{
    pthread_mutex_lock(&many->lock);
    while (many->over < count)
        pthread_cond_wait(&many->changed, &many->lock);
    pthread_mutex_unlock(&many->lock);
}

#define MANY                                                                                       \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                     \
    }

static void requests_init(struct web_request *requests, uint32_t count, const char *url,
                          struct many *many)
{
    for (uint32_t i = 0; i < count; i++)
        requests[i] = (struct web_request){
            .url = url, .range_first = WEB_NO_RANGE, .done = one_of_many_done, .owner = many};
}

static void no_more_connections_than_allowed_are_made(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.holds = 1}, &(struct web_options){.connections = 4});
    struct many many = MANY;
    struct web_request requests[50];
    requests_init(requests, 50, answering_url(fixture->server, "/"), &many);
    for (uint32_t i = 0; i < 50; i++)
        web_start(fixture->web, &requests[i]);
    answering_await(fixture->server, 4);
    assert_int_equal(answering_requests(fixture->server), 4);
    answering_release(fixture->server);
    many_await(&many, 50);
    assert_int_equal(many.failures[WEB_FINE], 50);
    assert_int_equal(answering_connections(fixture->server), 4);
    fixture_free(fixture);
}

static void cancelled_requests_end_running_or_waiting(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.holds = 1}, &(struct web_options){.connections = 2});
    struct many many = MANY;
    struct web_request requests[5];
    requests_init(requests, 5, answering_url(fixture->server, "/"), &many);
    for (uint32_t i = 0; i < 5; i++)
        web_start(fixture->web, &requests[i]);
    answering_await(fixture->server, 2);
    web_cancel(fixture->web, &requests[0]); /* runs */
    web_cancel(fixture->web, &requests[4]); /* waits */
    many_await(&many, 2);
    assert_int_equal(requests[0].answer.failure, WEB_CANCELLED);
    assert_int_equal(requests[4].answer.failure, WEB_CANCELLED);
    answering_release(fixture->server);
    many_await(&many, 5);
    assert_int_equal(many.failures[WEB_FINE], 3);
    fixture_free(fixture);
}

static void waiting_requests_have_deadlines_too(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.holds = 1}, &(struct web_options){.connections = 1});
    struct many many = MANY;
    struct web_request requests[2];
    requests_init(requests, 2, answering_url(fixture->server, "/"), &many);
    requests[1].deadline_ns = clock_now() + 100 * MS;
    for (uint32_t i = 0; i < 2; i++)
        web_start(fixture->web, &requests[i]);
    many_await(&many, 1);
    assert_int_equal(requests[1].answer.failure, WEB_LATE);
    answering_release(fixture->server);
    many_await(&many, 2);
    assert_int_equal(requests[0].answer.failure, WEB_FINE);
    fixture_free(fixture);
}

static void closing_ends_all_that_is_in_flight(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.holds = 1}, &(struct web_options){.connections = 2});
    struct many many = MANY;
    struct web_request requests[5];
    requests_init(requests, 5, answering_url(fixture->server, "/"), &many);
    for (uint32_t i = 0; i < 5; i++)
        web_start(fixture->web, &requests[i]);
    answering_await(fixture->server, 2);
    web_close(fixture->web);
    fixture->web = NULL;
    assert_int_equal(many.over, 5);
    assert_int_equal(many.failures[WEB_CANCELLED], 5);
    fixture_free(fixture);
}

static void connections_are_kept_and_used_again(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    uint64_t first = get_range(fixture, 0, 1000)->connection;
    assert_true(first > 0);
    for (uint32_t i = 0; i < 20; i++) {
        struct web_answer *answer = get_range(fixture, i * 1000, 1000);
        assert_int_equal(answer->failure, WEB_FINE);
        assert_int_equal(answer->connection, first);
        assert_int_equal(answer->connected_ns, 0);
    }
    assert_int_equal(answering_connections(fixture->server), 1);
    fixture->request.new_connection = 1;
    assert_true(get_range(fixture, 0, 1000)->connection != first);
    assert_int_equal(answering_connections(fixture->server), 2);
    fixture_free(fixture);
}

static void many_ranges_at_once_are_all_right(void **state)
{
    (void)state;
    enum { COUNT = 200, LENGTH = 1000 };
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    struct many many = MANY;
    struct web_request *requests = calloc(COUNT, sizeof *requests);
    struct iovec *parts = calloc(COUNT, sizeof *parts);
    requests_init(requests, COUNT, answering_url(fixture->server, "/"), &many);
    for (uint32_t i = 0; i < COUNT; i++) {
        parts[i] = (struct iovec){fixture->memory + i * LENGTH, LENGTH};
        requests[i].range_first = i * LENGTH;
        requests[i].range_length = LENGTH;
        requests[i].parts = &parts[i];
        requests[i].part_count = 1;
        web_start(fixture->web, &requests[i]);
    }
    many_await(&many, COUNT);
    assert_int_equal(many.failures[WEB_FINE], COUNT);
    assert_memory_equal(fixture->memory, fixture->object, COUNT * LENGTH);
    free(parts);
    free(requests);
    fixture_free(fixture);
}

/* done() starts the next one. */
struct chain {
    struct web *web;
    struct many many;
    uint32_t left;
};

static void chain_done(struct web_request *request)
{
    struct chain *chain = request->owner;
    assert_int_equal(request->answer.failure, WEB_FINE);
    if (--chain->left > 0) {
        web_start(chain->web, request);
        return;
    }
    request->owner = &chain->many;
    one_of_many_done(request);
}

static void a_request_may_be_started_by_another_ones_end(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    struct chain chain = {.web = fixture->web, .many = MANY, .left = 30};
    struct web_request request = {.url = answering_url(fixture->server, "/"),
                                  .range_first = WEB_NO_RANGE,
                                  .done = chain_done,
                                  .owner = &chain};
    web_start(fixture->web, &request);
    many_await(&chain.many, 1);
    assert_int_equal(answering_requests(fixture->server), 30);
    fixture_free(fixture);
}

/* --- timers */

struct called {
    struct many many;
    struct web *web;
    char order[16]; /* many.lock */
};

struct call {
    struct called *called;
    char name;
};

static void call_now(void *user)
{
    struct call *call = user;
    struct called *called = call->called;
    pthread_mutex_lock(&called->many.lock);
    called->order[called->many.over++] = call->name;
    pthread_cond_signal(&called->many.changed);
    pthread_mutex_unlock(&called->many.lock);
}

static void later_calls_come_in_the_order_of_their_times(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    struct called called = {.many = MANY};
    struct call calls[6];
    int64_t start = clock_now() + 1000 * MS; /* all are there before the first */
    static const int64_t whens[] = {300, 100, 200, 100, 250, 3600000};
    for (int i = 0; i < 6; i++) {
        calls[i] = (struct call){&called, (char)('a' + i)};
        web_later(fixture->web, start + whens[i] * MS, call_now, &calls[i]);
    }
    many_await(&called.many, 5);
    assert_true(clock_now() - start >= 300 * MS);
    assert_string_equal(called.order, "bdcea");
    web_close(fixture->web); /* calls the last one */
    fixture->web = NULL;
    assert_string_equal(called.order, "bdceaf");
    fixture_free(fixture);
}

/* --- processes and memory */

static void a_child_of_fork_leaves_its_parents_web_alone(void **state)
{
    (void)state;
    if (!CAN_FORK)
        skip();
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    assert_int_equal(get_range(fixture, 0, 1000)->failure, WEB_FINE);
    pid_t child = fork();
    if (child == 0) {
        int good = get_range(fixture, 0, 1000)->failure == WEB_CANCELLED;
        web_close(fixture->web);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(get_range(fixture, 0, 1000)->failure, WEB_FINE);
    fixture_free(fixture);
}

static int open_ask_close(void *user)
{
    struct answering *server = user;
    struct web *web = NULL;
    struct stk_error err;
    struct web_request request = {.url = answering_url(server, "/"), .etag = "\"one\""};
    stk_status status = web_open(&web, &(struct web_options){0}, &err);
    assert_true(status == STK_OK || (status == STK_MEMORY && !web));
    if (status)
        return 0;
    web_wait(web, &request);
    enum web_failure failure = request.answer.failure;
    assert_true(failure == WEB_FINE || failure == WEB_MEMORY);
    web_answer_free(&request.answer);
    web_close(web);
    return failure == WEB_FINE;
}

static void without_memory_it_says_so(void **state)
{
    (void)state;
    struct answering *server = answering_start(&(struct answering_step){.status = 200}, 1);
    fail_each_allocation(open_ask_close, server);
    answering_stop(server);
}

/* --- many threads */

struct asker {
    pthread_t thread;
    struct web *web;
    const char *url;
    uint32_t fine, cancelled;
};

static void *ask_and_cancel(void *user)
{
    struct asker *asker = user;
    struct many many = MANY;
    struct web_request requests[60];
    requests_init(requests, 60, asker->url, &many);
    for (uint32_t i = 0; i < 60; i++) {
        web_start(asker->web, &requests[i]);
        if (i % 3 == 0)
            web_cancel(asker->web, &requests[i]);
    }
    many_await(&many, 60);
    asker->fine = many.failures[WEB_FINE];
    asker->cancelled = many.failures[WEB_CANCELLED];
    return NULL;
}

static void many_threads_may_ask_and_cancel(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_with(&(struct answering_step){.body = "x", .length = 1, .delay_ms = 1},
                     &(struct web_options){.connections = 8});
    struct asker askers[4];
    for (int i = 0; i < 4; i++) {
        askers[i] = (struct asker){.web = fixture->web, .url = answering_url(fixture->server, "/")};
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_and_cancel, &askers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(askers[i].thread, NULL);
        assert_int_equal(askers[i].fine + askers[i].cancelled, 60);
        assert_true(askers[i].fine >= 40);
    }
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stalled_answer_is_slow),
        cmocka_unit_test(a_slow_answer_that_moves_is_waited_for),
        cmocka_unit_test(a_deadline_ends_a_request),
        cmocka_unit_test(no_more_connections_than_allowed_are_made),
        cmocka_unit_test(cancelled_requests_end_running_or_waiting),
        cmocka_unit_test(waiting_requests_have_deadlines_too),
        cmocka_unit_test(closing_ends_all_that_is_in_flight),
        cmocka_unit_test(connections_are_kept_and_used_again),
        cmocka_unit_test(many_ranges_at_once_are_all_right),
        cmocka_unit_test(a_request_may_be_started_by_another_ones_end),
        cmocka_unit_test(later_calls_come_in_the_order_of_their_times),
        cmocka_unit_test(a_child_of_fork_leaves_its_parents_web_alone),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(many_threads_may_ask_and_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
