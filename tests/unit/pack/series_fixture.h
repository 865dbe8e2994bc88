/* series_fixture.h -- tables of random rows, packed into a folder, and what must be found there.
 * Owns: a folder a test, until series_end.   Threads: one.   Errors: a failed assertion.
 * Not here: any test. */
#ifndef TESTS_PACK_SERIES_FIXTURE_H
#define TESTS_PACK_SERIES_FIXTURE_H

#include "pack/arrow_maker.h"

#include <math.h>

#include "stoker/context.h"
#include "stoker/series.h"
#include "base/hash.h"
#include "format/series_meta.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define COLUMNS 3
#define MOST_ROWS 4096

/* Rows of one table as they come: columns entity, time, a, b, c. */
struct given {
    uint32_t rows;
    int32_t entity[MOST_ROWS];
    int64_t time[MOST_ROWS];
    double values[COLUMNS][MOST_ROWS]; /* NaN: missing */
    float singles[COLUMNS][MOST_ROWS]; /* the same, when the table is of float32 */
    uint8_t validity[COLUMNS][MOST_ROWS / 8];
};

struct series_test {
    char folder[PATH_MAX], out[PATH_MAX];
    struct stk_series_options options;
    struct stk_series_result result;
    struct stk_error err;
    struct stk_context *context;
    int is_single;        /* tables are of float32 */
    int64_t batch;        /* rows a batch */
    int without_entities; /* one entity a table */
};

#ifndef FIXTURE_OWN_CALLS
/* Nothing is lost in a test that the machine outlives, and disks are slow. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
    (void)fd, (void)offset, (void)len, (void)flags;
    return 0;
}
#endif

TESTING uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

TESTING void given_put(struct given *given, int32_t entity, int64_t time, const double *values)
{
    uint32_t row = given->rows++;

    assert_true(row < MOST_ROWS);
    given->entity[row] = entity;
    given->time[row] = time;
    for (int c = 0; c < COLUMNS; c++) {
        given->singles[c][row] = (float)values[c];
        given->values[c][row] = values[c];
        if (!isnan(values[c]))
            given->validity[c][row / 8] |= (uint8_t)(1u << row % 8);
    }
}

/* `rows` rows of each of entities [first, end), times from `from` on, one entity behind the other.
 * Every `holes`-th value is missing; 0: none. */
TESTING void given_entities(struct given *given, int32_t first, int32_t end, uint32_t rows,
                            int64_t from, uint32_t holes)
{
    uint64_t state = (uint64_t)first * 7919 + (uint64_t)from + 1;

    for (int32_t e = first; e < end; e++)
        for (uint32_t i = 0; i < rows; i++) {
            double values[COLUMNS];
            for (int c = 0; c < COLUMNS; c++) {
                double value = (double)(random_next(&state) % 2000) / 8 - 100 * c + e;
                values[c] = holes && random_next(&state) % holes == 0 ? (double)NAN : value;
            }
            given_put(given, e, from + 10 * i, values);
        }
}

TESTING void given_shuffle(struct given *given)
{
    uint64_t state = 99;

    for (uint32_t i = given->rows; i-- > 1;) {
        uint32_t k = (uint32_t)(random_next(&state) % (i + 1));
        struct given old = {0};
        double a[COLUMNS], b[COLUMNS];
        for (int c = 0; c < COLUMNS; c++) {
            a[c] = given->values[c][i];
            b[c] = given->values[c][k];
        }
        old.entity[0] = given->entity[i];
        old.time[0] = given->time[i];
        given->entity[i] = given->entity[k];
        given->time[i] = given->time[k];
        given->entity[k] = old.entity[0];
        given->time[k] = old.time[0];
        for (int c = 0; c < COLUMNS; c++) {
            uint8_t bit_i = (uint8_t)(1u << i % 8), bit_k = (uint8_t)(1u << k % 8);
            given->values[c][i] = b[c];
            given->values[c][k] = a[c];
            given->singles[c][i] = (float)b[c];
            given->singles[c][k] = (float)a[c];
            given->validity[c][i / 8] &= (uint8_t)~bit_i;
            given->validity[c][k / 8] &= (uint8_t)~bit_k;
            given->validity[c][i / 8] |= isnan(b[c]) ? 0 : bit_i;
            given->validity[c][k / 8] |= isnan(a[c]) ? 0 : bit_k;
        }
    }
}

TESTING void series_begin(struct series_test *test)
{
    memset(test, 0, sizeof(*test));
    folder_new(test->folder);
    snprintf(test->out, sizeof(test->out), "%.4000s/out", test->folder);
    test->options.out = test->out;
    test->options.entity = "who";
    test->options.time = "when";
    test->is_single = 1;
}

TESTING void series_end(struct series_test *test)
{
    stk_context_free(test->context);
    folder_remove(test->folder);
}

TESTING stk_status series_pack(struct series_test *test, const struct given *given)
{
    static const char *const names[COLUMNS] = {"a", "b", "c"};
    struct made_column columns[2 + COLUMNS] = {
        {.name = "when", .format = "tss:UTC", .values = given->time},
        {.name = "who", .format = "i", .values = given->entity}};
    for (int c = 0; c < COLUMNS; c++)
        columns[2 + c] = (struct made_column){
            .name = names[c],
            .format = test->is_single ? "f" : "g",
            .values = test->is_single ? (const void *)given->singles[c] : given->values[c],
            .validity = given->validity[c]};
    struct made_table table = {.name = "dir/x.parquet",
                               .columns = columns,
                               .column_count = 2 + COLUMNS,
                               .rows = given->rows,
                               .batch = test->batch};
    struct made_tables made = {&table, 1, 0};
    struct stk_tables tables = {.user = &made, .next = made_tables_next, .rows = given->rows};
    stk_status status;

    test->options.features = names;
    test->options.feature_count = COLUMNS;
    status = stk_pack_series(test->context, &tables, &test->options, &test->result, &test->err);
    assert_int_equal(made_live, 0);
    return status;
}

TESTING void series_good(struct series_test *test, stk_status status)
{
    char words[2048];
    if (!status)
        return;
    stk_error_format(&test->err, words, sizeof(words));
    print_message("%s\n", words);
    assert_int_equal(status, STK_OK);
}

TESTING void series_refused(struct series_test *test, stk_status got, stk_status want,
                            const char *const *parts)
{
    char words[2048];

    stk_error_format(&test->err, words, sizeof(words));
    if (got != want)
        print_message("%s\n", words);
    assert_int_equal(got, want);
    for (; *parts; parts++) {
        if (!strstr(words, *parts))
            print_message("no '%s' in: %s\n", *parts, words);
        assert_non_null(strstr(words, *parts));
    }
}
#define REFUSED(test, got, want, ...)                                                              \
    series_refused(test, got, want, (const char *const[]){__VA_ARGS__, NULL})

/* --- what is found --------------------------------------------------------------------------- */

struct found {
    struct series_meta meta;
    char *array; /* rows x COLUMNS */
    size_t array_bytes;
    int64_t *times;
};

/* Loads the folder and checks what holds for every series: sizes, hashes, nothing beside it. */
TESTING void found_load(struct found *found, const struct series_test *test)
{
    struct stk_error err;
    size_t bytes;

    memset(found, 0, sizeof(*found));
    assert_int_equal(series_meta_load(&found->meta, test->out, &err), STK_OK);
    found->array = file_read(path_in(test->out, SERIES_ARRAY), &found->array_bytes);
    size_t row = found->meta.column_count * stk_dtype_size(found->meta.dtype);
    assert_true(found->array_bytes >= found->meta.rows * row);
    if (found->meta.time_column) {
        found->times = (int64_t *)(void *)file_read(path_in(test->out, SERIES_TIME), &bytes);
        assert_true(bytes >= found->meta.rows * sizeof(int64_t));
    }
    found->array_bytes = found->meta.rows * row;
    if (found->meta.has_hashes && access(path_in(test->out, SERIES_JOURNAL), F_OK)) {
        uint64_t *hashes = (uint64_t *)(void *)file_read(path_in(test->out, SERIES_HASHES), &bytes);
        assert_int_equal(bytes / 8, (found->array_bytes + SERIES_BLOCK - 1) / SERIES_BLOCK);
        for (size_t i = 0; i < bytes / 8; i++) {
            size_t at = i * SERIES_BLOCK, left = found->array_bytes - at;
            assert_int_equal(hashes[i], hash_bytes(found->array + at,
                                                   left < SERIES_BLOCK ? left : SERIES_BLOCK, i));
        }
        free(hashes);
    }
}

TESTING void found_free(struct found *found)
{
    series_meta_reset(&found->meta);
    free(found->array);
    free(found->times);
}

/* The rows of an entity by time, as pointers into `given`: at most MOST_ROWS. */
TESTING uint32_t given_sorted(const struct given *given, int32_t entity, uint32_t *out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < given->rows; i++) {
        if (given->entity[i] != entity)
            continue;
        uint32_t at = n++;
        for (; at && given->time[out[at - 1]] > given->time[i]; at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
    return n;
}

TESTING const struct series_entity *found_entity(const struct found *found, int32_t entity)
{
    char name[16];

    snprintf(name, sizeof(name), "%d", entity);
    for (uint64_t i = 0; i < found->meta.entity_count; i++)
        if (strcmp(found->meta.entities[i].name, name) == 0)
            return &found->meta.entities[i];
    return NULL;
}

/* Every row of `given` lies in its entity, in order, scaled by what the metadata says (f32), and
 * there are no others. */
TESTING void found_check(const struct found *found, const struct given *given, int32_t entities)
{
    static uint32_t rows[MOST_ROWS];
    uint64_t total = 0;

    for (int32_t e = 0; e < entities; e++) {
        uint32_t n = given_sorted(given, e, rows);
        const struct series_entity *entity = found_entity(found, e);
        assert_non_null(entity);
        assert_int_equal(entity->end - entity->start, n);
        total += n;
        for (uint32_t i = 0; i < n; i++) {
            const float *row =
                (const float *)(const void *)found->array + (entity->start + i) * COLUMNS;
            if (found->times)
                assert_int_equal(found->times[entity->start + i], given->time[rows[i]]);
            for (int c = 0; c < COLUMNS; c++) {
                const struct scaler_column *column = &found->meta.scaler.columns[c];
                double raw = given->values[c][rows[i]];
                float want =
                    (float)(found->meta.late ? raw : (raw - column->center) / column->scale);
                if (!isnan(raw))
                    assert_true(row[c] == want);
            }
        }
    }
    assert_int_equal(found->meta.rows - found->meta.unused_rows, total);
}

/* Nothing is left beside the series. */
TESTING void folder_is_clean(const struct series_test *test)
{
    assert_true(access(path_in(test->folder, ".out.part"), F_OK) != 0);
    assert_true(access(path_in(test->folder, ".out.old"), F_OK) != 0);
}

#endif
