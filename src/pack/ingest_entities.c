#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/ingest_run.h"
#include "pack/series_split.h"

/* What names a file's kind, and is no part of an entity's name. */
static const char *const kinds[] = {
    ".parquet", ".pq",    ".csv", ".tsv", ".txt", ".orc", ".arrow", ".ipc", ".arrows", ".feather",
    ".json",    ".jsonl", ".gz",  ".zst", ".bz2", ".lz4", ".xz",    ".br",  ".snappy"};

/* --- names ----------------------------------------------------------------------------------- */

static int cut_kind(struct arrow_text *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t len = strlen(kinds[i]);
        if (name->len > len && !strncasecmp(name->data + name->len - len, kinds[i], len)) {
            name->len -= len;
            return 1;
        }
    }
    return 0;
}

void ingest_stem(const char *table, struct arrow_text *out)
{
    const char *slash = strrchr(table, '/');

    out->data = slash && slash[1] ? slash + 1 : table;
    out->len = strlen(out->data);
    while (cut_kind(out))
        ;
}

/* "b/x" of "a/b/x.parquet": data moves to the folder above. 0: there is none. */
static int add_folder(const char *table, struct arrow_text *name)
{
    const char *end = name->data + name->len, *start = name->data;

    if (start < table + 2)
        return 0;
    for (start--; start > table && start[-1] != '/'; start--)
        ;
    if (start + 1 == name->data) /* nothing between two slashes */
        return 0;
    *name = (struct arrow_text){start, (size_t)(end - start)};
    return 1;
}

static stk_status grow_entities(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    uint64_t cap = run->entity_cap ? 2 * run->entity_cap : 64;
    struct ingest_entity *entities = memory_grow(ingest->entities, cap * sizeof(*ingest->entities));

    if (!entities)
        return fail_memory(err, cap * sizeof(*entities));
    ingest->entities = entities;
    struct ingest_place *places = memory_grow(run->places, cap * sizeof(*places));
    if (!places)
        return fail_memory(err, cap * sizeof(*places));
    run->places = places;
    run->entity_cap = cap;
    return STK_OK;
}

/* The name itself lies in run->names until the end. */
static stk_status add_entity(struct ingest_run *run, const struct arrow_text *name,
                             struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    uint32_t statics = run->schema.static_count;
    struct ingest_entity entity = {0};
    stk_status status = STK_OK;

    if (ingest->entity_count == run->entity_cap)
        status = grow_entities(run, err);
    if (!status)
        status = name_table_add(&run->names, name->data, name->len, err);
    if (status)
        return status;
    if (statics) {
        entity.statics = memory_alloc(statics * sizeof(*entity.statics));
        if (!entity.statics)
            return fail_memory(err, statics * sizeof(*entity.statics));
    }
    for (uint32_t i = 0; i < statics; i++)
        entity.statics[i] = (double)NAN;
    run->places[ingest->entity_count] = (struct ingest_place){0};
    ingest->entities[ingest->entity_count++] = entity;
    return STK_OK;
}

stk_status ingest_entities_start(struct ingest_run *run, struct stk_error *err)
{
    const struct series_meta *known = run->ingest->known;
    stk_status status = STK_OK;

    for (uint64_t i = 0; known && i < known->entity_count && !status; i++) {
        struct arrow_text name = {known->entities[i].name, strlen(known->entities[i].name)};
        status = add_entity(run, &name, err);
    }
    return status;
}

/* --- one entity a table ------------------------------------------------------------------------
 */

static int came_before(const struct ingest_run *run, uint32_t number)
{
    return number != NAME_NONE && run->ingest->entities[number].rows > 0;
}

/* The file's stem; where another table of this run has it, with the folder in front. */
static stk_status name_table_at_hand(struct ingest_run *run, struct stk_error *err)
{
    const char *table = ingest_table(run);
    struct arrow_text name = {table, strlen(table)};

    if (!run->own_names)
        ingest_stem(table, &name);
    uint32_t number = name_table_find(&run->names, name.data, name.len);
    if (came_before(run, number) && !run->own_names && add_folder(table, &name))
        number = name_table_find(&run->names, name.data, name.len);
    if (came_before(run, number)) {
        const char *other = run->tables[run->places[number].table];
        stk_status status =
            fail(err, STK_USAGE, "the entity would be called %.*s, as that of %.150s",
                 (int)(name.len < 80 ? name.len : 80), name.data, other);
        fail_remedy(err, "rename one of the files, or name entities by a column: --entity COL");
        return ingest_failed(run, NULL, status, err);
    }
    stk_status status = STK_OK;
    if (number == NAME_NONE) {
        status = ingest_name_check(&name, err);
        if (!status)
            status = add_entity(run, &name, err);
        number = run->names.count - 1;
    }
    if (status)
        return ingest_failed(run, NULL, status, err);
    run->table_entity = number;
    return STK_OK;
}

static stk_status resolve_table(struct ingest_run *run, struct stk_error *err)
{
    stk_status status = STK_OK;

    if (run->table_entity == NAME_NONE)
        status = name_table_at_hand(run, err);
    for (uint32_t i = 0; i < run->chunk.kept && !status; i++)
        run->chunk.numbers[i] = run->table_entity;
    return status;
}

/* --- a column of entities ------------------------------------------------------------------------
 */

static stk_status fail_entity(const struct ingest_run *run, uint64_t row, stk_status status,
                              const char *words, struct stk_error *err)
{
    const struct schema_column *column = &run->schema.columns[run->schema.entity];

    fail(err, status, "the entity, column %.60s, %s in row %" PRIu64, column->name, words,
         run->batch_row + row);
    fail_remedy(err, "every row needs an entity: leave such rows out of the source");
    return ingest_failed(run, column, status, err);
}

static stk_status find_entity(struct ingest_run *run, const struct arrow_text *name, uint64_t row,
                              uint32_t *out, struct stk_error *err)
{
    *out = name_table_find(&run->names, name->data, name->len);
    if (*out != NAME_NONE)
        return STK_OK;
    if (!name->len)
        return fail_entity(run, row, STK_CORRUPT, "is an empty text", err);
    if (ingest_name_check(name, err))
        return fail_entity(run, row, STK_CORRUPT, "is not UTF-8, or holds a NUL byte,", err);
    stk_status status = add_entity(run, name, err);
    *out = run->names.count - 1;
    return status;
}

static stk_status entity_by_integer(struct ingest_run *run, uint64_t row, uint32_t *out,
                                    struct stk_error *err)
{
    const struct arrow_column *view = &run->views[run->schema.entity];
    struct text_memory *memory = &run->memories[run->schema.entity];
    int64_t value = arrow_column_integer(view, row);
    char digits[24];

    *out = memory->last_number;
    if (*out != NAME_NONE && value == memory->last_integer)
        return STK_OK;
    int len = view->type->kind == ARROW_U64
                  ? snprintf(digits, sizeof(digits), "%" PRIu64, (uint64_t)value)
                  : snprintf(digits, sizeof(digits), "%" PRId64, value);
    struct arrow_text name = {digits, (size_t)len};
    stk_status status = find_entity(run, &name, row, out, err);
    memory->last_integer = value;
    memory->last_number = status ? NAME_NONE : *out;
    return status;
}

static stk_status entity_by_text(struct ingest_run *run, uint64_t row, uint32_t *out,
                                 struct stk_error *err)
{
    const struct arrow_column *view = &run->views[run->schema.entity];
    struct text_memory *memory = &run->memories[run->schema.entity];
    struct arrow_text name;

    if (view->type->is_dictionary) {
        uint64_t index = arrow_column_index(view, row);
        *out = memory->by_index[index];
        if (*out != NAME_NONE)
            return STK_OK;
        if (!arrow_strings_at(&view->strings, index, &name))
            return fail_entity(run, row, STK_CORRUPT, "has no value", err);
        stk_status status = find_entity(run, &name, row, out, err);
        memory->by_index[index] = status ? NAME_NONE : *out;
        return status;
    }
    (void)arrow_strings_at(&view->strings, row, &name); /* it has a value: the caller looked */
    *out = memory->last_number;
    if (memory->last.data && memory->last.len == name.len &&
        !memcmp(memory->last.data, name.data, name.len))
        return STK_OK;
    stk_status status = find_entity(run, &name, row, out, err);
    memory->last = status ? (struct arrow_text){0} : name;
    memory->last_number = *out;
    return status;
}

static stk_status resolve_column(struct ingest_run *run, struct stk_error *err)
{
    const struct arrow_column *view = &run->views[run->schema.entity];
    struct ingest_chunk *chunk = &run->chunk;
    int is_text = arrow_type_is_text(view->type);
    stk_status status = STK_OK;

    for (uint32_t i = 0; i < chunk->kept && !status; i++) {
        uint64_t row = chunk->first + chunk->origin[i];
        if (!arrow_column_has(view, row))
            return fail_entity(run, row, STK_CORRUPT, "has no value", err);
        status = is_text ? entity_by_text(run, row, &chunk->numbers[i], err)
                         : entity_by_integer(run, row, &chunk->numbers[i], err);
    }
    return status;
}

/* --- order ---------------------------------------------------------------------------------------
 */

static uint64_t table_row(const struct ingest_run *run, uint32_t kept)
{
    return run->batch_row + run->chunk.first + run->chunk.origin[kept];
}

static stk_status fail_twice(const struct ingest_run *run, uint32_t kept,
                             struct ingest_place before, struct stk_error *err)
{
    const struct schema_column *column = &run->schema.columns[run->schema.time];
    char words[64];

    series_time_format(run->block.times[run->block.rows + kept], column->type.unit, words,
                       sizeof(words));
    fail(err, STK_CORRUPT,
         "entity %.60s has the time %s twice: in row %" PRIu64 " of %.90s and in row %" PRIu64,
         run->names.names[run->chunk.numbers[kept]], words, before.row, run->tables[before.table],
         table_row(run, kept));
    fail_remedy(err, "leave one of the rows out of the source, or name what tells them apart with "
                     "--entity");
    return ingest_failed(run, column, STK_CORRUPT, err);
}

/* Rows [from, to) of the chunk are of one entity. */
static stk_status follow_times(struct ingest_run *run, uint32_t number, uint32_t from, uint32_t to,
                               struct stk_error *err)
{
    struct ingest_entity *entity = &run->ingest->entities[number];
    const int64_t *times = run->block.times + run->block.rows;
    uint32_t i = from;

    if (!entity->rows)
        entity->last_time = times[i++];
    else if (times[i] == entity->last_time)
        return fail_twice(run, i, run->places[number], err);
    int64_t last = entity->last_time;
    for (; i < to; i++) {
        if (times[i] <= last) {
            if (times[i] == last)
                return fail_twice(
                    run, i, (struct ingest_place){table_row(run, i - 1), run->table_count - 1},
                    err);
            run->ingest->is_ordered = 0;
        }
        last = times[i];
    }
    entity->last_time = last;
    return STK_OK;
}

static stk_status add_rows(struct ingest_run *run, uint32_t from, uint32_t to,
                           struct stk_error *err)
{
    uint32_t number = run->chunk.numbers[from];
    struct ingest_entity *entity = &run->ingest->entities[number];
    stk_status status = STK_OK;

    if (number != run->last_entity) {
        if (entity->rows || (run->last_entity != NAME_NONE && number < run->last_entity))
            run->ingest->is_grouped = 0;
        run->last_entity = number;
    }
    if (run->block.times)
        status = follow_times(run, number, from, to, err);
    if (status)
        return status;
    if (!entity->rows)
        entity->first_row = run->ingest->rows + from;
    entity->rows += to - from;
    run->places[number] = (struct ingest_place){table_row(run, to - 1), run->table_count - 1};
    return STK_OK;
}

static stk_status follow_order(struct ingest_run *run, struct stk_error *err)
{
    const uint32_t *numbers = run->chunk.numbers;
    stk_status status = STK_OK;

    for (uint32_t from = 0, to; from < run->chunk.kept && !status; from = to) {
        for (to = from + 1; to < run->chunk.kept && numbers[to] == numbers[from]; to++)
            ;
        status = add_rows(run, from, to, err);
    }
    return status;
}

/* --- statics -------------------------------------------------------------------------------------
 */

static void write_static(const struct ingest_run *run, uint32_t column, double value, char *out,
                         size_t cap)
{
    uint32_t category = run->schema.columns[column].category;

    if (category == SCHEMA_NONE)
        snprintf(out, cap, "%.9g", value);
    else
        snprintf(out, cap, "%.60s", run->categories[category].names[(uint32_t)value]);
}

static stk_status fail_static(const struct ingest_run *run, uint32_t column, uint32_t kept,
                              double value, struct stk_error *err)
{
    const struct schema_column *found = &run->schema.columns[column];
    uint32_t number = run->chunk.numbers[kept];
    char before[64], now[64];

    write_static(run, column,
                 run->ingest->entities[number].statics[column - run->schema.array_count], before,
                 sizeof(before));
    write_static(run, column, value, now, sizeof(now));
    fail(err, STK_CORRUPT,
         "static column %.60s of entity %.60s is %s before and %s in row %" PRIu64, found->name,
         run->names.names[number], before, now, table_row(run, kept));
    fail_remedy(err, "a static has one value an entity: make it a feature instead");
    return ingest_failed(run, found, STK_CORRUPT, err);
}

/* What is missing is NaN until another row says it, where missing values are allowed at all. */
static stk_status follow_static(struct ingest_run *run, uint32_t column, struct stk_error *err)
{
    struct ingest_chunk *chunk = &run->chunk;
    uint32_t at = column - run->schema.array_count;
    struct arrow_numbers numbers = {.dtype = STK_F64, .scratch = chunk->statics};
    stk_status status = ingest_numbers(run, column, &numbers, err);

    if (status)
        return status;
    if (numbers.inexact < chunk->rows)
        return ingest_problem(run, PROBLEM_INEXACT, column, numbers.inexact, err);
    for (uint32_t i = 0; i < chunk->kept; i++) {
        uint32_t row = chunk->origin[i];
        double value, *known = &run->ingest->entities[chunk->numbers[i]].statics[at];
        memcpy(&value, (const char *)numbers.values + row * sizeof(value), sizeof(value));
        if (value == *known)
            continue;
        if (isinf(value))
            return ingest_problem(run, PROBLEM_INFINITE, column, row, err);
        if (isnan(value) && run->ingest->options->missing == STK_MISSING_ERROR)
            return ingest_problem(run, PROBLEM_MISSING, column, row, err);
        if (isnan(value))
            continue;
        if (!isnan(*known))
            return fail_static(run, column, i, value, err);
        *known = value;
    }
    return STK_OK;
}

stk_status ingest_entities(struct ingest_run *run, struct stk_error *err)
{
    const struct series_schema *schema = &run->schema;
    stk_status status;

    if (!run->chunk.kept)
        return STK_OK;
    status = schema->entity == SCHEMA_NONE ? resolve_table(run, err) : resolve_column(run, err);
    for (uint32_t i = 0; i < schema->static_count && !status; i++)
        status = follow_static(run, schema->array_count + i, err);
    return status ? status : follow_order(run, err);
}
