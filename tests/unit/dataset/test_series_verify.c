/* test_series_verify.c -- a series is verified by blocks: each bad one once, with the first sample
 * that takes something from it, whatever the threads. */
#include "dataset/series_fixture.h"

#include "base/hash.h"

#define BLOCK ((uint64_t)SERIES_BLOCK)
#define MOST 32

/* Rows of 12 bytes: blocks end inside them. Four blocks of values, three of times. */
static const struct plan large = {
    .name = "large",
    .columns = 3,
    .rows = {100000, 30, 0, 220000},
    .entities = 4,
    .statics = 2,
    .time = 1,
    .splits = 1,
    .hashes = 1,
    .more = ", \"sequence\": {\"window\": 50, \"horizon\": 2, \"stride\": 3, \"gap\": 1}",
};
static const struct naive_rule rule = {50, 2, 3, 1, 50, -1};

struct found {
    struct stk_bad bad[MOST];
    uint64_t count;
    uint64_t steps, done, total, bytes; /* of the progress */
    uint64_t stop_at;
};

static void note_bad(void *user, const struct stk_bad *bad)
{
    struct found *found = user;
    assert_true(found->count < MOST);
    found->bad[found->count++] = *bad;
}

static int note_progress(void *user, const struct stk_progress *progress)
{
    struct found *found = user;
    found->steps++;
    found->done = progress->done;
    found->total = progress->total;
    found->bytes = progress->bytes;
    return found->stop_at && progress->done >= found->stop_at;
}

static void write_hashes(const struct fixture *fixture)
{
    uint64_t size = plan_rows(&large) * 12, hashes[16], count = 0;
    uint8_t *data = malloc(size);
    FILE *file = fopen(series_path(fixture, &large, SERIES_ARRAY), "rb");
    assert_non_null(file);
    assert_int_equal(fread(data, 1, size, file), size);
    fclose(file);
    for (uint64_t at = 0; at < size; at += BLOCK, count++)
        hashes[count] = hash_bytes(data + at, size - at < BLOCK ? size - at : BLOCK, count);
    make_file(series_path(fixture, &large, SERIES_HASHES), hashes, count * sizeof *hashes);
    free(data);
}

static void patch(const struct fixture *fixture, const char *name, uint64_t offset,
                  const void *data, size_t len)
{
    FILE *file = fopen(series_path(fixture, &large, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, len, file), len);
    fclose(file);
}

static void patch_value(const struct fixture *fixture, uint64_t row, uint32_t column, float value)
{
    patch(fixture, SERIES_ARRAY, row * 12 + column * 4, &value, sizeof value);
}

static void verify_now(const struct fixture *fixture, uint32_t threads, struct found *found)
{
    struct stk_hooks hooks = {.user = found, .progress = note_progress};
    struct stk_context *context;
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    const char *source = path_of(fixture, "large");
    uint64_t count = 99;
    *found = (struct found){0};
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    if (stk_dataset_open(context, &dataset, &source, 1, NULL, &err))
        fail_msg("%s", err.what);
    if (stk_dataset_verify(dataset, threads, note_bad, found, &count, &err))
        fail_msg("%s", err.what);
    assert_int_equal(count, found->count);
    stk_dataset_close(dataset);
    stk_context_free(context);
}

/* The first sample that takes something from rows first .. last, by trying all. */
static uint64_t naive_first(uint64_t first, uint64_t last)
{
    struct naive *naive;
    uint64_t count = naive_windows(&large, &rule, &naive), found = STK_NOWHERE;
    for (uint64_t i = 0; i < count && found == STK_NOWHERE; i++) {
        uint64_t t = naive[i].last, y = t + rule.gap + 1;
        if ((t + 1 - rule.window <= last && t >= first) ||
            (y <= last && y + rule.horizon - 1 >= first))
            found = i;
    }
    free(naive);
    return found;
}

static void check_bad(const struct found *found, uint64_t number, const char *file, uint64_t offset,
                      uint64_t sample)
{
    const struct stk_bad *bad = &found->bad[number];
    assert_true(number < found->count);
    assert_string_equal(strrchr(bad->error.object, '/') + 1, file);
    assert_int_equal(bad->error.offset, offset);
    assert_int_equal(bad->sample, sample);
    assert_int_equal(bad->error.sample, sample);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void a_sound_series_has_nothing_bad(void **state)
{
    const struct fixture *fixture = *state;
    struct found found;
    make_series(fixture, &large);
    write_hashes(fixture);
    for (uint32_t threads = 0; threads < 4; threads++) {
        verify_now(fixture, threads, &found);
        assert_int_equal(found.count, 0);
        assert_int_equal(found.total, 4 + 3 + 1);
        assert_int_equal(found.done, found.total);
        assert_int_equal(found.bytes, plan_rows(&large) * 20 + 4 * 2 * 4);
    }
}

static void values_that_are_not_finite_are_told_once_a_block(void **state)
{
    const struct fixture *fixture = *state;
    static const uint64_t rows[] = {0, 50, 51, 52, 99999, 100010, 100030, 320029};
    struct plan unhashed = large;
    unhashed.hashes = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct found found;
        make_series(fixture, &unhashed);
        patch_value(fixture, rows[i], 1, i % 2 ? NAN : -INFINITY);
        verify_now(fixture, 2, &found);
        assert_int_equal(found.count, 1);
        check_bad(&found, 0, SERIES_ARRAY, rows[i] * 12 + 4, naive_first(rows[i], rows[i]));
        assert_non_null(strstr(found.bad[0].error.what, "column \"b\""));
        assert_int_equal(found.bad[0].error.status, STK_CORRUPT);
    }
    struct found found;
    make_series(fixture, &unhashed);
    for (uint64_t row = 10; row < 90000; row += 1000)
        patch_value(fixture, row, 2, NAN);
    verify_now(fixture, 3, &found);
    assert_int_equal(found.count, 2); /* blocks 0 and 1 */
    check_bad(&found, 0, SERIES_ARRAY, 10 * 12 + 8, 0);
    assert_non_null(strstr(found.bad[0].error.what, "row 10 of entity \"e0\""));
}

static void bytes_that_changed_are_found_by_their_hash(void **state)
{
    const struct fixture *fixture = *state;
    struct found found;
    make_series(fixture, &large);
    write_hashes(fixture);
    patch_value(fixture, 200000, 0, 12345); /* block 2 */
    patch_value(fixture, 320029, 2, NAN);   /* block 3: the hash is enough */
    for (uint32_t threads = 1; threads < 4; threads++) {
        verify_now(fixture, threads, &found);
        assert_int_equal(found.count, 2);
        check_bad(&found, 0, SERIES_ARRAY, 2 * BLOCK,
                  naive_first(2 * BLOCK / 12, (3 * BLOCK - 1) / 12));
        check_bad(&found, 1, SERIES_ARRAY, 3 * BLOCK, naive_first(3 * BLOCK / 12, 320029));
        assert_non_null(strstr(found.bad[0].error.what, "block 2"));
    }
}

static void hashes_that_are_gone_or_cut_are_bad_themselves(void **state)
{
    const struct fixture *fixture = *state;
    struct found found;
    make_series(fixture, &large);
    verify_now(fixture, 2, &found);
    assert_int_equal(found.count, 1);
    assert_non_null(strstr(found.bad[0].error.object, SERIES_HASHES));
    assert_int_equal(found.bad[0].sample, STK_NOWHERE);
    write_hashes(fixture);
    assert_int_equal(truncate(series_path(fixture, &large, SERIES_HASHES), 24), 0);
    patch_value(fixture, 1, 1, 7); /* block 0 has a hash still */
    verify_now(fixture, 2, &found);
    assert_int_equal(found.count, 2);
    assert_int_equal(found.bad[0].error.status, STK_TRUNCATED);
    check_bad(&found, 1, SERIES_ARRAY, 0, 0);
}

static void times_that_run_backwards_and_odd_statics_are_found(void **state)
{
    const struct fixture *fixture = *state;
    uint64_t row = BLOCK / 8; /* the first of a block: the row before it is in another */
    int64_t early = plan_time(row) - 61;
    float infinite = INFINITY;
    struct found found;
    make_series(fixture, &large);
    write_hashes(fixture);
    patch(fixture, SERIES_TIME, row * 8, &early, sizeof early);
    early = 0; /* an entity may begin before the one in front of it ends */
    patch(fixture, SERIES_TIME, UINT64_C(100030) * 8, &early, sizeof early);
    patch(fixture, SERIES_STATIC, 3 * 8 + 4, &infinite, sizeof infinite);
    verify_now(fixture, 2, &found);
    assert_int_equal(found.count, 2);
    check_bad(&found, 0, SERIES_TIME, row * 8, naive_first(row, row));
    check_bad(&found, 1, SERIES_STATIC, 3 * 8 + 4, naive_first(100030, 320029));
}

static void the_block_that_an_append_was_filling_is_not_held_against_its_hash(void **state)
{
    const struct fixture *fixture = *state;
    struct found found;
    make_series(fixture, &large);
    write_hashes(fixture);
    uint64_t changed = 1;
    patch(fixture, SERIES_HASHES, 3 * 8, &changed, sizeof changed);
    verify_now(fixture, 2, &found);
    assert_int_equal(found.count, 1);
    make_file(series_path(fixture, &large, SERIES_JOURNAL), "{\"rows\": 320030}", 16);
    verify_now(fixture, 2, &found);
    assert_int_equal(found.count, 0);
}

static void every_type_is_looked_at(void **state)
{
    const struct fixture *fixture = *state;
    static const enum stk_dtype dtypes[] = {STK_F16, STK_BF16, STK_F64};
    for (int i = 0; i < 3; i++) {
        struct found found;
        struct plan plan = large;
        uint8_t bits[8];
        size_t size = stk_dtype_size(dtypes[i]);
        plan.rows[0] = 400;
        plan.rows[3] = 300;
        plan.hashes = 0;
        plan.has_dtype = 1;
        plan.dtype = dtypes[i];
        make_series(fixture, &plan);
        put_value(bits, dtypes[i], INFINITY);
        patch(fixture, SERIES_ARRAY, (300 * 3 + 2) * size, bits, size);
        verify_now(fixture, 1, &found);
        assert_int_equal(found.count, 1);
        assert_int_equal(found.bad[0].error.offset, (300 * 3 + 2) * size);
    }
}

static void verifying_stops_on_request_and_when_the_array_changes(void **state)
{
    const struct fixture *fixture = *state;
    struct found found = {.stop_at = 1};
    struct stk_hooks hooks = {.user = &found, .progress = note_progress};
    struct stk_context *context;
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    uint64_t count;
    make_series(fixture, &large);
    write_hashes(fixture);
    const char *source = path_of(fixture, "large");
    assert_int_equal(stk_context_new(&context, &hooks, NULL), STK_OK);
    assert_int_equal(stk_dataset_open(context, &dataset, &source, 1, NULL, &err), STK_OK);
    assert_int_equal(stk_dataset_verify(dataset, 2, note_bad, &found, &count, &err), STK_CANCELLED);
    found.stop_at = 0;
    assert_int_equal(truncate(series_path(fixture, &large, SERIES_ARRAY), 12), 0);
    assert_int_equal(stk_dataset_verify(dataset, 2, note_bad, &found, &count, &err), STK_STALE);
    assert_int_equal(found.count, 0);
    stk_dataset_close(dataset);
    stk_context_free(context);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_close)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sound_series_has_nothing_bad),
        TEST(values_that_are_not_finite_are_told_once_a_block),
        TEST(bytes_that_changed_are_found_by_their_hash),
        TEST(hashes_that_are_gone_or_cut_are_bad_themselves),
        TEST(times_that_run_backwards_and_odd_statics_are_found),
        TEST(the_block_that_an_append_was_filling_is_not_held_against_its_hash),
        TEST(every_type_is_looked_at),
        TEST(verifying_stops_on_request_and_when_the_array_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
