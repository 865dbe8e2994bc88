/* budget.h -- counts bytes against a limit.
 * Owns: nothing but numbers.   Threads: all functions are lock-free and may race.   Errors: 0 when
 * a reservation does not fit.   Not here: who waits for whom (loader/admit.h). */
#ifndef WORK_BUDGET_H
#define WORK_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

struct budget {
    uint64_t limit;
    _Atomic uint64_t held; /* pairs with itself: only sums are read from it */
    _Atomic uint64_t peak;
};

void budget_init(struct budget *budget, uint64_t limit);
int budget_try(struct budget *budget, uint64_t bytes);    /* 1: reserved */
void budget_force(struct budget *budget, uint64_t bytes); /* reserved even over the limit */
void budget_give(struct budget *budget, uint64_t bytes);

#endif
