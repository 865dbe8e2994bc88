#include "pack/ingest_fixture.h"

/* --- missing values ------------------------------------------------------------------------------
 */

static const uint8_t hole[] = {0x3B}; /* row 2 of 6 is missing */
static const float with_nan[] = {1, 2, 3, 4, NAN, 6};

static void holes(struct made_column columns[3])
{
    columns[0] = timed_columns[0];
    columns[1] = (struct made_column){.name = "a", .format = "f", .values = ones, .validity = hole};
    columns[2] = (struct made_column){.name = "b", .format = "f", .values = with_nan};
}

static void missing_values_become_nan_and_are_counted(void **state)
{
    struct made_column columns[3];
    struct made_table table = {
        .name = "t", .columns = columns, .column_count = 3, .rows = 6, .batch = 4};
    struct run run = {.options = {.time = "day", .missing = STK_MISSING_FFILL}, .fit_all = 1};
    struct scaler scaler = {0};
    float rows[CAP];

    (void)state;
    holes(columns);
    run_tables(&run, &table, 1);
    assert_good(&run);
    read_f32(&run, rows, NULL, NULL);
    for (int i = 0; i < 6; i++) {
        assert_true(i == 2 ? isnan(rows[2 * i]) : rows[2 * i] == ones[i]);
        assert_true(i == 4 ? isnan(rows[2 * i + 1]) : rows[2 * i + 1] == with_nan[i]);
    }
    assert_int_equal(run.ingest.missing[0], 1);
    assert_int_equal(run.ingest.missing[1], 1);
    assert_int_equal(fit_scaler(run.ingest.fit, NULL, &scaler, &run.err), STK_OK);
    assert_int_equal(scaler.columns[0].count, 5);
    scaler_reset(&scaler);
    run_end(&run);
}

static void rows_with_a_hole_are_dropped_before_anything_counts_them(void **state)
{
    struct made_column columns[3];
    struct made_table table = {
        .name = "t", .columns = columns, .column_count = 3, .rows = 6, .batch = 4};
    struct run run = {.options = {.time = "day", .missing = STK_MISSING_DROP}, .fit_all = 1};
    struct scaler scaler = {0};
    float rows[CAP];
    int64_t times[CAP];

    (void)state;
    holes(columns);
    run_tables(&run, &table, 1);
    assert_good(&run);
    read_f32(&run, rows, times, NULL);
    static const float expect[] = {1, 1, 2, 2, 4, 4, 6, 6};
    static const int64_t kept[] = {1, 2, 4, 6};
    assert_int_equal(row_spool_rows(run.ingest.spool), 4);
    assert_memory_equal(rows, expect, sizeof(expect));
    assert_memory_equal(times, kept, sizeof(kept));
    assert_int_equal(run.ingest.rows, 4);
    assert_int_equal(run.ingest.dropped_rows, 2);
    assert_int_equal(run.ingest.entities[0].rows, 4);
    assert_int_equal(fit_scaler(run.ingest.fit, NULL, &scaler, &run.err), STK_OK);
    assert_int_equal(scaler.columns[1].count, 4);
    scaler_reset(&scaler);
    run_end(&run);
    table.rows = 1; /* all of the table is dropped: its entity never was */
    columns[1].values = with_nan + 4;
    columns[1].validity = NULL;
    struct made_table tables[] = {
        table, {.name = "good", .columns = timed_columns, .column_count = 3, .rows = 2}};
    run_tables(&run, tables, 2);
    assert_good(&run);
    assert_int_equal(run.ingest.entity_count, 1);
    assert_string_equal(run.ingest.entities[0].name, "good");
    run_end(&run);
    run_tables(&run, tables, 1);
    REFUSED(&run, STK_NOT_FOUND, "no row is left");
    run_end(&run);
}

/* Entities, statics and the fit follow the rows that stay, in more rows than a piece has. */
static void what_follows_a_dropped_row_is_its_own(void **state)
{
    enum { COUNT = 5000 };
    static float values[COUNT], level[COUNT];
    static int32_t ids[COUNT];
    static const char *const statics[] = {"s"};
    struct made_column columns[] = {{.name = "v", .format = "f", .values = values},
                                    {.name = "id", .format = "i", .values = ids},
                                    {.name = "s", .format = "f", .values = level}};
    struct made_table table = {.name = "t", .columns = columns, .column_count = 3, .rows = COUNT};
    struct run run = {.options = {.entity = "id",
                                  .statics = statics,
                                  .static_count = 1,
                                  .missing = STK_MISSING_DROP},
                      .fit_all = 1};
    struct scaler scaler = {0};
    static float rows[COUNT];
    static uint32_t entities[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        ids[i] = i / 7;
        level[i] = (float)(i / 7);
        values[i] = i % 5 == 2 ? NAN : (float)i;
    }
    run_tables(&run, &table, 1);
    assert_good(&run);
    assert_int_equal(run.ingest.rows, COUNT - COUNT / 5);
    read_f32(&run, rows, NULL, entities);
    for (int i = 0, kept = 0; i < COUNT; i++) {
        if (i % 5 == 2)
            continue;
        assert_true(rows[kept] == (float)i);
        assert_int_equal(entities[kept++], i / 7);
    }
    for (uint64_t i = 0; i < run.ingest.entity_count; i++)
        assert_true(run.ingest.entities[i].statics[0] == (double)i);
    assert_int_equal(fit_scaler(run.ingest.fit, NULL, &scaler, &run.err), STK_OK);
    assert_int_equal(scaler.columns[0].count, COUNT - COUNT / 5);
    assert_true(fabs(scaler.columns[0].mean - 2499.5) < 1e-9);
    scaler_reset(&scaler);
    run_end(&run);
}

static void the_first_missing_value_is_an_error_by_default(void **state)
{
    struct made_column columns[3];
    struct made_table table = {
        .name = "t.parquet", .columns = columns, .column_count = 3, .rows = 6, .batch = 4};
    struct run run = {.options = {.time = "day"}};

    (void)state;
    holes(columns);
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column a has no value in row 2", "object t.parquet", "field a",
            "--nan drop|ffill|mean|zero");
    run_end(&run);
    struct made_column first = columns[1]; /* the first row, not the first column */
    columns[1] = columns[2];
    columns[2] = first;
    table.batch = 0;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column a has no value in row 2");
    run_end(&run);
    columns[2] = plain_columns[0];
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column b has no value in row 4");
    run_end(&run);
}

static void infinite_and_inexact_values_are_errors_under_any_policy(void **state)
{
    static const float infinite[] = {1, 2, 3, 4, -INFINITY, 6};
    static const double wide[] = {1, 2, INFINITY};
    static const int64_t large[] = {0, 0, (INT64_C(1) << 53) + 1};
    static const uint64_t larger[] = {0, 0, UINT64_MAX};
    static const struct {
        const char *format;
        const void *values;
        int64_t rows;
        const char *words;
    } cases[] = {{"f", infinite, 6, "infinite in row 4"},
                 {"g", wide, 3, "infinite in row 2"},
                 {"l", large, 3, "integer beyond 2^53 in row 2"},
                 {"L", larger, 3, "integer beyond 2^53 in row 2"}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int policy = STK_MISSING_ERROR; policy <= STK_MISSING_ZERO; policy++) {
            struct made_column columns[] = {
                plain_columns[0],
                {.name = "v", .format = cases[i].format, .values = cases[i].values}};
            struct made_table table = {.name = "t",
                                       .columns = columns,
                                       .column_count = 2,
                                       .rows = cases[i].rows,
                                       .batch = 2};
            struct run run = {.options = {.missing = (enum stk_missing)policy}};
            run_tables(&run, &table, 1);
            REFUSED(&run, STK_CORRUPT, cases[i].words, "column v", "object t", "field v");
            run_end(&run);
        }
}

static void every_row_needs_a_time_and_an_entity(void **state)
{
    static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6};
    static const uint64_t far[] = {1, UINT64_MAX};
    struct made_column columns[] = {
        timed_columns[0],
        timed_columns[1],
        {.name = "id", .format = "u", .values = offsets, .bytes = "xyxzyx"}};
    struct made_table table = {.name = "t", .columns = columns, .column_count = 3, .rows = 6};
    struct run run = {.options = {.time = "day", .entity = "id", .missing = STK_MISSING_ZERO}};

    (void)state;
    columns[2].validity = hole;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "the entity, column id, has no value in row 2");
    run_end(&run);
    columns[2].validity = NULL;
    columns[2].bytes = "xy\xffzyx";
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column id", "not UTF-8", "row 2");
    run_end(&run);
    static const int32_t short_one[] = {0, 1, 1, 2, 3, 4, 5};
    columns[2].values = short_one;
    columns[2].bytes = "xyxzyx";
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column id", "empty", "row 1");
    run_end(&run);
    columns[2].values = offsets;
    columns[0].validity = hole;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "the time, column day, has no value in row 2");
    run_end(&run);
    columns[0] = (struct made_column){.name = "day", .format = "L", .values = far};
    table.rows = 2;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "the time, column day, is beyond 2^63 in row 1");
    run_end(&run);
}

static void texts_that_no_series_can_hold_are_refused(void **state)
{
    static const int32_t offsets[] = {0, 1, 3, 4};
    static const char *const features[] = {"c"};
    struct made_column column = {.name = "c", .format = "u", .values = offsets, .bytes = "aaac"};
    struct made_table table = {.name = "t", .columns = &column, .column_count = 1, .rows = 3};
    struct run run = {.options = {.features = features, .feature_count = 1}};
    float rows[CAP];

    (void)state;
    run_tables(&run, &table, 1); /* "a", "aa", "c": one begins like another */
    assert_good(&run);
    read_f32(&run, rows, NULL, NULL);
    assert_true(rows[0] == 0 && rows[1] == 1 && rows[2] == 2);
    run_end(&run);
    column.bytes = "aa\0c";
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column c, row 1", "NUL", "object t");
    run_end(&run);
    column.bytes = "aa\xffz";
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column c, row 1", "not UTF-8");
    run_end(&run);
}

static void statics_are_looked_at_as_values_are(void **state)
{
    static const float infinite[] = {INFINITY, 1};
    static const float half[] = {NAN, 8};
    static const char *const statics[] = {"s"};
    struct made_column columns[] = {plain_columns[0],
                                    {.name = "s", .format = "f", .values = infinite}};
    struct made_table table = {.name = "t", .columns = columns, .column_count = 2, .rows = 2};
    struct run run = {.options = {.statics = statics, .static_count = 1}};

    (void)state;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column s is infinite in row 0");
    run_end(&run);
    columns[1].values = half;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "column s has no value in row 0");
    run_end(&run);
    run.options.missing = STK_MISSING_MEAN; /* the next row says it */
    run_tables(&run, &table, 1);
    assert_good(&run);
    assert_true(run.ingest.entities[0].statics[0] == 8);
    run_end(&run);
}

/* --- tables that do not fit ----------------------------------------------------------------------
 */

static void tables_that_differ_are_named_with_both_schemas(void **state)
{
    const struct made_column renamed[] = {
        timed_columns[0], timed_columns[1], {.name = "bee", .format = "f", .values = tens}};
    const struct made_column retyped[] = {
        timed_columns[0], timed_columns[1], {.name = "b", .format = "l", .values = days}};
    const struct made_column rezoned[] = {
        {.name = "day", .format = "tss:", .values = days}, timed_columns[1], timed_columns[2]};
    const struct made_column turned[] = {timed_columns[2], timed_columns[0], timed_columns[1]};
    struct made_table tables[] = {
        {.name = "in/first.parquet", .columns = timed_columns, .column_count = 3, .rows = 2},
        {.name = "in/second.parquet", .columns = renamed, .column_count = 3, .rows = 2}};
    struct run run = {.options = {.time = "day"}};
    float rows[CAP];

    (void)state;
    run_tables(&run, tables, 2);
    REFUSED(&run, STK_SHAPE, "column b is missing; perhaps bee is it", "object in/second.parquet",
            "first.parquet: a: float, b: float, day: timestamp[s, tz=UTC]",
            "here: day: timestamp[s, tz=UTC], a: float, bee: float", "in/first.parquet");
    run_end(&run);
    tables[1].columns = retyped;
    run_tables(&run, tables, 2);
    REFUSED(&run, STK_SHAPE, "column b is int64 and was float", "b: float", "b: int64");
    run_end(&run);
    tables[1].columns = rezoned;
    run_tables(&run, tables, 2);
    REFUSED(&run, STK_SHAPE, "column day is timestamp[s] and was timestamp[s, tz=UTC]");
    run_end(&run);
    tables[1].columns = timed_columns;
    tables[1].column_count = 2;
    run_tables(&run, tables, 2);
    REFUSED(&run, STK_SHAPE, "column b is missing (");
    run_end(&run);
    tables[1].columns = turned; /* another order is fine */
    tables[1].column_count = 3;
    run_tables(&run, tables, 2);
    assert_good(&run);
    read_f32(&run, rows, NULL, NULL);
    assert_memory_equal(rows, rows + 4, 4 * sizeof(float));
    run_end(&run);
}

static void columns_that_will_not_do_are_refused_in_arrows_words(void **state)
{
    static const struct {
        const char *format, *words;
    } kinds[] = {{"d:50,2,256", "decimal256(50, 2)"},
                 {"tss:UTC", "timestamp[s, tz=UTC]"},
                 {"z", "binary"},
                 {"tDn", "duration[ns]"},
                 {"+l", "list"},
                 {"q?", "format q?"}};
    static const char *const features[] = {"v"}, *const absent[] = {"nope"};

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct made_column columns[] = {plain_columns[0],
                                        {.name = "v", .format = kinds[i].format, .values = days}};
        struct made_table table = {.name = "t", .columns = columns, .column_count = 2, .rows = 2};
        struct run run = {.options = {.features = features, .feature_count = 1}};
        run_tables(&run, &table, 1);
        REFUSED(&run, STK_USAGE, "column v is", kinds[i].words, "cast it");
        run_end(&run);
        run = (struct run){0}; /* by default it is left out */
        run_tables(&run, &table, 1);
        assert_good(&run);
        assert_int_equal(run.ingest.column_count, 1);
        run_end(&run);
    }
    struct made_table table = {.name = "t", .columns = plain_columns, .column_count = 2, .rows = 2};
    struct run run = {.options = {.features = absent, .feature_count = 1}};
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_USAGE, "no column nope to be a feature", "a: float, b: float");
    run_end(&run);
    const struct made_column twins[] = {plain_columns[0], plain_columns[0]};
    struct made_table twice = {.name = "t", .columns = twins, .column_count = 2, .rows = 2};
    run = (struct run){0};
    run_tables(&run, &twice, 1);
    REFUSED(&run, STK_USAGE, "two columns are called a");
    run_end(&run);
    run = (struct run){.options = {.time = "a"}};
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_USAGE, "column a is float and cannot be the time");
    run_end(&run);
}

static void labels_that_are_no_features_follow_them(void **state)
{
    static const char *const features[] = {"b"}, *const labels[] = {"a", "b"};
    struct made_table table = {.name = "t", .columns = plain_columns, .column_count = 2, .rows = 2};
    struct run run = {
        .options = {.features = features, .feature_count = 1, .labels = labels, .label_count = 2}};

    (void)state;
    run_tables(&run, &table, 1);
    assert_good(&run);
    assert_int_equal(run.ingest.feature_count, 1);
    assert_int_equal(run.ingest.column_count, 2);
    assert_string_equal(run.ingest.columns[1], "a");
    assert_int_equal(run.ingest.labels[0], 1);
    assert_int_equal(run.ingest.labels[1], 0);
    run_end(&run);
}

static void empty_tables_and_failing_streams_say_so(void **state)
{
    struct made_table empty[] = {
        {.name = "good", .columns = plain_columns, .column_count = 2, .rows = 2},
        {.name = "empty.csv", .columns = plain_columns, .column_count = 2, .rows = 0}};
    struct made_table broken = {.name = "broken",
                                .columns = plain_columns,
                                .column_count = 2,
                                .rows = 2,
                                .fails_after = EIO};
    struct made_table headless = {.name = "headless",
                                  .columns = plain_columns,
                                  .column_count = 2,
                                  .rows = 2,
                                  .fails_schema = EINVAL};
    struct run run = {0};

    (void)state;
    run_tables(&run, empty, 2);
    REFUSED(&run, STK_NOT_FOUND, "empty", "object empty.csv");
    run_end(&run);
    run_tables(&run, &broken, 1);
    REFUSED(&run, STK_IO, "the page is upside down (", "object broken");
    run_end(&run);
    run_tables(&run, &headless, 1);
    REFUSED(&run, STK_IO, "the page is upside down", "object headless");
    run_end(&run);
    run_tables(&run, NULL, 0);
    REFUSED(&run, STK_NOT_FOUND, "no tables");
    run_end(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_values_become_nan_and_are_counted),
        cmocka_unit_test(rows_with_a_hole_are_dropped_before_anything_counts_them),
        cmocka_unit_test(what_follows_a_dropped_row_is_its_own),
        cmocka_unit_test(the_first_missing_value_is_an_error_by_default),
        cmocka_unit_test(infinite_and_inexact_values_are_errors_under_any_policy),
        cmocka_unit_test(every_row_needs_a_time_and_an_entity),
        cmocka_unit_test(texts_that_no_series_can_hold_are_refused),
        cmocka_unit_test(statics_are_looked_at_as_values_are),
        cmocka_unit_test(tables_that_differ_are_named_with_both_schemas),
        cmocka_unit_test(columns_that_will_not_do_are_refused_in_arrows_words),
        cmocka_unit_test(labels_that_are_no_features_follow_them),
        cmocka_unit_test(empty_tables_and_failing_streams_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
