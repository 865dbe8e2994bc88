#include "loader_fixture.h"

#include <dirent.h>

/* Reads an epoch and checks that each record is whole and matches its number. */
static uint64_t read_records(struct stk_loader *loader, uint8_t *seen)
{
    struct stk_batch *batch;
    uint64_t total = 0;
    while ((batch = fixture_next(loader)) != NULL) {
        const int64_t *values = batch->fields[0].tensor.data;
        assert_int_equal(batch->fields[0].tensor.shape[0], batch->count);
        for (uint32_t i = 0; i < batch->real; i++) {
            for (int j = 0; j < 4; j++)
                assert_int_equal(values[i * 4 + j], batch->samples[i]);
            if (seen)
                seen[batch->samples[i]]++;
        }
        total += batch->real;
        stk_batch_release(batch);
    }
    return total;
}

static void an_epoch_delivers_every_record_once(void **state)
{
    (void)state;
    struct fixture fixture;
    static uint8_t seen[10007];
    fixture_records(&fixture, 10007);
    struct stk_loader_options options = {.batch_size = 64, .shuffle = 1, .threads = 3};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (int epoch = 1; epoch <= 3; epoch++) {
        assert_int_equal(read_records(loader, seen), 10007);
        for (int i = 0; i < 10007; i++)
            assert_int_equal(seen[i], epoch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void digest_of(struct fixture *fixture, struct stk_loader_options options, char out[33])
{
    struct stk_loader *loader = fixture_loader(fixture, &options);
    struct stk_digest digest;
    struct stk_batch *batch;
    stk_digest_init(&digest);
    while ((batch = fixture_next(loader)) != NULL) {
        assert_int_equal(stk_digest_add(&digest, batch, NULL), STK_OK);
        stk_batch_release(batch);
    }
    stk_digest_text(&digest, out);
    stk_loader_close(loader);
}

/* FAULTS 97 */
static void threads_queues_and_batch_sizes_do_not_change_the_bytes(void **state)
{
    (void)state;
    struct fixture fixture;
    char first[33], other[33];
    const char *modes[] = {"wbT", "wb"};
    for (int m = 0; m < 2; m++) {
        fixture_shards(&fixture, 4, 25, modes[m]);
        struct stk_loader_options options = {
            .batch_size = 8, .shuffle = 1, .seed = 4, .threads = 1};
        digest_of(&fixture, options, first);
        for (uint32_t threads = 2; threads <= 16; threads *= 2) {
            options.threads = threads;
            options.io = threads == 4 ? STK_IO_URING : STK_IO_PREAD;
            options.batch_size = 5 + threads;
            digest_of(&fixture, options, other);
            assert_string_equal(first, other);
        }
        options.seed = 5;
        digest_of(&fixture, options, other);
        assert_string_not_equal(first, other);
        fixture_close(&fixture);
    }
}

/* FAULTS 99 */
static void resuming_at_every_step_equals_an_uninterrupted_run(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t order[90], at = 0;
    struct stk_batch *batch;
    struct stk_error err;
    fixture_records(&fixture, 45);
    struct stk_loader_options options = {.batch_size = 4, .shuffle = 1, .seed = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (int epoch = 0; epoch < 2; epoch++)
        while ((batch = fixture_next(loader)) != NULL) {
            memcpy(order + at, batch->samples, batch->real * sizeof *order);
            at += batch->real;
            stk_batch_release(batch);
        }
    assert_int_equal(at, 90);
    stk_loader_close(loader);
    for (uint64_t stop = 0; stop <= 24; stop++) {
        char text[STK_STATE_CAP], again[STK_STATE_CAP];
        size_t len;
        loader = fixture_loader(&fixture, &options);
        for (at = 0; at < stop;) {
            if ((batch = fixture_next(loader)) == NULL)
                continue;
            at++;
            stk_batch_release(batch);
        }
        assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
        stk_loader_close(loader);
        uint64_t skip = stop < 12 ? stop * 4 : stop < 24 ? 45 + (stop - 12) * 4 : 90;
        struct stk_loader_options fewer = options;
        fewer.batch_size = 3;
        loader = fixture_loader(&fixture, &fewer);
        assert_int_equal(stk_loader_load(loader, text, &err), STK_OK);
        assert_int_equal(stk_loader_save(loader, again, sizeof again, &len, &err), STK_OK);
        assert_string_equal(text, again);
        while (skip < 90) {
            if ((batch = fixture_next(loader)) == NULL)
                continue;
            assert_memory_equal(batch->samples, order + skip, batch->real * sizeof *order);
            skip += batch->real;
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    fixture_close(&fixture);
}

/* FAULTS 101, 102 */
static void a_foreign_state_is_refused(void **state)
{
    (void)state;
    struct fixture fixture, other;
    char text[STK_STATE_CAP];
    size_t len;
    struct stk_error err;
    fixture_records(&fixture, 45);
    fixture_records(&other, 46);
    struct stk_loader_options options = {.batch_size = 4, .shuffle = 1, .seed = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
    assert_int_equal(stk_loader_load(loader, "{\"version\": 1}", &err), STK_MISMATCH);
    assert_int_not_equal(stk_loader_load(loader, "nonsense", &err), STK_OK);
    stk_loader_close(loader);
    loader = fixture_loader(&other, &options);
    assert_int_equal(stk_loader_load(loader, text, &err), STK_MISMATCH);
    stk_loader_close(loader);
    options.seed = 3;
    loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_load(loader, text, &err), STK_MISMATCH);
    assert_non_null(strstr(err.what, "seed"));
    stk_loader_close(loader);
    options.seed = 2;
    options.shuffle = 0;
    loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_load(loader, text, &err), STK_MISMATCH);
    assert_non_null(strstr(err.what, "order"));
    stk_loader_close(loader);
    fixture_close(&other);
    fixture_close(&fixture);
}

static void masked_batches_are_full_and_say_what_is_real(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    uint64_t real = 0;
    fixture_records(&fixture, 10);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct stk_loader_options options = {.batch_size = 4, .world_size = 4, .rank = rank};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        assert_int_equal(stk_loader_steps(loader), 1);
        batch = fixture_next(loader);
        assert_int_equal(batch->count, 4);
        for (uint32_t i = 0; i < 4; i++) {
            assert_int_equal(batch->mask[i], i < batch->real);
            if (i >= batch->real) {
                assert_int_equal(((int64_t *)batch->fields[0].tensor.data)[i * 4], 0);
                assert_true(batch->samples[i] == STK_NOWHERE);
            }
        }
        real += batch->real;
        stk_batch_release(batch);
        assert_null(fixture_next(loader));
        stk_loader_close(loader);
    }
    assert_int_equal(real, 10);
    fixture_close(&fixture);
}

static void texts_and_numbers_come_with_their_samples(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *modes[] = {"wbT", "wb"};
    for (int m = 0; m < 2; m++) {
        struct stk_batch *batch;
        uint64_t total = 0;
        fixture_shards(&fixture, 3, 40, modes[m]);
        struct stk_loader_options options = {.batch_size = 16, .shuffle = 1, .threads = 2};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        while ((batch = fixture_next(loader)) != NULL) {
            for (uint32_t i = 0; i < batch->real; i++) {
                const struct stk_batch_field *text = &batch->fields[0], *number = &batch->fields[1];
                uint64_t sample = batch->samples[i];
                char key[8];
                assert_int_equal(((int64_t *)number->tensor.data)[i], sample);
                assert_int_equal(text->bytes[i].len, sample % 5 * 6);
                snprintf(key, sizeof key, "%06u", (unsigned)sample);
                if (sample % 5)
                    assert_memory_equal(text->bytes[i].data, key, 6);
            }
            total += batch->real;
            stk_batch_release(batch);
        }
        assert_int_equal(total, 120);
        stk_loader_close(loader);
        fixture_close(&fixture);
    }
}

/* FAULTS 92 */
static void a_caller_that_keeps_batches_is_counted_apart(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *kept[100];
    struct stk_loader_stats stats;
    fixture_records(&fixture, 100 * 64);
    struct stk_loader_options options = {.batch_size = 64, .memory = 256 << 10, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (int i = 0; i < 100; i++)
        assert_non_null(kept[i] = fixture_next(loader));
    stk_loader_stats(loader, &stats);
    assert_true(stats.peak_bytes <= options.memory);
    assert_true(stats.caller_bytes >= 100 * 64 * 32);
    stk_loader_close(loader);
    for (int i = 0; i < 100; i++) { /* valid after the loader is gone */
        assert_int_equal(((int64_t *)kept[i]->fields[0].tensor.data)[0], kept[i]->samples[0]);
        stk_batch_release(kept[i]);
    }
    fixture_close(&fixture);
}

static void a_budget_below_one_batch_is_an_error_with_a_remedy(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader *loader;
    struct stk_error err;
    fixture_records(&fixture, 5000);
    struct stk_loader_options options = {.batch_size = 4096, .memory = 64 << 10};
    assert_int_equal(stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err),
                     STK_MEMORY);
    assert_non_null(strstr(err.remedy, "memory="));
    fixture_close(&fixture);
}

static void seeking_drops_what_was_read_ahead(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    struct stk_batch *batch;
    uint64_t expected[8];
    struct stk_peek step;
    fixture_records(&fixture, 1000);
    struct stk_loader_options options = {.batch_size = 8, .shuffle = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (uint64_t i = 0; i < 50; i++) {
        uint64_t epoch = i % 3, position = i * 37 % 990;
        assert_int_equal(stk_loader_seek(loader, epoch, position, &err), STK_OK);
        assert_int_equal(stk_loader_peek(loader, epoch, position, &step, expected, &err), STK_OK);
        batch = fixture_next(loader);
        assert_int_equal(batch->real, step.real);
        assert_memory_equal(batch->samples, expected, step.real * sizeof *expected);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static int open_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* FAULTS 89 */
static void opening_and_closing_leaves_no_files_behind(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 1000);
    int before = 0;
    for (int i = 0; i < 100; i++) {
        struct stk_loader_options options = {.batch_size = 16,
                                             .shuffle = 1,
                                             .threads = 2,
                                             .io = i % 2 ? STK_IO_URING : STK_IO_PREAD};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        stk_batch_release(fixture_next(loader)); /* closed with reads in flight */
        stk_loader_close(loader);
        if (i == 3)
            before = open_files();
    }
    assert_int_equal(open_files(), before);
    fixture_close(&fixture);
}

static void overwrite(const struct fixture *fixture, const char *name, long offset,
                      const char *text)
{
    char path[256];
    fixture_path(fixture, name, path, sizeof path);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, offset, SEEK_SET), 0);
    assert_int_equal(fwrite(text, strlen(text), 1, file), 1);
    fclose(file);
}

/* Sample 7's number becomes "x": the dataset is opened after that, so only the value is bad. */
static void shards_with_a_bad_sample(struct fixture *fixture)
{
    fixture_shards(fixture, 1, 50, "wbT");
    struct stk_place place;
    struct stk_error err;
    assert_int_equal(stk_dataset_place(fixture->dataset, 7, 1, &place, &err), STK_OK);
    stk_dataset_close(fixture->dataset);
    overwrite(fixture, "shard-0000.tar", (long)place.offset, "x");
    fixture_open(fixture, "shard-0000.tar", NULL);
}

static void a_bad_sample_raises_with_its_place_and_the_position_stays(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_error err;
    stk_status status;
    uint64_t epoch, position, read = 0;
    shards_with_a_bad_sample(&fixture);
    struct stk_loader_options options = {.batch_size = 4};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK) {
        read += batch->real;
        stk_batch_release(batch);
    }
    assert_int_equal(status, STK_CORRUPT);
    assert_int_equal(read, 4);
    assert_int_equal(err.sample, 7);
    assert_string_equal(err.key, "000007");
    assert_string_equal(err.field, "cls");
    assert_non_null(strstr(err.object, "shard-0000.tar"));
    stk_loader_position(loader, &epoch, &position);
    assert_int_equal(position, 4);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void text_that_is_not_utf8_is_a_bad_sample(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_place place;
    struct stk_error err;
    struct stk_batch *batch;
    fixture_shards(&fixture, 1, 10, "wbT");
    assert_int_equal(stk_dataset_place(fixture.dataset, 3, 0, &place, &err), STK_OK);
    stk_dataset_close(fixture.dataset);
    overwrite(&fixture, "shard-0000.tar", (long)place.offset, "\xff");
    fixture_open(&fixture, "shard-0000.tar", NULL);
    struct stk_loader_options options = {.batch_size = 10};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_CORRUPT);
    assert_int_equal(err.sample, 3);
    assert_string_equal(err.field, "txt");
    assert_int_equal(err.offset, place.offset);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void replace_gives_a_fixed_substitute_and_names_the_bad_one(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t substitute = STK_NOWHERE;
    shards_with_a_bad_sample(&fixture);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct stk_loader_options options = {
            .batch_size = 3 + threads, .bad = STK_BAD_REPLACE, .threads = threads, .shuffle = 1};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        struct stk_quarantined bad;
        struct stk_batch *batch;
        uint64_t total = 0;
        while ((batch = fixture_next(loader)) != NULL) {
            for (uint32_t i = 0; i < batch->real; i++)
                assert_int_equal(((int64_t *)batch->fields[1].tensor.data)[i], batch->samples[i]);
            total += batch->real;
            stk_batch_release(batch);
        }
        assert_int_equal(total, 50);
        assert_int_equal(stk_loader_quarantine(loader, &bad, 1), 1);
        assert_int_equal(bad.sample, 7);
        assert_true(bad.substitute != 7 && (threads == 1 || bad.substitute == substitute));
        substitute = bad.substitute;
        stk_loader_close(loader);
    }
    fixture_close(&fixture);
}

/* FAULTS 75, 76 */
static void a_shard_cut_short_under_a_run_is_an_error_not_a_crash(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_error err;
    stk_status status = STK_OK;
    char path[256];
    fixture_records(&fixture, 100000);
    struct stk_loader_options options = {.batch_size = 100, .shuffle = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    stk_batch_release(fixture_next(loader));
    fixture_path(&fixture, "records.bin", path, sizeof path);
    assert_int_equal(truncate(path, 4096), 0);
    while (status == STK_OK) {
        status = stk_loader_next(loader, &batch, &err);
        stk_batch_release(batch);
    }
    assert_true(status == STK_STALE || status == STK_TRUNCATED);
    assert_non_null(strstr(err.object, "records.bin"));
    assert_true(err.sample != STK_NOWHERE);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* FAULTS 103 */
static void a_batch_larger_than_the_dataset_is_short(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 1);
    struct stk_loader_options options = {.batch_size = 100, .shuffle = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    struct stk_batch *batch = fixture_next(loader);
    assert_int_equal(batch->count, 1);
    stk_batch_release(batch);
    assert_null(fixture_next(loader));
    stk_loader_close(loader);
    options.last = STK_LAST_DROP;
    loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_steps(loader), 0);
    assert_null(fixture_next(loader));
    assert_null(fixture_next(loader));
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_delivers_every_record_once),
        cmocka_unit_test(threads_queues_and_batch_sizes_do_not_change_the_bytes),
        cmocka_unit_test(resuming_at_every_step_equals_an_uninterrupted_run),
        cmocka_unit_test(a_foreign_state_is_refused),
        cmocka_unit_test(masked_batches_are_full_and_say_what_is_real),
        cmocka_unit_test(texts_and_numbers_come_with_their_samples),
        cmocka_unit_test(a_caller_that_keeps_batches_is_counted_apart),
        cmocka_unit_test(a_budget_below_one_batch_is_an_error_with_a_remedy),
        cmocka_unit_test(seeking_drops_what_was_read_ahead),
        cmocka_unit_test(opening_and_closing_leaves_no_files_behind),
        cmocka_unit_test(a_bad_sample_raises_with_its_place_and_the_position_stays),
        cmocka_unit_test(text_that_is_not_utf8_is_a_bad_sample),
        cmocka_unit_test(replace_gives_a_fixed_substitute_and_names_the_bad_one),
        cmocka_unit_test(a_shard_cut_short_under_a_run_is_an_error_not_a_crash),
        cmocka_unit_test(a_batch_larger_than_the_dataset_is_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
