/* lanes.h -- an epoch that is read in several places at once: the samples are cut into lanes, and
 * the sequence takes one of each lane in turn. Pure arithmetic.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: the order inside a lane (plan.c).
 *
 * With n samples and L lanes, position p is sample number p / L of lane p % L: the lanes' lengths
 * differ by one at most, the longer ones first, so this is a bijection whatever n is. A step's
 * positions are handed to the ranks lane by lane, so each rank reads the lanes of its own share of
 * them, and the step is the same set of samples for any number of ranks. */
#ifndef LOADER_LANES_H
#define LOADER_LANES_H

#include <stdint.h>

/* Where a lane begins among n samples; of lane `lanes`: n. */
static inline uint64_t lanes_start(uint64_t n, uint32_t lanes, uint32_t lane)
{
    uint64_t longer = n % lanes;
    return n / lanes * lane + (lane < longer ? lane : longer);
}

/* A run of positions of a step in one lane: numbers first .. first + count - 1 of the lane. */
struct lanes_run {
    uint32_t lane;
    uint64_t first;
    uint32_t count;
};

/* Of the `taken` positions from `position` on, laid out lane by lane: the run that begins at place
 * `place` of them. count: at least 1, and no more than `most`. */
void lanes_find(uint32_t lanes, uint64_t position, uint64_t taken, uint64_t place, uint32_t most,
                struct lanes_run *out);

#endif
