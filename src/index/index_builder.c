#include "index/index_builder.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "index/index_part.h"
#include "index/index_writer.h"

#define ROW_BATCH 4096u /* rows made dense at a time: more than INDEX_MAX_FIELDS */

struct builder_field {
    char *name;
    uint64_t min_length, max_length, present;
    struct stk_tensor row; /* grid; rank -1 else */
    int byteswap;
};

/* Samples with rows of `stride` fields, in the rows' spool: a field that appears later makes the
 * next segment wider, and all are brought to the last stride at the end. */
struct segment {
    uint64_t samples;
    uint32_t stride;
};

/* A length that does not fit a row; what becomes a row's number when the last stride is known. */
struct long_extent {
    uint64_t sample, length;
    uint32_t field, unused;
};

struct grid_run {
    struct index_file_run run;
    uint32_t field, order;
};

struct index_builder {
    char *path, *folder, *format, *root;
    struct builder_field *fields;
    struct segment *segments;
    struct grid_run *runs;
    char **classes;
    uint64_t field_count, field_cap, segment_count, segment_cap, run_count, run_cap;
    uint64_t class_count, class_cap;
    uint64_t samples, skipped, object_count, chunk_count;
    int keys_from_names;
    struct index_file_row *batch; /* ROW_BATCH rows */
    struct spool names, objects, chunks, rows, longs, keys, key_bytes;
    struct hash128 hash;        /* of samples and chunks, as they are joined */
    struct hash128 object_hash; /* of objects, as they are added */
};

/* --- life ------------------------------------------------------------------------------------ */

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return memory_text(".", 1);
    return slash == path ? memory_text("/", 1) : memory_text(path, (size_t)(slash - path));
}

static void builder_spools(struct index_builder *builder, struct spool *out[7])
{
    struct spool *all[7] = {&builder->names, &builder->objects, &builder->chunks,   &builder->rows,
                            &builder->longs, &builder->keys,    &builder->key_bytes};
    memcpy(out, all, sizeof(all));
}

stk_status index_builder_new(struct index_builder **out, const char *path, const char *format,
                             const char *root, struct stk_error *err)
{
    *out = NULL;
    struct index_builder *builder = memory_zero(1, sizeof(*builder));
    if (!builder)
        return fail_memory(err, sizeof(*builder));
    struct spool *spools[7];
    builder_spools(builder, spools);
    builder->path = memory_text(path, strlen(path));
    builder->folder = folder_of(path);
    builder->format = memory_text(format, strlen(format));
    builder->root = memory_text(root, strlen(root));
    builder->batch = memory_alloc(ROW_BATCH * sizeof(*builder->batch));
    for (int i = 0; i < 7; i++)
        spool_init(spools[i], builder->folder);
    if (!builder->path || !builder->folder || !builder->format || !builder->root ||
        !builder->batch) {
        index_builder_free(builder);
        return fail_memory(err, strlen(path) + strlen(root));
    }
    hash128_init(&builder->hash, INDEX_VERSION);
    hash128_init(&builder->object_hash, INDEX_VERSION);
    index_writer_sweep(builder->path, builder->folder);
    *out = builder;
    return STK_OK;
}

int index_builder_out_of_room(struct index_builder *builder)
{
    struct spool *spools[7];
    int failed = 0;
    builder_spools(builder, spools);
    for (int i = 0; i < 7; i++)
        failed |= spools[i]->failed;
    return failed;
}

void index_builder_free(struct index_builder *builder)
{
    if (!builder)
        return;
    struct spool *spools[7];
    builder_spools(builder, spools);
    for (int i = 0; i < 7; i++)
        spool_reset(spools[i]);
    for (uint64_t i = 0; i < builder->field_count; i++)
        memory_free(builder->fields[i].name);
    for (uint64_t i = 0; i < builder->class_count; i++)
        memory_free(builder->classes[i]);
    memory_free(builder->fields);
    memory_free(builder->segments);
    memory_free(builder->runs);
    memory_free(builder->classes);
    memory_free(builder->batch);
    memory_free(builder->path);
    memory_free(builder->folder);
    memory_free(builder->format);
    memory_free(builder->root);
    memory_free(builder);
}

/* --- objects, classes, chunks, fields -------------------------------------------------------- */

stk_status index_builder_object(struct index_builder *builder, const char *name, uint64_t size,
                                uint64_t version, uint32_t *number, struct stk_error *err)
{
    *number = 0;
    if (builder->object_count == INDEX_PART_CHUNK - 1)
        return fail(err, STK_LIMIT, "there are more than 2^31 objects");
    struct index_file_object object = {size, version, spool_size(&builder->names)};
    stk_status status = spool_add(&builder->objects, &object, sizeof(object), err);
    if (!status)
        status = spool_add(&builder->names, name, strlen(name) + 1, err);
    if (status)
        return status;
    hash128_add(&builder->object_hash, name, strlen(name));
    hash128_add_number(&builder->object_hash, size);
    *number = (uint32_t)builder->object_count++;
    return STK_OK;
}

stk_status index_builder_class(struct index_builder *builder, const char *name, uint32_t *number,
                               struct stk_error *err)
{
    *number = 0;
    stk_status status = index_part_room((void **)&builder->classes, &builder->class_cap,
                                        builder->class_count, 1, sizeof(*builder->classes), err);
    if (status)
        return status;
    char *copy = memory_text(name, strlen(name));
    if (!copy)
        return fail_memory(err, strlen(name));
    *number = (uint32_t)builder->class_count;
    builder->classes[builder->class_count++] = copy;
    return STK_OK;
}

void index_builder_skipped(struct index_builder *builder, uint64_t count)
{
    builder->skipped += count;
}

void index_builder_keys_from_names(struct index_builder *builder)
{
    builder->keys_from_names = 1;
}

static struct index_file_tensor tensor_store(const struct stk_tensor *from)
{
    struct index_file_tensor to = {.rank = from->rank, .dtype = (uint32_t)from->dtype};
    for (int32_t i = 0; i < from->rank; i++)
        to.shape[i] = from->shape[i];
    return to;
}

stk_status index_builder_chunk(struct index_builder *builder, const struct chunk *chunk,
                               uint32_t *number, struct stk_error *err)
{
    *number = 0;
    if (builder->chunk_count == INDEX_PART_CHUNK - 3)
        return fail(err, STK_LIMIT, "there are more than 2^31 chunks");
    if (chunk->object >= builder->object_count)
        return fail(err, STK_USAGE, "a chunk lies in no object");
    struct index_file_chunk file = {.offset = chunk->offset,
                                    .length = chunk->length,
                                    .decoded = chunk->decoded,
                                    .first = chunk->first,
                                    .count = chunk->count,
                                    .object = chunk->object,
                                    .filter = chunk->filter,
                                    .shape = tensor_store(&chunk->shape),
                                    .check = chunk->check};
    stk_status status = spool_add(&builder->chunks, &file, sizeof(file), err);
    if (status)
        return status;
    hash128_add(&builder->hash, &file, sizeof(file));
    *number = (uint32_t)builder->chunk_count++;
    return STK_OK;
}

static stk_status builder_find_field(struct index_builder *builder, const char *name, uint32_t *out,
                                     struct stk_error *err)
{
    for (uint32_t i = 0; i < builder->field_count; i++) {
        *out = i;
        if (!strcmp(builder->fields[i].name, name))
            return STK_OK;
    }
    if (builder->field_count == INDEX_MAX_FIELDS)
        return fail(err, STK_LIMIT, "there are more than %u different fields", INDEX_MAX_FIELDS);
    stk_status status = index_part_room((void **)&builder->fields, &builder->field_cap,
                                        builder->field_count, 1, sizeof(*builder->fields), err);
    if (status)
        return status;
    char *copy = memory_text(name, strlen(name));
    if (!copy)
        return fail_memory(err, strlen(name));
    *out = (uint32_t)builder->field_count;
    builder->fields[builder->field_count++] =
        (struct builder_field){.name = copy, .min_length = UINT64_MAX, .row = {.rank = -1}};
    return STK_OK;
}

/* --- table: joining parts -------------------------------------------------------------------- */

struct join {
    struct index_builder *builder;
    const struct index_part *part;
    uint32_t *field_map; /* the part's field number -> the builder's */
    uint32_t first_chunk, stride;
    uint32_t batched; /* rows in the builder's batch */
};

static stk_status join_flush(struct join *join, struct stk_error *err)
{
    struct index_builder *builder = join->builder;
    size_t bytes = join->batched * sizeof(*builder->batch);
    hash128_add(&builder->hash, builder->batch, bytes);
    join->batched = 0;
    return spool_add(&builder->rows, builder->batch, bytes, err);
}

static stk_status join_entry(struct join *join, uint64_t sample, const struct part_entry *entry,
                             struct index_file_row *row, struct stk_error *err)
{
    struct index_builder *builder = join->builder;
    uint32_t number = join->field_map[entry->field];
    struct builder_field *field = &builder->fields[number];
    uint32_t object = entry->object;
    stk_status status = STK_OK;
    if (object < EXTENT_VALUE && (object & INDEX_PART_CHUNK)) {
        if ((object & ~INDEX_PART_CHUNK) >= join->part->chunk_count)
            return fail(err, STK_USAGE, "an extent lies in no chunk");
        object += join->first_chunk;
    } else if (object < EXTENT_VALUE && object >= builder->object_count) {
        return fail(err, STK_USAGE, "an extent lies in no object");
    }
    row[number] = (struct index_file_row){entry->offset, (uint32_t)entry->length, object};
    if (entry->length >= INDEX_LONG) {
        struct long_extent item = {sample, entry->length, number, 0};
        row[number].length = INDEX_LONG;
        status = spool_add(&builder->longs, &item, sizeof(item), err);
    }
    field->present++;
    if (entry->length < field->min_length)
        field->min_length = entry->length;
    if (entry->length > field->max_length)
        field->max_length = entry->length;
    return status;
}

static stk_status join_rows(struct join *join, struct stk_error *err)
{
    struct index_builder *builder = join->builder;
    const struct index_part *part = join->part;
    stk_status status = STK_OK;
    uint64_t entry = 0;
    for (uint64_t i = 0; !status && i < part->sample_count; i++) {
        if (join->batched + join->stride > ROW_BATCH)
            status = join_flush(join, err);
        struct index_file_row *row = builder->batch + join->batched;
        for (uint32_t f = 0; f < join->stride; f++)
            row[f] = (struct index_file_row){0, 0, EXTENT_NONE};
        for (; !status && entry < part->entry_ends[i]; entry++)
            status = join_entry(join, builder->samples + i, &part->entries[entry], row, err);
        join->batched += join->stride;
    }
    return status ? status : join_flush(join, err);
}

static stk_status join_keys(struct join *join, struct stk_error *err)
{
    struct index_builder *builder = join->builder;
    const struct index_part *part = join->part;
    hash128_add(&builder->hash, part->keys, part->key_count);
    hash128_add(&builder->hash, part->key_ends, part->sample_count * sizeof(*part->key_ends));
    if (builder->keys_from_names)
        return STK_OK;
    uint64_t base = spool_size(&builder->key_bytes);
    stk_status status = spool_add(&builder->key_bytes, part->keys, part->key_count, err);
    uint64_t begin = base;
    for (uint64_t i = 0; !status && i < part->sample_count; i++) {
        status = spool_add(&builder->keys, &begin, sizeof(begin), err);
        begin = base + part->key_ends[i];
    }
    return status;
}

static stk_status join_fields(struct join *join, struct stk_error *err)
{
    const struct index_part *part = join->part;
    join->field_map = memory_alloc(part->field_count * sizeof(*join->field_map));
    if (!join->field_map)
        return fail_memory(err, part->field_count * sizeof(*join->field_map));
    stk_status status = STK_OK;
    for (uint64_t i = 0; !status && i < part->field_count; i++)
        status = builder_find_field(join->builder, part->fields[i].name, &join->field_map[i], err);
    join->stride = (uint32_t)join->builder->field_count;
    if (!status && join->stride == 0)
        status = fail(err, STK_USAGE, "there are samples, but they have no fields");
    return status;
}

static stk_status join_segment(struct join *join, struct stk_error *err)
{
    struct index_builder *builder = join->builder;
    uint64_t n = builder->segment_count;
    if (n > 0 && builder->segments[n - 1].stride == join->stride) {
        builder->segments[n - 1].samples += join->part->sample_count;
        return STK_OK;
    }
    stk_status status = index_part_room((void **)&builder->segments, &builder->segment_cap, n, 1,
                                        sizeof(*builder->segments), err);
    if (!status)
        builder->segments[builder->segment_count++] =
            (struct segment){join->part->sample_count, join->stride};
    return status;
}

stk_status index_builder_join(struct index_builder *builder, struct index_part *part,
                              struct stk_error *err)
{
    struct join join = {
        .builder = builder, .part = part, .first_chunk = (uint32_t)builder->chunk_count};
    stk_status status = STK_OK;
    if (builder->run_count > 0)
        return fail(err, STK_USAGE, "an index holds samples or rows of arrays, not both");
    for (uint64_t i = 0; !status && i < part->chunk_count; i++) {
        uint32_t number;
        struct chunk chunk = part->chunks[i];
        if (chunk.count > 0)
            chunk.first += builder->samples;
        status = index_builder_chunk(builder, &chunk, &number, err);
    }
    if (!status && part->sample_count > 0) {
        status = join_fields(&join, err);
        if (!status)
            status = join_segment(&join, err);
        if (!status)
            status = join_rows(&join, err);
        if (!status)
            status = join_keys(&join, err);
    }
    if (!status) {
        builder->samples += part->sample_count;
        index_part_reset(part);
    }
    memory_free(join.field_map);
    return status;
}

/* --- grid: rows of arrays -------------------------------------------------------------------- */

static int rows_alike(const struct stk_tensor *a, int a_swap, const struct stk_tensor *b,
                      int b_swap)
{
    if (a->dtype != b->dtype || a->rank != b->rank || !a_swap != !b_swap)
        return 0;
    for (int32_t i = 0; i < a->rank; i++) {
        if (a->shape[i] != b->shape[i])
            return 0;
    }
    return 1;
}

stk_status index_builder_array(struct index_builder *builder, const struct index_array *array,
                               struct stk_error *err)
{
    uint32_t number = 0;
    uint64_t row_size = stk_tensor_size(&array->row);
    if (builder->samples > 0 || array->row.rank < 0 || row_size == UINT64_MAX)
        return fail(err, STK_USAGE, "these are no rows of an array");
    stk_status status = builder_find_field(builder, array->field, &number, err);
    if (!status)
        status = index_part_room((void **)&builder->runs, &builder->run_cap, builder->run_count, 1,
                                 sizeof(*builder->runs), err);
    if (status)
        return status;
    struct builder_field *field = &builder->fields[number];
    if (field->row.rank >= 0 &&
        !rows_alike(&field->row, field->byteswap, &array->row, array->byteswap)) {
        fail(err, STK_SHAPE, "the arrays of a field differ in type or shape of their rows");
        fail_field(err, field->name);
        return STK_SHAPE;
    }
    field->row = array->row;
    field->row.data = NULL;
    field->byteswap = array->byteswap;
    field->min_length = field->max_length = row_size;
    struct index_file_run run = {field->present, array->rows, array->offset, array->object, 0};
    if (!checked_add(field->present, array->rows, &field->present))
        return fail(err, STK_LIMIT, "an array has too many rows");
    struct index_file_tensor shape = tensor_store(&array->row);
    hash128_add(&builder->hash, &run, sizeof(run));
    hash128_add(&builder->hash, &shape, sizeof(shape));
    hash128_add_number(&builder->hash, number * 2u + (array->byteswap != 0));
    builder->runs[builder->run_count] =
        (struct grid_run){run, number, (uint32_t)builder->run_count};
    builder->run_count++;
    return STK_OK;
}

static stk_status grid_rows(struct index_builder *builder, struct stk_error *err)
{
    const struct builder_field *first = &builder->fields[0];
    for (uint64_t i = 1; i < builder->field_count; i++) {
        const struct builder_field *field = &builder->fields[i];
        if (field->present == first->present)
            continue;
        fail(err, STK_SHAPE, "the arrays differ in rows: %s has %llu, %s has %llu", first->name,
             (unsigned long long)first->present, field->name, (unsigned long long)field->present);
        fail_remedy(err, "a sample is one row of every array: give those with another number of "
                         "rows a file of their own");
        return STK_SHAPE;
    }
    builder->samples = first->present;
    return STK_OK;
}

static int run_compare(const void *a, const void *b)
{
    const struct grid_run *left = a, *right = b;
    if (left->field != right->field)
        return left->field < right->field ? -1 : 1;
    return left->order < right->order ? -1 : 1;
}

/* --- writing --------------------------------------------------------------------------------- */

/* STRINGS: root, format, fields, classes; each starts where the ones before it end. */
static stk_status write_strings(struct index_builder *builder, struct index_writer *writer,
                                struct stk_error *err)
{
    index_writer_begin(writer, INDEX_STRINGS);
    writer->header.root = 0;
    writer->header.format = strlen(builder->root) + 1;
    stk_status status = index_writer_add(writer, builder->root, strlen(builder->root) + 1, err);
    if (!status)
        status = index_writer_add(writer, builder->format, strlen(builder->format) + 1, err);
    for (uint64_t i = 0; !status && i < builder->field_count; i++) {
        const char *name = builder->fields[i].name;
        status = index_writer_add(writer, name, strlen(name) + 1, err);
    }
    for (uint64_t i = 0; !status && i < builder->class_count; i++)
        status =
            index_writer_add(writer, builder->classes[i], strlen(builder->classes[i]) + 1, err);
    return status ? status : index_writer_end(writer, INDEX_STRINGS, err);
}

static stk_status write_fields(struct index_builder *builder, struct index_writer *writer,
                               uint64_t *string, struct stk_error *err)
{
    stk_status status = STK_OK;
    uint64_t run = 0;
    index_writer_begin(writer, INDEX_FIELDS);
    for (uint64_t i = 0; !status && i < builder->field_count; i++) {
        const struct builder_field *field = &builder->fields[i];
        struct index_file_field file = {.name = *string,
                                        .min_length = field->present ? field->min_length : 0,
                                        .max_length = field->max_length,
                                        .missing = builder->samples - field->present,
                                        .first_run = run,
                                        .byteswap = field->byteswap != 0,
                                        .row = tensor_store(&field->row)};
        while (run < builder->run_count && builder->runs[run].field == i)
            run++;
        file.run_count = run - file.first_run;
        *string += strlen(field->name) + 1;
        status = index_writer_add(writer, &file, sizeof(file), err);
    }
    return status ? status : index_writer_end(writer, INDEX_FIELDS, err);
}

static stk_status write_classes(struct index_builder *builder, struct index_writer *writer,
                                uint64_t *string, struct stk_error *err)
{
    stk_status status = STK_OK;
    index_writer_begin(writer, INDEX_CLASSES);
    for (uint64_t i = 0; !status && i < builder->class_count; i++) {
        status = index_writer_add(writer, string, sizeof(*string), err);
        *string += strlen(builder->classes[i]) + 1;
    }
    return status ? status : index_writer_end(writer, INDEX_CLASSES, err);
}

static stk_status write_rows(struct index_builder *builder, struct index_writer *writer,
                             struct stk_error *err)
{
    stk_status status = STK_OK;
    struct index_file_row *batch = builder->batch;
    uint64_t at = 0;
    struct index_file_row none = {0, 0, EXTENT_NONE};
    index_writer_begin(writer, INDEX_ROWS);
    for (uint64_t s = 0; s < builder->segment_count; s++) {
        const struct segment *segment = &builder->segments[s];
        uint64_t fit = ROW_BATCH / segment->stride;
        for (uint64_t i = 0; !status && i < segment->samples; i += fit) {
            uint64_t n = segment->samples - i < fit ? segment->samples - i : fit;
            size_t bytes = n * segment->stride * sizeof(*batch);
            status = spool_read(&builder->rows, at, batch, bytes, err);
            at += bytes;
            for (uint64_t k = 0; !status && k < n; k++) {
                status = index_writer_add(writer, batch + k * segment->stride,
                                          segment->stride * sizeof(*batch), err);
                for (uint64_t f = segment->stride; !status && f < builder->field_count; f++)
                    status = index_writer_add(writer, &none, sizeof(none), err);
            }
        }
    }
    return status ? status : index_writer_end(writer, INDEX_ROWS, err);
}

static stk_status write_overflow(struct index_builder *builder, struct index_writer *writer,
                                 struct stk_error *err)
{
    stk_status status = STK_OK;
    uint64_t size = spool_size(&builder->longs);
    index_writer_begin(writer, INDEX_OVERFLOW);
    for (uint64_t at = 0; !status && at < size; at += sizeof(struct long_extent)) {
        struct long_extent item;
        status = spool_read(&builder->longs, at, &item, sizeof(item), err);
        struct index_file_overflow file = {item.sample * builder->field_count + item.field,
                                           item.length};
        if (!status)
            status = index_writer_add(writer, &file, sizeof(file), err);
    }
    return status ? status : index_writer_end(writer, INDEX_OVERFLOW, err);
}

static stk_status write_runs(struct index_builder *builder, struct index_writer *writer,
                             struct stk_error *err)
{
    stk_status status = STK_OK;
    index_writer_begin(writer, INDEX_RUNS);
    for (uint64_t i = 0; !status && i < builder->run_count; i++)
        status = index_writer_add(writer, &builder->runs[i].run, sizeof(builder->runs[i].run), err);
    return status ? status : index_writer_end(writer, INDEX_RUNS, err);
}

static stk_status write_sections(struct index_builder *builder, struct index_writer *writer,
                                 struct stk_error *err)
{
    uint64_t string = strlen(builder->root) + strlen(builder->format) + 2;
    stk_status status = write_strings(builder, writer, err);
    if (!status)
        status = index_writer_spool(writer, INDEX_NAMES, &builder->names, err);
    if (!status)
        status = index_writer_spool(writer, INDEX_OBJECTS, &builder->objects, err);
    if (!status)
        status = write_fields(builder, writer, &string, err);
    if (!status)
        status = index_writer_spool(writer, INDEX_CHUNKS, &builder->chunks, err);
    if (!status)
        status = write_classes(builder, writer, &string, err);
    if (!status)
        status = write_rows(builder, writer, err);
    if (!status)
        status = write_overflow(builder, writer, err);
    if (!status)
        status = index_writer_spool(writer, INDEX_KEYS, &builder->keys, err);
    if (!status)
        status = index_writer_spool(writer, INDEX_KEY_BYTES, &builder->key_bytes, err);
    if (!status)
        status = write_runs(builder, writer, err);
    return status;
}

static void builder_fingerprint(struct index_builder *builder, uint8_t out[16])
{
    struct hash128 hash = builder->hash;
    uint8_t objects[16];
    hash128_out(&builder->object_hash, objects);
    hash128_add(&hash, objects, sizeof(objects));
    for (uint64_t i = 0; i < builder->field_count; i++)
        hash128_add(&hash, builder->fields[i].name, strlen(builder->fields[i].name));
    for (uint64_t i = 0; i < builder->class_count; i++)
        hash128_add(&hash, builder->classes[i], strlen(builder->classes[i]));
    hash128_add(&hash, builder->format, strlen(builder->format));
    hash128_out(&hash, out);
}

stk_status index_builder_finish(struct index_builder *builder, struct stk_error *err)
{
    struct index_writer writer = {.fd = -1};
    struct index_header *header = &writer.header;
    int is_grid = builder->run_count > 0;
    stk_status status = is_grid ? grid_rows(builder, err) : STK_OK;
    if (!status && !is_grid && !builder->keys_from_names) {
        uint64_t end = spool_size(&builder->key_bytes); /* where the last key ends */
        status = spool_add(&builder->keys, &end, sizeof(end), err);
    }
    if (is_grid)
        qsort(builder->runs, builder->run_count, sizeof(*builder->runs), run_compare);
    if (!status)
        status = index_writer_open(&writer, builder->path, builder->folder, err);
    if (status)
        goto done;
    header->kind = is_grid ? INDEX_GRID : INDEX_TABLE;
    header->key_source = is_grid                    ? INDEX_KEYS_NUMBERS
                         : builder->keys_from_names ? INDEX_KEYS_NAMES
                                                    : INDEX_KEYS_STORED;
    header->samples = builder->samples;
    header->skipped = builder->skipped;
    header->field_count = (uint32_t)builder->field_count;
    header->object_count = (uint32_t)builder->object_count;
    header->chunk_count = (uint32_t)builder->chunk_count;
    header->class_count = (uint32_t)builder->class_count;
    builder_fingerprint(builder, header->fingerprint);
    status = write_sections(builder, &writer, err);
    if (!status)
        status = index_writer_commit(&writer, err);
done:
    index_writer_close(&writer);
    return status;
}
