/* test_dataset_faults.c -- memory that runs out at every call, and what is left after a thousand
 * opens. */
#include "dataset/fixture.h"

#include <dirent.h>
#include <stdatomic.h>

#include "base/memory.h"

struct countdown {
    _Atomic long left; /* allocations until one fails; threads count too */
};

static int refuse(void *user, size_t size)
{
    struct countdown *countdown = user;
    (void)size;
    return atomic_fetch_sub(&countdown->left, 1) == 1;
}

static stk_status read_all(struct stk_dataset *dataset, struct stk_error *err)
{
    struct stk_reader *reader = NULL;
    struct stk_value values[8];
    stk_status status = stk_reader_new(dataset, &reader, err);
    for (uint64_t i = 0; i < stk_dataset_samples(dataset) && !status; i++)
        status = stk_reader_read(reader, i, values, err);
    stk_reader_free(reader);
    return status;
}

static stk_status subset_and_place(struct stk_dataset *dataset, struct stk_error *err)
{
    static const uint64_t positions[] = {2, 0};
    static const double shares[] = {0.5, 0.5};
    struct stk_dataset *part = NULL, *half = NULL;
    struct stk_place place;
    stk_status status = stk_dataset_select(dataset, &part, positions, 2, err);
    if (!status)
        status = stk_dataset_split(part, &half, shares, 2, 1, 0, err);
    if (!status)
        status = stk_dataset_place(half, 0, 0, &place, err);
    stk_dataset_close(part);
    stk_dataset_close(half);
    return status;
}

/* Everything once, with the at-th allocation refused. */
static stk_status use_all(const char *source, long at, int reindex, struct stk_error *err)
{
    struct countdown countdown = {.left = at};
    struct stk_dataset_options options = {.reindex = reindex};
    struct stk_dataset *dataset = NULL;
    uint64_t bad = 0;
    memory_set_hook(refuse, &countdown);
    stk_status status = open_with(&dataset, source, &options, err);
    if (!status)
        status = read_all(dataset, err);
    if (!status)
        status = subset_and_place(dataset, err);
    if (!status)
        status = stk_dataset_verify(dataset, 1, NULL, NULL, &bad, err);
    assert_int_equal(bad, 0);
    memory_set_hook(NULL, NULL);
    stk_dataset_close(dataset);
    return status == STK_OK && atomic_load(&countdown.left) > 0 ? STK_END : status;
}

/* STK_END from use_all: no allocation was refused any more. A refusal may also be survived (an
 * index that is not kept, fewer threads): then the run is whole. */
static void fail_each(const char *source, int reindex)
{
    stk_status status = STK_OK;
    long at = 1;
    for (; status != STK_END && at < 20000; at++) {
        struct stk_error err = {0};
        status = use_all(source, at, reindex, &err);
        if (status && status != STK_END && status != STK_MEMORY)
            fail_msg("allocation %ld: %s: %s", at, stk_status_name(status), err.what);
    }
    assert_int_equal(status, STK_END);
    assert_true(at > 20);
}

static void every_refused_allocation_is_an_error_and_no_leak(void **state) /* FAULTS 85 */
{
    char *path = path_of(*state, "a.tar");
    make_shard(path, 0, 4);
    fail_each(path, 1);
    fail_each(path, 0);
}

static void refused_allocations_in_compressed_shards_and_folders(void **state) /* FAULTS 85 */
{
    uint8_t npy[1024];
    char command[5000];
    make_shard(path_of(*state, "a.tar"), 0, 4);
    snprintf(command, sizeof command, "gzip '%s'", path_of(*state, "a.tar"));
    assert_int_equal(system(command), 0);
    make_shard(path_of(*state, "b.tar"), 4, 2);
    snprintf(command, sizeof command, "gzip '%s'", path_of(*state, "b.tar"));
    assert_int_equal(system(command), 0);
    fail_each(path_of(*state, "{a,b}*.tar.gz"), 1);
    make_folder(path_of(*state, "set"));
    make_folder(path_of(*state, "set/cat"));
    make_folder(path_of(*state, "set/dog"));
    make_file(path_of(*state, "set/cat/1.npy"), npy, make_npy(npy, 0, 4));
    make_file(path_of(*state, "set/dog/1.npy"), npy, make_npy(npy, 0, 4));
    make_file(path_of(*state, "set/dog/2.npy"), npy, make_npy(npy, 0, 4));
    fail_each(path_of(*state, "set"), 1);
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void a_thousand_opens_leave_no_file_open(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_error err = {0};
    make_shard(path, 0, 4);
    stk_dataset_close(must_open(path, NULL));
    int before = open_files();
    for (int i = 0; i < 1000; i++) {
        struct stk_dataset *dataset = must_open(path, NULL);
        assert_int_equal(read_all(dataset, &err), STK_OK);
        stk_dataset_close(dataset);
    }
    for (int i = 0; i < 100; i++) {
        struct stk_dataset *dataset;
        assert_int_equal(open_with(&dataset, path_of(*state, "none"), NULL, NULL), STK_NOT_FOUND);
    }
    assert_int_equal(open_files(), before);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(every_refused_allocation_is_an_error_and_no_leak),
        WITH_FOLDER(refused_allocations_in_compressed_shards_and_folders),
        WITH_FOLDER(a_thousand_opens_leave_no_file_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
