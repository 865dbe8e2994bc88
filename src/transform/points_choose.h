/* points_choose.h -- which of many points are taken: a seeded choice without repeats.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: reading them (codec/points_codec.h).
 */
#ifndef TRANSFORM_POINTS_CHOOSE_H
#define TRANSFORM_POINTS_CHOOSE_H

#include <stdint.h>

/* `count` of the numbers 0 .. n - 1, ascending, into rows; count <= n <= 2^32. Every choice is
 * equally likely, and the same key makes the same one. bits: POINTS_CHOOSE_BITS(n) words to work
 * in. Takes time for the smaller of count and n - count, and n / 64. */
#define POINTS_CHOOSE_BITS(n) (((uint64_t)(n) + 63) / 64)
void points_choose(uint64_t key, uint64_t n, uint64_t count, uint64_t *bits, uint32_t *rows);

#endif
