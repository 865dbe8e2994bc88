/* test_dataset_verify.c -- verify finds every bad sample, in order, whatever the threads; check
 * speaks. */
#include "dataset/fixture.h"

#include "stoker/check.h"

#define SAMPLES 400

struct found {
    uint64_t samples[SAMPLES];
    char what[SAMPLES][320];
    stk_status status[SAMPLES];
    uint64_t count;
    struct stk_error last;
};

static void note_bad(void *user, const struct stk_bad *bad)
{
    struct found *found = user;
    assert_true(found->count < SAMPLES);
    found->samples[found->count] = bad->sample;
    found->status[found->count] = bad->error.status;
    memcpy(found->what[found->count], bad->error.what, sizeof bad->error.what);
    found->count++;
    found->last = bad->error;
}

static void verify_or_fail(struct stk_dataset *dataset, uint32_t threads, struct found *found)
{
    struct stk_error err = {0};
    uint64_t count = 99;
    *found = (struct found){0};
    if (stk_dataset_verify(dataset, threads, note_bad, found, &count, &err))
        fail_msg("%s", err.what);
    assert_int_equal(count, found->count);
}

/* Every 37th npy and every 50th cls is damaged. */
static void make_bad(const char *path)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[1024];
    for (int i = 0; i < SAMPLES; i++) {
        char name[32];
        size_t len = make_npy(npy, i, 4);
        snprintf(name, sizeof name, "%04d.npy", i);
        npy[3] = i % 37 == 5 ? 'x' : npy[3];
        tar_add(tar, name, npy, len);
        snprintf(name, sizeof name, "%04d.cls", i);
        tar_add_text(tar, name, i % 50 == 7 ? "cat" : "1");
    }
    tar_write(tar, path);
    free(tar);
}

static void check_bad(struct stk_dataset *dataset, uint32_t threads)
{
    struct found found;
    uint64_t at = 0;
    verify_or_fail(dataset, threads, &found);
    for (uint64_t i = 0; i < SAMPLES; i++)
        if (i % 37 == 5 || i % 50 == 7) {
            assert_int_equal(found.samples[at], i);
            assert_int_equal(found.status[at++], STK_CORRUPT);
        }
    assert_int_equal(at, found.count);
}

static void every_bad_sample_is_found_in_order(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct found found;
    make_bad(path);
    struct stk_dataset *dataset = must_open(path, NULL);
    check_bad(dataset, 1);
    check_bad(dataset, 2);
    check_bad(dataset, 7);
    check_bad(dataset, 0);
    verify_or_fail(dataset, 2, &found);
    assert_string_equal(found.last.object, path);
    assert_true(found.last.offset != STK_NOWHERE);
    assert_string_equal(found.last.key, "0375");
    assert_string_equal(found.last.field, "npy");
    stk_dataset_close(dataset);
}

static void compressed_shards_are_verified_too(void **state)
{
    char command[5000];
    make_bad(path_of(*state, "a.tar"));
    snprintf(command, sizeof command, "gzip '%s'", path_of(*state, "a.tar"));
    assert_int_equal(system(command), 0);
    struct stk_dataset *dataset = must_open(path_of(*state, "a.tar.gz"), NULL);
    check_bad(dataset, 3);
    stk_dataset_close(dataset);
}

static void good_samples_give_no_word(void **state)
{
    struct found found;
    make_shard(path_of(*state, "a.tar"), 0, 100);
    struct stk_dataset *dataset = must_open(path_of(*state, "a.tar"), NULL);
    verify_or_fail(dataset, 2, &found);
    assert_int_equal(found.count, 0);
    stk_dataset_close(dataset);
}

static void text_and_json_are_checked(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct found found;
    char *path = path_of(*state, "a.tar");
    tar_add_text(tar, "a.txt", "fine");
    tar_add_text(tar, "a.json", "{\"a\": 1}");
    tar_add_text(tar, "b.txt", "not \xff fine");
    tar_add_text(tar, "b.json", "[1]");
    tar_add_text(tar, "c.txt", "");
    tar_add_text(tar, "c.json", "{\"a\": ");
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    verify_or_fail(dataset, 2, &found);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.samples[0], 1);
    assert_non_null(strstr(found.what[0], "UTF-8"));
    assert_int_equal(found.samples[1], 2);
    assert_non_null(strstr(found.what[1], "JSON"));
    assert_string_equal(found.last.field, "json");
    assert_string_equal(found.last.object, path);
    stk_dataset_close(dataset);
}

static void lengths_may_differ_but_not_types(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct found found;
    uint8_t npy[1024];
    char *path = path_of(*state, "a.tar"), *descr;
    tar_add(tar, "a.npy", npy, make_npy(npy, 0, 4));
    tar_add(tar, "b.npy", npy, make_npy(npy, 0, 9));
    size_t len = make_npy(npy, 0, 4);
    descr = memmem(npy, 128, "<i4", 3);
    assert_non_null(descr);
    descr[1] = 'f';
    tar_add(tar, "c.npy", npy, len);
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    verify_or_fail(dataset, 2, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.samples[0], 2);
    assert_int_equal(found.status[0], STK_SHAPE);
    stk_dataset_close(dataset);
}

static void a_missing_field_is_bad_when_it_was_asked_for(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct found found;
    const char *fields[] = {"txt"};
    struct stk_dataset_options options = {.fields = fields, .field_count = 1};
    char *path = path_of(*state, "a.tar");
    tar_add_text(tar, "a.txt", "fine");
    tar_add_text(tar, "b.cls", "1");
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, &options);
    verify_or_fail(dataset, 1, &found);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.status[0], STK_NOT_FOUND);
    stk_dataset_close(dataset);
    dataset = must_open(path, NULL);
    verify_or_fail(dataset, 1, &found);
    assert_int_equal(found.count, 0);
    stk_dataset_close(dataset);
}

static int stop(void *user, const struct stk_progress *progress)
{
    ++*(int *)user;
    assert_string_equal(progress->what, "verifying");
    return 1;
}

static void progress_can_stop_it(void **state)
{
    char *path = path_of(*state, "a.tar");
    int calls = 0;
    uint64_t count;
    struct stk_context *context;
    struct stk_dataset *dataset;
    make_shard(path, 0, 200);
    stk_dataset_close(must_open(path, NULL)); /* the index is there: only verify reports */
    struct stk_hooks hooks = {.user = &calls, .progress = stop};
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    const char *source = path;
    assert_int_equal(stk_dataset_open(context, &dataset, &source, 1, NULL, NULL), STK_OK);
    assert_int_equal(stk_dataset_verify(dataset, 2, NULL, NULL, &count, NULL), STK_CANCELLED);
    assert_int_equal(calls, 1);
    stk_dataset_close(dataset);
    stk_context_free(context);
}

static void a_subset_is_verified_by_its_samples(void **state)
{
    char *path = path_of(*state, "a.tar");
    const uint64_t positions[] = {42, 5, 1};
    struct found found;
    struct stk_dataset *part;
    make_bad(path);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_select(dataset, &part, positions, 3, NULL), STK_OK);
    verify_or_fail(part, 2, &found);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.samples[0], 42);
    assert_int_equal(found.samples[1], 5);
    stk_dataset_close(part);
    assert_int_equal(stk_dataset_select(dataset, &part, NULL, 0, NULL), STK_OK);
    verify_or_fail(part, 2, &found); /* nothing to do, and no hang */
    assert_int_equal(found.count, 0);
    stk_dataset_close(part);
    stk_dataset_close(dataset);
}

/* ---- check --------------------------------------------------------------------------------- */

struct rows {
    int count, tar, npy, files, groups;
    char last[32];
};

static void note_row(void *user, const struct stk_check_row *row)
{
    struct rows *rows = user;
    rows->count++;
    assert_non_null(row->name);
    assert_non_null(row->value);
    assert_non_null(row->remedy);
    assert_true(strlen(row->value) > 0);
    rows->groups += strcmp(rows->last, row->group) != 0;
    snprintf(rows->last, sizeof rows->last, "%s", row->group);
    rows->tar += !strcmp(row->group, "formats") && !strcmp(row->name, "tar");
    rows->npy += !strcmp(row->group, "codecs") && !strcmp(row->name, "npy");
    rows->files += !strcmp(row->name, "open files");
}

static void check_tells_of_the_machine_and_the_build(void **state)
{
    struct rows rows = {0};
    (void)state;
    stk_check(NULL, note_row, &rows);
    assert_int_equal(rows.tar, 1);
    assert_int_equal(rows.npy, 1);
    assert_int_equal(rows.files, 1);
    assert_int_equal(rows.groups, 7); /* each group's rows lie together */
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(every_bad_sample_is_found_in_order),
        WITH_FOLDER(compressed_shards_are_verified_too),
        WITH_FOLDER(good_samples_give_no_word),
        WITH_FOLDER(text_and_json_are_checked),
        WITH_FOLDER(lengths_may_differ_but_not_types),
        WITH_FOLDER(a_missing_field_is_bad_when_it_was_asked_for),
        WITH_FOLDER(progress_can_stop_it),
        WITH_FOLDER(a_subset_is_verified_by_its_samples),
        cmocka_unit_test(check_tells_of_the_machine_and_the_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
