#include "loader/slot.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/shape.h"

uint64_t slot_size(const struct layout *layout)
{
    uint64_t values = (uint64_t)layout->capacity * layout->field_count;
    return layout->capacity * sizeof(uint64_t) + layout->side_size + layout->mix +
           values * (sizeof(struct extent) + sizeof(uint8_t *) + 1 + sizeof(uint64_t)) +
           layout->field_count * sizeof(struct box_need);
}

stk_status slot_init(struct slot *slot, const struct layout *layout, struct stk_error *err)
{
    size_t capacity = layout->capacity, values = capacity * layout->field_count;
    *slot = (struct slot){0};
    slot->samples = memory_zero(capacity, sizeof *slot->samples);
    slot->extents = memory_zero(values, sizeof *slot->extents);
    slot->from = memory_zero(values, sizeof *slot->from);
    slot->how = memory_zero(values, sizeof *slot->how);
    slot->run_at = memory_zero(values, sizeof *slot->run_at);
    slot->need = memory_zero(layout->field_count, sizeof *slot->need);
    slot->side = memory_zero(1, layout->side_size + 1);
    slot->mix = memory_zero(1, layout->mix + 1);
    if (!slot->samples || !slot->extents || !slot->from || !slot->how || !slot->run_at ||
        !slot->need || !slot->side || !slot->mix) {
        slot_reset(slot);
        return fail_memory(err, slot_size(layout));
    }
    return STK_OK;
}

void slot_reset(struct slot *slot)
{
    slot_drop_bad(slot);
    box_give(slot->box);
    memory_free(slot->samples);
    memory_free(slot->extents);
    memory_free(slot->from);
    memory_free(slot->how);
    memory_free(slot->run_at);
    memory_free(slot->need);
    memory_free(slot->side);
    memory_free(slot->mix);
    memory_free(slot->chunks);
    *slot = (struct slot){0};
}

int slot_is_whole(const struct slot *slot)
{
    const struct slot_bad *bad = slot->bad;
    while (bad && bad->substitute != STK_NOWHERE)
        bad = bad->next;
    return !bad;
}

void slot_drop_bad(struct slot *slot)
{
    while (slot->bad) {
        struct slot_bad *next = slot->bad->next;
        if (slot->bad != &slot->spare)
            memory_free(slot->bad);
        slot->bad = next;
    }
    slot->spare_used = 0;
}

void slot_add_bad(struct slot *slot, const struct slot_bad *bad)
{
    struct slot_bad **link = &slot->bad, *entry = memory_alloc(sizeof *entry);
    if (!entry) {
        if (slot->spare_used)
            return; /* the batch is an error already */
        slot->spare_used = 1;
        entry = &slot->spare;
    }
    *entry = *bad;
    if (slot->spare_used)
        entry->substitute = STK_NOWHERE;
    while (*link && (*link)->place < entry->place)
        link = &(*link)->next;
    entry->next = *link;
    *link = entry;
}

/* --- padding and joining ---------------------------------------------------------------------- */

/* What `count` items have in common: all but the first axis must agree. */
struct rows {
    struct stk_tensor one; /* the first item that is there */
    int64_t longest, total;
};

static stk_status refuse_rows(const struct stk_batch_field *field, struct stk_error *err)
{
    stk_status status = field->layout == STK_RAGGED_PAD
                            ? fail(err, STK_SHAPE,
                                   "only the first axis can be padded, but samples of one batch "
                                   "differ in the others")
                            : fail(err, STK_SHAPE,
                                   "only the first axis can be joined, but samples of one batch "
                                   "differ in the others");
    fail_remedy(err, "give ragged=\"list\", or transforms that make the other axes agree");
    return status;
}

static stk_status rows_agree(const struct stk_batch_field *field, uint32_t count, struct rows *rows,
                             uint32_t *bad, struct stk_error *err)
{
    const struct stk_tensor *items = field->items, *first = NULL;
    *rows = (struct rows){0};
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].data == NULL) /* missing: no rows */
            continue;
        if (!first)
            first = &items[i];
        if (items[i].rank < 1 || items[i].rank >= STK_MAX_RANK ||
            !shape_same_rows(first, &items[i])) {
            *bad = i;
            return refuse_rows(field, err);
        }
        rows->longest = items[i].shape[0] > rows->longest ? items[i].shape[0] : rows->longest;
        rows->total += items[i].shape[0];
    }
    rows->one = first ? *first : field->field->shape;
    if (rows->one.rank < 1)
        rows->one = (struct stk_tensor){.dtype = rows->one.dtype, .rank = 1};
    return STK_OK;
}

static stk_status pad_field(struct slot *slot, uint32_t f, uint32_t *bad, struct stk_error *err)
{
    struct stk_batch_field *field = &slot->box->fields[f];
    uint32_t count = slot->share.count;
    struct rows rows;
    stk_status status = rows_agree(field, count, &rows, bad, err);
    if (status || count == 0)
        return status;
    struct stk_tensor whole = rows.one;
    whole.rank++;
    memmove(whole.shape + 1, whole.shape, sizeof(int64_t) * (STK_MAX_RANK - 1));
    whole.shape[0] = count;
    whole.shape[1] = rows.longest;
    uint64_t stride = stk_tensor_size(&whole) / count;
    whole.data = field->tensor.data;
    if (stride > slot->need[f].most) /* a substitute was longer than all that was admitted */
        whole.data = box_extra(slot->box, stride * count);
    if (!whole.data)
        return fail_memory(err, stride * count);
    for (uint32_t i = 0; i < count; i++) {
        const struct stk_tensor *item = &field->items[i];
        uint8_t *to = (uint8_t *)whole.data + stride * i;
        uint64_t size = item->data ? stk_tensor_size(item) : 0;
        if (size)
            memcpy(to, item->data, size);
        memset(to + size, 0, stride - size);
        box_lengths(field)[i] = item->data ? item->shape[0] : 0;
    }
    field->tensor = whole;
    return STK_OK;
}

/* All rows, one sample's behind the other's. */
static stk_status join_field(struct slot *slot, uint32_t f, uint32_t *bad, struct stk_error *err)
{
    struct stk_batch_field *field = &slot->box->fields[f];
    int64_t *offsets = box_offsets(field);
    struct rows rows;
    stk_status status = rows_agree(field, slot->share.count, &rows, bad, err);
    if (status)
        return status;
    struct stk_tensor whole = rows.one;
    whole.shape[0] = rows.total;
    uint64_t size = stk_tensor_size(&whole), at = 0;
    whole.data = field->tensor.data;
    if (size > slot->need[f].run)
        whole.data = box_extra(slot->box, size);
    if (!whole.data)
        return fail_memory(err, size);
    offsets[0] = 0;
    for (uint32_t i = 0; i < slot->share.count; i++) {
        const struct stk_tensor *item = &field->items[i];
        uint64_t bytes = item->data ? stk_tensor_size(item) : 0;
        if (bytes)
            memcpy((uint8_t *)whole.data + at, item->data, bytes);
        at += bytes;
        offsets[i + 1] = offsets[i] + (item->data ? item->shape[0] : 0);
    }
    field->tensor = whole;
    return STK_OK;
}

static void clear_masked(struct slot *slot, const struct layout *layout)
{
    uint32_t real = slot->share.real, masked = slot->share.count - real;
    for (uint32_t f = 0; f < layout->field_count && masked; f++) {
        struct stk_batch_field *field = &slot->box->fields[f];
        const struct field_layout *shape = &layout->fields[f];
        if (field->present)
            memset(box_present(field) + real, 0, masked);
        if (shape->place == PLACE_DENSE)
            memset((uint8_t *)field->tensor.data + shape->item * real, 0, shape->item * masked);
        if (shape->place == PLACE_DENSE && shape->pads)
            memset(box_lengths(field) + real, 0, sizeof(int64_t) * masked);
        if (shape->place == PLACE_DENSE)
            continue;
        if (shape->place == PLACE_BYTES)
            memset(box_bytes(field) + real, 0, sizeof(struct stk_bytes) * masked);
        else
            memset(box_items(field) + real, 0, sizeof(struct stk_tensor) * masked);
    }
}

static uint64_t field_bytes(const struct stk_batch_field *field, const struct field_layout *layout,
                            uint32_t real)
{
    uint64_t bytes = 0;
    if (layout->place == PLACE_DENSE)
        return layout->made_item * real;
    for (uint32_t i = 0; i < real; i++) {
        if (layout->place == PLACE_BYTES)
            bytes += field->bytes[i].len;
        else if (field->items[i].data)
            bytes += stk_tensor_size(&field->items[i]);
    }
    return bytes;
}

stk_status slot_finish(struct slot *slot, const struct layout *layout, uint32_t *value,
                       struct stk_error *err)
{
    struct box *box = slot->box;
    uint32_t real = slot->share.real, count = slot->share.count, place = 0;
    clear_masked(slot, layout);
    for (uint32_t f = 0; f < layout->field_count; f++) {
        box->batch.bytes += field_bytes(&box->fields[f], &layout->fields[f], real);
        enum place kind = layout->fields[f].place;
        if (kind != PLACE_PAD && kind != PLACE_FLAT)
            continue;
        stk_status status =
            kind == PLACE_PAD ? pad_field(slot, f, &place, err) : join_field(slot, f, &place, err);
        if (status) {
            *value = place * layout->field_count + f;
            return status;
        }
    }
    for (uint32_t i = real; i < count; i++)
        box->samples[i] = STK_NOWHERE;
    if (box->mask) {
        memset(box->mask, 1, real);
        memset(box->mask + real, 0, count - real);
    }
    return STK_OK;
}
