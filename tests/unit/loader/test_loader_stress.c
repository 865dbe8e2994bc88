/* What goes wrong only between threads: run under the thread and the address sanitizer too. */
#include "loader_fixture.h"

#include <pthread.h>
#include <stdatomic.h>

/* An epoch of records, each whole and each once. */
static void check_epoch(struct stk_loader *loader, uint64_t expected)
{
    struct stk_batch *batch;
    uint64_t total = 0, sum = 0;
    while ((batch = fixture_next(loader)) != NULL) {
        const int64_t *values = batch->fields[0].tensor.data;
        for (uint32_t i = 0; i < batch->real; i++) {
            assert_int_equal(values[4 * i], batch->samples[i]);
            assert_int_equal(values[4 * i + 3], batch->samples[i]);
            sum += batch->samples[i];
        }
        total += batch->real;
        stk_batch_release(batch);
    }
    assert_int_equal(total, expected);
    assert_int_equal(sum, expected * (expected - 1) / 2);
}

/* A slot's batch is short at the end of an epoch and full again right after: a worker that looked
 * at the short one must not claim places of the full one before it is there. */
static void slots_that_grow_and_shrink_are_claimed_once(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 9);
    for (uint32_t depth = 1; depth <= 2; depth++) {
        struct stk_loader_options options = {
            .batch_size = 8, .shuffle = 1, .threads = 8, .depth = depth, .no_pin = 1};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        for (int epoch = 0; epoch < 3000; epoch++)
            check_epoch(loader, 9);
        stk_loader_close(loader);
    }
    fixture_close(&fixture);
}

struct onlooker {
    struct stk_loader *loader;
    _Atomic int stop;
};

static void *look_on(void *user)
{
    struct onlooker *onlooker = user;
    struct stk_loader_stats stats;
    while (!atomic_load(&onlooker->stop)) {
        stk_loader_stats(onlooker->loader, &stats);
        stk_loader_cancel(onlooker->loader);
        struct stk_batch *batch = NULL; /* a second caller is refused, or draws a batch */
        if (stk_loader_next_within(onlooker->loader, 0, &batch, NULL) == STK_OK)
            stk_batch_release(batch);
    }
    return NULL;
}

/* Two threads draw, ask and cancel at will, from before the workers are started. */
static void callers_may_meet_from_the_first_call_on(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 64);
    for (int round = 0; round < 30; round++) {
        struct stk_loader_options options = {.batch_size = 4, .threads = 3, .no_pin = 1};
        struct onlooker onlooker = {.loader = fixture_loader(&fixture, &options)};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, look_on, &onlooker), 0);
        for (int i = 0; i < 60; i++) {
            struct stk_batch *batch;
            stk_status status = stk_loader_next(onlooker.loader, &batch, NULL);
            assert_true(status == STK_OK || status == STK_END || status == STK_BUSY ||
                        status == STK_CANCELLED);
            stk_batch_release(batch);
            if (i % 16 == 0)
                (void)!stk_loader_seek(onlooker.loader, 0, (uint64_t)i, NULL);
        }
        atomic_store(&onlooker.stop, 1);
        pthread_join(thread, NULL);
        stk_loader_close(onlooker.loader);
    }
    fixture_close(&fixture);
}

struct leftovers {
    struct stk_batch *batches[8];
    char name[64];
    int right;
};

static void *release_all(void *user)
{
    struct leftovers *left = user;
    for (int i = 0; i < 8; i++) {
        const struct stk_batch *batch = left->batches[i];
        const int64_t *values = batch->fields[0].tensor.data;
        left->right += !strcmp(batch->fields[0].field->name, left->name) &&
                       (uint64_t)values[0] == batch->samples[0];
        stk_batch_release(left->batches[i]);
    }
    return NULL;
}

/* A batch needs nobody: neither its loader, nor its dataset, nor the thread that drew it. */
static void batches_outlive_loader_and_dataset(void **state)
{
    (void)state;
    struct fixture fixture;
    struct leftovers left = {.right = 0};
    pthread_t thread;
    fixture_records(&fixture, 64);
    struct stk_loader_options options = {.batch_size = 8, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (int i = 0; i < 8; i++)
        left.batches[i] = fixture_next(loader);
    snprintf(left.name, sizeof left.name, "%s", left.batches[0]->fields[0].field->name);
    stk_loader_close(loader);
    stk_dataset_close(fixture.dataset);
    fixture.dataset = NULL;
    assert_int_equal(pthread_create(&thread, NULL, release_all, &left), 0);
    pthread_join(thread, NULL);
    assert_int_equal(left.right, 8);
    fixture_close(&fixture);
}

/* Texts and numbers of shards, wherever the loader is sent. */
static void check_shard_batch(const struct stk_batch *batch)
{
    for (uint32_t i = 0; i < batch->real; i++) {
        uint64_t sample = batch->samples[i];
        assert_int_equal(((int64_t *)batch->fields[1].tensor.data)[i], sample);
        assert_int_equal(batch->fields[0].bytes[i].len, 6 * (sample % 5));
    }
}

static void run_about(struct fixture *fixture, struct stk_loader_options options, uint32_t rounds)
{
    struct stk_loader *loader = fixture_loader(fixture, &options);
    struct stk_batch *kept = NULL;
    uint32_t random = 1;
    for (uint32_t i = 0; i < rounds; i++) {
        struct stk_batch *batch = fixture_next(loader);
        random = random * 1664525 + 1013904223;
        if (batch)
            check_shard_batch(batch);
        stk_batch_release(kept);
        kept = batch;
        if ((random >> 16) % 7 == 0)
            assert_int_equal(stk_loader_seek(loader, (random >> 20) % 3, (random >> 8) % 97, NULL),
                             STK_OK);
    }
    stk_batch_release(kept);
    stk_loader_close(loader);
}

static void seeking_at_random_always_lands(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *modes[] = {"wbT", "wb1"};
    for (int m = 0; m < 2; m++) {
        fixture_shards(&fixture, 8, 12, modes[m]);
        struct stk_loader_options options = {
            .batch_size = 5, .shuffle = 1, .threads = 4, .no_pin = 1};
        run_about(&fixture, options, 300);
        options.reach = 2;
        options.order = STK_ORDER_LOCAL;
        options.last = STK_LAST_DROP;
        options.io = STK_IO_URING;
        run_about(&fixture, options, 300);
        options.order = STK_ORDER_GLOBAL;
        options.depth = 1;
        run_about(&fixture, options, 300);
        fixture_close(&fixture);
    }
}

/* A subset that leaves most chunks empty, on ranks that do not divide the batch: three epochs of
 * the local order, each sample once in each. */
static void a_subset_with_empty_chunks_is_read_once_an_epoch(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t positions[18];
    fixture_shards(&fixture, 12, 8, "wb1");
    for (uint64_t i = 0; i < 18; i++)
        positions[i] = (i % 3) * 40 + i / 3; /* six each of shards 0, 5 and 10 */
    struct stk_dataset *whole = fixture.dataset;
    assert_int_equal(stk_dataset_select(whole, &fixture.dataset, positions, 18, NULL), STK_OK);
    stk_dataset_close(whole);
    for (uint32_t reach = 1; reach <= 5; reach++) {
        uint8_t seen[96] = {0};
        for (uint32_t rank = 0; rank < 3; rank++) {
            struct stk_loader_options options = {.global_batch_size = 4,
                                                 .order = STK_ORDER_LOCAL,
                                                 .reach = reach,
                                                 .rank = rank,
                                                 .world_size = 3,
                                                 .threads = 2,
                                                 .no_pin = 1};
            struct stk_loader *loader = fixture_loader(&fixture, &options);
            struct stk_batch *batch;
            for (int epoch = 0; epoch < 3; epoch++)
                while ((batch = fixture_next(loader)) != NULL) {
                    check_shard_batch(batch);
                    for (uint32_t i = 0; i < batch->real; i++)
                        seen[batch->samples[i]]++;
                    stk_batch_release(batch);
                }
            stk_loader_close(loader);
        }
        for (uint64_t i = 0; i < 18; i++)
            assert_int_equal(seen[positions[i]], 3);
    }
    fixture_close(&fixture);
}

/* The smallest budget that the loader accepts. */
static uint64_t least_memory(struct fixture *fixture, struct stk_loader_options options)
{
    uint64_t low = 1, high = (uint64_t)1 << 30;
    while (low < high) {
        struct stk_loader *loader;
        options.memory = low + (high - low) / 2;
        stk_status status =
            stk_loader_open(fixture->context, fixture->dataset, &loader, &options, NULL);
        if (status)
            low = options.memory + 1;
        else
            high = options.memory;
        stk_loader_close(loader);
    }
    return high;
}

/* Compressed shards of `each` arrays: large beside what tar adds. */
static void fixture_arrays(struct fixture *fixture, uint32_t shards, uint32_t each)
{
    static char npy[128 + 16384] = "\x93NUMPY\1\0v";
    static const char head[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (4096,), }";
    char path[256], name[64];
    memset(npy + 10, ' ', 117);
    memcpy(npy + 10, head, sizeof head - 1);
    npy[127] = '\n';
    fixture_folder(fixture);
    for (uint32_t s = 0; s < shards; s++) {
        snprintf(name, sizeof name, "shard-%04u.tar.gz", s);
        fixture_path(fixture, name, path, sizeof path);
        gzFile file = gzopen(path, "wb1");
        assert_non_null(file);
        for (uint32_t i = s * each; i < (s + 1) * each; i++) {
            snprintf(name, sizeof name, "%06u.npy", i);
            fixture_member(file, name, npy, sizeof npy);
        }
        gzwrite(file, npy + 512, 1024);
        gzclose(file);
    }
    fixture_open(fixture, "", NULL);
}

static void a_budget_that_was_accepted_is_kept(void **state)
{
    (void)state;
    struct fixture fixture;
    static const enum stk_order orders[] = {STK_ORDER_LOCAL, STK_ORDER_GLOBAL,
                                            STK_ORDER_SEQUENTIAL};
    fixture_arrays(&fixture, 12, 10);
    for (uint32_t i = 0; i < 9; i++) {
        struct stk_loader_options options = {
            .batch_size = 4 + i, .order = orders[i % 3], .reach = 2, .threads = 3, .no_pin = 1};
        options.memory = least_memory(&fixture, options) + (i / 3) * 65536;
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        struct stk_batch *batch, *kept = NULL;
        struct stk_loader_stats stats;
        for (int epoch = 0; epoch < 4; epoch++)
            while ((batch = fixture_next(loader)) != NULL) {
                stk_batch_release(kept);
                kept = batch;
            }
        stk_batch_release(kept);
        stk_loader_stats(loader, &stats);
        assert_in_range(stats.peak_bytes, 1, options.memory);
        stk_loader_close(loader);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_that_grow_and_shrink_are_claimed_once),
        cmocka_unit_test(callers_may_meet_from_the_first_call_on),
        cmocka_unit_test(batches_outlive_loader_and_dataset),
        cmocka_unit_test(seeking_at_random_always_lands),
        cmocka_unit_test(a_subset_with_empty_chunks_is_read_once_an_epoch),
        cmocka_unit_test(a_budget_that_was_accepted_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
