#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/parse.h"
#include "dataset/series_state.h"

/* What is asked of an open series. */

/* Bytes of an entity's name that every key begins with; long ones are cut. */
#define VIEW_PREFIX 64

const struct stk_series_info *stk_dataset_series(const struct stk_dataset *dataset)
{
    return dataset->source->series ? &dataset->source->series->info : NULL;
}

stk_status stk_dataset_entity(const struct stk_dataset *dataset, uint64_t number, const char **name,
                              uint64_t *start, uint64_t *end, struct stk_error *err)
{
    const struct series *series = dataset->source->series;
    *name = "";
    *start = *end = 0;
    if (!series)
        return fail(err, STK_USAGE, "the dataset is no series: it has no entities");
    if (number >= series->meta.entity_count)
        return fail(err, STK_NOT_FOUND, "entity %" PRIu64 " is past the last of %" PRIu64, number,
                    series->meta.entity_count);
    const struct series_entity *entity = &series->meta.entities[number];
    *name = entity->name;
    *start = entity->start;
    *end = entity->end;
    return STK_OK;
}

uint32_t dataset_time_object(const struct stk_dataset *dataset)
{
    return dataset->source->series ? dataset->source->series->time_object : SERIES_NO_OBJECT;
}

/* ---- from rows to samples ------------------------------------------------------------------ */

/* The first of a run's samples whose last row is not before `row`; its count: none. */
static uint64_t first_at(const struct windows_run *run, uint64_t stride, uint64_t row)
{
    if (row <= run->last_row)
        return 0;
    uint64_t steps = (row - run->last_row - 1) / stride + 1;
    return steps < run->count ? steps : run->count;
}

/* The first of a run's samples that takes something from first .. last; its count: none. */
static uint64_t first_in_run(const struct series *series, const struct windows_run *run,
                             uint64_t stride, uint64_t first, uint64_t last)
{
    const struct stk_series_info *info = &series->info;
    struct series_range rows = series_rows(series, run->entity);
    uint64_t past = info->window - 1, reach = info->gap + info->horizon, found = run->count;
    if (last < rows.start || first >= rows.end)
        return found;
    uint64_t x = first_at(run, stride, first);
    if (x < run->count && run->last_row + x * stride <= last + past)
        found = x;
    uint64_t y = first_at(run, stride, first > reach ? first - reach : 0);
    if (info->horizon && y < found && run->last_row + y * stride + info->gap < last)
        found = y;
    return found;
}

uint64_t series_first_sample(const struct dataset_source *source, uint64_t first, uint64_t last)
{
    uint64_t count = 0, stride = windows_index_stride(source->index);
    const struct windows_run *runs = windows_index_runs(source->index, &count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t found = first_in_run(source->series, &runs[i], stride, first, last);
        if (found < runs[i].count)
            return runs[i].first + found;
    }
    return STK_NOWHERE;
}

/* ---- from keys to samples ------------------------------------------------------------------ */

/* ENTITY:START; an entity's name may hold colons too. start is below 0 where a window is padded. */
static int key_start(const char *key, size_t len, int64_t *start)
{
    const char *colon = memrchr(key, ':', len);
    return colon && parse_i64(colon + 1, (size_t)(key + len - colon - 1), start);
}

/* The sample of a run whose window begins at row start of its entity, if there is one. */
static uint64_t sample_at(const struct dataset_source *source, const struct windows_run *run,
                          int64_t start)
{
    const struct series *series = source->series;
    uint64_t stride = windows_index_stride(source->index);
    uint64_t last = series->meta.entities[run->entity].start + series->info.window - 1;
    last += (uint64_t)start; /* wraps below 0 as it should */
    if (last < run->last_row || (last - run->last_row) % stride ||
        (last - run->last_row) / stride >= run->count)
        return STK_NOWHERE;
    return run->first + (last - run->last_row) / stride;
}

uint64_t series_find_key(const struct dataset_source *source, const char *key)
{
    size_t len = strlen(key);
    uint64_t count = 0;
    const struct windows_run *runs = windows_index_runs(source->index, &count);
    int64_t start;
    if (!key_start(key, len, &start))
        return STK_NOWHERE;
    for (uint64_t i = 0; i < count; i++) {
        const char *name = source->series->meta.entities[runs[i].entity].name;
        char scratch[INDEX_KEY_SCRATCH];
        struct stk_bytes own;
        if (strncmp(name, key, strnlen(name, VIEW_PREFIX))) /* most are out at once */
            continue;
        uint64_t sample = sample_at(source, &runs[i], start);
        if (sample == STK_NOWHERE || index_key(source->index, sample, scratch, &own, NULL))
            continue;
        if (own.len == len && !memcmp(own.data, key, len))
            return sample;
    }
    return STK_NOWHERE;
}
