#include "stoker/digest.h"

#include <stdio.h>

#include "base/hash.h"

void stk_digest_init(struct stk_digest *digest)
{
    struct hash128 hash;
    hash128_init(&hash, 0);
    *digest = (struct stk_digest){.state = {hash.lo, hash.hi}};
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
    if (field->items) { /* padded or not: the sample's own rows */
        const struct stk_tensor *item = &field->items[i];
        for (int32_t d = 0; d < item->rank; d++)
            hash128_add_number(hash, (uint64_t)item->shape[d]);
        hash128_add(hash, item->data, stk_tensor_size(item));
        return;
    }
    uint64_t size = stk_tensor_size(&field->tensor) / batch->count;
    hash128_add(hash, (const uint8_t *)field->tensor.data + size * i, size);
}

void stk_digest_add(struct stk_digest *digest, const struct stk_batch *batch)
{
    struct hash128 hash = {.lo = digest->state[0], .hi = digest->state[1]};
    for (uint32_t i = 0; i < batch->real; i++)
        for (uint32_t f = 0; f < batch->field_count; f++)
            add_value(&hash, batch, &batch->fields[f], i);
    digest->state[0] = hash.lo;
    digest->state[1] = hash.hi;
    digest->samples += batch->real;
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
