/* The grid: rows of arrays. A field is one or more runs of rows that lie one after the other. */
#include <stdio.h>

#include "base/fail.h"
#include "index/index_view.h"

/* The run that holds a row; most fields have one. */
static stk_status grid_run(const struct index *index, uint32_t field, uint64_t sample,
                           const struct index_file_run **out, struct stk_error *err)
{
    const struct index_file_run *runs = index_section(index, INDEX_RUNS);
    uint64_t low = index->file_fields[field].first_run;
    uint64_t high = low + index->file_fields[field].run_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const struct index_file_run *run = &runs[middle];
        stk_status status =
            index_touch(index, INDEX_RUNS, middle * sizeof(*run), sizeof(*run), err);
        if (status)
            return status;
        if (sample < run->first) {
            high = middle;
        } else if (sample - run->first >= run->rows) {
            low = middle + 1;
        } else {
            *out = run;
            return STK_OK;
        }
    }
    return index_fail_extent(index, sample, err);
}

static stk_status grid_extent(const struct index *index, uint32_t field, uint64_t row_size,
                              uint64_t sample, struct extent *out, struct stk_error *err)
{
    const struct index_file_run *run = NULL;
    stk_status status = grid_run(index, field, sample, &run, err);
    if (status)
        return status;
    uint64_t offset;
    if (!checked_mul(sample - run->first, row_size, &offset) ||
        !checked_add(run->offset, offset, &offset))
        return index_fail_extent(index, sample, err);
    *out = (struct extent){offset, row_size, run->object};
    return index_place(index, sample, out, err);
}

static stk_status grid_resolve(const struct index *index, const uint64_t *samples, uint32_t n,
                               struct extent *out, struct stk_error *err)
{
    uint32_t fields = index->header.field_count;
    for (uint32_t i = 0; i < n; i++) {
        if (samples[i] >= index->header.samples)
            return fail(err, STK_NOT_FOUND, "the index has no sample %llu",
                        (unsigned long long)samples[i]);
    }
    for (uint32_t f = 0; f < fields; f++) {
        uint64_t row_size = stk_tensor_size(&index->fields[f].row);
        for (uint32_t i = 0; i < n; i++) {
            stk_status status =
                grid_extent(index, f, row_size, samples[i], &out[(uint64_t)i * fields + f], err);
            if (status)
                return status;
        }
    }
    return STK_OK;
}

static stk_status grid_key(const struct index *index, uint64_t sample, char *scratch,
                           struct stk_bytes *key, struct stk_error *err)
{
    (void)index;
    (void)err;
    int len = snprintf(scratch, INDEX_KEY_SCRATCH, "%llu", (unsigned long long)sample);
    *key = (struct stk_bytes){(const uint8_t *)scratch, (size_t)len};
    return STK_OK;
}

const struct index_ops grid_index_ops = {.resolve = grid_resolve, .key = grid_key};
