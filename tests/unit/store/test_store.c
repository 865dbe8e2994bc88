#include "store/store_fixture.h"

#include <pthread.h>
#include <sys/resource.h>

#include "base/clock.h"

static void reads_give_the_bytes_that_were_asked_for(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 8);
    static const int64_t waits[] = {-1, 0, 1000000, INT64_MAX};
    for (uint64_t i = 0; i < 8; i++) {
        if (i >= 4)
            make_cold(fixture);
        run_jobs(queue, i, 200, waits[i % 4]);
    }
    store_queue_close(queue);
    fixture_free(fixture);
}

static void a_queue_takes_no_more_than_its_depth(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 3);
    struct job jobs[5];
    struct store_read *reads[5], *back[5];
    for (int i = 0; i < 5; i++) {
        job_init(&jobs[i], 1, 0, 100, 1);
        reads[i] = &jobs[i].read;
    }
    assert_int_equal(store_submit(queue, reads, 5), 3);
    assert_int_equal(store_submit(queue, reads + 3, 2), 0);
    uint32_t got = 0;
    while (got < 3)
        got += store_reap(queue, back + got, 5 - got, -1);
    assert_int_equal(store_in_flight(queue), 0);
    assert_int_equal(store_submit(queue, reads + 3, 2), 2);
    store_queue_close(queue);
    for (int i = 0; i < 5; i++)
        free(jobs[i].data);
    fixture_free(fixture);
}

static void an_empty_queue_does_not_wait(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct store_read *back;
    assert_int_equal(store_reap(queue, &back, 1, -1), 0);
    store_wake(queue);
    assert_int_equal(store_reap(queue, &back, 1, -1), 0);
    store_queue_close(queue);
    store_queue_close(NULL);
    fixture_free(fixture);
}

static void *keep_waking(void *user)
{
    struct store_queue *queue = user;
    for (int i = 0; i < 2000; i++)
        store_wake(queue);
    return NULL;
}

static void waking_from_another_thread_loses_no_read(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 8);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_waking, queue), 0);
    run_jobs(queue, 9, 300, -1);
    pthread_join(thread, NULL);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void closing_gives_the_memory_back(void **state)
{
    int before = open_files();
    struct fixture *fixture = fixture_new();
    for (int round = 0; round < 6; round++) {
        make_cold(fixture);
        struct store_queue *queue = queue_of(state, fixture, 16);
        struct job jobs[16];
        struct store_read *reads[16];
        for (uint32_t i = 0; i < 16; i++) {
            job_init(&jobs[i], 1 + i, 0, size_of(1 + i), 3);
            reads[i] = &jobs[i].read;
        }
        assert_int_equal(store_submit(queue, reads, 16), 16);
        store_queue_close(queue);
        for (uint32_t i = 0; i < 16; i++) {
            assert_true(reads[i]->status == STK_OK || reads[i]->status == STK_CANCELLED);
            assert_true(reads[i]->status || job_is_right(&jobs[i]));
            free(jobs[i].data); /* a late write would be seen by a sanitizer */
        }
    }
    fixture_free(fixture);
    assert_int_equal(open_files(), before);
}

static void ranges_beyond_the_end_are_truncated(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    static const uint64_t offsets[] = {0, 1, 1 << 20, (uint64_t)1 << 62, UINT64_MAX - 1};
    struct job job;
    struct stk_error err;
    for (size_t i = 0; i < 5; i++) {
        job_init(&job, 3, offsets[i], size_of(3), 2);
        assert_int_equal(read_one(queue, &job), i == 0 ? STK_OK : STK_TRUNCATED);
        if (i > 0) {
            assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_TRUNCATED);
            assert_non_null(strstr(err.object, "/3.bin"));
            assert_true(err.offset == offsets[i]);
        }
        free(job.data);
    }
    store_queue_close(queue);
    fixture_free(fixture);
}

static void nothing_stays_open_after_close(void **state)
{
    int before = open_files();
    for (int i = 0; i < 3; i++) {
        struct fixture *fixture = fixture_new();
        struct store_queue *queue = queue_of(state, fixture, 4);
        run_jobs(queue, 5, 50, -1);
        assert_true(open_files() > before);
        store_queue_close(queue);
        fixture_free(fixture);
        assert_int_equal(open_files(), before);
    }
}

struct reader {
    struct fixture *fixture;
    enum store_queue_kind kind;
    uint64_t key;
};

static void *read_many(void *user)
{
    struct reader *reader = user;
    struct store_queue *queue;
    assert_int_equal(store_queue_open(reader->fixture->store, reader->kind, 16, &queue, NULL),
                     STK_OK);
    run_jobs(queue, reader->key, 300, -1);
    store_queue_close(queue);
    for (uint64_t i = 0; i < 300; i++) {
        struct job job;
        job_random(&job, reader->key + 100, i);
        const uint8_t *map = store_map(reader->fixture->store, job.read.object);
        assert_true(job.read.object == 0 ? !map : map != NULL);
        for (uint64_t at = 0; at < job.length; at += 97)
            assert_int_equal(map[job.offset + at], byte_at(job.read.object, job.offset + at));
        assert_int_equal(store_read_now(reader->fixture->store, &job.read), STK_OK);
        assert_true(job_is_right(&job));
        free(job.data);
    }
    return NULL;
}

static void threads_share_a_store_with_fewer_places_than_files(void **state)
{
    struct rlimit before, tight;
    getrlimit(RLIMIT_NOFILE, &before);
    struct fixture *fixture = fixture_new();
    store_close(fixture->store);
    tight = (struct rlimit){64, before.rlim_max}; /* 16 places for 40 files */
    setrlimit(RLIMIT_NOFILE, &tight);
    assert_int_equal(store_open(&fixture->store, &fixture->table, NULL, NULL), STK_OK);
    setrlimit(RLIMIT_NOFILE, &before);
    store_queue_close(queue_of(state, fixture, 4)); /* skips without io_uring */
    struct reader readers[3];
    pthread_t threads[3];
    for (uint64_t i = 0; i < 3; i++) {
        readers[i] = (struct reader){fixture, *(enum store_queue_kind *)*state, i};
        assert_int_equal(pthread_create(&threads[i], NULL, read_many, &readers[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    fixture_free(fixture);
}

static void maps_hold_the_same_bytes_until_the_file_changes(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    const uint8_t *map = store_map(fixture->store, 15);
    assert_non_null(map);
    assert_ptr_equal(store_map(fixture->store, 15), map);
    for (uint64_t i = 0; i < size_of(15); i++)
        assert_int_equal(map[i], byte_at(15, i));
    assert_null(store_map(fixture->store, 0)); /* empty */
    assert_null(store_map(fixture->store, OBJECTS));
    write_object(15); /* another time of change, the same bytes */
    for (int64_t start = clock_now();
         store_map(fixture->store, 15) && clock_now() - start < 10000000000;)
        usleep(5000);
    assert_null(store_map(fixture->store, 15));
    unlink(path_in(folder, "16.bin"));
    assert_null(store_map(fixture->store, 16));
    fixture_free(fixture);
}

static void ten_million_objects_cost_no_table_of_their_own(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct object_table table = fixture->table;
    struct store *store;
    struct job job;
    table.count = 10000000;
    assert_int_equal(store_open(&store, &table, NULL, NULL), STK_OK);
    assert_null(store_map(store, 3));
    job_init(&job, 3, 0, 100, 1);
    assert_int_equal(store_read_now(store, &job.read), STK_OK);
    assert_true(job_is_right(&job));
    free(job.data);
    store_close(store);
    store_close(NULL);
    fixture_free(fixture);
}

static void a_store_without_its_folder_is_not_opened(void **state)
{
    (void)state;
    struct object_table table = {.root = "/no/such/folder", .count = 1};
    struct store *store;
    struct stk_error err;
    assert_int_equal(store_open(&store, &table, NULL, &err), STK_NOT_FOUND);
    assert_null(store);
    assert_string_equal(err.object, "/no/such/folder");
}

static void a_queue_of_no_depth_is_refused(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct store_queue *queue;
    assert_int_equal(store_queue_open(fixture->store, STORE_QUEUE_PREAD, 0, &queue, NULL),
                     STK_USAGE);
    assert_null(queue);
    assert_int_equal(
        store_queue_open(fixture->store, STORE_QUEUE_URING, STORE_MAX_DEPTH + 1, &queue, NULL),
        STK_USAGE);
    fixture_free(fixture);
}

int main(void)
{
    enum store_queue_kind pread_kind = STORE_QUEUE_PREAD, uring_kind = STORE_QUEUE_URING;
    const struct CMUnitTest tests[] = {
        BOTH(reads_give_the_bytes_that_were_asked_for),
        BOTH(a_queue_takes_no_more_than_its_depth),
        BOTH(an_empty_queue_does_not_wait),
        BOTH(waking_from_another_thread_loses_no_read),
        BOTH(closing_gives_the_memory_back),
        BOTH(ranges_beyond_the_end_are_truncated),
        BOTH(nothing_stays_open_after_close),
        BOTH(threads_share_a_store_with_fewer_places_than_files),
        cmocka_unit_test(maps_hold_the_same_bytes_until_the_file_changes),
        cmocka_unit_test(ten_million_objects_cost_no_table_of_their_own),
        cmocka_unit_test(a_store_without_its_folder_is_not_opened),
        cmocka_unit_test(a_queue_of_no_depth_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
