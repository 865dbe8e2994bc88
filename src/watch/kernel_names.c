#include "watch/kernel_names.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define NAMES_MOST 16384u
#define NAME_LENGTH 64u

static int name_talks(const char *text, size_t len)
{
    return memmem(text, len, "nccl", 4) || memmem(text, len, "rccl", 4);
}

stk_status kernel_names_add(struct kernel_names *names, const struct record_name *record,
                            struct stk_error *err)
{
    int ring = record->id >= KERNEL_NAMES_HOOK;
    uint32_t number = ring ? record->id - KERNEL_NAMES_HOOK : record->id;
    size_t count = names->rings[ring].count;
    if (number >= NAMES_MOST)
        return STK_OK;
    if (number >= count) {
        size_t wanted = count ? count : 64;
        while (wanted <= number)
            wanted *= 2;
        struct kernel_name *grown = memory_grow(names->rings[ring].names, wanted * sizeof *grown);
        if (!grown)
            return fail_memory(err, wanted * sizeof *grown);
        memset(grown + count, 0, (wanted - count) * sizeof *grown);
        names->rings[ring].names = grown;
        names->rings[ring].count = wanted;
    }
    struct kernel_name *name = &names->rings[ring].names[number];
    memory_free(name->text);
    name->talks = name_talks(record->text, record->len);
    name->text = memory_text(record->text, record->len < NAME_LENGTH ? record->len : NAME_LENGTH);
    return name->text ? STK_OK : fail_memory(err, NAME_LENGTH);
}

const struct kernel_name *kernel_names_find(const struct kernel_names *names, uint32_t number)
{
    static const struct kernel_name none = {0};
    int ring = number >= KERNEL_NAMES_HOOK;
    number -= ring ? KERNEL_NAMES_HOOK : 0;
    return number < names->rings[ring].count ? &names->rings[ring].names[number] : &none;
}

void kernel_names_reset(struct kernel_names *names)
{
    for (int ring = 0; ring < 2; ring++) {
        for (size_t i = 0; i < names->rings[ring].count; i++)
            memory_free(names->rings[ring].names[i].text);
        memory_free(names->rings[ring].names);
    }
    *names = (struct kernel_names){0};
}
