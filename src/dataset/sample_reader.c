#include "stoker/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/chunk_read.h"
#include "dataset/dataset_state.h"
#include "dataset/media_read.h"

/* Reads one sample on the caller's thread: no threads, no rings, so it works in a forked child. */

#define READER_ALIGN 64
#define READER_CHUNKS 8 /* decoded chunks kept: a sample may take its fields from several */

struct kept_chunk {
    uint8_t *data; /* NULL: free */
    uint64_t size, used;
    uint32_t number;
};

struct buffer {
    uint8_t *data;
    uint64_t size;
};

struct stk_reader {
    struct stk_dataset *dataset;
    struct extent *scratch, *extents; /* one sample, by the index's fields and by ours */
    uint64_t *starts;                 /* of each field's bytes in stored */
    struct codec_shape *shapes;
    int64_t *numbers;
    struct buffer stored; /* the fields' bytes as they were */
    struct buffer made;   /* tensors that could not stay where they were read */
    struct kept_chunk chunks[READER_CHUNKS];
    uint64_t chunk_bytes, clock;
    uint8_t *encoded; /* [fields] not 0: handed out as stored */
    struct media_reader media;
};

static uint64_t align_up(uint64_t at)
{
    return (at + READER_ALIGN - 1) & ~(uint64_t)(READER_ALIGN - 1);
}

/* What was in it is lost. */
static stk_status buffer_reserve(struct buffer *buffer, uint64_t size, struct stk_error *err)
{
    if (size <= buffer->size)
        return STK_OK;
    if (size > SIZE_MAX / 2)
        return fail_memory(err, size);
    memory_unmap(buffer->data, buffer->size);
    size += size / 4; /* so that slowly growing samples do not map anew each time */
    *buffer = (struct buffer){.data = memory_map(size)};
    if (!buffer->data)
        return fail_memory(err, size);
    buffer->size = size;
    return STK_OK;
}

/* ---- chunks -------------------------------------------------------------------------------- */

static void chunk_drop(struct stk_reader *reader, struct kept_chunk *kept)
{
    memory_unmap(kept->data, kept->size);
    reader->chunk_bytes -= kept->size;
    *kept = (struct kept_chunk){0};
}

/* A free place for size bytes more: the longest unused ones go. */
static struct kept_chunk *chunk_room(struct stk_reader *reader, uint64_t size)
{
    for (;;) {
        struct kept_chunk *empty = NULL, *oldest = NULL;
        for (uint32_t i = 0; i < READER_CHUNKS; i++) {
            struct kept_chunk *kept = &reader->chunks[i];
            if (!kept->data)
                empty = kept;
            else if (!oldest || kept->used < oldest->used)
                oldest = kept;
        }
        int fits = checked_inside(reader->chunk_bytes, size, reader->dataset->source->chunk_limit);
        if (empty && (fits || !oldest))
            return empty;
        chunk_drop(reader, oldest);
    }
}

static stk_status chunk_decode(struct stk_reader *reader, uint32_t number, const uint8_t **data,
                               struct stk_error *err)
{
    struct chunk chunk;
    for (uint32_t i = 0; i < READER_CHUNKS; i++)
        if (reader->chunks[i].data && reader->chunks[i].number == number) {
            reader->chunks[i].used = ++reader->clock;
            *data = reader->chunks[i].data;
            return STK_OK;
        }
    stk_status status = index_chunk(reader->dataset->source->index, number, &chunk, err);
    if (status)
        return status;
    uint64_t size = chunk.decoded ? chunk.decoded : 1;
    struct kept_chunk *kept = chunk_room(reader, size);
    uint8_t *made = memory_map(size);
    if (!made)
        return fail_memory(err, size);
    status = chunk_read(reader->dataset, number, made, NULL, err);
    if (status) {
        memory_unmap(made, size);
        return status;
    }
    *kept = (struct kept_chunk){made, size, ++reader->clock, number};
    reader->chunk_bytes += size;
    *data = made;
    return STK_OK;
}

/* ---- one value ----------------------------------------------------------------------------- */

static stk_status read_stored(struct stk_reader *reader, const struct extent *extent, uint8_t *to,
                              struct stk_error *err)
{
    struct dataset_source *source = reader->dataset->source;
    uint32_t objects = index_object_count(source->index);
    if (!extent->length)
        return STK_OK;
    if (extent->object >= objects) {
        const uint8_t *chunk = NULL;
        stk_status status = chunk_decode(reader, extent->object - objects, &chunk, err);
        if (!status)
            memcpy(to, chunk + extent->offset, extent->length);
        return status;
    }
    struct iovec part = {to, extent->length};
    struct store_read read = {
        .object = extent->object,
        .part_count = 1,
        .offset = extent->offset,
        .length = extent->length,
        .parts = &part,
    };
    if (store_read_now(source->store, &read))
        return store_explain(source->store, &read, err);
    return STK_OK;
}

static int is_stored(const struct extent *extent)
{
    return extent->object != EXTENT_NONE && extent->object != EXTENT_VALUE;
}

static stk_status missing(const struct stk_reader *reader, uint64_t sample, uint32_t field,
                          struct stk_error *err)
{
    const char *name = reader->dataset->source->fields[field].field.name;
    stk_status status = fail(err, STK_NOT_FOUND, "the sample has no field \"%s\"", name);
    fail_remedy(err, "mark it as optional: \"%s?\"", name);
    dataset_explain(reader->dataset, sample, field, NULL, err);
    return status;
}

/* Where each field's bytes go: so that the payload of a tensor like the probed one is aligned, and
 * can stay where it is read. */
static stk_status lay_out(struct stk_reader *reader, struct stk_error *err)
{
    const struct dataset_source *source = reader->dataset->source;
    uint64_t at = 0;
    for (uint32_t f = 0; f < source->field_count; f++) {
        uint64_t head = source->fields[f].head;
        reader->starts[f] = align_up(at + head) - head;
        if (is_stored(&reader->extents[f]) &&
            !checked_add(reader->starts[f], reader->extents[f].length, &at))
            return fail_memory(err, UINT64_MAX);
    }
    return buffer_reserve(&reader->stored, at + READER_ALIGN, err);
}

static stk_status fetch(struct stk_reader *reader, uint64_t sample, struct stk_error *err)
{
    const struct dataset_source *source = reader->dataset->source;
    stk_status status =
        dataset_resolve(reader->dataset, &sample, 1, reader->scratch, reader->extents, err);
    if (!status)
        status = lay_out(reader, err);
    for (uint32_t f = 0; f < source->field_count && !status; f++) {
        const struct extent *extent = &reader->extents[f];
        int number = source->fields[f].field.kind == STK_KIND_INT;
        if (extent->object == EXTENT_NONE && !source->fields[f].field.optional)
            return missing(reader, sample, f, err);
        if (!is_stored(extent))
            continue;
        if (number && extent->length > DATASET_MAX_INT_LENGTH)
            status = fail(err, STK_CORRUPT, "a number of %" PRIu64 " bytes", extent->length);
        else
            status = read_stored(reader, extent, reader->stored.data + reader->starts[f], err);
        if (status)
            dataset_explain(reader->dataset, sample, f, extent, err);
    }
    return status;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static struct stk_bytes stored_bytes(const struct stk_reader *reader, uint32_t field)
{
    return (struct stk_bytes){reader->stored.data + reader->starts[field],
                              reader->extents[field].length};
}

/* Made from what is stored, and not by a codec: rows of a series, or the mask of a window. */
static int is_gathered(const struct dataset_field *field)
{
    return field->gather || field->is_mask;
}

static int stays(const struct stk_reader *reader, uint32_t field)
{
    if (is_gathered(&reader->dataset->source->fields[field]))
        return 0;
    uint64_t payload = reader->starts[field] + reader->shapes[field].head;
    return payload % READER_ALIGN == 0;
}

/* Its tensor is to lie in the reader's own memory: it is neither media nor left as it is. */
static int is_placed(const struct stk_reader *reader, uint32_t field)
{
    return !reader->encoded[field] && !reader->dataset->source->fields[field].field.media;
}

/* The shape of each tensor, and room for those that move; in front of them scratch for the largest
 * that stays. */
static stk_status measure(struct stk_reader *reader, uint64_t *scratch, uint64_t sample,
                          struct stk_error *err)
{
    const struct dataset_source *source = reader->dataset->source;
    uint64_t total = 0, largest = 0;
    for (uint32_t f = 0; f < source->field_count; f++) {
        const struct dataset_field *field = &source->fields[f];
        struct codec_shape *shape = &reader->shapes[f];
        if (field->field.kind != STK_KIND_TENSOR || !is_placed(reader, f) ||
            !(is_stored(&reader->extents[f]) || field->is_mask))
            continue;
        struct stk_bytes bytes = stored_bytes(reader, f);
        stk_status status = STK_OK;
        int rows = index_field(source->index, field->alternatives[0])->row.rank >= 0;
        if (rows)
            *shape = (struct codec_shape){.tensor = field->field.shape};
        else
            status = field->codec->probe(&bytes, bytes.len, shape, err);
        uint64_t size = status ? 0 : stk_tensor_size(&shape->tensor);
        if (status) {
            dataset_explain(reader->dataset, sample, f, &reader->extents[f], err);
            return status;
        }
        largest = size > largest ? size : largest;
        if (!stays(reader, f) && !checked_add(total, align_up(size), &total))
            return fail_memory(err, UINT64_MAX);
    }
    *scratch = align_up(largest + 1);
    return checked_add(total, *scratch, &total) ? buffer_reserve(&reader->made, total, err)
                                                : fail_memory(err, UINT64_MAX);
}

/* The last rows of a window are those that are there; what is before them is 0. */
static stk_status gather(const struct stk_reader *reader, uint32_t f, uint8_t *to,
                         struct stk_error *err)
{
    const struct dataset_field *field = &reader->dataset->source->fields[f];
    const struct extent *extent = &reader->extents[f];
    uint64_t made = extent->offset, rows = 0; /* bytes at the end; a mask has one a row */
    if (!field->is_mask) {
        rows = extent->length / window_gather_row_bytes(field->gather);
        made = rows * (field->payload / (uint64_t)field->field.shape.shape[0]);
    }
    if (made > field->payload)
        return fail(err, STK_CORRUPT, "%" PRIu64 " bytes are no window of the series",
                    extent->length);
    memset(to, 0, field->payload - made);
    to += field->payload - made;
    if (field->is_mask)
        memset(to, 1, made);
    else
        window_gather_copy(field->gather, reader->stored.data + reader->starts[f], rows, to);
    return STK_OK;
}

/* *at: the next free place in made; moves on when the tensor goes there. */
static stk_status decode_tensor(struct stk_reader *reader, uint32_t f, uint64_t *at,
                                struct stk_tensor *to, struct stk_error *err)
{
    const struct dataset_field *field = &reader->dataset->source->fields[f];
    const struct codec_shape *shape = &reader->shapes[f];
    struct stk_bytes bytes = stored_bytes(reader, f);
    *to = shape->tensor;
    if (!stays(reader, f)) {
        to->data = reader->made.data + *at;
        *at += align_up(stk_tensor_size(to));
        if (is_gathered(field))
            return gather(reader, f, to->data, err);
        return field->codec->decode(&bytes, to, err);
    }
    struct stk_bytes head = {bytes.data, shape->head};
    to->data = reader->stored.data + reader->starts[f] + shape->head;
    if (bytes.len - shape->head != stk_tensor_size(to))
        return fail(err, STK_CORRUPT, "the value is %zu bytes where its shape needs %" PRIu64,
                    bytes.len - shape->head, stk_tensor_size(to));
    return field->codec->finish(&head, to, reader->made.data, err);
}

static stk_status decode_number(struct stk_reader *reader, uint32_t f, struct stk_tensor *to,
                                struct stk_error *err)
{
    const struct extent *extent = &reader->extents[f];
    *to = (struct stk_tensor){.data = &reader->numbers[f], .dtype = STK_I64};
    reader->numbers[f] = (int64_t)extent->offset;
    if (extent->object == EXTENT_VALUE)
        return STK_OK;
    struct stk_bytes bytes = stored_bytes(reader, f);
    return reader->dataset->source->fields[f].codec->decode(&bytes, to, err);
}

static stk_status decode_media(struct stk_reader *reader, uint32_t f, uint64_t sample,
                               struct stk_tensor *to, struct stk_error *err)
{
    const struct media_value value = {.media = reader->dataset->source->fields[f].field.media,
                                      .field = f,
                                      .sample = sample,
                                      .bytes = stored_bytes(reader, f)};
    stk_status status = STK_OK;
    if (!reader->media.states)
        status = media_reader_init(&reader->media, reader->dataset->source->field_count, err);
    return status ? status : media_read(&reader->media, &value, to, err);
}

/* Values that are made here and now: all but those of media. */
static stk_status decode_value(struct stk_reader *reader, uint32_t f, uint64_t *at,
                               struct stk_value *value, struct stk_error *err)
{
    const struct dataset_field *field = &reader->dataset->source->fields[f];
    switch (value->kind) {
    case STK_KIND_TENSOR:
        return decode_tensor(reader, f, at, &value->tensor, err);
    case STK_KIND_INT:
        return decode_number(reader, f, &value->tensor, err);
    default:
        value->bytes = stored_bytes(reader, f);
        return field->codec->check ? field->codec->check(&value->bytes, err) : STK_OK;
    }
}

/* ---- the reader ---------------------------------------------------------------------------- */

stk_status stk_reader_read(struct stk_reader *reader, uint64_t position, struct stk_value *values,
                           struct stk_error *err)
{
    uint64_t sample;
    memset(values, 0, reader->dataset->source->field_count * sizeof *values);
    struct remote_patience before = dataset_wait_begin(reader->dataset->source);
    stk_status status = stk_dataset_sample(reader->dataset, position, &sample, err);
    if (!status)
        status = reader_read_sample(reader, sample, values, err);
    dataset_wait_end(before);
    return status;
}

stk_status reader_read_sample(struct stk_reader *reader, uint64_t sample, struct stk_value *values,
                              struct stk_error *err)
{
    const struct dataset_source *source = reader->dataset->source;
    uint64_t at = 0;
    memset(values, 0, source->field_count * sizeof *values);
    stk_status status = fetch(reader, sample, err);
    if (!status)
        status = measure(reader, &at, sample, err);
    for (uint32_t f = 0; f < source->field_count && !status; f++) {
        values[f].kind = source->fields[f].field.kind;
        values[f].present = reader->extents[f].object != EXTENT_NONE;
        if (!values[f].present)
            continue;
        if (reader->encoded[f])
            values[f].bytes = stored_bytes(reader, f);
        else if (source->fields[f].field.media)
            status = decode_media(reader, f, sample, &values[f].tensor, err);
        else
            status = decode_value(reader, f, &at, &values[f], err);
        if (status)
            dataset_explain(reader->dataset, sample, f, &reader->extents[f], err);
    }
    return status;
}

void reader_leave_encoded(struct stk_reader *reader, uint32_t field)
{
    reader->encoded[field] = 1;
}

/* The bytes that a gathered value is made of say little: columns that nobody asked for, and no
 * padding. So they are given as read gives them. */
static stk_status gathered_bytes(struct stk_reader *reader, uint64_t sample, uint32_t field,
                                 struct stk_bytes *bytes, struct stk_error *err)
{
    const struct dataset_field *own = &reader->dataset->source->fields[field];
    const struct extent *extent = &reader->extents[field];
    stk_status status = buffer_reserve(&reader->made, own->payload + 1, err);
    if (!status && is_stored(extent)) {
        reader->starts[field] = 0;
        status = buffer_reserve(&reader->stored, extent->length + 1, err);
        if (!status)
            status = read_stored(reader, extent, reader->stored.data, err);
    }
    if (!status)
        status = gather(reader, field, reader->made.data, err);
    if (status)
        dataset_explain(reader->dataset, sample, field, extent, err);
    else
        *bytes = (struct stk_bytes){reader->made.data, own->payload};
    return status;
}

static stk_status stored_value(struct stk_reader *reader, uint64_t sample, uint32_t field,
                               struct stk_bytes *bytes, struct stk_error *err)
{
    const struct extent *extent = &reader->extents[field];
    int number = extent->object == EXTENT_VALUE;
    stk_status status =
        buffer_reserve(&reader->stored, number ? READER_ALIGN : extent->length + 1, err);
    if (status)
        return status;
    bytes->data = reader->stored.data;
    bytes->len = extent->length;
    if (number)
        bytes->len = (size_t)snprintf((char *)reader->stored.data, READER_ALIGN, "%" PRId64,
                                      (int64_t)extent->offset);
    else
        status = read_stored(reader, extent, reader->stored.data, err);
    if (status)
        dataset_explain(reader->dataset, sample, field, extent, err);
    return status;
}

stk_status reader_stored(struct stk_reader *reader, uint64_t sample, uint32_t field,
                         struct stk_bytes *bytes, struct stk_error *err)
{
    stk_status status =
        dataset_resolve(reader->dataset, &sample, 1, reader->scratch, reader->extents, err);
    *bytes = (struct stk_bytes){0};
    if (status)
        return status;
    if (reader->extents[field].object == EXTENT_NONE)
        return missing(reader, sample, field, err);
    return stored_value(reader, sample, field, bytes, err);
}

stk_status stk_reader_bytes(struct stk_reader *reader, uint64_t position, uint32_t field,
                            struct stk_bytes *bytes, struct stk_error *err)
{
    const struct dataset_source *source = reader->dataset->source;
    uint64_t sample;
    *bytes = (struct stk_bytes){0};
    if (field >= source->field_count)
        return fail(err, STK_USAGE, "field %u of %u", field, source->field_count);
    stk_status status = stk_dataset_sample(reader->dataset, position, &sample, err);
    if (!status)
        status =
            dataset_resolve(reader->dataset, &sample, 1, reader->scratch, reader->extents, err);
    if (status)
        return status;
    if (reader->extents[field].object == EXTENT_NONE)
        return missing(reader, sample, field, err);
    struct remote_patience before = dataset_wait_begin(source);
    status = is_gathered(&source->fields[field]) ? gathered_bytes(reader, sample, field, bytes, err)
                                                 : stored_value(reader, sample, field, bytes, err);
    dataset_wait_end(before);
    return status;
}

stk_status stk_reader_new(struct stk_dataset *dataset, struct stk_reader **out,
                          struct stk_error *err)
{
    uint32_t fields = dataset->source->field_count;
    struct stk_reader *reader = memory_zero(1, sizeof *reader);
    *out = NULL;
    if (!reader)
        return fail_memory(err, sizeof *reader);
    reader->dataset = stk_dataset_keep(dataset);
    reader->scratch = memory_zero(index_field_count(dataset->source->index), sizeof(struct extent));
    reader->extents = memory_zero(fields, sizeof *reader->extents);
    reader->starts = memory_zero(fields, sizeof *reader->starts);
    reader->shapes = memory_zero(fields, sizeof *reader->shapes);
    reader->numbers = memory_zero(fields, sizeof *reader->numbers);
    reader->encoded = memory_zero(fields, sizeof *reader->encoded);
    if (!reader->scratch || !reader->extents || !reader->starts || !reader->shapes ||
        !reader->numbers || !reader->encoded) {
        stk_reader_free(reader);
        return fail_memory(err, fields * sizeof *reader->extents);
    }
    *out = reader;
    return STK_OK;
}

void stk_reader_free(struct stk_reader *reader)
{
    if (!reader)
        return;
    for (uint32_t i = 0; i < READER_CHUNKS; i++)
        memory_unmap(reader->chunks[i].data, reader->chunks[i].size);
    memory_unmap(reader->stored.data, reader->stored.size);
    memory_unmap(reader->made.data, reader->made.size);
    memory_free(reader->scratch);
    memory_free(reader->extents);
    memory_free(reader->starts);
    memory_free(reader->shapes);
    memory_free(reader->numbers);
    memory_free(reader->encoded);
    media_reader_reset(&reader->media);
    stk_dataset_close(reader->dataset);
    memory_free(reader);
}
