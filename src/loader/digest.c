#include "stoker/digest.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

void stk_digest_init(struct stk_digest *digest)
{
    struct hash128 hash;
    hash128_init(&hash, 0);
    *digest = (struct stk_digest){.state = {hash.lo, hash.hi}};
}

/* Rows of one sample that are no padding. */
static void add_rows(struct hash128 *hash, const struct stk_batch_field *field, uint32_t i)
{
    int flat = field->layout == STK_RAGGED_FLAT;
    struct stk_tensor item = field->tensor;
    const uint8_t *data = item.data;
    if (!flat) {
        item.rank--;
        memmove(item.shape, item.shape + 1, sizeof(int64_t) * (STK_MAX_RANK - 1));
        data += stk_tensor_size(&item) * i;
    }
    int64_t rows = flat ? field->offsets[i + 1] - field->offsets[i] : field->lengths[i];
    item.shape[0] = 1;
    uint64_t row = stk_tensor_size(&item);
    item.shape[0] = rows;
    for (int32_t d = 0; d < item.rank; d++)
        hash128_add_number(hash, (uint64_t)item.shape[d]);
    hash128_add(hash, data + (flat ? row * (uint64_t)field->offsets[i] : 0), row * (uint64_t)rows);
}

static void add_value(struct hash128 *hash, const struct stk_batch *batch,
                      const struct stk_batch_field *field, uint32_t i)
{
    if (field->present && !field->present[i]) {
        hash128_add_number(hash, UINT64_MAX);
        return;
    }
    if (field->bytes) {
        hash128_add(hash, field->bytes[i].data, field->bytes[i].len);
        return;
    }
    if (field->layout == STK_RAGGED_PAD || field->layout == STK_RAGGED_FLAT) {
        add_rows(hash, field, i);
        return;
    }
    if (field->items) {
        const struct stk_tensor *item = &field->items[i];
        for (int32_t d = 0; d < item->rank; d++)
            hash128_add_number(hash, (uint64_t)item->shape[d]);
        hash128_add(hash, item->data, stk_tensor_size(item));
        return;
    }
    uint64_t size = stk_tensor_size(&field->tensor) / batch->count;
    hash128_add(hash, (const uint8_t *)field->tensor.data + size * i, size);
}

static void add_batch(struct stk_digest *digest, const struct stk_batch *batch)
{
    struct hash128 hash = {.lo = digest->state[0], .hi = digest->state[1]};
    for (uint32_t i = 0; i < batch->real; i++)
        for (uint32_t f = 0; f < batch->field_count; f++)
            add_value(&hash, batch, &batch->fields[f], i);
    digest->state[0] = hash.lo;
    digest->state[1] = hash.hi;
    digest->samples += batch->real;
}

/* --- batches on a device ---------------------------------------------------------------------- */

/* What was brought from the device: one block a piece. */
struct piece_brought {
    struct piece_brought *next;
    max_align_t data[];
};

struct bringing {
    struct stk_batch *batch; /* on the device */
    struct piece_brought *pieces;
    struct stk_error *err;
    stk_status status;
};

/* The same bytes in the CPU's memory; NULL stays NULL. */
static void *bring(struct bringing *bringing, const void *from, uint64_t size)
{
    if (!from || bringing->status)
        return NULL;
    struct piece_brought *piece = memory_alloc(sizeof *piece + size);
    if (!piece) {
        bringing->status = fail_memory(bringing->err, size);
        return NULL;
    }
    piece->next = bringing->pieces;
    bringing->pieces = piece;
    bringing->status = stk_batch_copy_out(bringing->batch, piece->data, from, size, bringing->err);
    return piece->data;
}

static void bring_field(struct bringing *bringing, struct stk_batch_field *field)
{
    uint64_t count = bringing->batch->count;
    field->present = bring(bringing, field->present, count);
    if (field->bytes)
        return;
    field->lengths = bring(bringing, field->lengths, count * sizeof(int64_t));
    field->offsets = bring(bringing, field->offsets, (count + 1) * sizeof(int64_t));
    if (field->layout != STK_RAGGED_LIST) {
        field->tensor.data = bring(bringing, field->tensor.data, stk_tensor_size(&field->tensor));
        return;
    }
    struct stk_tensor *items = memory_alloc(count * sizeof *items);
    if (!items) {
        bringing->status = fail_memory(bringing->err, count * sizeof *items);
        field->items = NULL;
        return;
    }
    memcpy(items, field->items, count * sizeof *items);
    for (uint64_t i = 0; i < count; i++)
        items[i].data = bring(bringing, items[i].data, stk_tensor_size(&items[i]));
    field->items = items;
}

static stk_status add_brought(struct stk_digest *digest, struct stk_batch *batch,
                              struct stk_error *err)
{
    struct bringing bringing = {.batch = batch, .err = err};
    struct stk_batch here = *batch;
    struct stk_batch_field *fields = memory_zero(batch->field_count, sizeof *fields);
    if (!fields)
        return fail_memory(err, batch->field_count * sizeof *fields);
    memcpy(fields, batch->fields, batch->field_count * sizeof *fields);
    here.fields = fields;
    for (uint32_t f = 0; f < batch->field_count; f++)
        bring_field(&bringing, &fields[f]);
    if (!bringing.status)
        add_batch(digest, &here);
    for (uint32_t f = 0; f < batch->field_count; f++)
        if (fields[f].layout == STK_RAGGED_LIST && fields[f].items != batch->fields[f].items)
            memory_free((void *)(uintptr_t)fields[f].items);
    while (bringing.pieces) {
        struct piece_brought *next = bringing.pieces->next;
        memory_free(bringing.pieces);
        bringing.pieces = next;
    }
    memory_free(fields);
    return bringing.status;
}

stk_status stk_digest_add(struct stk_digest *digest, struct stk_batch *batch, struct stk_error *err)
{
    if (batch->device >= 0)
        return add_brought(digest, batch, err);
    add_batch(digest, batch);
    return STK_OK;
}

void stk_digest_text(const struct stk_digest *digest, char out[33])
{
    struct hash128 hash = {.lo = digest->state[0], .hi = digest->state[1]};
    uint8_t bytes[16];
    hash128_add_number(&hash, digest->samples);
    hash128_out(&hash, bytes);
    for (int i = 0; i < 16; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
