#include "watch/time_list.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define SHRINK_LEAST ((size_t)64 << 10) /* smaller blocks are not given back */

stk_status time_list_add(struct time_list *list, const void *item, size_t size,
                         struct stk_error *err)
{
    assert(!list->size || list->size == size);
    list->size = size;
    if (list->count == list->cap) {
        /* By halves rather than doubles: long lists are what memory goes to. */
        size_t cap = list->cap ? list->cap + list->cap / 2 + 8 : 8;
        unsigned char *items = memory_grow(list->items, cap * size);
        if (!items)
            return fail_memory(err, cap * size);
        list->items = items;
        list->cap = cap;
    }
    memcpy(list->items + list->count * size, item, size);
    if (list->count) {
        uint64_t last = time_list_stretch(list, list->count - 1)->start;
        list->unsorted |= time_list_stretch(list, list->count)->start < last;
    }
    list->count++;
    return STK_OK;
}

static int stretch_order(const void *a, const void *b)
{
    const struct stretch *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

void time_list_sort(struct time_list *list)
{
    if (list->unsorted && list->count)
        qsort(list->items, list->count, list->size, stretch_order);
    list->unsorted = 0;
}

void time_list_untangle(struct time_list *list)
{
    time_list_sort(list);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct stretch *item = time_list_stretch(list, i);
        if (kept) {
            const struct stretch *last = time_list_stretch(list, kept - 1);
            if (item->end <= last->end && item->start < last->end)
                continue;
            if (item->start < last->end)
                item->start = last->end;
        }
        if (kept != i)
            memcpy(time_list_at(list, kept), item, list->size);
        kept++;
    }
    list->count = kept;
}

void time_list_drop(struct time_list *list, uint64_t before)
{
    assert(!list->unsorted);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct stretch *item = time_list_stretch(list, i);
        if (item->end <= before)
            continue;
        if (kept != i)
            memcpy(time_list_at(list, kept), item, list->size);
        kept++;
    }
    list->count = kept;
    size_t cap = kept + kept / 2 + 8;
    if (cap >= list->cap / 2 || list->cap * list->size < SHRINK_LEAST)
        return;
    unsigned char *items = memory_grow(list->items, cap * list->size);
    if (!items)
        return; /* the larger block will do */
    list->items = items;
    list->cap = cap;
}

void time_list_reset(struct time_list *list)
{
    memory_free(list->items);
    *list = (struct time_list){0};
}

size_t time_list_from(const struct time_list *list, uint64_t moment)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time_list_stretch(list, middle)->start < moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t time_list_after(const struct time_list *list, uint64_t moment)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time_list_stretch(list, middle)->end <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t time_list_cover(const struct time_list *list, uint64_t start, uint64_t end)
{
    uint64_t covered = 0;
    for (size_t i = time_list_after(list, start); i < list->count; i++) {
        const struct stretch *item = time_list_stretch(list, i);
        if (item->start >= end)
            break;
        covered += stretch_overlap(item->start, item->end, start, end);
    }
    return covered;
}
