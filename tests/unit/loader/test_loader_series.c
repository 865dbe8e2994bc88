#include "series_fixture.h"

#include <math.h>

/* The value that a batch should hold: of a row of the array, or 0 where there is none. */
static double expected(const struct series *series, const struct window *window, int64_t row,
                       uint32_t column)
{
    if (row < (int64_t)series_entities[window->entity].start)
        return 0;
    double value = series_value((uint32_t)row, column);
    return series->options.late ? (value - series_center(column)) / series_scale(column) : value;
}

static const struct stk_batch_field *field_named(const struct stk_batch *batch, const char *name)
{
    for (uint32_t f = 0; f < batch->field_count; f++)
        if (!strcmp(batch->fields[f].field->name, name))
            return &batch->fields[f];
    return NULL;
}

/* names: one letter a column. rows from `first` on. */
static void check_rows(const struct series *series, const struct window *window,
                       const struct stk_batch_field *field, uint32_t place, int64_t first,
                       uint32_t rows, const char *names)
{
    uint32_t columns = (uint32_t)strlen(names);
    const float *values = (const float *)field->tensor.data + (uint64_t)place * rows * columns;
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            double right = expected(series, window, first + r, (uint32_t)(names[c] - 'a'));
            assert_true(fabs(values[r * columns + c] - right) <= 1e-6 * fabs(right));
        }
}

struct names {
    const char *x, *y;
};

static void check_sample(const struct series *series, const struct stk_batch *batch, uint32_t place,
                         struct names names)
{
    const struct series_options *options = &series->options;
    const struct window *window = &series->windows[batch->samples[place]];
    int64_t first = (int64_t)window->t - options->window + 1;
    int64_t start = series_entities[window->entity].start;
    check_rows(series, window, field_named(batch, "x"), place, first, options->window, names.x);
    check_rows(series, window, field_named(batch, "y"), place,
               (int64_t)window->t + options->gap + 1, options->horizon, names.y);
    const struct stk_batch_field *mask = field_named(batch, "x_mask");
    const struct stk_batch_field *number = field_named(batch, "entity");
    assert_int_equal(mask != NULL, options->pad);
    for (uint32_t r = 0; mask && r < options->window; r++)
        assert_int_equal(((const uint8_t *)mask->tensor.data)[place * options->window + r],
                         first + r >= start);
    if (number) {
        assert_int_equal(((const int64_t *)number->tensor.data)[place], window->entity);
        number = field_named(batch, "start");
        assert_int_equal(((const int64_t *)number->tensor.data)[place], first - start);
        number = field_named(batch, "time");
        assert_int_equal(((const int64_t *)number->tensor.data)[place],
                         series_time(window->entity, window->t));
    }
}

/* Every window once, and each as it should be. */
static void check_epoch(struct series *series, const struct stk_loader_options *options,
                        struct names names)
{
    uint8_t seen[SERIES_ROWS] = {0};
    struct stk_batch *batch;
    struct stk_loader *loader = fixture_loader(&series->fixture, options);
    struct stk_loader_stats stats;
    while ((batch = fixture_next(loader)) != NULL) {
        for (uint32_t i = 0; i < batch->real; i++) {
            seen[batch->samples[i]]++;
            check_sample(series, batch, i, names);
        }
        stk_batch_release(batch);
    }
    for (uint32_t i = 0; i < series->count; i++)
        assert_int_equal(seen[i], 1);
    stk_loader_stats(loader, &stats);
    if (series->options.big)
        assert_true(stats.reads > 0 && stats.mapped_copies == 0);
    else
        assert_true(stats.reads == 0 && stats.mapped_copies > 0);
    assert_int_equal(stats.bad, 0);
    stk_loader_close(loader);
}

/* Copied from a map; read by pread; read by io_uring. */
static void check_all_ways(struct series_options options, struct names names)
{
    struct series series;
    for (options.big = 0; options.big < 2; options.big++) {
        series_open(&series, options);
        for (uint32_t batch = 1; batch <= 64; batch *= 8) {
            struct stk_loader_options loading = {
                .batch_size = batch, .shuffle = 1, .seed = batch, .threads = 2, .memory = 8 << 20};
            check_epoch(&series, &loading, names);
            loading.io = STK_IO_URING;
            check_epoch(&series, &loading, names);
        }
        series_close(&series);
    }
}

static void a_shuffled_epoch_holds_every_window_once(void **state)
{
    (void)state;
    check_all_ways((struct series_options){0}, (struct names){"abcde", "b"});
}

static void stride_gap_and_horizon_say_which_rows(void **state)
{
    (void)state;
    struct series_options options = {.window = 5, .horizon = 3, .stride = 4, .gap = 2};
    check_all_ways(options, (struct names){"abcde", "b"});
}

static void late_values_are_scaled_on_the_way(void **state)
{
    (void)state;
    struct series_options options = {.late = 1};
    check_all_ways(options, (struct names){"abcde", "b"});
}

static void short_histories_are_padded_in_front(void **state)
{
    (void)state;
    struct series_options options = {.pad = 1, .window = 12};
    check_all_ways(options, (struct names){"abcde", "b"});
    options.late = 1;
    options.min_history = 4;
    check_all_ways(options, (struct names){"abcde", "b"});
}

static void columns_come_in_the_order_asked_for(void **state)
{
    (void)state;
    static const char *const features[] = {"d", "a"}, *const labels[] = {"e", "c", "d"};
    struct series_options options = {
        .features = features, .feature_count = 2, .labels = labels, .label_count = 3, .horizon = 2};
    check_all_ways(options, (struct names){"da", "ecd"});
    options.late = options.pad = 1;
    check_all_ways(options, (struct names){"da", "ecd"});
}

static void numbers_and_times_come_on_request(void **state)
{
    (void)state;
    static const char *const fields[] = {"time", "x", "entity", "y", "x_mask", "start"};
    struct series_options options = {.fields = fields, .field_count = 6, .pad = 1};
    check_all_ways(options, (struct names){"abcde", "b"});
}

/* What ragged= is for has nothing to do with rows that are padded to one shape. */
static void ragged_does_not_touch_windows(void **state)
{
    (void)state;
    struct series series;
    struct names names = {"abcde", "b"};
    series_open(&series, (struct series_options){.pad = 1, .late = 1});
    struct stk_loader_options options = {.batch_size = 10, .ragged = STK_RAGGED_PAD};
    check_epoch(&series, &options, names);
    options.ragged = STK_RAGGED_LIST;
    check_epoch(&series, &options, names);
    series_close(&series);
}

static void a_cut_array_is_an_error_that_names_the_window(void **state)
{
    (void)state;
    struct series series;
    struct stk_batch *batch;
    struct stk_error err;
    char path[256];
    for (int late = 0; late < 2; late++) {
        series_open(&series, (struct series_options){.late = late});
        struct stk_loader_options options = {.batch_size = 16, .threads = 1};
        struct stk_loader *loader = fixture_loader(&series.fixture, &options);
        stk_batch_release(fixture_next(loader));
        fixture_path(&series.fixture, "all_features.mmap", path, sizeof path);
        assert_int_equal(truncate(path, 100), 0);
        stk_status status;
        while ((status = stk_loader_next(loader, &batch, &err)) == STK_OK)
            stk_batch_release(batch);
        assert_true(status == STK_STALE || status == STK_TRUNCATED);
        assert_non_null(strstr(err.object, "all_features.mmap"));
        stk_loader_close(loader);
        series_close(&series);
    }
}

static void masked_places_are_zero(void **state)
{
    (void)state;
    struct series series;
    struct stk_batch *batch;
    series_open(&series, (struct series_options){.pad = 1, .late = 1});
    struct stk_loader_options options = {.batch_size = 64, .last = STK_LAST_MASK};
    struct stk_loader *loader = fixture_loader(&series.fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        for (uint32_t i = 0; i < batch->real; i++)
            check_sample(&series, batch, i, (struct names){"abcde", "b"});
        const uint8_t *mask = field_named(batch, "x_mask")->tensor.data;
        const float *x = field_named(batch, "x")->tensor.data;
        for (uint32_t i = batch->real * 8; i < batch->count * 8; i++)
            assert_true(mask[i] == 0 && x[i * SERIES_COLUMNS] == 0);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    series_close(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shuffled_epoch_holds_every_window_once),
        cmocka_unit_test(stride_gap_and_horizon_say_which_rows),
        cmocka_unit_test(late_values_are_scaled_on_the_way),
        cmocka_unit_test(short_histories_are_padded_in_front),
        cmocka_unit_test(columns_come_in_the_order_asked_for),
        cmocka_unit_test(numbers_and_times_come_on_request),
        cmocka_unit_test(ragged_does_not_touch_windows),
        cmocka_unit_test(a_cut_array_is_an_error_that_names_the_window),
        cmocka_unit_test(masked_places_are_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
