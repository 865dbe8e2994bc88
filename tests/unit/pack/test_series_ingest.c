#include "pack/ingest_fixture.h"

/* --- what comes out ------------------------------------------------------------------------------
 */

static void columns_become_rows_whatever_the_batches(void **state)
{
    float rows[CAP];

    (void)state;
    for (int64_t batch = 0; batch <= 6; batch++) {
        struct made_table tables[] = {
            {.name = "x/left.parquet",
             .columns = plain_columns,
             .column_count = 2,
             .rows = 6,
             .batch = batch},
            {.name = "x/right.csv.gz", .columns = plain_columns, .column_count = 2, .rows = 3}};
        struct run run = {0};
        run_tables(&run, tables, 2);
        assert_good(&run);
        read_f32(&run, rows, NULL, NULL);
        for (int i = 0; i < 9; i++) {
            assert_true(rows[2 * i] == ones[i % 6]);
            assert_true(rows[2 * i + 1] == tens[i % 6]);
        }
        assert_int_equal(run.ingest.entity_count, 2);
        assert_string_equal(run.ingest.entities[0].name, "left");
        assert_string_equal(run.ingest.entities[1].name, "right");
        assert_int_equal(run.ingest.entities[0].rows, 6);
        assert_int_equal(run.ingest.entities[1].first_row, 6);
        assert_true(run.ingest.is_grouped && run.ingest.is_ordered);
        assert_int_equal(run.ingest.label_count, 1);
        assert_int_equal(run.ingest.labels[0], 0);
        assert_null(run.ingest.time_unit);
        run_end(&run);
    }
}

/* More rows than a block has, in odd batches, 19 columns: tiles, tails, pieces of the fit. */
static void many_rows_and_columns_keep_their_places(void **state)
{
    enum { ROWS = 70001, COLUMNS = 19 };
    float *values = malloc(sizeof(float) * ROWS * COLUMNS),
          *back = malloc(sizeof(float) * ROWS * 19);
    struct made_column columns[COLUMNS] = {{0}};
    char names[COLUMNS][8];
    static const int64_t batches[] = {0, 4097, 333};
    struct scaler first = {0};

    (void)state;
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(names[c], sizeof(names[c]), "c%d", c);
        columns[c] = (struct made_column){
            .name = names[c], .format = "f", .values = values + (size_t)c * ROWS};
        for (int i = 0; i < ROWS; i++)
            values[(size_t)c * ROWS + i] = (float)(i * 31 % 1009) + (float)c / 32;
    }
    for (size_t b = 0; b < COUNT(batches); b++) {
        struct made_table table = {.name = "t",
                                   .columns = columns,
                                   .column_count = COLUMNS,
                                   .rows = ROWS,
                                   .batch = batches[b]};
        struct run run = {.fit_all = 1};
        struct scaler scaler = {0};
        run_tables(&run, &table, 1);
        assert_good(&run);
        read_f32(&run, back, NULL, NULL);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t c = 0; c < COLUMNS; c++)
                assert_true(back[i * COLUMNS + c] == values[c * ROWS + i]);
        assert_int_equal(fit_scaler(run.ingest.fit, NULL, &scaler, &run.err), STK_OK);
        assert_int_equal(scaler.columns[0].count, ROWS);
        if (b == 0)
            first = scaler;
        else /* the same bits, however the table was cut */
            for (int c = 0; c < COLUMNS; c++)
                assert_memory_equal(&scaler.columns[c], &first.columns[c], sizeof(*first.columns));
        if (b)
            scaler_reset(&scaler);
        run_end(&run);
    }
    scaler_reset(&first);
    free(values);
    free(back);
}

static void every_type_of_number_arrives_exactly(void **state)
{
    static const int8_t i8[] = {-128, 127};
    static const uint8_t u8[] = {0, 255}, bits[] = {2};
    static const int16_t i16[] = {-32768, 32767};
    static const uint16_t u16[] = {0, 65535}, f16[] = {0x3555, 0x0001};
    static const int32_t i32[] = {INT32_MIN, INT32_MAX};
    static const uint32_t u32[] = {0, UINT32_MAX};
    static const int64_t i64[] = {-(INT64_C(1) << 53), INT64_C(1) << 53};
    static const uint64_t u64[] = {0, UINT64_C(1) << 53};
    static const float f32[] = {0.1f, -2};
    static const double f64[] = {0.1, 1e300};
    const struct made_column columns[] = {{.name = "i8", .format = "c", .values = i8},
                                          {.name = "u8", .format = "C", .values = u8},
                                          {.name = "i16", .format = "s", .values = i16},
                                          {.name = "u16", .format = "S", .values = u16},
                                          {.name = "f16", .format = "e", .values = f16},
                                          {.name = "f32", .format = "f", .values = f32},
                                          {.name = "bit", .format = "b", .values = bits},
                                          {.name = "i32", .format = "i", .values = i32},
                                          {.name = "u32", .format = "I", .values = u32},
                                          {.name = "i64", .format = "l", .values = i64},
                                          {.name = "u64", .format = "L", .values = u64},
                                          {.name = "f64", .format = "g", .values = f64}};
    const double expect[2][12] = {
        {-128, 0, -32768, 0, 0.333251953125, 0.1f, 0, INT32_MIN, 0, -9007199254740992.0, 0, 0.1},
        {127, 255, 32767, 65535, 0x1p-24, -2, 1, INT32_MAX, UINT32_MAX, 9007199254740992.0,
         9007199254740992.0, 1e300}};
    struct made_table wide = {.name = "t", .columns = columns, .column_count = 12, .rows = 2},
                      narrow = {.name = "t", .columns = columns, .column_count = 7, .rows = 2};
    double back[CAP];
    float small[CAP];
    struct run run = {0}, other = {0};

    (void)state;
    run_tables(&run, &wide, 1);
    assert_good(&run);
    read_f64(&run, back);
    for (int i = 0; i < 24; i++)
        assert_true(back[i] == expect[i / 12][i % 12]);
    run_end(&run);
    run_tables(&other, &narrow, 1); /* all of these fit float32 */
    assert_good(&other);
    read_f32(&other, small, NULL, NULL);
    for (int i = 0; i < 14; i++)
        assert_true((double)small[i] == expect[i / 7][i % 7]);
    run_end(&other);
}

static void offsets_of_a_column_and_of_its_batch_add_up(void **state)
{
    const struct made_column columns[] = {{.name = "a", .format = "f", .values = ones, .offset = 2},
                                          {.name = "b", .format = "f", .values = tens}};
    struct made_table table = {
        .name = "t", .columns = columns, .column_count = 2, .rows = 4, .batch = 3};
    struct run run = {0};
    float rows[CAP];

    (void)state;
    run_tables(&run, &table, 1);
    assert_good(&run);
    read_f32(&run, rows, NULL, NULL);
    for (int i = 0; i < 4; i++)
        assert_true(rows[2 * i] == ones[i + 2] && rows[2 * i + 1] == tens[i]);
    run_end(&run);
}

static void texts_become_codes_by_first_appearance(void **state)
{
    static const int32_t offsets[] = {0, 1, 2, 3, 5, 6, 7};
    static const int64_t wide[] = {0, 1, 2, 3, 5, 6, 7};
    static const int8_t indices[] = {1, 0, 1, 2, 0, 1};
    struct made_column columns[] = {
        {.name = "a", .format = "f", .values = ones},
        {.name = "u", .format = "u", .values = offsets, .bytes = "xyxzzyx"},
        {.name = "U", .format = "U", .values = wide, .bytes = "xyxzzyx"},
        {.name = "d", .format = "c", .values = indices, .words = "y\0x\0zz\0"}};
    static const char *const features[] = {"a", "u", "U", "d"};
    struct made_table table = {
        .name = "t", .columns = columns, .column_count = 4, .rows = 6, .batch = 4};
    struct run run = {.options = {.features = features, .feature_count = 4}};
    float rows[CAP];

    (void)state;
    run_tables(&run, &table, 1);
    assert_good(&run);
    read_f32(&run, rows, NULL, NULL);
    static const float codes[] = {0, 1, 0, 2, 1, 0};
    for (int i = 0; i < 6; i++)
        for (int c = 1; c < 4; c++)
            assert_true(rows[4 * i + c] == codes[i]);
    assert_int_equal(run.ingest.category_count, 3);
    for (int c = 0; c < 3; c++) {
        assert_int_equal(run.ingest.categories[c].count, 3);
        assert_string_equal(run.ingest.categories[c].column, features[c + 1]);
        assert_string_equal(run.ingest.categories[c].values[0], "x");
        assert_string_equal(run.ingest.categories[c].values[2], "zz");
    }
    assert_memory_equal(run.ingest.is_category, "\0\1\1\1", 4);
    run_end(&run);
}

/* --- entities and times --------------------------------------------------------------------------
 */

static void a_column_of_entities_is_numbered_by_first_appearance(void **state)
{
    static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6};
    static const int32_t numbers[] = {7, -3, 7, 9, -3, 7};
    static const int64_t times[] = {1, 1, 2, 1, 2, 3};
    static const int16_t indices[] = {1, 0, 1, 2, 0, 1};
    const struct made_column kinds[] = {
        {.name = "id", .format = "u", .values = offsets, .bytes = "xyxzyx"},
        {.name = "id", .format = "i", .values = numbers},
        {.name = "id", .format = "s", .values = indices, .words = "y\0x\0z\0"}};
    static const char *const names[][3] = {{"x", "y", "z"}, {"7", "-3", "9"}, {"x", "y", "z"}};
    uint32_t entities[CAP];
    int64_t back[CAP];
    float rows[CAP];

    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct made_column columns[] = {kinds[kind],
                                        {.name = "t", .format = "l", .values = times},
                                        {.name = "a", .format = "f", .values = ones}};
        struct made_table table = {
            .name = "t", .columns = columns, .column_count = 3, .rows = 6, .batch = 4};
        struct run run = {.options = {.entity = "id", .time = "t"}};
        run_tables(&run, &table, 1);
        assert_good(&run);
        read_f32(&run, rows, back, entities);
        static const uint32_t expect[] = {0, 1, 0, 2, 1, 0};
        assert_memory_equal(entities, expect, sizeof(expect));
        assert_memory_equal(back, times, sizeof(times));
        assert_int_equal(run.ingest.entity_count, 3);
        for (int i = 0; i < 3; i++)
            assert_string_equal(run.ingest.entities[i].name, names[kind][i]);
        assert_int_equal(run.ingest.entities[0].rows, 3);
        assert_int_equal(run.ingest.entities[0].last_time, 3);
        assert_int_equal(run.ingest.entities[2].first_row, 3);
        assert_int_equal(run.ingest.column_count, 1); /* neither entity nor time */
        assert_false(run.ingest.is_grouped);
        assert_true(run.ingest.is_ordered);
        assert_string_equal(run.ingest.time_unit, "");
        run_end(&run);
    }
}

static void times_keep_their_unit_and_zone_and_tell_when_they_fall(void **state)
{
    static const int32_t dates[] = {5, 4, 6};
    static const int64_t falling[] = {5, 4, 6};
    static const struct {
        const char *format, *unit, *zone;
    } kinds[] = {{"tss:", "s", NULL},  {"tsm:Europe/Berlin", "ms", "Europe/Berlin"},
                 {"tsu:", "us", NULL}, {"tsn:UTC", "ns", "UTC"},
                 {"tdD", "d", NULL},   {"tdm", "ms", NULL},
                 {"l", "", NULL},      {"i", "", NULL}};
    int64_t times[CAP];
    float rows[CAP];

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        int is_narrow = !strcmp(kinds[i].format, "tdD") || !strcmp(kinds[i].format, "i");
        struct made_column columns[] = {{.name = "t",
                                         .format = kinds[i].format,
                                         .values = is_narrow ? (const void *)dates : falling},
                                        {.name = "a", .format = "f", .values = ones}};
        struct made_table table = {.name = "t", .columns = columns, .column_count = 2, .rows = 3};
        struct run run = {.options = {.time = "t"}};
        run_tables(&run, &table, 1);
        assert_good(&run);
        read_f32(&run, rows, times, NULL);
        assert_memory_equal(times, falling, sizeof(falling));
        assert_string_equal(run.ingest.time_unit, kinds[i].unit);
        assert_int_equal(run.ingest.time_zone == NULL, kinds[i].zone == NULL);
        if (kinds[i].zone)
            assert_string_equal(run.ingest.time_zone, kinds[i].zone);
        assert_true(run.ingest.is_grouped);
        assert_false(run.ingest.is_ordered);
        run_end(&run);
    }
}

static void a_time_that_comes_twice_is_named_with_both_rows(void **state)
{
    static const int64_t twice[] = {1, 2, 2}, once[] = {3};
    static const int32_t offsets[] = {0, 1, 2, 3};
    struct made_column columns[] = {
        {.name = "t", .format = "tss:", .values = twice},
        {.name = "a", .format = "f", .values = ones},
        {.name = "id", .format = "u", .values = offsets, .bytes = "xxx"}};
    struct made_table table = {
        .name = "dup.parquet", .columns = columns, .column_count = 2, .rows = 3};
    struct run run = {.options = {.time = "t"}};

    (void)state;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "dup", "1970-01-01T00:00:02", "row 1 of dup.parquet", "row 2",
            "twice");
    run_end(&run);
    /* across tables: the same entity by its column */
    struct made_column second[] = {
        {.name = "t", .format = "tss:", .values = once}, columns[1], columns[2]};
    struct made_table tables[] = {{.name = "one", .columns = second, .column_count = 3, .rows = 1},
                                  {.name = "two", .columns = second, .column_count = 3, .rows = 1}};
    run = (struct run){.options = {.time = "t", .entity = "id"}};
    run_tables(&run, tables, 2);
    REFUSED(&run, STK_CORRUPT, "row 0 of one", "in row 0", "object two", "entity x");
    run_end(&run);
}

static void stems_name_entities_and_folders_tell_two_apart(void **state)
{
    struct made_table tables[] = {
        {.name = "a/x.parquet", .columns = plain_columns, .column_count = 2, .rows = 1},
        {.name = "b/x.parquet", .columns = plain_columns, .column_count = 2, .rows = 1},
        {.name = "BRK.B.snappy.parquet", .columns = plain_columns, .column_count = 2, .rows = 1},
        {.name = NULL, .columns = plain_columns, .column_count = 2, .rows = 1}};
    struct made_table clash[] = {
        {.name = "x.csv", .columns = plain_columns, .column_count = 2, .rows = 1},
        {.name = "x.parquet", .columns = plain_columns, .column_count = 2, .rows = 1}};
    struct run run = {0};

    (void)state;
    run_tables(&run, tables, 4);
    assert_good(&run);
    assert_string_equal(run.ingest.entities[0].name, "x");
    assert_string_equal(run.ingest.entities[1].name, "b/x");
    assert_string_equal(run.ingest.entities[2].name, "BRK.B");
    assert_string_equal(run.ingest.entities[3].name, "table-3");
    run_end(&run);
    run_tables(&run, clash, 2);
    REFUSED(&run, STK_USAGE, "called x", "that of x.csv", "object x.parquet", "--entity");
    run_end(&run);
}

static void statics_are_kept_and_must_not_change(void **state)
{
    static const int32_t offsets[] = {0, 1, 2, 3};
    static const float sector[] = {7, 7, 8};
    struct made_column columns[] = {
        {.name = "id", .format = "u", .values = offsets, .bytes = "xxy"},
        {.name = "a", .format = "f", .values = ones},
        {.name = "s", .format = "f", .values = sector},
        {.name = "c", .format = "u", .values = offsets, .bytes = "qqr"}};
    static const char *const statics[] = {"s", "c"};
    struct made_table table = {.name = "t", .columns = columns, .column_count = 4, .rows = 3};
    struct run run = {.options = {.entity = "id", .statics = statics, .static_count = 2}};

    (void)state;
    run_tables(&run, &table, 1);
    assert_good(&run);
    assert_int_equal(run.ingest.column_count, 1);
    assert_int_equal(run.ingest.static_count, 2);
    assert_true(run.ingest.entities[0].statics[0] == 7 && run.ingest.entities[0].statics[1] == 0);
    assert_true(run.ingest.entities[1].statics[0] == 8 && run.ingest.entities[1].statics[1] == 1);
    assert_string_equal(run.ingest.categories[0].column, "c");
    run_end(&run);
    columns[0].bytes = "xxx";
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "static column s of entity x is 7 before and 8 in row 2",
            "object t");
    run_end(&run);
    static const float same[] = {1, 1, 1};
    columns[2].values = same;
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_CORRUPT, "static column c of entity x is q before and r in row 2");
    run_end(&run);
}

/* --- adding to a series --------------------------------------------------------------------------
 */

static void a_series_that_is_added_to_keeps_its_numbers(void **state)
{
    static const int32_t offsets[] = {0, 1, 2, 3};
    char *columns[] = {"c", "a"}, *values[] = {"p", "q"};
    struct series_entity there[] = {{"x", 0, 4}, {"y", 4, 8}};
    struct series_category category = {"c", values, 2};
    uint32_t label = 1;
    struct series_meta known = {.columns = columns,
                                .column_count = 2,
                                .feature_count = 2,
                                .labels = &label,
                                .label_count = 1,
                                .categories = &category,
                                .category_count = 1,
                                .entity_column = "id",
                                .entities = there,
                                .entity_count = 2};
    struct made_column made[] = {{.name = "id", .format = "u", .values = offsets, .bytes = "ynx"},
                                 {.name = "a", .format = "f", .values = ones},
                                 {.name = "c", .format = "u", .values = offsets, .bytes = "qrp"}};
    struct made_table table = {.name = "t", .columns = made, .column_count = 3, .rows = 3};
    struct run run = {.known = &known};
    uint32_t entities[CAP];
    float rows[CAP];

    (void)state;
    run_tables(&run, &table, 1);
    assert_good(&run);
    read_f32(&run, rows, NULL, entities);
    static const uint32_t expect[] = {1, 2, 0};
    static const float codes[] = {1, 1, 2, 2, 0, 3};
    assert_memory_equal(entities, expect, sizeof(expect));
    assert_memory_equal(rows, codes, sizeof(codes));
    assert_int_equal(run.ingest.entity_count, 3);
    assert_string_equal(run.ingest.entities[2].name, "n");
    assert_int_equal(run.ingest.categories[0].count, 3);
    assert_string_equal(run.ingest.categories[0].values[2], "r");
    assert_false(run.ingest.is_grouped);
    run_end(&run);
    static const char *const other[] = {"a"};
    run.options = (struct stk_series_options){.features = other, .feature_count = 1};
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_MISMATCH, "other features");
    run_end(&run);
    run.options = (struct stk_series_options){0};
    made[2] = (struct made_column){.name = "c", .format = "f", .values = ones};
    run_tables(&run, &table, 1);
    REFUSED(&run, STK_USAGE, "column c is float and cannot be added to categories");
    run_end(&run);
}

/* --- progress and memory -------------------------------------------------------------------------
 */

static int stop_at_once(void *user, const struct stk_progress *progress)
{
    *(uint64_t *)user = progress->done;
    assert_string_equal(progress->what, "packing");
    assert_string_equal(progress->unit, "rows");
    assert_int_equal(progress->total, 6);
    return 1;
}

static void a_cancelled_run_ends_and_leaves_nothing(void **state)
{
    uint64_t seen = 0;
    struct stk_hooks hooks = {.user = &seen, .progress = stop_at_once};
    struct made_table table = {
        .name = "t", .columns = plain_columns, .column_count = 2, .rows = 6, .batch = 2};
    struct run run = {.total = 6};

    (void)state;
    assert_int_equal(stk_context_new(&run.context, &hooks, NULL), STK_OK);
    run_tables(&run, &table, 1);
    assert_int_equal(run.status, STK_CANCELLED);
    assert_int_equal(seen, 2);
    run_end(&run);
    stk_context_free(run.context);
}

static int ingest_all(void *user)
{
    static const int32_t offsets[] = {0, 1, 2, 3, 4, 5, 6};
    static const int8_t indices[] = {0, 0, 1, 1, 1, 1};
    static const char *const statics[] = {"s"}, *const features[] = {"a", "c"};
    const struct made_column columns[] = {
        timed_columns[0],
        timed_columns[1],
        {.name = "id", .format = "u", .values = offsets, .bytes = "xxyyyy"},
        {.name = "s", .format = "c", .values = indices, .words = "p\0q\0"},
        {.name = "c", .format = "u", .values = offsets, .bytes = "klklkl"}};
    struct made_table tables[] = {
        {.name = "t", .columns = columns, .column_count = 5, .rows = 6, .batch = 4}};
    struct run run = {.options = {.time = "day",
                                  .entity = "id",
                                  .features = features,
                                  .feature_count = 2,
                                  .statics = statics,
                                  .static_count = 1},
                      .fit_all = 1};

    (void)user;
    run_tables(&run, tables, 1);
    if (run.status)
        assert_int_equal(run.status, STK_MEMORY);
    run_end(&run);
    return run.status == STK_OK;
}

static void running_out_of_memory_anywhere_leaves_nothing_behind(void **state)
{
    (void)state;
    fail_each_allocation(ingest_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_become_rows_whatever_the_batches),
        cmocka_unit_test(many_rows_and_columns_keep_their_places),
        cmocka_unit_test(every_type_of_number_arrives_exactly),
        cmocka_unit_test(offsets_of_a_column_and_of_its_batch_add_up),
        cmocka_unit_test(texts_become_codes_by_first_appearance),
        cmocka_unit_test(a_column_of_entities_is_numbered_by_first_appearance),
        cmocka_unit_test(times_keep_their_unit_and_zone_and_tell_when_they_fall),
        cmocka_unit_test(a_time_that_comes_twice_is_named_with_both_rows),
        cmocka_unit_test(stems_name_entities_and_folders_tell_two_apart),
        cmocka_unit_test(statics_are_kept_and_must_not_change),
        cmocka_unit_test(a_series_that_is_added_to_keeps_its_numbers),
        cmocka_unit_test(a_cancelled_run_ends_and_leaves_nothing),
        cmocka_unit_test(running_out_of_memory_anywhere_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
