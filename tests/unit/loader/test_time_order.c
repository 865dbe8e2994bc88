#include "series_fixture.h"

#include "loader/plan.h"
#include "loader/time_order.h"

/* --- the naive order -------------------------------------------------------------------------- */

static int by_row; /* the series has no times */

static int64_t window_time(const struct window *window)
{
    if (by_row)
        return (int64_t)window->t - series_entities[window->entity].start;
    return series_time(window->entity, window->t);
}

static int window_compare(const void *a, const void *b)
{
    const struct window *left = a, *right = b;
    int64_t x = window_time(left), y = window_time(right);
    if (x != y)
        return x < y ? -1 : 1;
    return left->sample < right->sample ? -1 : 1; /* samples run by entity, then by row */
}

static void sorted(struct series *series, uint64_t *out)
{
    by_row = series->options.no_time;
    qsort(series->windows, series->count, sizeof series->windows[0], window_compare);
    for (uint32_t i = 0; i < series->count; i++)
        out[i] = series->windows[i].sample;
}

static const struct series_options shapes[] = {
    {0},
    {.stride = 3, .gap = 2, .horizon = 4},
    {.pad = 1, .window = 20},
    {.no_time = 1},
    {.no_time = 1, .stride = 7},
};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* --- the cursor ------------------------------------------------------------------------------- */

static void windows_come_by_time_and_then_by_entity(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct series series;
        uint64_t right[SERIES_ROWS], got[SERIES_ROWS];
        struct time_order *order;
        struct time_cursor *cursor;
        series_open(&series, shapes[s]);
        sorted(&series, right);
        assert_int_equal(time_order_new(&order, series.fixture.dataset, NULL), STK_OK);
        assert_int_equal(time_cursor_new(&cursor, order, NULL), STK_OK);
        assert_int_equal(time_cursor_samples(cursor, 0, series.count, got, NULL), STK_OK);
        assert_memory_equal(got, right, series.count * sizeof *got);
        time_cursor_free(cursor);
        time_order_free(order);
        series_close(&series);
    }
}

/* A position has its window however the cursor came there: by walking, by looking, or back. */
static void any_position_can_be_gone_to(void **state)
{
    (void)state;
    for (size_t s = 0; s < SHAPES; s++) {
        struct series series;
        uint64_t right[SERIES_ROWS], got[4];
        struct time_order *order;
        struct time_cursor *cursor;
        series_open(&series, shapes[s]);
        sorted(&series, right);
        assert_int_equal(time_order_new(&order, series.fixture.dataset, NULL), STK_OK);
        assert_int_equal(time_cursor_new(&cursor, order, NULL), STK_OK);
        for (uint32_t at = series.count; at-- > 0;) { /* backwards: each is looked for */
            uint32_t n = series.count - at < 3 ? series.count - at : 3;
            assert_int_equal(time_cursor_samples(cursor, at, n, got, NULL), STK_OK);
            assert_memory_equal(got, right + at, n * sizeof *got);
        }
        for (uint32_t at = 0; at < series.count; at += 11) { /* onwards: walked over */
            assert_int_equal(time_cursor_samples(cursor, at, 1, got, NULL), STK_OK);
            assert_int_equal(got[0], right[at]);
        }
        time_cursor_free(cursor);
        time_order_free(order);
        series_close(&series);
    }
}

static void a_range_of_the_series_has_an_order_too(void **state)
{
    (void)state;
    struct series series;
    uint64_t right[SERIES_ROWS], got[SERIES_ROWS], positions[100];
    struct stk_dataset *part;
    struct time_order *order;
    struct time_cursor *cursor;
    uint32_t n = 0;
    series_open(&series, (struct series_options){0});
    sorted(&series, right);
    for (uint32_t i = 0; i < 100; i++)
        positions[i] = 30 + i;
    for (uint32_t i = 0; i < series.count; i++)
        if (right[i] >= 30 && right[i] < 130)
            right[n++] = right[i];
    assert_int_equal(stk_dataset_select(series.fixture.dataset, &part, positions, 100, NULL),
                     STK_OK);
    assert_int_equal(time_order_new(&order, part, NULL), STK_OK);
    assert_int_equal(time_cursor_new(&cursor, order, NULL), STK_OK);
    assert_int_equal(time_cursor_samples(cursor, 0, 100, got, NULL), STK_OK);
    assert_memory_equal(got, right, sizeof positions);
    assert_int_equal(time_cursor_samples(cursor, 77, 23, got, NULL), STK_OK);
    assert_memory_equal(got, right + 77, 23 * sizeof *got);
    time_cursor_free(cursor);
    time_order_free(order);
    stk_dataset_close(part);
    series_close(&series);
}

/* --- through the loader ----------------------------------------------------------------------- */

static uint32_t draw(struct stk_loader *loader, uint64_t *out)
{
    struct stk_batch *batch;
    uint32_t n = 0;
    while ((batch = fixture_next(loader)) != NULL) {
        memcpy(out + n, batch->samples, batch->real * sizeof *out);
        n += batch->real;
        stk_batch_release(batch);
    }
    return n;
}

static void every_epoch_is_the_same_walk_forward(void **state)
{
    (void)state;
    struct series series;
    uint64_t right[SERIES_ROWS], got[SERIES_ROWS];
    series_open(&series, (struct series_options){.late = 1});
    sorted(&series, right);
    struct stk_loader_options options = {.batch_size = 13, .order = STK_ORDER_TIME, .threads = 3};
    struct stk_loader *loader = fixture_loader(&series.fixture, &options);
    for (int epoch = 0; epoch < 3; epoch++) {
        assert_int_equal(draw(loader, got), series.count);
        assert_memory_equal(got, right, series.count * sizeof *got);
    }
    stk_loader_close(loader);
    series_close(&series);
}

static void a_state_resumes_at_every_step(void **state)
{
    (void)state;
    struct series series;
    uint64_t right[SERIES_ROWS], got[SERIES_ROWS];
    char text[STK_STATE_CAP];
    size_t len;
    struct stk_error err;
    series_open(&series, (struct series_options){0});
    sorted(&series, right);
    struct stk_loader_options options = {.batch_size = 16, .order = STK_ORDER_TIME};
    struct stk_loader_options others = {.batch_size = 7, .order = STK_ORDER_TIME, .threads = 1};
    for (uint32_t stop = 1; stop * 16 < series.count; stop++) {
        struct stk_loader *loader = fixture_loader(&series.fixture, &options);
        for (uint32_t i = 0; i < stop; i++)
            stk_batch_release(fixture_next(loader));
        assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
        assert_non_null(strstr(text, "\"order\": \"time\""));
        stk_loader_close(loader);
        loader = fixture_loader(&series.fixture, &others);
        assert_int_equal(stk_loader_load(loader, text, &err), STK_OK);
        assert_int_equal(draw(loader, got), series.count - stop * 16);
        assert_memory_equal(got, right + stop * 16, (series.count - stop * 16) * sizeof *got);
        stk_loader_close(loader);
        struct stk_loader_options sequential = {.batch_size = 7};
        loader = fixture_loader(&series.fixture, &sequential);
        assert_int_equal(stk_loader_load(loader, text, &err), STK_MISMATCH);
        stk_loader_close(loader);
    }
    series_close(&series);
}

static void ranks_share_every_step(void **state)
{
    (void)state;
    struct series series;
    uint64_t right[SERIES_ROWS], peeked[64];
    series_open(&series, (struct series_options){.stride = 2});
    sorted(&series, right);
    struct stk_loader_options options = {
        .global_batch_size = 10, .order = STK_ORDER_TIME, .world_size = 3};
    for (options.rank = 0; options.rank < 3; options.rank++) {
        struct stk_loader *loader = fixture_loader(&series.fixture, &options);
        struct stk_batch *batch;
        struct stk_peek peek;
        uint64_t position = 0;
        while ((batch = fixture_next(loader)) != NULL) {
            uint64_t taken = batch->end - position;
            uint64_t first = position + taken * options.rank / 3;
            assert_int_equal(batch->real,
                             taken * (options.rank + 1) / 3 - taken * options.rank / 3);
            assert_memory_equal(batch->samples, right + first, batch->real * 8);
            assert_int_equal(stk_loader_peek(loader, 0, position, &peek, peeked, NULL), STK_OK);
            assert_int_equal(peek.real, batch->real);
            assert_memory_equal(peeked, right + first, batch->real * 8);
            position = batch->end;
            stk_batch_release(batch);
        }
        assert_int_equal(position, series.count);
        stk_loader_close(loader);
    }
    series_close(&series);
}

static void the_last_step_may_be_dropped(void **state)
{
    (void)state;
    struct series series;
    uint64_t right[SERIES_ROWS], got[SERIES_ROWS];
    series_open(&series, (struct series_options){0});
    sorted(&series, right);
    struct stk_loader_options options = {
        .batch_size = 32, .order = STK_ORDER_TIME, .last = STK_LAST_DROP};
    struct stk_loader *loader = fixture_loader(&series.fixture, &options);
    assert_int_equal(draw(loader, got), series.count / 32 * 32);
    assert_memory_equal(got, right, series.count / 32 * 32 * sizeof *got);
    stk_loader_close(loader);
    series_close(&series);
}

/* --- what cannot be ----------------------------------------------------------------------------
 */

static void refused(struct fixture *fixture, struct stk_dataset *dataset,
                    const struct stk_loader_options *options, const char *words)
{
    struct stk_loader *loader;
    struct stk_error err;
    assert_int_equal(stk_loader_open(fixture->context, dataset, &loader, options, &err), STK_USAGE);
    assert_non_null(strstr(err.what, words));
    assert_null(loader);
}

static void what_has_no_order_of_time_is_refused(void **state)
{
    (void)state;
    struct series series;
    struct fixture records;
    struct stk_dataset *part;
    double shares[] = {0.5, 0.5}, weights[SERIES_ROWS];
    struct stk_loader_options options = {.batch_size = 4, .order = STK_ORDER_TIME};
    fixture_records(&records, 10);
    refused(&records, records.dataset, &options, "series");
    fixture_close(&records);
    series_open(&series, (struct series_options){0});
    assert_int_equal(stk_dataset_split(series.fixture.dataset, &part, shares, 2, 0, 1, NULL),
                     STK_OK);
    refused(&series.fixture, part, &options, "subset");
    stk_dataset_close(part);
    options.shuffle = 1;
    refused(&series.fixture, series.fixture.dataset, &options, "shuffle");
    options.shuffle = 0;
    options.weights = weights;
    for (int i = 0; i < SERIES_ROWS; i++)
        weights[i] = 1;
    refused(&series.fixture, series.fixture.dataset, &options, "weights");
    series_close(&series);
}

static void times_that_are_cut_short_are_an_error(void **state)
{
    (void)state;
    struct series series;
    struct stk_batch *batch;
    struct stk_error err;
    char path[256];
    series_open(&series, (struct series_options){0});
    fixture_path(&series.fixture, "time.mmap", path, sizeof path);
    assert_int_equal(truncate(path, 800), 0);
    struct stk_loader_options options = {.batch_size = 16, .order = STK_ORDER_TIME};
    struct stk_loader *loader = fixture_loader(&series.fixture, &options);
    stk_status status = stk_loader_next(loader, &batch, &err);
    assert_true(status == STK_STALE || status == STK_TRUNCATED);
    assert_non_null(strstr(err.object, "time.mmap"));
    stk_loader_close(loader);
    series_close(&series);
}

static void times_that_decrease_are_an_error(void **state)
{
    (void)state;
    struct series series;
    uint64_t got[SERIES_ROWS];
    struct stk_error err;
    struct time_order *order;
    struct time_cursor *cursor;
    char path[256];
    series_open(&series, (struct series_options){0});
    fixture_path(&series.fixture, "time.mmap", path, sizeof path);
    stk_dataset_close(series.fixture.dataset);
    FILE *file = fopen(path, "r+b");
    int64_t wrong = -1000000;
    assert_non_null(file);
    assert_int_equal(fseek(file, 30 * 8, SEEK_SET), 0);
    assert_int_equal(fwrite(&wrong, 8, 1, file), 1);
    fclose(file);
    struct stk_window_options window = STK_WINDOW_DEFAULTS;
    window.window = 8;
    struct stk_dataset_options opening = {.window = &window};
    fixture_open(&series.fixture, "", &opening);
    assert_int_equal(time_order_new(&order, series.fixture.dataset, NULL), STK_OK);
    assert_int_equal(time_cursor_new(&cursor, order, NULL), STK_OK);
    assert_int_equal(time_cursor_samples(cursor, 0, series.count, got, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "e0"));
    assert_non_null(strstr(err.what, "28"));         /* row 30 of the array is its row 28 */
    for (uint32_t at = 1; at < series.count; at++) { /* wherever it begins: a status, never more */
        stk_status status = time_cursor_samples(cursor, at, 1, got, &err);
        assert_true(status == STK_OK || status == STK_CORRUPT);
    }
    time_cursor_free(cursor);
    time_order_free(order);
    series_close(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_come_by_time_and_then_by_entity),
        cmocka_unit_test(any_position_can_be_gone_to),
        cmocka_unit_test(a_range_of_the_series_has_an_order_too),
        cmocka_unit_test(every_epoch_is_the_same_walk_forward),
        cmocka_unit_test(a_state_resumes_at_every_step),
        cmocka_unit_test(ranks_share_every_step),
        cmocka_unit_test(the_last_step_may_be_dropped),
        cmocka_unit_test(what_has_no_order_of_time_is_refused),
        cmocka_unit_test(times_that_are_cut_short_are_an_error),
        cmocka_unit_test(times_that_decrease_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
