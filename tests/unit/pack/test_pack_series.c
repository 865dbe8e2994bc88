#include "pack/series_fixture.h"

static struct given given; /* large: not on the stack */

static void given_reset(void)
{
    memset(&given, 0, sizeof(given));
}

/* --- good ways ------------------------------------------------------------------------------- */

static void rows_are_found_scaled_in_their_entities(void **state)
{
    (void)state;
    for (int way = 0; way < 16; way++) {
        struct series_test test;
        struct found found;
        series_begin(&test);
        given_reset();
        given_entities(&given, 0, 7, 100, 1000, 0);
        if (way & 1)
            given_shuffle(&given);
        test.is_single = !(way & 2);
        test.options.scale = way & 4 ? STK_SCALE_LATE : STK_SCALE_STORED;
        test.batch = way & 8 ? 13 : 0;
        test.options.memory = way & 8 ? 20000 : 0; /* the sort goes through the disk */
        series_good(&test, series_pack(&test, &given));
        assert_int_equal(test.result.rows, 700);
        assert_int_equal(test.result.entities, 7);
        assert_int_equal(test.result.sorted, way & 1);
        found_load(&found, &test);
        found_check(&found, &given, 7);
        assert_int_equal(found.meta.late, (way & 4) != 0);
        assert_true(found.meta.scaler.columns[0].scale > 1);
        assert_int_equal(found.meta.scaler.columns[0].count, 700);
        folder_is_clean(&test);
        found_free(&found);
        series_end(&test);
    }
}

static void the_bytes_are_the_same_for_any_number_of_threads(void **state)
{
    struct series_test test;
    char *first = NULL, *meta = NULL;
    size_t bytes;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 40, 100, 1000, 11);
    for (uint32_t threads = 1; threads < 6; threads += 2) {
        char *again, *again_meta;
        test.options.threads = threads;
        test.options.force = threads > 1;
        test.options.missing = STK_MISSING_FFILL;
        test.options.split = "0.6,0.2,0.2";
        series_good(&test, series_pack(&test, &given));
        again = file_read(path_in(test.out, SERIES_ARRAY), &bytes);
        again_meta = file_read(path_in(test.out, SERIES_METADATA), NULL);
        if (first) {
            assert_memory_equal(first, again, bytes);
            assert_string_equal(meta, again_meta);
        }
        free(first);
        free(meta);
        first = again;
        meta = again_meta;
    }
    free(first);
    free(meta);
    series_end(&test);
}

/* What ought to be in place of a missing value, before scaling. */
static double filled(enum stk_missing policy, const uint32_t *rows, uint32_t at, int column,
                     double mean)
{
    double value = given.values[column][rows[at]];

    if (!isnan(value) || policy == STK_MISSING_ZERO)
        return isnan(value) ? 0 : value;
    while (policy == STK_MISSING_FFILL && at--)
        if (!isnan(given.values[column][rows[at]]))
            return given.values[column][rows[at]];
    return mean;
}

static void missing_values_are_filled_as_asked(void **state)
{
    static uint32_t rows[MOST_ROWS];
    static const enum stk_missing policies[] = {STK_MISSING_ZERO, STK_MISSING_MEAN,
                                                STK_MISSING_FFILL};

    (void)state;
    for (int way = 0; way < 12; way++) {
        struct series_test test;
        struct found found;
        series_begin(&test);
        given_reset();
        given_entities(&given, 0, 9, 60, 1000, 4);
        test.is_single = way % 2;
        test.options.missing = policies[way % 3];
        test.options.scale = way >= 6 ? STK_SCALE_LATE : STK_SCALE_STORED;
        series_good(&test, series_pack(&test, &given));
        found_load(&found, &test);
        found_check(&found, &given, 9);
        assert_true(test.result.missing > 100);
        for (int32_t e = 0; e < 9; e++) {
            uint32_t n = given_sorted(&given, e, rows);
            const struct series_entity *entity = found_entity(&found, e);
            for (uint32_t i = 0; i < n; i++)
                for (int c = 0; c < COLUMNS; c++) {
                    const struct scaler_column *column = &found.meta.scaler.columns[c];
                    double raw = filled(test.options.missing, rows, i, c, column->mean);
                    double want = found.meta.late ? raw : (raw - column->center) / column->scale;
                    float got =
                        ((float *)(void *)found.array)[(entity->start + i) * COLUMNS + (uint64_t)c];
                    assert_true(got == (float)want);
                }
        }
        found_free(&found);
        series_end(&test);
    }
}

static void rows_with_a_missing_value_are_dropped_when_asked(void **state)
{
    static struct given whole;
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    given_reset();
    memset(&whole, 0, sizeof(whole));
    given_entities(&given, 0, 5, 50, 0, 9);
    for (uint32_t i = 0; i < given.rows; i++) {
        double row[COLUMNS] = {given.values[0][i], given.values[1][i], given.values[2][i]};
        if (!isnan(row[0]) && !isnan(row[1]) && !isnan(row[2]))
            given_put(&whole, given.entity[i], given.time[i], row);
    }
    test.options.missing = STK_MISSING_DROP;
    series_good(&test, series_pack(&test, &given));
    assert_int_equal(test.result.dropped_rows, given.rows - whole.rows);
    found_load(&found, &test);
    found_check(&found, &whole, 5);
    found_free(&found);
    series_end(&test);
}

/* Only rows of the first part may shape the scaler. */
static void validation_rows_do_not_shape_the_scaler(void **state)
{
    struct series_test test;
    struct found found;
    double sum = 0;
    uint64_t n = 0;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 6, 100, 0, 0);
    test.options.split = "time:1970-01-01T00:08:20"; /* 500 s: 50 rows of each are before it */
    series_good(&test, series_pack(&test, &given));
    found_load(&found, &test);
    found_check(&found, &given, 6);
    for (uint32_t i = 0; i < given.rows; i++)
        if (given.time[i] < 500) {
            sum += given.values[0][i];
            n++;
        }
    assert_int_equal(found.meta.scaler.columns[0].count, n);
    assert_true(fabs(found.meta.scaler.columns[0].mean - sum / (double)n) < 1e-9);
    assert_string_equal(found.meta.fit_on, "train");
    assert_int_equal(found.meta.split_count, 2);
    for (uint64_t e = 0; e < 6; e++) {
        assert_int_equal(found.meta.ranges[2 * e].start, found.meta.entities[e].start);
        assert_int_equal(found.meta.ranges[2 * e].end, found.meta.entities[e].start + 50);
        assert_int_equal(found.meta.ranges[2 * e + 1].end, found.meta.entities[e].end);
    }
    found_free(&found);
    series_end(&test);
}

static void a_column_around_a_billion_keeps_its_digits(void **state)
{
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    given_reset();
    for (int i = 0; i < 1000; i++) {
        double values[COLUMNS] = {1e9 + i % 2, 1e9 + i % 7 / 8.0, i};
        given_put(&given, 0, i, values);
    }
    test.is_single = 0;
    series_good(&test, series_pack(&test, &given));
    found_load(&found, &test);
    for (int i = 0; i < 1000; i++) {
        const float *row = (float *)(void *)found.array + i * COLUMNS;
        assert_true(row[0] == (i % 2 ? 1.f : -1.f));
    }
    found_check(&found, &given, 1);
    found_free(&found);
    series_end(&test);
}

/* --- notices --------------------------------------------------------------------------------- */

struct heard {
    char text[4096];
    int stop_in; /* "scaling" and so on: cancels at that step */
    const char *stop_at;
};

static void hear(void *user, const char *text)
{
    struct heard *heard = user;
    size_t len = strlen(heard->text);
    snprintf(heard->text + len, sizeof(heard->text) - len, "%s\n", text);
}

static int stop_at(void *user, const struct stk_progress *progress)
{
    struct heard *heard = user;
    return heard->stop_at && strcmp(progress->what, heard->stop_at) == 0;
}

static void series_hear(struct series_test *test, struct heard *heard)
{
    const struct stk_hooks hooks = {.user = heard, .notice = hear, .progress = stop_at};

    memset(heard, 0, sizeof(*heard));
    assert_int_equal(stk_context_new(&test->context, &hooks, &test->err), STK_OK);
}

static void columns_without_a_scale_are_told(void **state)
{
    struct series_test test;
    struct heard heard;
    struct found found;

    (void)state;
    series_begin(&test);
    series_hear(&test, &heard);
    given_reset();
    for (int i = 0; i < 50; i++) {
        double values[COLUMNS] = {5, (double)NAN, i};
        given_put(&given, 0, i, values);
    }
    test.options.missing = STK_MISSING_MEAN;
    series_good(&test, series_pack(&test, &given));
    assert_non_null(strstr(heard.text, "'a' is constant"));
    assert_non_null(strstr(heard.text, "'b' has no value"));
    assert_null(strstr(heard.text, "'c'"));
    found_load(&found, &test);
    assert_true(found.meta.scaler.columns[0].scale == 1 && found.meta.scaler.columns[1].scale == 1);
    assert_true(((float *)(void *)found.array)[0] == 0 && ((float *)(void *)found.array)[1] == 0);
    found_free(&found);
    series_end(&test);
}

static void raw_values_too_fine_for_float32_are_told(void **state)
{
    struct series_test test;
    struct heard heard;

    (void)state;
    series_begin(&test);
    series_hear(&test, &heard);
    given_reset();
    for (int i = 0; i < 50; i++) {
        double values[COLUMNS] = {1e9 + i % 2, i, 1e9 * (i % 2)};
        given_put(&given, 0, i, values);
    }
    test.is_single = 0;
    test.options.scale = STK_SCALE_LATE;
    series_good(&test, series_pack(&test, &given));
    assert_non_null(strstr(heard.text, "'a' is around 1e+09"));
    assert_non_null(strstr(heard.text, "--scale stored"));
    assert_null(strstr(heard.text, "'b'"));
    assert_null(strstr(heard.text, "'c'"));
    series_end(&test);
}

/* --- refusals: the folder stays as it was ------------------------------------------------------
 */

static void a_value_too_large_for_the_type_is_named(void **state)
{
    struct series_test test;

    (void)state;
    for (int threads = 1; threads < 4; threads += 2) {
        series_begin(&test);
        given_reset();
        given_entities(&given, 0, 9, 400, 0, 0);
        given.values[1][850] = 70000;
        given.values[2][2000] = -1e6;
        test.is_single = 0;
        test.options.scaler = STK_SCALER_NONE;
        test.options.dtype = "f16";
        test.options.threads = (uint32_t)threads;
        REFUSED(&test, series_pack(&test, &given), STK_CORRUPT, "entity '2'", "row 50",
                "column 'b'", "70000", "float16", "--dtype f32");
        assert_true(access(test.out, F_OK) != 0);
        folder_is_clean(&test);
        given.values[1][850] = 3;
        given.values[2][2000] = 1e300;
        test.options.dtype = NULL;
        REFUSED(&test, series_pack(&test, &given), STK_CORRUPT, "entity '5'", "row 0", "column 'c'",
                "1e+300", "float32");
        folder_is_clean(&test);
        series_end(&test);
    }
}

static void duplicate_times_are_named(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 3, 50, 1704067200, 0);
    given.time[77] = given.time[70];
    REFUSED(&test, series_pack(&test, &given), STK_CORRUPT, "entity '1'", "2024-01-01T00:03:20");
    assert_true(access(test.out, F_OK) != 0);
    folder_is_clean(&test);
    series_end(&test);
}

static void stopping_at_any_step_leaves_nothing(void **state)
{
    static const char *const steps[] = {"packing", "sorting", "fitting", "scaling"};

    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct series_test test;
        struct heard heard;
        series_begin(&test);
        series_hear(&test, &heard);
        heard.stop_at = steps[i];
        given_reset();
        given_entities(&given, 0, 8, 100, 0, 0);
        given_shuffle(&given);
        test.options.split = "0.8,0.2";
        assert_int_equal(series_pack(&test, &given), STK_CANCELLED);
        assert_true(access(test.out, F_OK) != 0);
        folder_is_clean(&test);
        series_end(&test);
    }
}

static void options_that_make_no_sense_are_refused_before_anything_is_read(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 2, 10, 0, 0);
    test.options.dtype = "i32";
    REFUSED(&test, series_pack(&test, &given), STK_USAGE, "'i32'");
    test.options.dtype = NULL;
    test.options.split = "0.9,0.9";
    assert_int_equal(series_pack(&test, &given), STK_USAGE);
    test.options.split = NULL;
    test.options.fit_on = "tuesday";
    assert_int_equal(series_pack(&test, &given), STK_USAGE);
    test.options.fit_on = NULL;
    test.options.out = "";
    assert_int_equal(series_pack(&test, &given), STK_USAGE);
    series_end(&test);
}

/* --- the scaler changed later ------------------------------------------------------------------
 */

static void raw_values_can_be_scaled_anew(void **state)
{
    struct series_test test;
    struct found found;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 4, 100, 0, 0);
    test.options.scale = STK_SCALE_LATE;
    series_good(&test, series_pack(&test, &given));
    text_write(path_in(test.out, "scaler.joblib"), "old");
    series_good(&test, stk_series_rescale(NULL, test.out, STK_SCALER_MINMAX, "0.5", &test.err));
    found_load(&found, &test);
    assert_int_equal(found.meta.scaler.kind, SCALER_MINMAX);
    assert_string_equal(found.meta.fit_on, "0.5");
    double least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < given.rows; i++)
        if (given.time[i] < 500) {
            least = fmin(least, given.values[2][i]);
            most = fmax(most, given.values[2][i]);
        }
    assert_true(found.meta.scaler.columns[2].center == least);
    assert_true(found.meta.scaler.columns[2].scale == most - least);
    found_check(&found, &given, 4);
    assert_true(access(path_in(test.out, "scaler.joblib"), F_OK) != 0);
    folder_is_clean(&test);
    found_free(&found);
    series_end(&test);
}

static void scaled_values_cannot_be_scaled_anew(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 2, 10, 0, 0);
    series_good(&test, series_pack(&test, &given));
    REFUSED(&test, stk_series_rescale(NULL, test.out, STK_SCALER_MINMAX, NULL, &test.err),
            STK_USAGE, "scaled values", "--scale late");
    assert_int_equal(
        stk_series_rescale(NULL, path_in(test.folder, "no"), STK_SCALER_MINMAX, NULL, &test.err),
        STK_NOT_FOUND);
    folder_is_clean(&test);
    series_end(&test);
}

static int pack_once(void *user)
{
    struct series_test *test = user;
    stk_status status = series_pack(test, &given);

    folder_is_clean(test);
    assert_true(status == STK_OK || status == STK_MEMORY);
    if (status)
        assert_true(access(test->out, F_OK) != 0);
    return status == STK_OK;
}

static void memory_that_runs_out_leaves_nothing(void **state)
{
    struct series_test test;

    (void)state;
    series_begin(&test);
    given_reset();
    given_entities(&given, 0, 3, 20, 0, 5);
    given_shuffle(&given);
    test.is_single = 0;
    test.options.missing = STK_MISSING_FFILL;
    test.options.split = "0.5,0.5";
    test.options.threads = 1;
    fail_each_allocation(pack_once, &test);
    series_end(&test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_found_scaled_in_their_entities),
        cmocka_unit_test(the_bytes_are_the_same_for_any_number_of_threads),
        cmocka_unit_test(missing_values_are_filled_as_asked),
        cmocka_unit_test(rows_with_a_missing_value_are_dropped_when_asked),
        cmocka_unit_test(validation_rows_do_not_shape_the_scaler),
        cmocka_unit_test(a_column_around_a_billion_keeps_its_digits),
        cmocka_unit_test(columns_without_a_scale_are_told),
        cmocka_unit_test(raw_values_too_fine_for_float32_are_told),
        cmocka_unit_test(a_value_too_large_for_the_type_is_named),
        cmocka_unit_test(duplicate_times_are_named),
        cmocka_unit_test(stopping_at_any_step_leaves_nothing),
        cmocka_unit_test(options_that_make_no_sense_are_refused_before_anything_is_read),
        cmocka_unit_test(raw_values_can_be_scaled_anew),
        cmocka_unit_test(scaled_values_cannot_be_scaled_anew),
        cmocka_unit_test(memory_that_runs_out_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
