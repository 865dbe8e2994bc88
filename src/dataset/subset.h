/* subset.h -- positions of a subset -> positions of what it was taken from.
 * Owns: its bits or its list, until subset_reset.   Threads: immutable once made.   Errors:
 * STK_USAGE, STK_MEMORY.   Not here: chains of subsets (dataset_view.c). */
#ifndef DATASET_SUBSET_H
#define DATASET_SUBSET_H

#include "stoker/error.h"
#include "base/random.h"

enum subset_kind {
    SUBSET_RANGE,    /* first + position */
    SUBSET_SHUFFLED, /* a range of a seeded permutation: no memory however large */
    SUBSET_BITS,     /* sorted and unique: one bit a sample, with a directory to count them */
    SUBSET_LIST      /* as given */
};

struct subset {
    enum subset_kind kind;
    uint64_t count;
    uint64_t first;             /* RANGE, SHUFFLED */
    struct permutation shuffle; /* SHUFFLED */
    uint64_t *words;            /* BITS: of SUBSET_BLOCK bits a block */
    uint64_t *before;           /* BITS: bits set before each block; one more at the end */
    uint32_t *hints;            /* BITS: the block of every SUBSET_HINT-th set bit */
    uint64_t block_count;
    uint64_t *list; /* LIST */
};

/* The part-th share of [0, n) shuffled by seed. Parts are disjoint, and complete when shares add up
 * to 1: part i ends at floor(n * (shares up to i) + 1/2). */
STK_CHECK stk_status subset_split(struct subset *subset, uint64_t n, const double *shares,
                                  uint32_t part_count, uint32_t part, uint64_t seed,
                                  struct stk_error *err);
/* These positions of [0, n), in this order. */
STK_CHECK stk_status subset_select(struct subset *subset, uint64_t n, const uint64_t *positions,
                                   uint64_t count, struct stk_error *err);
void subset_reset(struct subset *subset);

/* The first place that maps to this position; STK_NOWHERE: none. A walk only over a LIST. */
uint64_t subset_find(const struct subset *subset, uint64_t position);
/* In place; each is < subset->count. */
void subset_map(const struct subset *subset, uint64_t *positions, uint32_t n);

#endif
