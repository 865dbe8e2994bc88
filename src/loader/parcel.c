#include "loader/parcel.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define FIELD_PASSAGES                                                                             \
    6 /* of a field that is no list: values, params, home, present, lengths, offsets */

stk_status parcel_init(struct parcel *parcel, const struct layout *layout, struct stk_error *err)
{
    uint64_t passages = 1;
    *parcel = (struct parcel){0};
    for (uint32_t f = 0; f < layout->field_count; f++)
        passages += FIELD_PASSAGES + (layout->fields[f].place == PLACE_LIST ? layout->capacity : 0);
    parcel->passage_cap = (uint32_t)passages;
    parcel->fields = memory_zero(layout->field_count, sizeof *parcel->fields);
    parcel->passages = memory_zero(passages, sizeof *parcel->passages);
    if (parcel->fields && parcel->passages)
        return STK_OK;
    parcel_reset(parcel);
    return fail_memory(err, passages * sizeof *parcel->passages);
}

void parcel_reset(struct parcel *parcel)
{
    memory_free(parcel->fields);
    memory_free(parcel->passages);
    *parcel = (struct parcel){0};
}

/* --- packing ---------------------------------------------------------------------------------- */

static uint64_t block_take(struct parcel *parcel, enum parcel_block block, uint64_t size)
{
    uint64_t *end = block == PARCEL_RESULT ? &parcel->result : &parcel->landing;
    uint64_t at = *end;
    *end += box_round_up(size);
    return at;
}

/* Neighbours in the box that are neighbours on the device go over in one copy; the few bytes that
 * round them up go along. */
static void send(struct parcel *parcel, const void *from, uint64_t size, enum parcel_block block,
                 uint64_t to)
{
    struct passage *last =
        parcel->passage_count ? &parcel->passages[parcel->passage_count - 1] : NULL;
    if (!size)
        return;
    parcel->shipped += size;
    if (last && last->block == block && last->from + box_round_up(last->size) == from &&
        last->to + box_round_up(last->size) == to) {
        last->size = box_round_up(last->size) + size;
        return;
    }
    parcel->passages[parcel->passage_count++] =
        (struct passage){.from = from, .to = to, .size = size, .block = block};
}

/* Sends it, if there is any, and says where it will be. */
static uint64_t send_new(struct parcel *parcel, const void *from, uint64_t size,
                         enum parcel_block block)
{
    if (!from)
        return STK_NOWHERE;
    uint64_t at = block_take(parcel, block, size);
    send(parcel, from, size, block, at);
    return at;
}

/* One after the other; where the first one is. */
static uint64_t pack_items(struct parcel *parcel, const struct stk_batch_field *field,
                           uint32_t count)
{
    uint64_t first = parcel->result;
    parcel->host += box_round_up(count * sizeof(struct stk_tensor));
    for (uint32_t i = 0; i < count; i++)
        if (field->items[i].data)
            send_new(parcel, field->items[i].data, stk_tensor_size(&field->items[i]),
                     PARCEL_RESULT);
    return first;
}

/* A field whose samples all have their places. */
static void pack_dense(struct parcel *parcel, const struct field_layout *layout,
                       const struct stk_batch_field *field, uint32_t count, uint32_t landed,
                       struct parcel_field *out)
{
    uint64_t values = layout->item * count;
    int finished = layout->params == 0; /* what is shipped is what the caller sees */
    if (finished) {
        out->values = out->landed = block_take(parcel, PARCEL_RESULT, values);
        if (landed)
            send(parcel, field->tensor.data, values, PARCEL_RESULT, out->values);
        return;
    }
    out->values = block_take(parcel, PARCEL_RESULT, layout->made_item * count);
    out->landed = block_take(parcel, PARCEL_LANDING, values);
    if (landed)
        send(parcel, field->tensor.data, values, PARCEL_LANDING, out->landed);
}

/* Bytes stay with the CPU, in the batch's own arrays: the box goes back before the batch does. */
static uint64_t bytes_size(const struct stk_batch_field *field, uint32_t count)
{
    uint64_t size = box_round_up(count * sizeof(struct stk_bytes));
    for (uint32_t i = 0; i < count; i++)
        size += field->bytes[i].len;
    return box_round_up(size);
}

static void pack_field(struct parcel *parcel, const struct layout *layout, const struct slot *slot,
                       uint32_t f, uint32_t landed)
{
    const struct field_layout *own = &layout->fields[f];
    const struct stk_batch_field *field = &slot->box->fields[f];
    struct parcel_field *out = &parcel->fields[f];
    uint32_t count = slot->share.count;
    *out = (struct parcel_field){STK_NOWHERE, STK_NOWHERE, STK_NOWHERE, STK_NOWHERE,
                                 STK_NOWHERE, STK_NOWHERE, STK_NOWHERE};
    out->present = send_new(parcel, field->present, count, PARCEL_RESULT);
    if (own->place == PLACE_BYTES) {
        parcel->host += bytes_size(field, count);
        return;
    }
    if (own->place == PLACE_DENSE)
        pack_dense(parcel, own, field, count, landed, out);
    else if (own->place == PLACE_LIST)
        out->values = pack_items(parcel, field, count);
    else
        out->values =
            send_new(parcel, field->tensor.data, stk_tensor_size(&field->tensor), PARCEL_RESULT);
    if (own->place != PLACE_LIST)
        out->lengths = send_new(parcel, field->lengths, count * sizeof(int64_t), PARCEL_RESULT);
    if (own->place == PLACE_FLAT)
        out->offsets = send_new(parcel, field->offsets, (count + UINT64_C(1)) * sizeof(int64_t),
                                PARCEL_RESULT);
    if (own->params)
        out->params =
            send_new(parcel, slot->box->params[f], (uint64_t)own->params * count, PARCEL_LANDING);
    if (own->resident && landed < slot->share.real)
        out->home = send_new(parcel, slot->box->home[f], count * sizeof(uint64_t), PARCEL_LANDING);
}

void parcel_pack(struct parcel *parcel, const struct layout *layout, const struct slot *slot,
                 const uint32_t *landed)
{
    uint32_t count = slot->share.count;
    parcel->passage_count = 0;
    parcel->result = parcel->landing = parcel->shipped = 0;
    parcel->host = box_round_up(layout->field_count * sizeof(struct stk_batch_field)) +
                   box_round_up(count * sizeof(uint64_t));
    parcel->mask = send_new(parcel, slot->box->mask, count, PARCEL_RESULT);
    for (uint32_t f = 0; f < layout->field_count; f++)
        pack_field(parcel, layout, slot, f, landed[f]);
}

/* --- the batch on the device ------------------------------------------------------------------ */

static void *at(const struct device_slot *slot, uint64_t offset)
{
    return offset == STK_NOWHERE ? NULL : (void *)(uintptr_t)(slot->data + offset);
}

/* Items were sent one after the other, from where the field's began. */
static void label_items(const struct stk_batch_field *from, uint32_t count, uint64_t result,
                        const struct device_slot *slot, struct stk_tensor *items)
{
    for (uint32_t i = 0; i < count; i++) {
        items[i] = from->items[i];
        if (!items[i].data)
            continue;
        items[i].data = at(slot, result);
        result += box_round_up(stk_tensor_size(&items[i]));
    }
}

static void label_bytes(const struct stk_batch_field *from, uint32_t count, uint8_t *host,
                        struct stk_batch_field *field)
{
    struct stk_bytes *runs = (struct stk_bytes *)host;
    field->bytes = runs;
    host += box_round_up(count * sizeof *runs);
    for (uint32_t i = 0; i < count; i++) {
        runs[i] = from->bytes[i];
        if (!runs[i].data)
            continue;
        memcpy(host, from->bytes[i].data, runs[i].len);
        runs[i].data = host;
        host += runs[i].len;
    }
}

static void label_field(const struct parcel_field *where, const struct field_layout *layout,
                        uint32_t count, const struct device_slot *slot,
                        struct stk_batch_field *field)
{
    field->present = at(slot, where->present);
    field->lengths = at(slot, where->lengths);
    field->offsets = at(slot, where->offsets);
    if (layout->place == PLACE_DENSE) {
        field->tensor = layout->made;
        field->tensor.rank = layout->made.rank + 1;
        memmove(field->tensor.shape + 1, layout->made.shape, sizeof(int64_t) * (STK_MAX_RANK - 1));
        field->tensor.shape[0] = count;
    }
    if (layout->place != PLACE_LIST)
        field->tensor.data = at(slot, where->values);
    if (layout->place == PLACE_PAD || layout->place == PLACE_FLAT)
        field->items = NULL; /* they were joined */
}

void parcel_label(const struct parcel *parcel, const struct layout *layout, const struct slot *slot,
                  struct device_slot *to)
{
    const struct box *box = slot->box;
    uint32_t count = slot->share.count;
    uint8_t *host = to->host;
    struct stk_batch_field *fields = (struct stk_batch_field *)host;
    host += box_round_up(layout->field_count * sizeof *fields);
    uint64_t *samples = (uint64_t *)host;
    host += box_round_up(count * sizeof *samples);
    memcpy(samples, box->samples, count * sizeof *samples);
    to->batch = box->batch;
    to->batch.fields = fields;
    to->batch.samples = samples;
    to->batch.mask = at(to, parcel->mask);
    for (uint32_t f = 0; f < layout->field_count; f++) {
        const struct field_layout *own = &layout->fields[f];
        fields[f] = box->fields[f];
        if (own->place == PLACE_BYTES) {
            fields[f].present = at(to, parcel->fields[f].present);
            label_bytes(&box->fields[f], count, host, &fields[f]);
            host += bytes_size(&box->fields[f], count);
            continue;
        }
        label_field(&parcel->fields[f], own, count, to, &fields[f]);
        if (own->place != PLACE_LIST)
            continue;
        fields[f].items = (struct stk_tensor *)host;
        label_items(&box->fields[f], count, parcel->fields[f].values, to,
                    (struct stk_tensor *)host);
        host += box_round_up(count * sizeof(struct stk_tensor));
    }
}
