/* test_remote_stretch.c -- stretches of remote objects that are held for many small reads. */
#include "store/remote_fixture.h"

#include <pthread.h>

#define SMALL 5000

/* Reads all of [offset, end) of an object in small pieces, last one first. */
static void read_in_pieces(struct remote_fixture *fixture, uint32_t object, uint64_t offset,
                           uint64_t end)
{
    struct store_queue *queue = remote_queue_of(fixture, 1);
    while (end > offset) {
        struct job job;
        uint64_t length = end - offset < SMALL ? end - offset : SMALL;
        job_init(&job, object, end - length, length, 3);
        assert_int_equal(read_one(queue, &job), STK_OK);
        assert_true(job_is_right(&job, fixture->local));
        free(job.data);
        end -= length;
    }
    store_queue_close(queue);
}

static void reads_in_a_stretch_cost_one_request(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct store_stretch *held = store_hold(fixture->store, 4, 1000, 250000);
    assert_non_null(held);
    read_in_pieces(fixture, 4, 1000, 251000);
    assert_int_equal(answering_requests(fixture->server), 1);
    assert_true(answering_had(fixture->server, 0, "Range", "bytes=1000-250999"));
    store_let_go(held);
    read_in_pieces(fixture, 4, 1000, 1000 + SMALL); /* from now on it is asked for again */
    assert_int_equal(answering_requests(fixture->server), 2);
    remote_free(fixture);
}

static void a_read_goes_over_the_borders_of_stretches(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    /* two that touch, one that overlaps, a gap, and another */
    struct store_stretch *held[] = {
        store_hold(fixture->store, 4, 1000, 9000), store_hold(fixture->store, 4, 10000, 5000),
        store_hold(fixture->store, 4, 12000, 8000), store_hold(fixture->store, 4, 30000, 1000)};
    struct store_queue *queue = remote_queue_of(fixture, 2);
    struct job job;
    job_init(&job, 4, 0, 100000, 7);
    assert_int_equal(read_one(queue, &job), STK_OK);
    assert_true(job_is_right(&job, fixture->local));
    /* the four, and what is before, between and behind them */
    assert_int_equal(answering_requests(fixture->server), 7);
    free(job.data);
    store_queue_close(queue);
    for (int i = 0; i < 4; i++)
        store_let_go(held[i]);
    remote_free(fixture);
}

static void what_cannot_be_held_is_read_as_ever(void **state)
{
    (void)state;
    struct remote_fixture *plain = remote_new(0), *cached = remote_new(1);
    assert_null(store_hold(plain->local, 4, 0, 1000));
    assert_null(store_hold(plain->store, 4, 0, 0));
    assert_null(store_hold(plain->store, 4, remote_sizes[4], 1));
    assert_null(store_hold(plain->store, 4, UINT64_MAX, 2));
    assert_null(store_hold(cached->store, 4, 0, 1000)); /* the cache keeps it */
    assert_true(store_has_cache(cached->store) && !store_has_cache(plain->store));
    store_let_go(NULL);
    read_in_pieces(plain, 4, 0, 20000);
    read_in_pieces(cached, 4, 0, 20000);
    remote_free(plain);
    remote_free(cached);
}

static void a_stretch_that_fails_is_told_with_its_cause_and_then_forgotten(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    struct answering_step none = {.status = 404};
    answering_script(fixture->server, &none, 1);
    struct store_stretch *held = store_hold(fixture->store, 7, 0, remote_sizes[7]);
    struct store_queue *queue = remote_queue_of(fixture, 2);
    struct stk_error err = {0};
    struct job job;
    job_init(&job, 7, remote_sizes[7] - 10, 10, 1); /* far from where its first range fails */
    assert_int_equal(read_one(queue, &job), STK_NOT_FOUND);
    assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.object, "/7.bin"));
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS); /* it is there again */
    job.parts[0] = (struct iovec){job.data, job.length};
    assert_int_equal(read_one(queue, &job), STK_OK);
    assert_true(job_is_right(&job, fixture->local));
    free(job.data);
    store_queue_close(queue);
    store_let_go(held);
    remote_free(fixture);
}

static void a_stretch_on_its_way_can_be_left(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    for (uint32_t i = 0; i < REMOTE_OBJECTS; i++)
        fixture->steps[i].holds = 1;
    answering_script(fixture->server, fixture->steps, REMOTE_OBJECTS);
    struct store_stretch *held = store_hold(fixture->store, 6, 0, remote_sizes[6]);
    struct store_queue *closes = remote_queue_of(fixture, 2), *stays = remote_queue_of(fixture, 2);
    struct job jobs[2];
    struct store_read *reads[2], *back;
    for (int i = 0; i < 2; i++) {
        job_init(&jobs[i], 6, 100000, 5000, 2);
        reads[i] = &jobs[i].read;
        assert_int_equal(store_submit(i ? stays : closes, &reads[i], 1), 1);
    }
    answering_await(fixture->server, 1);
    store_queue_close(closes); /* its read waits no more */
    assert_int_equal(reads[0]->status, STK_CANCELLED);
    free(jobs[0].data);
    store_let_go(held); /* and this one, which waits, is told */
    while (store_reap(stays, &back, 1, -1) == 0)
        ;
    assert_ptr_equal(back, reads[1]);
    assert_int_equal(reads[1]->status, STK_CANCELLED);
    free(jobs[1].data);
    store_queue_close(stays);
    remote_free(fixture);
}

static void stretches_that_come_while_others_read_change_nothing(void **state)
{
    (void)state;
    struct remote_fixture *fixture = remote_new(0);
    pthread_t threads[3];
    struct remote_reader readers[3];
    struct store_stretch *held[100];
    for (uint64_t i = 0; i < 3; i++) {
        readers[i] = (struct remote_reader){fixture, i, 40};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &readers[i]), 0);
    }
    for (uint64_t i = 0; i < 100; i++) {
        uint32_t object = 4 + (uint32_t)(i % 4);
        uint64_t offset = random_below(9, i, remote_sizes[object] - 300000);
        held[i] = store_hold(fixture->store, object, offset, 200000 + i * 1000);
        assert_non_null(held[i]);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 100; i++)
        store_let_go(held[i]);
    remote_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_in_a_stretch_cost_one_request),
        cmocka_unit_test(a_read_goes_over_the_borders_of_stretches),
        cmocka_unit_test(what_cannot_be_held_is_read_as_ever),
        cmocka_unit_test(a_stretch_that_fails_is_told_with_its_cause_and_then_forgotten),
        cmocka_unit_test(a_stretch_on_its_way_can_be_left),
        cmocka_unit_test(stretches_that_come_while_others_read_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
