/* series_fixture.h -- a small series written by hand, and all of its windows enumerated naively.
 * Owns: as loader_fixture.h; the list of windows, until series_close.   Threads: one.   Errors: a
 * failed assertion.   Not here: the tests. */
#ifndef TESTS_SERIES_FIXTURE_H
#define TESTS_SERIES_FIXTURE_H

#include "loader_fixture.h"

#define SERIES_COLUMNS 5
#define SERIES_ENTITIES 7
#define SERIES_ROWS 300

/* Entities do not cover all rows, do not begin at 0, and some are short. */
static const struct {
    uint32_t start, end, time, step; /* of the first row, and from row to row */
} series_entities[SERIES_ENTITIES] = {{2, 52, 100, 3},   {52, 59, 90, 10},  {60, 93, 100, 3},
                                      {93, 96, 0, 1},    {96, 190, 130, 1}, {190, 260, -50, 3},
                                      {260, 300, 100, 3}};

struct series_options {
    uint32_t window, horizon, stride, gap, pad, min_history;
    int late, no_time;
    int big; /* the array is a sparse file of 64 MiB more: too large to be mapped within 8 MiB */
    const char *const *features, *const *labels, *const *fields;
    uint32_t feature_count, label_count, field_count;
};

struct window {
    uint32_t entity, t; /* t: the last row */
    uint32_t sample;
};

struct series {
    struct fixture fixture;
    struct series_options options;
    struct window windows[SERIES_ROWS];
    uint32_t count;
};

static inline float series_value(uint32_t row, uint32_t column)
{
    return (float)(row * 8 + column) + 0.5f;
}

static inline int64_t series_time(uint32_t entity, uint32_t row)
{
    return (int64_t)(int32_t)series_entities[entity].time +
           (int64_t)(row - series_entities[entity].start) * series_entities[entity].step;
}

static inline double series_center(uint32_t column)
{
    return 100.25 * column;
}

static inline double series_scale(uint32_t column)
{
    return 1 << column;
}

static inline FILE *series_file(const struct series *series, const char *name)
{
    char path[256];
    fixture_path(&series->fixture, name, path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    return file;
}

static inline void series_write_arrays(const struct series *series)
{
    FILE *array = series_file(series, "all_features.mmap");
    for (uint32_t r = 0; r < SERIES_ROWS; r++)
        for (uint32_t c = 0; c < SERIES_COLUMNS; c++) {
            float value = series_value(r, c);
            assert_int_equal(fwrite(&value, sizeof value, 1, array), 1);
        }
    fclose(array);
    int64_t times[SERIES_ROWS] = {0};
    for (uint32_t e = 0; e < SERIES_ENTITIES; e++)
        for (uint32_t r = series_entities[e].start; r < series_entities[e].end; r++)
            times[r] = series_time(e, r);
    FILE *file = series_file(series, "time.mmap");
    assert_int_equal(fwrite(times, sizeof times, 1, file), 1);
    fclose(file);
}

/* More rows, which no entity has. */
static inline uint32_t series_grow(const struct series *series)
{
    uint32_t rows = SERIES_ROWS + (64 << 20) / (SERIES_COLUMNS * 4);
    char path[256];
    fixture_path(&series->fixture, "all_features.mmap", path, sizeof path);
    assert_int_equal(truncate(path, (off_t)rows * SERIES_COLUMNS * 4), 0);
    fixture_path(&series->fixture, "time.mmap", path, sizeof path);
    assert_int_equal(truncate(path, (off_t)rows * 8), 0);
    return rows;
}

static inline void series_write_metadata(const struct series *series, uint32_t rows)
{
    const struct series_options *options = &series->options;
    FILE *file = series_file(series, "metadata.json");
    fprintf(file, "{\"format\": \"stoker series\", \"version\": 1, \"features\": "
                  "[\"a\", \"b\", \"c\", \"d\", \"e\"], \"labels\": [\"b\"], ");
    fprintf(file, "\"dtype\": \"float32\", \"rows\": %u, \"scale\": \"%s\", ", rows,
            options->late ? "late" : "stored");
    if (!options->no_time)
        fprintf(file, "\"time\": {\"column\": \"t\", \"unit\": \"s\"}, ");
    fprintf(file, "\"scaler\": {\"kind\": \"standard\", \"features\": [\"a\", \"b\", \"c\", "
                  "\"d\", \"e\"], \"center\": [");
    for (uint32_t c = 0; c < SERIES_COLUMNS; c++)
        fprintf(file, "%s%.17g", c ? ", " : "", series_center(c));
    fprintf(file, "], \"scale\": [");
    for (uint32_t c = 0; c < SERIES_COLUMNS; c++)
        fprintf(file, "%s%.17g", c ? ", " : "", series_scale(c));
    fprintf(file, "]}, \"entities\": [");
    for (uint32_t e = 0; e < SERIES_ENTITIES; e++)
        fprintf(file, "%s{\"name\": \"e%u\", \"start\": %u, \"end\": %u}", e ? ", " : "", e,
                series_entities[e].start, series_entities[e].end);
    fprintf(file, "]}\n");
    fclose(file);
}

static inline void series_enumerate(struct series *series)
{
    const struct series_options *options = &series->options;
    uint32_t ahead = options->horizon ? options->gap + options->horizon : 0;
    uint32_t history = options->pad ? options->min_history : options->window;
    series->count = 0;
    for (uint32_t e = 0; e < SERIES_ENTITIES; e++)
        for (uint32_t t = series_entities[e].start + history - 1;
             t + ahead < series_entities[e].end; t += options->stride, series->count++)
            series->windows[series->count] = (struct window){e, t, series->count};
}

/* All zero is a window of 8 rows, 1 ahead, every row. */
static inline void series_open(struct series *series, struct series_options options)
{
    options.window = options.window ? options.window : 8;
    options.horizon = options.horizon ? options.horizon : 1;
    options.stride = options.stride ? options.stride : 1;
    options.min_history = options.min_history ? options.min_history : 1;
    fixture_folder(&series->fixture);
    series->options = options;
    series_write_arrays(series);
    series_write_metadata(series, options.big ? series_grow(series) : SERIES_ROWS);
    series_enumerate(series);
    struct stk_window_options window = {.window = options.window,
                                        .horizon = options.horizon,
                                        .stride = options.stride,
                                        .gap = options.gap,
                                        .min_history =
                                            options.pad ? options.min_history : STK_DEFAULT,
                                        .pad = (int)options.pad,
                                        .features = options.features,
                                        .feature_count = options.feature_count,
                                        .labels = options.labels,
                                        .label_count = options.label_count};
    struct stk_dataset_options opening = {
        .window = &window, .fields = options.fields, .field_count = options.field_count};
    fixture_open(&series->fixture, "", &opening);
    assert_int_equal(stk_dataset_samples(series->fixture.dataset), series->count);
}

static inline void series_close(struct series *series)
{
    fixture_close(&series->fixture);
}

#endif
