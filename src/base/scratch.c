#include "base/scratch.h"

#include <stddef.h>

#include "base/checked.h"
#include "base/memory.h"

#define SLACK 64 /* readable bytes behind a piece */

struct scratch_extra {
    struct scratch_extra *next;
    void *whole; /* what was mapped */
    uint64_t size;
};

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + SCRATCH_ALIGN - 1) & ~(uint64_t)(SCRATCH_ALIGN - 1);
}

/* The piece lies behind its own header, in a mapping of its own. */
static void *take_extra(struct scratch *scratch, uint64_t bytes)
{
    uint64_t head = round_up(sizeof(struct scratch_extra));
    struct scratch_extra *extra = memory_map(head + bytes);
    if (!extra)
        return NULL;
    *extra = (struct scratch_extra){.next = scratch->extra, .whole = extra, .size = head + bytes};
    scratch->extra = extra;
    return (uint8_t *)extra + head;
}

void *scratch_take(struct scratch *scratch, uint64_t bytes)
{
    uint64_t piece;
    if (!checked_add(bytes, SLACK + SCRATCH_ALIGN, &piece) || piece > INT64_MAX / 2)
        return NULL;
    piece = round_up(bytes + SLACK);
    scratch->wanted += piece;
    if (scratch->wanted > scratch->most)
        scratch->most = scratch->wanted;
    if (scratch->size - scratch->used < piece)
        return take_extra(scratch, piece);
    void *taken = scratch->block + scratch->used;
    scratch->used += piece;
    return taken;
}

/* Down to `last`, which stays. */
static void free_extra(struct scratch *scratch, const struct scratch_extra *last)
{
    while (scratch->extra != last) {
        struct scratch_extra *extra = scratch->extra;
        scratch->extra = extra->next;
        memory_unmap(extra->whole, extra->size);
    }
}

void scratch_drop(struct scratch *scratch)
{
    free_extra(scratch, NULL);
    scratch->used = scratch->wanted = scratch->most = 0;
}

void scratch_reset(struct scratch *scratch)
{
    uint64_t most = scratch->most;
    scratch_drop(scratch);
    if (most <= scratch->size)
        return;
    uint64_t size = most + most / 4; /* the next may be a little larger */
    uint8_t *block = memory_map(size);
    if (!block) /* the next sample takes what it needs one by one again */
        return;
    memory_unmap(scratch->block, scratch->size);
    scratch->block = block;
    scratch->size = size;
}

struct scratch_mark scratch_mark(const struct scratch *scratch)
{
    return (struct scratch_mark){scratch->extra, scratch->used, scratch->wanted};
}

void scratch_return(struct scratch *scratch, struct scratch_mark mark)
{
    free_extra(scratch, mark.extra);
    scratch->used = mark.used;
    scratch->wanted = mark.wanted;
}

void scratch_free(struct scratch *scratch)
{
    free_extra(scratch, NULL);
    memory_unmap(scratch->block, scratch->size);
    *scratch = (struct scratch){0};
}

uint64_t scratch_size(const struct scratch *scratch)
{
    uint64_t size = scratch->size;
    for (const struct scratch_extra *extra = scratch->extra; extra; extra = extra->next)
        size += extra->size;
    return size;
}
