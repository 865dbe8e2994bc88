#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "codec/codec.h"
#include "pack/ingest_run.h"
#include "pack/rows_pack.h"

/* --- text to numbers ---------------------------------------------------------------------------
 */

stk_status ingest_memories_start(struct ingest_run *run, struct stk_error *err)
{
    for (uint32_t i = 0; i < run->schema.count; i++) {
        struct text_memory *memory = &run->memories[i];
        const struct arrow_column *view = &run->views[i];
        memory->last.data = NULL;
        memory->last_number = NAME_NONE;
        if (!view->type->is_dictionary)
            continue;
        uint64_t count = view->strings.count;
        if (count > memory->cap) {
            uint32_t *grown = memory_grow(memory->by_index, count * sizeof(*grown));
            if (!grown)
                return fail_memory(err, count * sizeof(*grown));
            memory->by_index = grown;
            memory->cap = count;
        }
        if (count)
            memset(memory->by_index, 0xFF, count * sizeof(*memory->by_index)); /* NAME_NONE */
    }
    return STK_OK;
}

stk_status ingest_name_check(const struct arrow_text *name, struct stk_error *err)
{
    struct stk_bytes bytes = {(const uint8_t *)name->data, name->len};

    if (memchr(name->data, '\0', name->len))
        return fail(err, STK_CORRUPT, "the text holds a NUL byte");
    return codec_find("text")->check(&bytes, err);
}

/* Codes that the column's type holds exactly: statics are float32, whatever the array is. */
static uint32_t most_categories(const struct ingest_run *run, uint32_t column)
{
    const struct series_ingest *ingest = run->ingest;
    enum stk_dtype dtype = ingest->known            ? ingest->known->dtype
                           : ingest->options->dtype ? stk_dtype_parse(ingest->options->dtype)
                                                    : STK_F32;

    if (column >= run->schema.array_count)
        return INGEST_MAX_CATEGORY;
    return dtype == STK_F16 ? 2049 : dtype == STK_BF16 ? 257 : INGEST_MAX_CATEGORY;
}

static stk_status fail_categories(uint32_t most, struct stk_error *err)
{
    stk_status status =
        fail(err, STK_LIMIT, "the column has more than %" PRIu32 " different texts", most);

    if (most < INGEST_MAX_CATEGORY)
        fail_remedy(err, "use --dtype f32: a narrower type does not hold so many codes exactly");
    else
        fail_remedy(err, "leave it out of --features: it does not look like a category");
    return status;
}

static stk_status category_code(struct ingest_run *run, uint32_t column,
                                const struct arrow_text *text, uint32_t *out, struct stk_error *err)
{
    struct name_table *table = &run->categories[run->schema.columns[column].category];

    *out = name_table_find(table, text->data, text->len);
    if (*out != NAME_NONE)
        return STK_OK;
    if (table->count >= most_categories(run, column))
        return fail_categories(most_categories(run, column), err);
    stk_status status = ingest_name_check(text, err);
    if (!status)
        status = name_table_add(table, text->data, text->len, err);
    *out = table->count - 1;
    return status;
}

/* NAME_NONE: missing. */
static stk_status category_at(struct ingest_run *run, uint32_t column, uint64_t row, uint32_t *out,
                              struct stk_error *err)
{
    const struct arrow_column *view = &run->views[column];
    struct text_memory *memory = &run->memories[column];
    uint64_t index = 0;
    struct arrow_text text;
    stk_status status;

    *out = NAME_NONE;
    if (view->type->is_dictionary) {
        if (!arrow_column_has(view, row))
            return STK_OK;
        index = arrow_column_index(view, row);
        *out = memory->by_index[index];
        if (*out != NAME_NONE || !arrow_strings_at(&view->strings, index, &text))
            return STK_OK;
        status = category_code(run, column, &text, out, err);
        memory->by_index[index] = *out;
        return status;
    }
    if (!arrow_strings_at(&view->strings, row, &text))
        return STK_OK;
    if (memory->last.data && memory->last.len == text.len &&
        !memcmp(memory->last.data, text.data, text.len)) {
        *out = memory->last_number;
        return STK_OK;
    }
    status = category_code(run, column, &text, out, err);
    memory->last = text;
    memory->last_number = *out;
    return status;
}

static stk_status fail_category(const struct ingest_run *run, uint32_t column, uint32_t row,
                                stk_status status, struct stk_error *err)
{
    const struct schema_column *found = &run->schema.columns[column];
    char words[200];

    snprintf(words, sizeof(words), "%.199s", err ? err->what : "");
    if (status == STK_CORRUPT)
        fail(err, status, "column %.60s, row %" PRIu64 ": %s", found->name,
             run->batch_row + run->chunk.first + row, words);
    return ingest_failed(run, found, status, err);
}

static stk_status category_numbers(struct ingest_run *run, uint32_t column,
                                   struct arrow_numbers *numbers, struct stk_error *err)
{
    numbers->values = numbers->scratch;
    numbers->inexact = numbers->n;
    numbers->is_finite = 1;
    for (uint32_t i = 0; i < numbers->n; i++) {
        uint32_t code;
        stk_status status = category_at(run, column, numbers->first + i, &code, err);
        if (status)
            return fail_category(run, column, i, status, err);
        numbers->is_finite &= code != NAME_NONE;
        if (numbers->dtype == STK_F32)
            ((float *)numbers->scratch)[i] = code == NAME_NONE ? NAN : (float)code;
        else
            ((double *)numbers->scratch)[i] = code == NAME_NONE ? (double)NAN : (double)code;
    }
    return STK_OK;
}

stk_status ingest_numbers(struct ingest_run *run, uint32_t column, struct arrow_numbers *numbers,
                          struct stk_error *err)
{
    numbers->first = run->chunk.first;
    numbers->n = run->chunk.rows;
    if (run->schema.columns[column].category != SCHEMA_NONE)
        return category_numbers(run, column, numbers, err);
    arrow_column_numbers(&run->views[column], numbers);
    return STK_OK;
}

/* --- values that will not do --------------------------------------------------------------------
 */

stk_status ingest_problem(const struct ingest_run *run, enum ingest_problem problem,
                          uint32_t column, uint32_t row, struct stk_error *err)
{
    const struct schema_column *found = &run->schema.columns[column];
    uint64_t at = run->batch_row + run->chunk.first + row;
    stk_status status = STK_CORRUPT;

    if (problem == PROBLEM_MISSING) {
        fail(err, status, "column %.60s has no value in row %" PRIu64, found->name, at);
        fail_remedy(err, "say what to do with missing values: --nan drop|ffill|mean|zero");
    } else if (problem == PROBLEM_INFINITE) {
        fail(err, status, "column %.60s is infinite in row %" PRIu64, found->name, at);
        fail_remedy(err, "replace it in the source, by null where the value is not known");
    } else {
        fail(err, status,
             "column %.60s has an integer beyond 2^53 in row %" PRIu64
             ", which no float64 holds exactly",
             found->name, at);
        fail_remedy(err, "cast the column to float64 to round it, or leave it out of --features");
    }
    return ingest_failed(run, found, status, err);
}

/* The first row that will not do, over all columns. */
struct problem {
    enum ingest_problem kind;
    uint32_t column, row;
};

static void note_problem(struct problem *problem, enum ingest_problem kind, uint32_t column,
                         uint32_t row)
{
    if (problem->kind == PROBLEM_NONE || row < problem->row)
        *problem = (struct problem){kind, column, row};
}

static inline double value_at(const void *values, enum stk_dtype dtype, uint32_t i)
{
    float single;
    double value;

    if (dtype == STK_F32) {
        memcpy(&single, (const char *)values + i * sizeof(single), sizeof(single));
        return (double)single;
    }
    memcpy(&value, (const char *)values + i * sizeof(value), sizeof(value));
    return value;
}

/* A column in which something is missing or infinite. */
static void look_closely(struct ingest_run *run, uint32_t column, const void *values,
                         struct problem *problem)
{
    struct series_ingest *ingest = run->ingest;
    enum stk_missing policy = ingest->options->missing;

    for (uint32_t i = 0; i < run->chunk.rows; i++) {
        double value = value_at(values, run->dtype, i);
        if (isfinite(value))
            continue;
        if (isinf(value)) {
            note_problem(problem, PROBLEM_INFINITE, column, i);
            return;
        }
        if (policy == STK_MISSING_ERROR) {
            note_problem(problem, PROBLEM_MISSING, column, i);
            return;
        }
        ingest->missing[column]++;
        if (policy == STK_MISSING_DROP)
            run->chunk.dropped[i] = 1;
    }
}

static stk_status gather_columns(struct ingest_run *run, struct stk_error *err)
{
    struct ingest_chunk *chunk = &run->chunk;
    size_t size = stk_dtype_size(run->dtype);
    struct problem problem = {0};

    for (uint32_t c = 0; c < run->schema.array_count; c++) {
        struct arrow_numbers numbers = {.dtype = run->dtype,
                                        .scratch = (char *)chunk->scratch +
                                                   (size_t)c * run->chunk_rows * size};
        stk_status status = ingest_numbers(run, c, &numbers, err);
        if (status)
            return status;
        chunk->sources[c] = numbers.values;
        if (numbers.inexact < chunk->rows)
            note_problem(&problem, PROBLEM_INEXACT, c, numbers.inexact);
        if (!numbers.is_finite && !rows_all_finite(numbers.values, chunk->rows, run->dtype))
            look_closely(run, c, numbers.values, &problem);
    }
    if (problem.kind != PROBLEM_NONE)
        return ingest_problem(run, problem.kind, problem.column, problem.row, err);
    return STK_OK;
}

/* --- rows ----------------------------------------------------------------------------------------
 */

static stk_status gather_times(struct ingest_run *run, int64_t *to, struct stk_error *err)
{
    const struct ingest_chunk *chunk = &run->chunk;
    const struct arrow_column *view = &run->views[run->schema.time];
    const struct schema_column *column = &run->schema.columns[run->schema.time];
    uint32_t good = arrow_column_times(view, chunk->first, chunk->rows, to);

    if (good == chunk->rows)
        return STK_OK;
    stk_status status =
        fail(err, STK_CORRUPT, "the time, column %.60s, %s in row %" PRIu64, column->name,
             arrow_column_has(view, chunk->first + good) ? "is beyond 2^63" : "has no value",
             run->batch_row + chunk->first + good);
    fail_remedy(err, "every row needs a time: leave such rows out of the source");
    return ingest_failed(run, column, status, err);
}

/* Moves the rows that stay together. */
static void close_ranks(struct ingest_run *run, char *values, int64_t *times)
{
    struct ingest_chunk *chunk = &run->chunk;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < chunk->rows; i++) {
        if (chunk->dropped[i])
            continue;
        if (kept != i)
            memcpy(values + kept * run->row_bytes, values + i * run->row_bytes, run->row_bytes);
        if (times)
            times[kept] = times[i];
        chunk->origin[kept++] = i;
    }
    run->ingest->dropped_rows += chunk->rows - kept;
    chunk->kept = kept;
}

stk_status ingest_values(struct ingest_run *run, struct stk_error *err)
{
    struct ingest_chunk *chunk = &run->chunk;
    char *values = (char *)run->block.values + run->block.rows * run->row_bytes;
    int64_t *times = run->block.times ? run->block.times + run->block.rows : NULL;
    int drops = run->ingest->options->missing == STK_MISSING_DROP;

    if (drops)
        memset(chunk->dropped, 0, chunk->rows);
    stk_status status = gather_columns(run, err);
    if (!status && times)
        status = gather_times(run, times, err);
    if (status)
        return status;
    rows_pack(values, chunk->sources, run->schema.array_count, chunk->rows, run->dtype);
    chunk->kept = chunk->rows;
    if (drops && memchr(chunk->dropped, 1, chunk->rows)) {
        close_ranks(run, values, times);
        return STK_OK;
    }
    for (uint32_t i = 0; i < chunk->rows; i++)
        chunk->origin[i] = i;
    return STK_OK;
}
