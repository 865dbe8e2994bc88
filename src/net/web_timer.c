#include "base/memory.h"
#include "net/web_parts.h"

static int is_sooner(const struct web_timer *a, const struct web_timer *b)
{
    return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : a->number < b->number;
}

static void swap(struct web_timer *a, struct web_timer *b)
{
    struct web_timer kept = *a;
    *a = *b;
    *b = kept;
}

int web_timer_add(struct web *web, const struct web_timer *timer)
{
    if (web->timer_count == web->timer_cap) {
        size_t cap = web->timer_cap ? 2 * web->timer_cap : 256;
        struct web_timer *timers = memory_grow(web->timers, cap * sizeof *timers);
        if (!timers)
            return 0;
        web->timers = timers;
        web->timer_cap = cap;
    }
    struct web_timer *heap = web->timers;
    size_t at = web->timer_count++;
    heap[at] = *timer;
    heap[at].number = web->timer_number++;
    for (; at > 0 && is_sooner(&heap[at], &heap[(at - 1) / 2]); at = (at - 1) / 2)
        swap(&heap[at], &heap[(at - 1) / 2]);
    return 1;
}

int web_timer_take(struct web *web, int64_t now, struct web_timer *out)
{
    struct web_timer *heap = web->timers;
    if (web->timer_count == 0 || heap[0].when_ns > now)
        return 0;
    *out = heap[0];
    size_t count = --web->timer_count, at = 0;
    heap[0] = heap[count];
    for (;;) {
        size_t soonest = at, left = 2 * at + 1;
        for (size_t child = left; child < left + 2 && child < count; child++)
            soonest = is_sooner(&heap[child], &heap[soonest]) ? child : soonest;
        if (soonest == at)
            return 1;
        swap(&heap[at], &heap[soonest]);
        at = soonest;
    }
}
