#include "watch/durations.h"

#include <stdlib.h>
#include <string.h>

void durations_add(struct durations *durations, uint64_t ns)
{
    if (!durations->every)
        durations->every = 1;
    if (ns > durations->most)
        durations->most = ns;
    if (durations->count++ % durations->every)
        return;
    if (durations->kept == DURATIONS_KEPT) {
        for (uint32_t i = 0; i < DURATIONS_KEPT / 2; i++)
            durations->values[i] = durations->values[2 * i];
        durations->kept = DURATIONS_KEPT / 2;
        durations->every *= 2;
    }
    durations->values[durations->kept++] = ns;
}

static int value_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

uint64_t durations_at(const struct durations *durations, double share)
{
    if (!durations->kept)
        return 0;
    uint64_t sorted[DURATIONS_KEPT];
    memcpy(sorted, durations->values, durations->kept * sizeof *sorted);
    qsort(sorted, durations->kept, sizeof *sorted, value_order);
    size_t number = (size_t)(share * (double)durations->kept);
    return sorted[number < durations->kept ? number : durations->kept - 1];
}
