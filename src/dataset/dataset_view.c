#include "dataset/dataset_view.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/dataset_state.h"
#include "dataset/series_state.h"

#define VIEW_FIND_BLOCK 256 /* keys looked at before the next positions are mapped */

const struct index *dataset_index(const struct stk_dataset *dataset)
{
    return dataset->source->index;
}

struct store *dataset_store(const struct stk_dataset *dataset)
{
    return dataset->source->store;
}

const struct dataset_field *dataset_field(const struct stk_dataset *dataset, uint32_t field)
{
    return field < dataset->source->field_count ? &dataset->source->fields[field] : NULL;
}

void dataset_samples(const struct stk_dataset *dataset, uint64_t *positions, uint32_t n)
{
    for (; dataset->parent; dataset = dataset->parent)
        subset_map(&dataset->subset, positions, n);
}

int dataset_is_whole(const struct stk_dataset *dataset)
{
    for (; dataset->parent; dataset = dataset->parent)
        if (dataset->subset.kind != SUBSET_RANGE)
            return 0;
    return 1;
}

int dataset_is_remote(const struct stk_dataset *dataset)
{
    return dataset->source->remote;
}

stk_status dataset_resolve(const struct stk_dataset *dataset, const uint64_t *samples, uint32_t n,
                           struct extent *scratch, struct extent *out, struct stk_error *err)
{
    const struct dataset_source *source = dataset->source;
    if (source->plain)
        return index_resolve(source->index, samples, n, out, err);
    stk_status status = index_resolve(source->index, samples, n, scratch, err);
    if (status)
        return status;
    uint32_t row = index_field_count(source->index);
    for (uint32_t i = 0; i < n; i++, scratch += row)
        for (uint32_t f = 0; f < source->field_count; f++, out++) {
            const struct dataset_field *field = &source->fields[f];
            *out = (struct extent){.object = EXTENT_NONE};
            for (uint32_t a = 0; a < field->alternative_count; a++)
                if (scratch[field->alternatives[a]].object != EXTENT_NONE) {
                    *out = scratch[field->alternatives[a]];
                    break;
                }
        }
    return STK_OK;
}

/* Not through the table of paths: an error needs no memory. */
static void explain_place(const struct dataset_source *source, const struct extent *extent,
                          struct stk_error *err)
{
    uint32_t objects = index_object_count(source->index), number = extent->object;
    struct index_object object;
    struct chunk chunk;
    uint64_t offset = extent->offset;
    if (number == EXTENT_NONE || number == EXTENT_VALUE)
        return;
    if (number >= objects) {
        if (index_chunk(source->index, number - objects, &chunk, NULL))
            return;
        number = chunk.object;
        offset = STK_NOWHERE;
    }
    if (index_object(source->index, number, &object, NULL))
        return;
    char path[4096 + 512];
    snprintf(path, sizeof path, "%s%s%s", source->root, *source->root ? "/" : "", object.name);
    fail_at(err, path, offset);
}

void dataset_explain(const struct stk_dataset *dataset, uint64_t sample, uint32_t field,
                     const struct extent *extent, struct stk_error *err)
{
    const struct dataset_source *source = dataset->source;
    struct stk_bytes key = {0};
    char scratch[INDEX_KEY_SCRATCH];
    if (!err)
        return;
    if (extent)
        explain_place(source, extent, err);
    if (sample == STK_NOWHERE || index_key(source->index, sample, scratch, &key, NULL))
        key = (struct stk_bytes){0};
    fail_sample(err, sample, (const char *)key.data, key.len);
    if (field < source->field_count)
        fail_field(err, source->fields[field].field.name);
}

const char *dataset_object_path(const struct stk_dataset *dataset, uint32_t object)
{
    struct dataset_source *source = dataset->source;
    struct index_object from;
    char *path = atomic_load_explicit(&source->paths[object], memory_order_acquire);
    if (path || index_object(source->index, object, &from, NULL))
        return path;
    size_t root = strlen(source->root), name = strlen(from.name);
    char *made = memory_alloc(root + name + 2);
    if (!made)
        return NULL;
    memcpy(made, source->root, root);
    if (root)
        made[root++] = '/';
    memcpy(made + root, from.name, name + 1);
    if (atomic_compare_exchange_strong_explicit(&source->paths[object], &path, made,
                                                memory_order_acq_rel, memory_order_acquire))
        return made;
    memory_free(made); /* another thread was first */
    return path;
}

/* ---- what the user sees -------------------------------------------------------------------- */

uint64_t stk_dataset_samples(const struct stk_dataset *dataset)
{
    return dataset->samples;
}

uint32_t stk_dataset_field_count(const struct stk_dataset *dataset)
{
    return dataset->source->field_count;
}

const struct stk_field *stk_dataset_field(const struct stk_dataset *dataset, uint32_t field)
{
    const struct dataset_field *own = dataset_field(dataset, field);
    return own ? &own->field : NULL;
}

uint32_t stk_dataset_class_count(const struct stk_dataset *dataset)
{
    return index_class_count(dataset->source->index);
}

const char *stk_dataset_class(const struct stk_dataset *dataset, uint32_t number)
{
    const struct index *index = dataset->source->index;
    return number < index_class_count(index) ? index_class(index, number) : NULL;
}

uint32_t stk_dataset_object_count(const struct stk_dataset *dataset)
{
    return index_object_count(dataset->source->index);
}

uint64_t stk_dataset_skipped(const struct stk_dataset *dataset)
{
    return index_skipped(dataset->source->index);
}

const char *stk_dataset_index_path(const struct stk_dataset *dataset)
{
    return index_path(dataset->source->index);
}

void stk_dataset_fingerprint(const struct stk_dataset *dataset, uint8_t out[16])
{
    memcpy(out, dataset->fingerprint, 16);
}

stk_status stk_dataset_sample(const struct stk_dataset *dataset, uint64_t position,
                              uint64_t *sample, struct stk_error *err)
{
    *sample = position;
    if (position >= dataset->samples)
        return fail(err, STK_NOT_FOUND, "position %llu is past the last of %llu samples",
                    (unsigned long long)position, (unsigned long long)dataset->samples);
    dataset_samples(dataset, sample, 1);
    return STK_OK;
}

stk_status stk_dataset_key(const struct stk_dataset *dataset, uint64_t position,
                           struct stk_bytes *key, struct stk_error *err)
{
    /* keys of rows and windows are made when asked for */
    static _Thread_local char scratch[INDEX_KEY_SCRATCH];
    uint64_t sample;
    *key = (struct stk_bytes){0};
    stk_status status = stk_dataset_sample(dataset, position, &sample, err);
    if (!status)
        status = index_key(dataset->source->index, sample, scratch, key, err);
    return status;
}

/* The position of a sample of the index; STK_NOWHERE: the (sub)set does not have it. */
static uint64_t position_of(const struct stk_dataset *dataset, uint64_t sample)
{
    uint64_t position = dataset->parent ? position_of(dataset->parent, sample) : sample;
    if (dataset->parent && position != STK_NOWHERE)
        position = subset_find(&dataset->subset, position);
    return position;
}

/* Windows may be far too many for a walk. */
static stk_status find_window(const struct stk_dataset *dataset, const char *key,
                              uint64_t *position, struct stk_error *err)
{
    uint64_t sample = series_find_key(dataset->source, key);
    *position = sample == STK_NOWHERE ? STK_NOWHERE : position_of(dataset, sample);
    if (*position != STK_NOWHERE)
        return STK_OK;
    stk_status status = fail(err, STK_NOT_FOUND, "no sample has the key \"%s\"", key);
    fail_remedy(err, "the key of a window is ENTITY:START, its first row counted from the entity's "
                     "first");
    return status;
}

stk_status stk_dataset_find(const struct stk_dataset *dataset, const char *key, uint64_t *position,
                            struct stk_error *err)
{
    size_t len = strlen(key);
    uint64_t samples[VIEW_FIND_BLOCK];
    *position = STK_NOWHERE;
    if (dataset->source->series)
        return find_window(dataset, key, position, err);
    for (uint64_t at = 0; at < dataset->samples; at += VIEW_FIND_BLOCK) {
        uint64_t left = dataset->samples - at;
        uint32_t n = left < VIEW_FIND_BLOCK ? (uint32_t)left : VIEW_FIND_BLOCK;
        for (uint32_t i = 0; i < n; i++)
            samples[i] = at + i;
        dataset_samples(dataset, samples, n);
        for (uint32_t i = 0; i < n; i++) {
            char scratch[INDEX_KEY_SCRATCH];
            struct stk_bytes own;
            stk_status status = index_key(dataset->source->index, samples[i], scratch, &own, err);
            if (status)
                return status;
            if (own.len == len && !memcmp(own.data, key, len)) {
                *position = at + i;
                return STK_OK;
            }
        }
    }
    return fail(err, STK_NOT_FOUND, "no sample has the key \"%s\"", key);
}

/* The extent of one field of one position. */
static stk_status resolve_one(const struct stk_dataset *dataset, uint64_t position, uint32_t field,
                              struct extent *extent, struct stk_error *err)
{
    const struct dataset_source *source = dataset->source;
    uint64_t rows = index_field_count(source->index), own = source->field_count, sample;
    if (field >= own)
        return fail(err, STK_USAGE, "field %u of %u", field, source->field_count);
    stk_status status = stk_dataset_sample(dataset, position, &sample, err);
    if (status)
        return status;
    struct extent *room = memory_zero(rows + own, sizeof *room);
    if (!room)
        return fail_memory(err, (rows + own) * sizeof *room);
    status = dataset_resolve(dataset, &sample, 1, room, room + rows, err);
    *extent = room[rows + field];
    memory_free(room);
    return status;
}

stk_status stk_dataset_place(const struct stk_dataset *dataset, uint64_t position, uint32_t field,
                             struct stk_place *place, struct stk_error *err)
{
    const struct index *index = dataset->source->index;
    uint32_t objects = index_object_count(index);
    struct extent extent = {.object = EXTENT_NONE};
    *place = (struct stk_place){.object = "", .offset = STK_NOWHERE, .length = STK_NOWHERE};
    stk_status status = resolve_one(dataset, position, field, &extent, err);
    if (status)
        return status;
    if (extent.object == EXTENT_NONE)
        return STK_NOT_FOUND;
    if (extent.object == EXTENT_VALUE)
        return STK_OK; /* a class, a window's number: it lies nowhere */
    uint32_t object = extent.object;
    if (object >= objects) {
        struct chunk chunk;
        status = index_chunk(index, object - objects, &chunk, err);
        if (status)
            return status;
        object = chunk.object;
    } else {
        place->offset = extent.offset;
        place->length = extent.length;
    }
    place->object = dataset_object_path(dataset, object);
    return place->object ? STK_OK : fail_memory(err, 0);
}
