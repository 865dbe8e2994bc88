#include "pack/series_ingest.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/ingest_run.h"

/* What the spool writes at once, without a copy of its own. It is still in the second-level cache
 * when it is hashed and written: 2 MiB took a tenth longer for the whole pack. */
#define BLOCK_BYTES ((size_t)1 << 20)
#define CHUNK_BYTES ((size_t)256 << 10) /* in and out together stay in the second-level cache */
#define CHUNK_MAX 4096
#define CHUNK_MIN 16
#define MOST_SKETCHES 64 /* 2.6 MB of them */
#define VALUES_NAME "rows.spool"
#define TIMES_NAME "times.spool"

const char *ingest_table(const struct ingest_run *run)
{
    return run->tables[run->table_count - 1];
}

stk_status ingest_failed(const struct ingest_run *run, const struct schema_column *column,
                         stk_status status, struct stk_error *err)
{
    fail_at(err, ingest_table(run), STK_NOWHERE);
    if (column)
        fail_field(err, column->name);
    return status;
}

/* --- blocks --------------------------------------------------------------------------------------
 */

/* The fit sees pieces of FIT_BLOCK rows from the block's beginning, so that its result does not
 * depend on how the tables were cut into batches. Columns as they came, where they are whole
 * pieces: nothing has to be turned back for the fit. */
static void fit_columns(struct ingest_run *run)
{
    struct fit *fit = run->ingest->fit;
    const struct ingest_chunk *chunk = &run->chunk;
    uint32_t whole = chunk->rows / FIT_BLOCK * FIT_BLOCK;

    if (!fit || !whole || chunk->kept < chunk->rows || run->fitted < run->block.rows)
        return;
    for (uint32_t c = 0; c < run->schema.array_count; c++)
        fit_add(fit, c, chunk->sources[c], run->dtype, whole, 1);
    run->fitted += whole;
}

/* The rest, from the block: rows that wait until their piece is whole, or the block is. */
static void fit_rows(struct ingest_run *run, int is_last)
{
    struct fit *fit = run->ingest->fit;

    while (fit && run->fitted < run->block.rows) {
        uint32_t left = run->block.rows - run->fitted;
        uint32_t rows = left < FIT_BLOCK ? left : FIT_BLOCK;
        if (rows < FIT_BLOCK && !is_last)
            return;
        fit_add_rows(fit, (char *)run->block.values + run->fitted * run->row_bytes, run->dtype,
                     rows);
        run->fitted += rows;
    }
}

static stk_status spool_block(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;

    fit_rows(run, 1);
    if (!run->block.rows)
        return STK_OK;
    stk_status status = row_spool_append(ingest->spool, &run->block, err);
    run->block.rows = run->fitted = 0;
    return status;
}

static stk_status report(struct ingest_run *run, uint64_t total, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    uint64_t done = ingest->rows + ingest->dropped_rows;
    struct stk_progress progress = {.what = "packing",
                                    .unit = "rows",
                                    .done = done,
                                    .total = total >= done ? total : 0,
                                    .bytes = ingest->rows * run->row_bytes};

    if (context_progress(ingest->context, &run->timer, &progress))
        return fail(err, STK_CANCELLED, "stopped on request");
    return STK_OK;
}

/* --- batches -------------------------------------------------------------------------------------
 */

static stk_status add_chunk(struct ingest_run *run, struct stk_error *err)
{
    struct ingest_chunk *chunk = &run->chunk;
    stk_status status = ingest_values(run, err);

    if (!status)
        status = ingest_entities(run, err);
    if (status)
        return status;
    if (run->block.entities && chunk->kept)
        memcpy(run->block.entities + run->block.rows, chunk->numbers,
               chunk->kept * sizeof(*chunk->numbers));
    fit_columns(run);
    run->block.rows += chunk->kept;
    run->ingest->rows += chunk->kept;
    fit_rows(run, 0);
    return run->block.rows == run->block_rows ? spool_block(run, err) : STK_OK;
}

static stk_status look_at_batch(struct ingest_run *run, const struct ArrowArray *batch,
                                struct stk_error *err)
{
    stk_status status = arrow_batch_check(batch, run->batch_width, err);

    if (status)
        return ingest_failed(run, NULL, status, err);
    for (uint32_t i = 0; i < run->schema.count; i++) {
        const struct schema_column *column = &run->schema.columns[i];
        status = arrow_column_init(&run->views[i], &column->type, batch, column->child, err);
        if (status)
            return ingest_failed(run, column, status, err);
    }
    return ingest_memories_start(run, err);
}

/* How many go through next: what the block has room for, and at first only up to a piece's end. */
static uint32_t next_rows(const struct ingest_run *run, uint64_t left)
{
    uint32_t rows = run->block_rows - run->block.rows;
    uint32_t piece = FIT_BLOCK - run->block.rows % FIT_BLOCK;

    rows = rows < run->chunk_rows ? rows : run->chunk_rows;
    rows = piece < FIT_BLOCK && piece < rows ? piece : rows;
    return left < rows ? (uint32_t)left : rows;
}

static stk_status add_batch(struct ingest_run *run, const struct ArrowArray *batch, uint64_t total,
                            struct stk_error *err)
{
    stk_status status = look_at_batch(run, batch, err);
    uint64_t rows = status ? 0 : (uint64_t)batch->length;

    for (uint64_t first = 0; first < rows && !status;) {
        run->chunk.first = first;
        run->chunk.rows = next_rows(run, rows - first);
        first += run->chunk.rows;
        status = add_chunk(run, err);
        if (!status)
            status = report(run, total, err);
    }
    run->batch_row += rows;
    return status;
}

/* --- what the first table decides ----------------------------------------------------------------
 */

static stk_status make_chunk(struct ingest_run *run, struct stk_error *err)
{
    struct ingest_chunk *chunk = &run->chunk;
    size_t fits = CHUNK_BYTES / run->row_bytes;
    uint32_t rows = (uint32_t)(fits < CHUNK_MIN ? CHUNK_MIN : fits > CHUNK_MAX ? CHUNK_MAX : fits);

    run->chunk_rows = rows < FIT_BLOCK ? rows : rows / FIT_BLOCK * FIT_BLOCK;
    rows = run->chunk_rows;
    chunk->origin = memory_zero(rows, sizeof(*chunk->origin));
    chunk->dropped = memory_zero(rows, 1);
    chunk->numbers = memory_zero(rows, sizeof(*chunk->numbers));
    chunk->statics = memory_zero(rows, sizeof(*chunk->statics));
    chunk->scratch = memory_zero(rows, run->row_bytes);
    chunk->sources = memory_zero(run->schema.array_count, sizeof(*chunk->sources));
    if (!chunk->origin || !chunk->dropped || !chunk->numbers || !chunk->statics ||
        !chunk->scratch || !chunk->sources)
        return fail_memory(err, rows * run->row_bytes);
    return STK_OK;
}

static stk_status make_block(struct ingest_run *run, struct stk_error *err)
{
    size_t fits = BLOCK_BYTES / run->row_bytes;
    size_t rows = fits < CHUNK_MIN   ? CHUNK_MIN
                  : fits < FIT_BLOCK ? fits
                                     : fits / FIT_BLOCK * FIT_BLOCK;

    run->block_rows = (uint32_t)rows;
    run->block.values = memory_map(rows * run->row_bytes);
    if (run->schema.time != SCHEMA_NONE)
        run->block.times = memory_zero(rows, sizeof(*run->block.times));
    if (run->schema.entity != SCHEMA_NONE || run->ingest->known)
        run->block.entities = memory_zero(rows, sizeof(*run->block.entities));
    if (!run->block.values || (run->schema.time != SCHEMA_NONE && !run->block.times) ||
        ((run->schema.entity != SCHEMA_NONE || run->ingest->known) && !run->block.entities))
        return fail_memory(err, rows * run->row_bytes);
    return STK_OK;
}

/* The rows are the array already when they are not scaled, and what is asked for is what they are.
 */
static stk_status open_spool(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    const struct stk_series_options *options = ingest->options;
    int wants_f32 = !options->dtype || stk_dtype_parse(options->dtype) == STK_F32;
    struct row_spool_options spool = {
        .folder_fd = ingest->folder_fd,
        .label = ingest->label,
        .dtype = run->dtype,
        .columns = run->schema.array_count,
        .has_times = run->block.times != NULL,
        .has_entities = run->block.entities != NULL,
        .values_name = VALUES_NAME,
        .times_name = TIMES_NAME,
        .is_final = options->scale == STK_SCALE_LATE && wants_f32 && run->dtype == STK_F32 &&
                    !ingest->known,
    };

    return row_spool_open(&ingest->spool, &spool, err);
}

static const struct series_category *find_known(const struct series_meta *known, const char *column)
{
    for (uint32_t i = 0; known && i < known->category_count; i++)
        if (!strcmp(known->categories[i].column, column))
            return &known->categories[i];
    return NULL;
}

/* Texts that the series knows keep their codes. */
static stk_status start_categories(struct ingest_run *run, struct stk_error *err)
{
    stk_status status = STK_OK;

    run->categories = memory_zero(run->schema.category_count + 1, sizeof(*run->categories));
    if (!run->categories)
        return fail_memory(err, run->schema.category_count * sizeof(*run->categories));
    for (uint32_t i = 0; i < run->schema.count; i++) {
        const struct schema_column *column = &run->schema.columns[i];
        if (column->category == SCHEMA_NONE)
            continue;
        const struct series_category *known = find_known(run->ingest->known, column->name);
        for (uint32_t k = 0; known && k < known->count && !status; k++)
            status = name_table_add(&run->categories[column->category], known->values[k],
                                    strlen(known->values[k]), err);
    }
    return status;
}

/* Sketches of many columns may not fit into the budget: then a pass over the spool, which can take
 * them some at a time. Their number alone decides, so that the bits are the same for any budget. */
static int fits_on_the_way(const struct series_ingest *ingest, uint32_t columns)
{
    return ingest->fit_all &&
           (ingest->options->scaler != STK_SCALER_ROBUST || columns <= MOST_SKETCHES);
}

static stk_status start_fit(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    uint32_t count = run->schema.array_count;

    ingest->missing = memory_zero(count, sizeof(*ingest->missing));
    ingest->is_category = memory_zero(count, 1);
    if (!ingest->missing || !ingest->is_category)
        return fail_memory(err, count * sizeof(*ingest->missing));
    for (uint32_t i = 0; i < count; i++)
        ingest->is_category[i] = run->schema.columns[i].category != SCHEMA_NONE;
    if (!fits_on_the_way(ingest, count))
        return STK_OK;
    static const enum scaler_kind kinds[] = {[STK_SCALER_STANDARD] = SCALER_STANDARD,
                                             [STK_SCALER_MINMAX] = SCALER_MINMAX,
                                             [STK_SCALER_ROBUST] = SCALER_ROBUST,
                                             [STK_SCALER_NONE] = SCALER_NONE};
    return fit_new(&ingest->fit, kinds[ingest->options->scaler], count, ingest->is_category, err);
}

static stk_status start(struct ingest_run *run, const struct ArrowSchema *from,
                        struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    struct schema_ask ask = {ingest->options, ingest->known, ingest->context, ingest_table(run)};
    stk_status status = series_schema_first(&run->schema, &ask, from, err);

    if (status)
        return status;
    run->dtype = series_schema_dtype(&run->schema);
    run->row_bytes = run->schema.array_count * stk_dtype_size(run->dtype);
    run->views = memory_zero(run->schema.count, sizeof(*run->views));
    run->memories = memory_zero(run->schema.count, sizeof(*run->memories));
    if (!run->views || !run->memories)
        return fail_memory(err, run->schema.count * sizeof(*run->views));
    status = make_chunk(run, err);
    if (!status)
        status = make_block(run, err);
    if (!status)
        status = start_categories(run, err);
    if (!status)
        status = start_fit(run, err);
    if (!status)
        status = ingest_entities_start(run, err);
    return status ? status : open_spool(run, err);
}

/* --- tables --------------------------------------------------------------------------------------
 */

/* The words are the stream's: their first line, without the traceback that Arrow puts behind those
 * of a Python exception. Its number is only good for the status. */
static stk_status fail_stream(const struct ingest_run *run, struct ArrowArrayStream *stream,
                              int number, struct stk_error *err)
{
    const char *words = stream->get_last_error ? stream->get_last_error(stream) : NULL;
    stk_status status = fail_errno(NULL, number, "reading");

    if (!words || !words[0])
        words = strerror(number);
    size_t len = strcspn(words, "\n");
    const char *detail = strstr(words, ". Detail: ");
    if (detail && (size_t)(detail - words) < len)
        len = (size_t)(detail - words);
    fail(err, status, "reading the table failed: %.*s", len < 400 ? (int)len : 400, words);
    return ingest_failed(run, NULL, status, err);
}

static stk_status read_schema(struct ingest_run *run, struct ArrowArrayStream *stream,
                              struct stk_error *err)
{
    struct ArrowSchema from = {0};
    int number = stream->get_schema(stream, &from);

    if (number)
        return fail_stream(run, stream, number, err);
    stk_status status = run->schema.table
                            ? series_schema_next(&run->schema, ingest_table(run), &from, err)
                            : start(run, &from, err);
    run->batch_width = from.n_children;
    if (from.release)
        from.release(&from);
    return status;
}

static stk_status read_batches(struct ingest_run *run, struct ArrowArrayStream *stream,
                               uint64_t total, struct stk_error *err)
{
    stk_status status = STK_OK;

    while (!status) {
        struct ArrowArray batch = {0};
        int number = stream->get_next(stream, &batch);
        if (number)
            return fail_stream(run, stream, number, err);
        if (!batch.release)
            break;
        status = add_batch(run, &batch, total, err);
        batch.release(&batch);
    }
    if (!status && !run->batch_row) {
        status = fail(err, STK_NOT_FOUND, "the table is empty: it has no rows");
        fail_remedy(err, "leave the file out");
        fail_at(err, ingest_table(run), STK_NOWHERE);
    }
    return status;
}

static stk_status keep_name(struct ingest_run *run, const char *name, struct stk_error *err)
{
    char numbered[32];

    if (run->table_count == run->table_cap) {
        uint32_t cap = run->table_cap ? 2 * run->table_cap : 64;
        char **tables = memory_grow(run->tables, cap * sizeof(*tables));
        if (!tables)
            return fail_memory(err, cap * sizeof(*tables));
        run->tables = tables;
        run->table_cap = cap;
    }
    if (!name || !name[0]) {
        snprintf(numbered, sizeof(numbered), "table-%u", run->table_count);
        name = numbered;
    }
    char *copy = memory_text(name, strlen(name));
    if (!copy)
        return fail_memory(err, strlen(name));
    run->tables[run->table_count++] = copy;
    run->batch_row = 0;
    run->table_entity = NAME_NONE;
    return STK_OK;
}

static stk_status add_table(struct ingest_run *run, struct ArrowArrayStream *stream,
                            const char *name, uint64_t total, struct stk_error *err)
{
    stk_status status = keep_name(run, name, err);

    if (!status && (!stream->release || !stream->get_schema || !stream->get_next)) {
        status = fail(err, STK_CORRUPT, "the Arrow stream has been released");
        ingest_failed(run, NULL, status, err);
    }
    if (!status)
        status = read_schema(run, stream, err);
    return status ? status : read_batches(run, stream, total, err);
}

static stk_status add_tables(struct ingest_run *run, struct stk_tables *tables,
                             struct stk_error *err)
{
    stk_status status = STK_OK;

    while (!status) {
        struct ArrowArrayStream stream = {0};
        const char *name = NULL;
        status = tables->next(tables->user, &stream, &name, err);
        if (!status)
            status = add_table(run, &stream, name, tables->rows, err);
        if (stream.release)
            stream.release(&stream);
    }
    if (status != STK_END)
        return status;
    status = spool_block(run, err);
    if (!status && run->ingest->spool)
        status = row_spool_flush(run->ingest->spool, err);
    if (!status && !run->ingest->rows)
        status = fail(err, STK_NOT_FOUND,
                      run->table_count ? "no row is left: in each one a value is missing"
                                       : "there are no tables to pack");
    return status;
}

/* --- the whole -----------------------------------------------------------------------------------
 */

/* Moves names out of what is freed next. */
static stk_status hand_over_columns(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    struct series_schema *schema = &run->schema;

    ingest->columns = memory_zero(schema->array_count, sizeof(*ingest->columns));
    ingest->statics = memory_zero(schema->static_count + 1, sizeof(*ingest->statics));
    ingest->categories = memory_zero(schema->category_count + 1, sizeof(*ingest->categories));
    if (!ingest->columns || !ingest->statics || !ingest->categories)
        return fail_memory(err, schema->array_count * sizeof(*ingest->columns));
    for (uint32_t i = 0; i < schema->array_count + schema->static_count; i++) {
        struct schema_column *column = &schema->columns[i];
        if (column->category != SCHEMA_NONE) {
            struct series_category *category = &ingest->categories[column->category];
            category->column = memory_text(column->name, strlen(column->name));
            if (!category->column)
                return fail_memory(err, strlen(column->name));
            category->count = run->categories[column->category].count;
            category->values = name_table_take(&run->categories[column->category]);
            ingest->category_count++;
        }
        if (i < schema->array_count)
            ingest->columns[ingest->column_count++] = column->name;
        else
            ingest->statics[ingest->static_count++] = column->name;
        column->name = NULL;
    }
    ingest->feature_count = schema->feature_count;
    ingest->labels = schema->labels;
    ingest->label_count = schema->label_count;
    schema->labels = NULL;
    return STK_OK;
}

static stk_status hand_over(struct ingest_run *run, struct stk_error *err)
{
    struct series_ingest *ingest = run->ingest;
    const struct series_schema *schema = &run->schema;
    stk_status status = hand_over_columns(run, err);

    if (!status && schema->time != SCHEMA_NONE) {
        const struct arrow_type *type = &schema->columns[schema->time].first_type;
        ingest->time_unit = memory_text(type->unit, strlen(type->unit));
        ingest->time_zone = type->zone[0] ? memory_text(type->zone, strlen(type->zone)) : NULL;
        if (!ingest->time_unit || (type->zone[0] && !ingest->time_zone))
            status = fail_memory(err, sizeof(type->zone));
    }
    if (status)
        return status;
    char **names = name_table_take(&run->names);
    for (uint64_t i = 0; i < ingest->entity_count; i++)
        ingest->entities[i].name = names[i];
    memory_free(names);
    return STK_OK;
}

static void run_reset(struct ingest_run *run)
{
    struct ingest_chunk *chunk = &run->chunk;

    for (uint32_t i = 0; i < run->table_count; i++)
        memory_free(run->tables[i]);
    for (uint32_t i = 0; run->memories && i < run->schema.count; i++)
        memory_free(run->memories[i].by_index);
    for (uint32_t i = 0; run->categories && i < run->schema.category_count; i++)
        name_table_reset(&run->categories[i]);
    memory_free(run->tables);
    memory_free(run->memories);
    memory_free(run->categories);
    memory_free(run->views);
    memory_free(run->places);
    name_table_reset(&run->names);
    memory_free(chunk->origin);
    memory_free(chunk->dropped);
    memory_free(chunk->numbers);
    memory_free(chunk->statics);
    memory_free(chunk->scratch);
    memory_free(chunk->sources);
    memory_unmap(run->block.values, run->block_rows * run->row_bytes);
    memory_free(run->block.times);
    memory_free(run->block.entities);
    series_schema_reset(&run->schema);
}

stk_status series_ingest_run(struct series_ingest *ingest, struct stk_tables *tables,
                             struct stk_error *err)
{
    struct ingest_run run = {.ingest = ingest, .table_entity = NAME_NONE, .last_entity = NAME_NONE};

    ingest->is_grouped = ingest->is_ordered = 1;
    run.own_names = tables->own_names;
    stk_status status = add_tables(&run, tables, err);
    if (!status)
        status = hand_over(&run, err);
    run_reset(&run);
    return status;
}

static void free_names(char **names, uint32_t count)
{
    for (uint32_t i = 0; names && i < count; i++)
        memory_free(names[i]);
    memory_free(names);
}

void series_ingest_reset(struct series_ingest *ingest)
{
    free_names(ingest->columns, ingest->column_count);
    free_names(ingest->statics, ingest->static_count);
    for (uint32_t i = 0; i < ingest->category_count; i++) {
        free_names(ingest->categories[i].values, ingest->categories[i].count);
        memory_free(ingest->categories[i].column);
    }
    for (uint64_t i = 0; i < ingest->entity_count; i++) {
        memory_free(ingest->entities[i].name);
        memory_free(ingest->entities[i].statics);
    }
    memory_free(ingest->categories);
    memory_free(ingest->entities);
    memory_free(ingest->labels);
    memory_free(ingest->is_category);
    memory_free(ingest->missing);
    memory_free(ingest->time_unit);
    memory_free(ingest->time_zone);
    row_spool_free(ingest->spool);
    if (ingest->fit_all)
        fit_free(ingest->fit);
    memset(ingest, 0, sizeof(*ingest));
}
