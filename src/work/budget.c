#include "work/budget.h"

void budget_init(struct budget *budget, uint64_t limit)
{
    budget->limit = limit;
    atomic_init(&budget->held, 0);
    atomic_init(&budget->peak, 0);
}

static void raise_peak(struct budget *budget, uint64_t held)
{
    uint64_t peak = atomic_load_explicit(&budget->peak, memory_order_relaxed);
    while (held > peak &&
           !atomic_compare_exchange_weak_explicit(&budget->peak, &peak, held, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

int budget_try(struct budget *budget, uint64_t bytes)
{
    uint64_t held = atomic_load_explicit(&budget->held, memory_order_relaxed);
    do {
        if (held > budget->limit || bytes > budget->limit - held)
            return 0;
    } while (!atomic_compare_exchange_weak_explicit(&budget->held, &held, held + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    raise_peak(budget, held + bytes);
    return 1;
}

void budget_force(struct budget *budget, uint64_t bytes)
{
    uint64_t held = atomic_fetch_add_explicit(&budget->held, bytes, memory_order_relaxed);
    raise_peak(budget, held + bytes);
}

void budget_give(struct budget *budget, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&budget->held, bytes, memory_order_relaxed);
}
