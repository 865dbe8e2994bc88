/* dice.h -- random numbers of one key, one after the other: what a generated sample is drawn with.
 * Owns: nothing.   Threads: one at a time for one.   Errors: none.   Not here: the numbers
 * themselves (base/random.h). */
#ifndef PACK_DICE_H
#define PACK_DICE_H

#include "base/random.h"

struct dice {
    uint64_t key, next;
};

static inline double dice_between(struct dice *dice, double low, double high)
{
    return low + (high - low) * random_unit(dice->key, dice->next++);
}

static inline uint32_t dice_below(struct dice *dice, uint32_t bound)
{
    return (uint32_t)random_below(dice->key, dice->next++, bound);
}

/* Near enough to Gaussian, of deviation 1: the sum of four uniform numbers. */
static inline double dice_bell(struct dice *dice)
{
    uint64_t bits = random_at(dice->key, dice->next++);
    double sum = 0;

    for (int shift = 0; shift < 64; shift += 16)
        sum += (double)(bits >> shift & 0xFFFF);
    return (sum / 65535 - 2) * 1.7320508075688772; /* the deviation of four is 1 / sqrt(3) */
}

#endif
