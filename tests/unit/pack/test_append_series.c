#include "pack/series_fixture.h"

static struct given before, added, all;

static void given_reset(void)
{
    memset(&before, 0, sizeof(before));
    memset(&added, 0, sizeof(added));
    memset(&all, 0, sizeof(all));
}

static void given_join(void)
{
    all = before;
    for (uint32_t i = 0; i < added.rows; i++) {
        double row[COLUMNS] = {added.values[0][i], added.values[1][i], added.values[2][i]};
        given_put(&all, added.entity[i], added.time[i], row);
    }
}

/* Packs `before`, then adds `added`, and checks that all is there. */
static void pack_and_add(struct series_test *test, int32_t entities)
{
    struct found found;

    given_join();
    test->options.append = 0;
    series_good(test, series_pack(test, &before));
    test->options.append = 1;
    series_good(test, series_pack(test, &added));
    assert_int_equal(test->result.added_rows, added.rows);
    assert_int_equal(test->result.rows, all.rows);
    found_load(&found, test);
    found_check(&found, &all, entities);
    assert_int_equal(found.meta.scaler.columns[0].count, before.rows); /* it stayed */
    assert_true(access(path_in(test->out, SERIES_JOURNAL), F_OK) != 0);
    folder_is_clean(test);
    found_free(&found);
}

static void entities_and_newer_rows_are_added(void **state)
{
    (void)state;
    for (int way = 0; way < 8; way++) {
        struct series_test test;
        series_begin(&test);
        given_reset();
        given_entities(&before, 0, 6, 40, 0, 0);
        given_entities(&added, 2, 4, 10, 1000, 0); /* these two get newer rows */
        given_entities(&added, 6, 8, 30, 0, 0);    /* these are new */
        if (way & 1)
            given_shuffle(&added);
        test.is_single = !(way & 2);
        test.options.scale = way & 4 ? STK_SCALE_LATE : STK_SCALE_STORED;
        pack_and_add(&test, 8);
        series_end(&test);
    }
}

/* 80,000 bytes a time: blocks of hashes are cut anywhere, and files grow past several of them. */
static void blocks_are_hashed_across_the_seam(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 2, 2000, 0, 0);
    series_good(&test, series_pack(&test, &before));
    all = before;
    test.options.append = 1;
    for (int32_t e = 2; e < 52; e++) {
        memset(&added, 0, sizeof(added));
        given_entities(&added, e, e + 1, 4000, 0, 0);
        series_good(&test, series_pack(&test, &added));
    }
    struct found found;
    found_load(&found, &test); /* checks the hashes */
    assert_int_equal(found.meta.rows, 204000);
    assert_int_equal(found.meta.unused_rows, 0);
    assert_true(found.array_bytes > 2 * SERIES_BLOCK);
    found_free(&found);
    series_end(&test);
}

static void the_last_entity_grows_without_a_copy(void **state)
{
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 1, 100, 0, 0);
    series_good(&test, series_pack(&test, &before));
    test.options.append = 1;
    for (int day = 1; day < 20; day++) {
        memset(&added, 0, sizeof(added));
        given_entities(&added, 0, 1, 10, 1000 * day, 0);
        given_join();
        before = all;
        series_good(&test, series_pack(&test, &added));
    }
    found_load(&found, &test);
    found_check(&found, &all, 1);
    assert_int_equal(found.meta.rows, 290);
    assert_int_equal(found.meta.unused_rows, 0);
    found_free(&found);
    series_end(&test);
}

static void unused_rows_never_outnumber_the_used_ones(void **state)
{
    struct series_test test;
    int was_compact = 0, was_loose = 0;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 5, 40, 0, 0);
    series_good(&test, series_pack(&test, &before));
    test.options.append = 1;
    for (int day = 1; day < 9; day++) {
        struct found found;
        memset(&added, 0, sizeof(added));
        given_entities(&added, 0, 4, 3, 1000 * day, 0);
        given_join();
        before = all;
        series_good(&test, series_pack(&test, &added));
        found_load(&found, &test);
        found_check(&found, &all, 5);
        assert_true(found.meta.unused_rows <= found.meta.rows - found.meta.unused_rows);
        was_compact |= found.meta.unused_rows == 0;
        was_loose |= found.meta.unused_rows > 0;
        found_free(&found);
    }
    assert_true(was_compact && was_loose);
    series_end(&test);
}

static void rows_of_a_cut_by_time_go_to_their_part(void **state)
{
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 4, 40, 0, 0);
    given_entities(&added, 1, 2, 10, 500, 0);
    given_entities(&added, 4, 5, 100, 0, 0);
    test.options.split = "time:1970-01-01T00:05:00,1970-01-01T00:09:00"; /* 300 s, 540 s */
    test.options.fit_on = "all";
    test.options.time = "when";
    /* entity 3 reaches the third part */
    given_entities(&before, 3, 4, 30, 400, 0);
    pack_and_add(&test, 5);
    found_load(&found, &test);
    for (uint64_t e = 0; e < found.meta.entity_count; e++) {
        const struct series_range *range = &found.meta.ranges[3 * e];
        for (uint64_t row = found.meta.entities[e].start; row < found.meta.entities[e].end; row++) {
            int part = found.times[row] < 300 ? 0 : found.times[row] < 540 ? 1 : 2;
            assert_true(row >= range[part].start && row < range[part].end);
        }
    }
    found_free(&found);
    series_end(&test);
}

static void filling_forward_goes_on_from_the_last_row(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++) {
        struct series_test test;
        struct found found;
        series_begin(&test);
        given_reset();
        given_entities(&before, 0, 2, 10, 0, 0);
        double hole[COLUMNS] = {(double)NAN, 7, (double)NAN};
        given_put(&added, 0, 1000, hole);
        given_put(&added, 5, 1000, hole); /* a new entity has no last row */
        test.is_single = way & 1;
        test.options.scale = way & 2 ? STK_SCALE_LATE : STK_SCALE_STORED;
        test.options.missing = STK_MISSING_FFILL;
        series_good(&test, series_pack(&test, &before));
        test.options.append = 1;
        series_good(&test, series_pack(&test, &added));
        assert_int_equal(test.result.missing, 4);
        found_load(&found, &test);
        const struct series_entity *entity = found_entity(&found, 0);
        const float *rows = (float *)(void *)found.array + entity->start * COLUMNS;
        assert_true(rows[10 * COLUMNS] == rows[9 * COLUMNS]);
        assert_true(rows[10 * COLUMNS + 2] == rows[9 * COLUMNS + 2]);
        rows = (float *)(void *)found.array + found_entity(&found, 5)->start * COLUMNS;
        float mean = (float)(found.meta.late ? found.meta.scaler.columns[0].mean : 0);
        assert_true(rows[0] == mean);
        assert_int_equal(found.meta.missing[0], 2);
        assert_int_equal(found.meta.missing[1], 0);
        found_free(&found);
        series_end(&test);
    }
}

static void what_a_killed_run_left_is_cut(void **state)
{
    struct series_test test;
    struct found found;
    struct stat size;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 3, 10, 0, 0);
    given_entities(&added, 3, 4, 10, 0, 0);
    given_join();
    series_good(&test, series_pack(&test, &before));
    text_write(path_in(test.out, SERIES_JOURNAL),
               "{\"format\": \"stoker series append\", \"rows\": 30}");
    assert_int_equal(truncate(path_in(test.out, SERIES_ARRAY), 50000), 0);
    assert_int_equal(truncate(path_in(test.out, SERIES_TIME), 60001), 0);
    test.options.append = 1;
    series_good(&test, series_pack(&test, &added));
    found_load(&found, &test);
    found_check(&found, &all, 4);
    assert_int_equal(stat(path_in(test.out, SERIES_ARRAY), &size), 0);
    assert_int_equal(size.st_size, 40 * COLUMNS * sizeof(float));
    assert_int_equal(stat(path_in(test.out, SERIES_TIME), &size), 0);
    assert_int_equal(size.st_size, 40 * sizeof(int64_t));
    assert_true(access(path_in(test.out, SERIES_JOURNAL), F_OK) != 0);
    found_free(&found);
    series_end(&test);
}

static void other_files_of_the_folder_stay(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 2, 10, 0, 0);
    given_entities(&added, 2, 3, 10, 0, 0);
    series_good(&test, series_pack(&test, &before));
    text_write(path_in(test.out, "scaler.joblib"), "python's");
    text_write(path_in(test.out, "notes.txt"), "mine");
    test.options.append = 1;
    series_good(&test, series_pack(&test, &added));
    char *text = file_read(path_in(test.out, "notes.txt"), NULL);
    assert_string_equal(text, "mine");
    free(text);
    assert_true(access(path_in(test.out, "scaler.joblib"), F_OK) == 0);
    series_end(&test);
}

/* --- statics, categories, one entity a table
 * ------------------------------------------------------ */

struct small {
    const char *name;
    const float *values;
    const char *words;    /* of the column `kind` */
    const int32_t *kinds; /* indices into them */
    const float *sizes;   /* a static column */
    int64_t rows;
};

static stk_status pack_small(struct series_test *test, const struct small *small, uint32_t count)
{
    struct made_column columns[4][3];
    struct made_table tables[4];
    static const char *const statics[] = {"size"};
    static const char *const features[] = {"a", "kind"};

    for (uint32_t i = 0; i < count; i++) {
        columns[i][0] = (struct made_column){.name = "a", .format = "f", .values = small[i].values};
        columns[i][1] = (struct made_column){
            .name = "kind", .format = "i", .values = small[i].kinds, .words = small[i].words};
        columns[i][2] =
            (struct made_column){.name = "size", .format = "f", .values = small[i].sizes};
        tables[i] = (struct made_table){
            .name = small[i].name, .columns = columns[i], .column_count = 3, .rows = small[i].rows};
    }
    struct made_tables made = {tables, count, 0};
    struct stk_tables given = {.user = &made, .next = made_tables_next};
    test->options.entity = test->options.time = NULL;
    test->options.statics = statics;
    test->options.static_count = 1;
    test->options.features = features;
    test->options.feature_count = 2;
    return stk_pack_series(NULL, &given, &test->options, &test->result, &test->err);
}

static void codes_and_statics_go_on(void **state)
{
    static const float values[] = {1, 2, 3, 4}, ones[] = {1, 1, 1, 1}, twos[] = {2, 2, 2, 2};
    static const int32_t first[] = {0, 1, 0, 1}, second[] = {1, 0, 1, 2};
    const struct small old[] = {{"x/a.csv", values, "red\0blue\0", first, ones, 4},
                                {"x/b.csv", values, "red\0blue\0", first, twos, 3}};
    const struct small newer[] = {
        {"y/a.csv", values, "blue\0red\0green\0", second, ones, 4},
        {"y/c.csv", values, "green\0", (const int32_t[]){0, 0, 0, 0}, twos, 2}};
    const struct small wrong = {"y/b.csv", values, "red\0blue\0", first, ones, 2};
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    test.options.scaler = STK_SCALER_MINMAX;
    series_good(&test, pack_small(&test, old, 2));
    test.options.append = 1;
    series_good(&test, pack_small(&test, newer, 2));
    found_load(&found, &test);
    assert_int_equal(found.meta.entity_count, 3);
    assert_int_equal(found.meta.rows, 4 + 3 + 8 + 2);
    assert_int_equal(found.meta.unused_rows, 4);
    assert_int_equal(found.meta.categories[0].count, 3);
    assert_string_equal(found.meta.categories[0].values[2], "green");
    /* a: red blue red blue, then red blue red green */
    static const float codes[] = {0, 1, 0, 1, 0, 1, 0, 2};
    const float *array = (float *)(void *)found.array;
    for (uint64_t i = 0; i < 8; i++) {
        assert_true(array[2 * (found.meta.entities[0].start + i)] == (values[i % 4] - 1) / 3);
        assert_true(array[2 * (found.meta.entities[0].start + i) + 1] == codes[i]);
    }
    size_t len;
    float *statics = (float *)(void *)file_read(path_in(test.out, SERIES_STATIC), &len);
    assert_int_equal(len, 3 * sizeof(float));
    assert_true(statics[0] == 1 && statics[1] == 2 && statics[2] == 2);
    free(statics);
    found_free(&found);
    REFUSED(&test, pack_small(&test, &wrong, 1), STK_CORRUPT, "entity 'b'", "'size'",
            "now comes 1");
    folder_is_clean(&test);
    series_end(&test);
}

/* --- refusals ------------------------------------------------------------------------------------
 */

static void check_unchanged(struct series_test *test, int32_t entities)
{
    struct found found;

    found_load(&found, test);
    found_check(&found, &before, entities);
    assert_int_equal(found.array_bytes, before.rows * COLUMNS * sizeof(float));
    assert_true(access(path_in(test->out, SERIES_JOURNAL), F_OK) != 0);
    folder_is_clean(test);
    found_free(&found);
}

static void rows_that_are_not_newer_are_refused(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 3, 10, 1704067200, 0);
    given_entities(&added, 1, 2, 3, 1704067200 + 90, 0); /* the last one is at + 90 */
    series_good(&test, series_pack(&test, &before));
    test.options.append = 1;
    REFUSED(&test, series_pack(&test, &added), STK_CORRUPT, "entity '1'",
            "ends at 2024-01-01T00:01:30", "a row of 2024-01-01T00:01:30");
    check_unchanged(&test, 3);
    series_end(&test);
}

static void options_that_say_otherwise_are_refused(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 3, 10, 0, 0);
    given_entities(&added, 3, 4, 10, 0, 0);
    series_good(&test, series_pack(&test, &before));
    test.options.append = 1;
    const struct stk_series_options good = test.options;
#define OTHER(member, value, words)                                                                \
    test.options = good;                                                                           \
    test.options.member = value;                                                                   \
    REFUSED(&test, series_pack(&test, &added), STK_USAGE, words)
    OTHER(dtype, "f16", "float16");
    OTHER(scaler, STK_SCALER_ROBUST, "robust");
    OTHER(scale, STK_SCALE_LATE, "late");
    OTHER(split, "0.5,0.5", "split");
    OTHER(fit_on, "0.5", "fitted on");
    OTHER(window, 17, "window");
#undef OTHER
    check_unchanged(&test, 3);
    test.options = good;
    test.options.out = path_in(test.folder, "nowhere");
    assert_int_equal(series_pack(&test, &added), STK_NOT_FOUND);
    assert_true(access(path_in(test.folder, ".nowhere.part"), F_OK) != 0);
    series_end(&test);
}

static void an_array_cut_short_or_grown_is_refused(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 3, 10, 0, 0);
    given_entities(&added, 3, 4, 10, 0, 0);
    series_good(&test, series_pack(&test, &before));
    test.options.append = 1;
    assert_int_equal(truncate(path_in(test.out, SERIES_ARRAY), 30 * 12 + 5), 0);
    REFUSED(&test, series_pack(&test, &added), STK_CORRUPT, SERIES_ARRAY, "365", "360");
    assert_int_equal(truncate(path_in(test.out, SERIES_ARRAY), 359), 0);
    REFUSED(&test, series_pack(&test, &added), STK_TRUNCATED, SERIES_ARRAY, "359", "360");
    series_end(&test);
}

static void copy_series(const struct series_test *test, const char *from, const char *to)
{
    static const char *const files[] = {SERIES_METADATA, SERIES_ARRAY, SERIES_TIME, SERIES_HASHES,
                                        SERIES_SCALER};
    char folder[2 * PATH_MAX];

    snprintf(folder, sizeof(folder), "%s/%s", test->folder, to);
    folder_remove(folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    for (size_t i = 0; i < COUNT(files); i++) {
        char source[3 * PATH_MAX];
        size_t len;
        snprintf(source, sizeof(source), "%s/%s", path_in(test->folder, from), files[i]);
        char *data = file_read(source, &len);
        file_write(path_in(folder, files[i]), data, len);
        free(data);
    }
}

/* As fail_each_allocation, but a failure that is made up for is fine too. */
static void memory_that_runs_out_leaves_the_old_series(void **state)
{
    struct series_test test;
    int happened = 1;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&before, 0, 3, 10, 0, 0);
    given_entities(&added, 2, 4, 10, 500, 3);
    test.options.split = "0.5,0.5";
    series_good(&test, series_pack(&test, &before));
    copy_series(&test, "out", "kept");
    test.options.append = 1;
    test.options.threads = 1;
    test.options.missing = STK_MISSING_FFILL;
    for (long n = 1; happened; n++) {
        struct nth_failure nth = {.countdown = n};
        assert_true(n < 10000);
        copy_series(&test, "kept", "out");
        memory_set_hook(nth_hook, &nth);
        stk_status status = series_pack(&test, &added);
        memory_set_hook(NULL, NULL);
        happened = nth.happened;
        assert_true(status == STK_OK || (status == STK_MEMORY && happened));
        if (status)
            check_unchanged(&test, 3);
    }
    series_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entities_and_newer_rows_are_added),
        cmocka_unit_test(blocks_are_hashed_across_the_seam),
        cmocka_unit_test(the_last_entity_grows_without_a_copy),
        cmocka_unit_test(unused_rows_never_outnumber_the_used_ones),
        cmocka_unit_test(rows_of_a_cut_by_time_go_to_their_part),
        cmocka_unit_test(filling_forward_goes_on_from_the_last_row),
        cmocka_unit_test(what_a_killed_run_left_is_cut),
        cmocka_unit_test(other_files_of_the_folder_stay),
        cmocka_unit_test(codes_and_statics_go_on),
        cmocka_unit_test(rows_that_are_not_newer_are_refused),
        cmocka_unit_test(options_that_say_otherwise_are_refused),
        cmocka_unit_test(an_array_cut_short_or_grown_is_refused),
        cmocka_unit_test(memory_that_runs_out_leaves_the_old_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
