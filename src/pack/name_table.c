#include "pack/name_table.h"

#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"

#define FIRST_SLOTS 64
#define SEED UINT64_C(0x53746f6b6572)

/* Part of the hash decides most comparisons without a look at the name. */
struct name_slot {
    uint32_t hash;
    uint32_t number; /* + 1; 0: free */
};

static struct name_slot *find_slot(const struct name_table *table, const char *name, size_t len,
                                   uint64_t hash)
{
    uint32_t mask = table->slot_count - 1;

    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        struct name_slot *slot = &table->slots[at];
        if (!slot->number)
            return slot;
        if (slot->hash != (uint32_t)(hash >> 32))
            continue;
        const char *found = table->names[slot->number - 1];
        if (strlen(found) == len && !memcmp(found, name, len))
            return slot;
    }
}

uint32_t name_table_find(const struct name_table *table, const char *name, size_t len)
{
    if (!table->slot_count)
        return NAME_NONE;
    uint32_t number = find_slot(table, name, len, hash_bytes(name, len, SEED))->number;
    return number ? number - 1 : NAME_NONE;
}

static stk_status grow_slots(struct name_table *table, struct stk_error *err)
{
    struct name_table larger = *table;
    uint32_t wanted = table->slot_count ? table->slot_count * 2 : FIRST_SLOTS;

    if (table->slot_count > UINT32_MAX / 4)
        return fail(err, STK_LIMIT, "there are more than %u names", table->count);
    larger.slots = memory_zero(wanted, sizeof(*larger.slots));
    if (!larger.slots)
        return fail_memory(err, (uint64_t)wanted * sizeof(*larger.slots));
    larger.slot_count = wanted;
    for (uint32_t i = 0; i < table->count; i++) {
        size_t len = strlen(table->names[i]);
        uint64_t hash = hash_bytes(table->names[i], len, SEED);
        *find_slot(&larger, table->names[i], len, hash) =
            (struct name_slot){(uint32_t)(hash >> 32), i + 1};
    }
    memory_free(table->slots);
    *table = larger;
    return STK_OK;
}

static stk_status grow_names(struct name_table *table, struct stk_error *err)
{
    uint32_t cap = table->cap ? table->cap * 2 : FIRST_SLOTS / 2;
    char **names = memory_grow(table->names, cap * sizeof(*names));

    if (!names)
        return fail_memory(err, cap * sizeof(*names));
    table->names = names;
    table->cap = cap;
    return STK_OK;
}

stk_status name_table_add(struct name_table *table, const char *name, size_t len,
                          struct stk_error *err)
{
    stk_status status = STK_OK;

    if (table->count >= table->slot_count / 2)
        status = grow_slots(table, err);
    if (!status && table->count == table->cap)
        status = grow_names(table, err);
    if (status)
        return status;
    char *copy = memory_text(name, len);
    if (!copy)
        return fail_memory(err, len + 1);
    uint64_t hash = hash_bytes(name, len, SEED);
    struct name_slot *slot = find_slot(table, name, len, hash);
    table->names[table->count++] = copy;
    *slot = (struct name_slot){(uint32_t)(hash >> 32), table->count};
    return STK_OK;
}

char **name_table_take(struct name_table *table)
{
    char **names = table->names;

    memory_free(table->slots);
    memset(table, 0, sizeof(*table));
    return names;
}

void name_table_reset(struct name_table *table)
{
    for (uint32_t i = 0; i < table->count; i++)
        memory_free(table->names[i]);
    memory_free(table->names);
    memory_free(table->slots);
    memset(table, 0, sizeof(*table));
}
