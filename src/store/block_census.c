#include "store/block_census.h"

#include "base/memory.h"

void census_init(struct block_census *census)
{
    *census = (struct block_census){0};
    pthread_mutex_init(&census->lock, NULL);
}

static struct block_mark *mark_of(struct block_mark *marks, uint32_t cap, uint64_t mark)
{
    uint32_t at = (uint32_t)mark & (cap - 1);
    while (marks[at].mark && marks[at].mark != mark)
        at = (at + 1) & (cap - 1);
    return &marks[at];
}

static int census_grow(struct block_census *census)
{
    uint32_t cap = census->cap ? 2 * census->cap : 1024;
    struct block_mark *marks = memory_zero(cap, sizeof *marks);
    if (!marks)
        return 0;
    for (uint32_t i = 0; i < census->cap; i++) {
        if (census->marks[i].mark)
            *mark_of(marks, cap, census->marks[i].mark) = census->marks[i];
    }
    memory_free(census->marks);
    census->marks = marks;
    census->cap = cap;
    return 1;
}

void census_change(struct block_census *census, uint64_t mark, uint64_t size, int is_more)
{
    mark |= !mark;
    pthread_mutex_lock(&census->lock);
    if (2 * census->count < census->cap || census_grow(census)) {
        struct block_mark *found = mark_of(census->marks, census->cap, mark);
        census->count += !found->mark;
        found->mark = mark;
        if (is_more && !found->users++)
            atomic_fetch_add(&census->bytes, size);
        else if (!is_more && found->users && !--found->users)
            atomic_fetch_sub(&census->bytes, size);
    }
    pthread_mutex_unlock(&census->lock);
}

void census_reset(struct block_census *census)
{
    pthread_mutex_destroy(&census->lock);
    memory_free(census->marks);
}
