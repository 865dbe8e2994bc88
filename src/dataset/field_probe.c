#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/chunk_read.h"
#include "dataset/dataset_fields.h"
#include "dataset/field_heads.h"
#include "dataset/media_read.h"

/* Looks at the first value of each tensor field: what it is decides how the loader lays out a
 * batch. */

#define PROBE_BLOCK 64 /* samples resolved at a time */
#define PROBE_TRIES 16 /* values that may be damaged before we give up looking */

struct probe {
    struct stk_dataset *dataset;
    struct extent *scratch, *extents;
    uint32_t waiting; /* fields that have no shape yet */
    uint32_t tries[DATASET_MAX_FIELDS];
    uint8_t done[DATASET_MAX_FIELDS];
    struct media_reader media;
};

static stk_status probe_bytes(const struct stk_dataset *dataset, const struct extent *extent,
                              uint8_t *bytes, size_t len, struct stk_error *err)
{
    uint32_t objects = index_object_count(dataset->source->index);
    if (extent->object >= objects)
        return chunk_read_part(dataset, extent->object - objects, extent->offset, len, bytes, err);
    struct iovec part = {bytes, len};
    struct store_read read = {
        .object = extent->object,
        .part_count = 1,
        .offset = extent->offset,
        .length = len,
        .parts = &part,
    };
    if (store_read_now(dataset->source->store, &read))
        return store_explain(dataset->source->store, &read, err);
    return STK_OK;
}

/* Decodes one value of media: its head does not always tell the shape, and a whole value shows that
 * values can be decoded here at all. */
static stk_status probe_media(struct probe *probe, uint32_t f, const struct extent *extent,
                              uint64_t sample, struct stk_error *err)
{
    struct dataset_field *field = &probe->dataset->source->fields[f];
    struct media_value value = {.media = field->field.media, .sample = sample};
    struct stk_tensor tensor;
    uint8_t *bytes = memory_alloc(extent->length);
    if (!bytes)
        return fail_memory(err, extent->length);
    value.bytes = (struct stk_bytes){bytes, extent->length};
    stk_status status = STK_OK;
    if (extent->length)
        status = probe_bytes(probe->dataset, extent, bytes, extent->length, err);
    if (!status && !probe->media.states)
        status = media_reader_init(&probe->media, 1, err);
    if (!status)
        status = media_read(&probe->media, &value, &tensor, err);
    memory_free(bytes);
    if (status)
        return status;
    tensor.data = NULL;
    field->field.shape = tensor;
    field->payload = stk_tensor_size(&tensor);
    field->probed = sample;
    return STK_OK;
}

/* Parses one value's head into the field's promise. */
static stk_status probe_value(const struct stk_dataset *dataset, struct dataset_field *field,
                              const struct extent *extent, uint64_t sample, struct stk_error *err)
{
    uint8_t bytes[CODEC_PROBE_BYTES];
    struct stk_bytes head = {bytes, extent->length < sizeof bytes ? extent->length : sizeof bytes};
    struct codec_shape shape;
    stk_status status = probe_bytes(dataset, extent, bytes, head.len, err);
    if (!status)
        status = field->codec->probe(&head, extent->length, &shape, err);
    if (status)
        return status;
    field->field.shape = shape.tensor;
    field->payload = stk_tensor_size(&shape.tensor);
    field->head = shape.head;
    field->plain = shape.plain;
    size_t kept = shape.head < sizeof field->head_bytes ? shape.head : sizeof field->head_bytes;
    memcpy(field->head_bytes, bytes, kept < head.len ? kept : head.len);
    field->probed = sample;
    return STK_OK;
}

/* The value is at fault, not the machine: another sample may do. */
static int is_bad_value(stk_status status)
{
    return status == STK_CORRUPT || status == STK_TRUNCATED || status == STK_UNSUPPORTED ||
           status == STK_LIMIT || status == STK_SHAPE;
}

/* Keeps the first problem, for whoever needs the shape after all. */
static void probe_note(struct dataset_field *field, stk_status status, const struct stk_error *why)
{
    if (!status || field->problem)
        return;
    field->problem = status;
    snprintf(field->problem_words, sizeof field->problem_words, "%.*s",
             (int)sizeof field->problem_words - 1, why->what);
    snprintf(field->problem_remedy, sizeof field->problem_remedy, "%.*s",
             (int)sizeof field->problem_remedy - 1, why->remedy);
}

static stk_status probe_sample(struct probe *probe, uint64_t sample, const struct extent *extents,
                               struct stk_error *err)
{
    struct dataset_source *source = probe->dataset->source;
    for (uint32_t f = 0; f < source->field_count; f++) {
        struct dataset_field *field = &source->fields[f];
        if (probe->done[f] || extents[f].object == EXTENT_NONE)
            continue;
        if (extents[f].object == EXTENT_VALUE) {
            stk_status status = fail(
                err, STK_USAGE, "field \"%s\" is a class number: only int fits", field->field.name);
            return status;
        }
        int wants = field->field.kind == STK_KIND_TENSOR;
        struct stk_error why = {0};
        stk_status status = STK_OK;
        if (wants && field->field.media)
            status = probe_media(probe, f, &extents[f], sample, &why);
        else if (wants)
            status = probe_value(probe->dataset, field, &extents[f], sample, &why);
        probe_note(field, status, &why);
        if (status && !is_bad_value(status)) {
            if (err)
                *err = why;
            dataset_explain(probe->dataset, sample, f, &extents[f], err);
            return status;
        }
        if (!status || ++probe->tries[f] == PROBE_TRIES) {
            probe->done[f] = 1;
            probe->waiting--;
        }
    }
    return STK_OK;
}

static stk_status probe_walk(struct probe *probe, struct stk_error *err)
{
    struct dataset_source *source = probe->dataset->source;
    uint64_t samples = index_samples(source->index), numbers[PROBE_BLOCK];
    stk_status status = STK_OK;
    for (uint64_t at = 0; at < samples && probe->waiting && !status; at += PROBE_BLOCK) {
        uint32_t n = samples - at < PROBE_BLOCK ? (uint32_t)(samples - at) : PROBE_BLOCK;
        for (uint32_t i = 0; i < n; i++)
            numbers[i] = at + i;
        status = dataset_resolve(probe->dataset, numbers, n, probe->scratch, probe->extents, err);
        for (uint32_t i = 0; i < n && probe->waiting && !status; i++)
            status = probe_sample(probe, numbers[i], probe->extents + i * source->field_count, err);
    }
    return status;
}

/* Rows of arrays are known from the index; numbers and missing fields need no look. */
static void probe_known(struct probe *probe)
{
    struct dataset_source *source = probe->dataset->source;
    for (uint32_t f = 0; f < source->field_count; f++) {
        struct dataset_field *field = &source->fields[f];
        const struct index_field *from =
            field->alternative_count ? index_field(source->index, field->alternatives[0]) : NULL;
        int rows = from && from->row.rank >= 0 && field->field.kind == STK_KIND_TENSOR;
        if (rows) {
            field->field.shape = from->row;
            field->payload = stk_tensor_size(&from->row);
            field->plain = !from->byteswap;
            field->probed = 0;
        }
        int values =
            index_class_count(source->index) > 0; /* some extents are values: look at all */
        int known = from && field->field.kind == STK_KIND_TENSOR && !rows && source->remote &&
                    field_head_load(source, field);
        probe->done[f] = rows || known || !from || field->field.kind == STK_KIND_INT ||
                         (field->field.kind != STK_KIND_TENSOR && !values);
        probe->waiting += !probe->done[f];
    }
}

stk_status dataset_fields_probe(struct stk_dataset *dataset, struct stk_error *err)
{
    struct dataset_source *source = dataset->source;
    uint64_t row = (uint64_t)index_field_count(source->index) * PROBE_BLOCK;
    uint64_t own = (uint64_t)source->field_count * PROBE_BLOCK;
    struct probe probe = {.dataset = dataset};
    stk_status status = STK_OK;
    probe_known(&probe);
    if (!probe.waiting)
        return STK_OK;
    probe.scratch = memory_zero(row, sizeof *probe.scratch);
    probe.extents = memory_zero(own, sizeof *probe.extents);
    if (!probe.scratch || !probe.extents)
        status = fail_memory(err, (row + own) * sizeof *probe.scratch);
    else
        status = probe_walk(&probe, err);
    media_reader_reset(&probe.media);
    memory_free(probe.scratch);
    memory_free(probe.extents);
    return status;
}
