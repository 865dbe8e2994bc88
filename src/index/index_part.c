#include "index/index_part.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "index/index_file.h"

stk_status index_part_room(void **data, uint64_t *cap, uint64_t count, uint64_t more, uint64_t item,
                           struct stk_error *err)
{
    uint64_t need, bytes;
    if (!checked_add(count, more, &need) || !checked_mul(need, 2 * item, &bytes))
        return fail(err, STK_LIMIT, "a shard has too many samples");
    if (need <= *cap)
        return STK_OK;
    uint64_t wanted = need < 64 ? 64 : need + need / 2;
    void *grown = memory_grow(*data, wanted * item);
    if (!grown)
        return fail_memory(err, wanted * item);
    *data = grown;
    *cap = wanted;
    return STK_OK;
}

stk_status index_part_new(struct index_part **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof(**out));
    return *out ? STK_OK : fail_memory(err, sizeof(**out));
}

void index_part_reset(struct index_part *part)
{
    for (uint64_t i = 0; i < part->field_count; i++)
        memory_free(part->fields[i].name);
    part->field_count = part->chunk_count = part->entry_count = 0;
    part->sample_count = part->key_count = 0;
    part->guess = 0;
}

void index_part_free(struct index_part *part)
{
    if (!part)
        return;
    index_part_reset(part);
    memory_free(part->fields);
    memory_free(part->chunks);
    memory_free(part->entries);
    memory_free(part->entry_ends);
    memory_free(part->key_ends);
    memory_free(part->keys);
    memory_free(part);
}

uint64_t index_part_samples(const struct index_part *part)
{
    return part->sample_count;
}

stk_status index_part_chunk(struct index_part *part, const struct chunk *chunk, uint32_t *number,
                            struct stk_error *err)
{
    *number = 0;
    stk_status status = index_part_room((void **)&part->chunks, &part->chunk_cap, part->chunk_count,
                                        1, sizeof(*chunk), err);
    if (status)
        return status;
    *number = (uint32_t)part->chunk_count;
    part->chunks[part->chunk_count++] = *chunk;
    return STK_OK;
}

stk_status index_part_sample(struct index_part *part, const char *key, size_t key_len,
                             struct stk_error *err)
{
    uint64_t n = part->sample_count;
    stk_status status =
        index_part_room((void **)&part->keys, &part->key_cap, part->key_count, key_len, 1, err);
    if (!status)
        status = index_part_room((void **)&part->key_ends, &part->key_end_cap, n, 1,
                                 sizeof(*part->key_ends), err);
    if (!status)
        status = index_part_room((void **)&part->entry_ends, &part->entry_end_cap, n, 1,
                                 sizeof(*part->entry_ends), err);
    if (status)
        return status;
    if (key_len > 0)
        memcpy(part->keys + part->key_count, key, key_len);
    part->key_count += key_len;
    part->key_ends[n] = part->key_count;
    part->entry_ends[n] = part->entry_count;
    part->sample_count = n + 1;
    part->guess = 0;
    return STK_OK;
}

static int field_is(const struct part_field *field, const char *name, size_t len)
{
    return strlen(field->name) == len && !memcmp(field->name, name, len); /* name may hold a NUL */
}

static stk_status part_find_field(struct index_part *part, const char *name, size_t len,
                                  uint32_t *out, struct stk_error *err)
{
    /* Samples of one shard mostly have the same fields in the same order. */
    if (part->guess < part->field_count && field_is(&part->fields[part->guess], name, len)) {
        *out = part->guess;
        return STK_OK;
    }
    for (uint32_t i = 0; i < part->field_count; i++) {
        if (field_is(&part->fields[i], name, len)) {
            *out = i;
            return STK_OK;
        }
    }
    if (memchr(name, 0, len))
        return fail(err, STK_CORRUPT, "a field's name holds a NUL byte");
    if (part->field_count == INDEX_MAX_FIELDS)
        return fail(err, STK_LIMIT, "there are more than %u different fields", INDEX_MAX_FIELDS);
    stk_status status = index_part_room((void **)&part->fields, &part->field_cap, part->field_count,
                                        1, sizeof(*part->fields), err);
    if (status)
        return status;
    char *copy = memory_text(name, len);
    if (!copy)
        return fail_memory(err, len);
    *out = (uint32_t)part->field_count;
    part->fields[part->field_count++] = (struct part_field){copy, 0};
    return STK_OK;
}

stk_status index_part_extent(struct index_part *part, const char *field, size_t field_len,
                             const struct extent *extent, struct stk_error *err)
{
    if (part->sample_count == 0)
        return fail(err, STK_USAGE, "an extent came before the first sample");
    uint32_t number = 0;
    stk_status status = part_find_field(part, field, field_len, &number, err);
    if (!status)
        status = index_part_room((void **)&part->entries, &part->entry_cap, part->entry_count, 1,
                                 sizeof(*part->entries), err);
    if (status)
        return status;
    if (part->fields[number].last == part->sample_count) {
        fail(err, STK_CORRUPT, "a sample has the field %s twice", part->fields[number].name);
        fail_field(err, part->fields[number].name);
        return STK_CORRUPT;
    }
    part->fields[number].last = part->sample_count;
    part->entries[part->entry_count++] =
        (struct part_entry){extent->offset, extent->length, extent->object, number};
    part->entry_ends[part->sample_count - 1] = part->entry_count;
    part->guess = number + 1;
    return STK_OK;
}
