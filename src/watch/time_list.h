/* time_list.h -- things that began and ended, in a list that is sorted when it is read. The items
 * may be of any struct that begins with a start and an end.
 * Owns: its items.   Threads: one.   Errors: STK_MEMORY; what was there stays.
 * Not here: what the items mean. */
#ifndef WATCH_TIME_LIST_H
#define WATCH_TIME_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct stretch {
    uint64_t start, end;
};

/* All zero is an empty list; size is set by the first item. */
struct time_list {
    unsigned char *items;
    size_t count, cap, size;
    int unsorted;
};

STK_CHECK stk_status time_list_add(struct time_list *list, const void *item, size_t size,
                                   struct stk_error *err);
void time_list_sort(struct time_list *list); /* by start, then by end */
/* Sorts, and joins or cuts what overlaps, so that the ends are in order too: a later item loses
 * what an earlier one covers. */
void time_list_untangle(struct time_list *list);
/* Forgets what ended before or at a moment. The list is sorted. */
void time_list_drop(struct time_list *list, uint64_t before);
void time_list_reset(struct time_list *list); /* frees; all zero is fine */

/* The rest is for sorted lists. The number of the first item that begins at or after a moment;
 * count: none. */
size_t time_list_from(const struct time_list *list, uint64_t moment);
/* Of a list without overlaps: the first item that ends after a moment. */
size_t time_list_after(const struct time_list *list, uint64_t moment);
/* Of a list without overlaps: nanoseconds of [start, end) that its items cover. */
uint64_t time_list_cover(const struct time_list *list, uint64_t start, uint64_t end);

static inline void *time_list_at(const struct time_list *list, size_t number)
{
    return list->items + number * list->size;
}

static inline struct stretch *time_list_stretch(const struct time_list *list, size_t number)
{
    return (struct stretch *)time_list_at(list, number);
}

/* What two stretches share. */
static inline uint64_t stretch_overlap(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
    uint64_t first = start > from ? start : from, last = end < to ? end : to;
    return last > first ? last - first : 0;
}

#endif
