#include "media_fixture.h"
#include "series_fixture.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/memory.h"

/* The allocation that brings it to 0 fails; workers allocate too. */
static _Atomic long countdown;

static int fail_nth(void *user, size_t size)
{
    (void)user, (void)size;
    return atomic_fetch_sub(&countdown, 1) == 1;
}

/* Reads one epoch. STK_OK: all samples came. */
static stk_status read_epoch(struct fixture *fixture, const struct stk_loader_options *options,
                             uint64_t *samples)
{
    struct stk_loader *loader;
    struct stk_batch *batch;
    struct stk_error err;
    *samples = 0;
    stk_status status = stk_loader_open(fixture->context, fixture->dataset, &loader, options, &err);
    while (!status) {
        status = stk_loader_next(loader, &batch, &err);
        *samples += batch ? batch->real : 0;
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    return status == STK_END ? STK_OK : status;
}

/* FAULTS 85 */
static void each_allocation_may_fail(struct fixture *fixture, struct stk_loader_options options,
                                     uint64_t expected)
{
    for (long n = 1;; n++) {
        uint64_t samples;
        atomic_store(&countdown, n);
        memory_set_hook(fail_nth, NULL);
        stk_status status = read_epoch(fixture, &options, &samples);
        memory_set_hook(NULL, NULL);
        assert_true(status == STK_OK || status == STK_MEMORY);
        if (status == STK_OK)
            assert_int_equal(samples, expected); /* a failure that it could do without */
        if (atomic_load(&countdown) > 0)
            return;
    }
}

static void a_failed_allocation_is_an_error_and_nothing_leaks(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader_options options = {.batch_size = 16, .shuffle = 1, .threads = 2};
    fixture_records(&fixture, 100);
    each_allocation_may_fail(&fixture, options, 100);
    fixture_close(&fixture);
}

static void a_failed_allocation_among_images_is_an_error_too(void **state)
{
    (void)state;
    struct fixture fixture;
    const struct stk_field_chain chain = {"jpg", "RandomResizedCrop(16) | Normalize(imagenet)"};
    struct image_set sets[] = {{.shards = 1, .each = 12, .width = 40, .height = 30},
                               {.shards = 6, .each = 2, .width = 40, .height = 30}};
    for (int s = 0; s < 2; s++) {
        struct stk_loader_options options = {.batch_size = 4, .shuffle = 1, .threads = 2};
        fixture_images(&fixture, &sets[s]);
        options.ragged = STK_RAGGED_FLAT;
        each_allocation_may_fail(&fixture, options, 12);
        options.transforms = &chain;
        options.transform_count = 1;
        options.batch_transforms = "MixUp(classes=10)";
        each_allocation_may_fail(&fixture, options, 12);
        fixture_close(&fixture);
    }
}

static void a_failed_allocation_in_the_order_of_time_is_an_error_too(void **state)
{
    (void)state;
    struct series series;
    struct series_options shape = {.late = 1, .pad = 1};
    series_open(&series, shape);
    struct stk_loader_options options = {.batch_size = 16, .order = STK_ORDER_TIME, .threads = 1};
    each_allocation_may_fail(&series.fixture, options, series.count);
    series_close(&series);
}

static void a_failed_allocation_among_chunks_is_an_error_too(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader_options options = {.batch_size = 16, .shuffle = 1, .threads = 2, .reach = 2};
    fixture_shards(&fixture, 5, 12, "wb");
    each_allocation_may_fail(&fixture, options, 60);
    fixture_close(&fixture);
}

static uint64_t read_on(struct stk_loader *loader)
{
    struct stk_batch *batch;
    uint64_t samples = 0;
    while ((batch = fixture_next(loader)) != NULL) {
        samples += batch->real;
        stk_batch_release(batch);
    }
    return samples;
}

/* Whatever could not be allocated: next is asked again, or after a seek, and all is as before. */
static void a_loader_goes_on_after_a_failed_allocation(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_loader_options options = {
        .batch_size = 40, .shuffle = 1, .threads = 2, .order = STK_ORDER_GLOBAL};
    fixture_shards(&fixture, 20, 4, "wb1");
    atomic_store(&countdown, 0);
    memory_set_hook(fail_nth, NULL);
    for (long n = 1, status = STK_OK; n < 200; n++, status = STK_OK) {
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        atomic_store(&countdown, n);
        while (!status) {
            status = stk_loader_next(loader, &batch, NULL);
            stk_batch_release(batch);
        }
        long left = atomic_exchange(&countdown, 0); /* no more of them fails */
        assert_true(status == STK_END || status == STK_MEMORY);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
            assert_int_equal(stk_loader_seek(loader, epoch, 0, NULL), STK_OK);
            assert_int_equal(read_on(loader), 80);
        }
        stk_loader_close(loader);
        if (left > 0)
            break;
    }
    memory_set_hook(NULL, NULL);
    fixture_close(&fixture);
}

/* Changes bytes without a trace, as a rotting disk does. */
static void rot(const struct fixture *fixture, const char *name, long offset, const char *text)
{
    char path[256];
    struct stat before;
    fixture_path(fixture, name, path, sizeof path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0 && fstat(fd, &before) == 0);
    assert_int_equal(pwrite(fd, text, strlen(text), offset), strlen(text));
    assert_int_equal(futimens(fd, (struct timespec[]){before.st_atim, before.st_mtim}), 0);
    close(fd);
}

/* A broken shard is one broken chunk: every sample of it is bad, and is decoded once. */
static void a_broken_chunk_is_replaced_sample_by_sample(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_loader_stats stats;
    uint64_t total = 0;
    fixture_shards(&fixture, 4, 20, "wb0"); /* gzip that stores: bytes can be changed in place */
    rot(&fixture, "shard-0002.tar.gz", 900, "garbage");
    struct stk_loader_options options = {
        .batch_size = 8, .shuffle = 1, .threads = 2, .bad = STK_BAD_REPLACE};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        for (uint32_t i = 0; i < batch->real; i++)
            assert_int_equal(((int64_t *)batch->fields[1].tensor.data)[i], batch->samples[i]);
        total += batch->real;
        stk_batch_release(batch);
    }
    assert_int_equal(total, 80);
    stk_loader_stats(loader, &stats);
    assert_int_equal(stats.bad, 20);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* FAULTS 88 */
static void a_forked_child_gets_an_error_and_the_parent_goes_on(void **state)
{
    (void)state;
    struct fixture fixture;
    int result;
    fixture_records(&fixture, 1000);
    struct stk_loader_options options = {.batch_size = 10, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    stk_batch_release(fixture_next(loader));
    pid_t child = fork();
    if (child == 0) {
        struct stk_batch *batch;
        struct stk_error err;
        stk_status status = stk_loader_next(loader, &batch, &err);
        stk_loader_close(loader);
        _exit(status == STK_UNSUPPORTED && strstr(err.remedy, "after the fork") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    for (int i = 1; i < 100; i++)
        stk_batch_release(fixture_next(loader));
    assert_null(fixture_next(loader));
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void a_loader_that_was_only_opened_may_be_forked(void **state)
{
    (void)state;
    struct fixture fixture;
    int result;
    fixture_records(&fixture, 1000);
    struct stk_loader_options options = {.batch_size = 10, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    pid_t child = fork();
    if (child == 0) {
        struct stk_batch *batch;
        struct stk_error err;
        stk_status status = stk_loader_next(loader, &batch, &err);
        int right = !status && batch->samples[9] == 9;
        stk_batch_release(batch);
        stk_loader_close(loader);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failed_allocation_is_an_error_and_nothing_leaks),
        cmocka_unit_test(a_failed_allocation_among_images_is_an_error_too),
        cmocka_unit_test(a_failed_allocation_in_the_order_of_time_is_an_error_too),
        cmocka_unit_test(a_failed_allocation_among_chunks_is_an_error_too),
        cmocka_unit_test(a_loader_goes_on_after_a_failed_allocation),
        cmocka_unit_test(a_broken_chunk_is_replaced_sample_by_sample),
        cmocka_unit_test(a_forked_child_gets_an_error_and_the_parent_goes_on),
        cmocka_unit_test(a_loader_that_was_only_opened_may_be_forked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
