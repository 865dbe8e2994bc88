#include "watch/gap_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* Longer by ten from one to the next; the last has no end. */
static uint64_t size_upto(int size)
{
    static const uint64_t upto[GAP_SIZES] = {10000,     100000,     1000000,     10000000,
                                             100000000, 1000000000, 10000000000, 0};
    return upto[size];
}

static int size_of(uint64_t ns)
{
    int size = 0;
    while (size < GAP_SIZES - 1 && ns >= size_upto(size))
        size++;
    return size;
}

void gap_list_add(struct gap_list *list, const struct summary_gap *gap, uint64_t count)
{
    if (!count || !gap->ns)
        return;
    int size = size_of(gap->ns / count);
    list->total += count;
    list->counts[size] += count;
    list->ns[size] += gap->ns;
    if (count > 1)
        return;
    if (list->kept < GAPS_KEPT) {
        list->longest[list->kept++] = *gap;
        return;
    }
    size_t shortest = 0;
    for (size_t i = 1; i < GAPS_KEPT; i++)
        if (list->longest[i].ns < list->longest[shortest].ns)
            shortest = i;
    if (gap->ns > list->longest[shortest].ns)
        list->longest[shortest] = *gap;
}

static int gap_order(const void *a, const void *b)
{
    const struct summary_gap *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

stk_status gap_list_summary(const struct gap_list *list, struct summary *out, struct stk_error *err)
{
    out->gap_total = list->total;
    for (int i = 0; i < GAP_SIZES; i++) {
        out->gap_sizes[i].upto_ns = size_upto(i);
        out->gap_sizes[i].count = list->counts[i];
        out->gap_sizes[i].ns = list->ns[i];
    }
    if (!list->kept)
        return STK_OK;
    out->gaps = memory_alloc(list->kept * sizeof *out->gaps);
    if (!out->gaps)
        return fail_memory(err, list->kept * sizeof *out->gaps);
    memcpy(out->gaps, list->longest, list->kept * sizeof *out->gaps);
    out->gap_count = list->kept;
    qsort(out->gaps, out->gap_count, sizeof *out->gaps, gap_order);
    return STK_OK;
}
