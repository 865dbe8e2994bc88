/* gaussian.h -- normal random numbers that are a pure function of a key and their place.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: uniform ones (base/random.h).
 *
 * Numbers 2 i and 2 i + 1 of the stream `key` come from random_at(key, i), by Box and Muller: with
 * u = (its high 31 bits + 1/2) / 2^31 and v = its low 32 bits / 2^32 they are
 *     sqrt(-2 ln u) cos(2 pi v)  and  sqrt(-2 ln u) sin(2 pi v)
 * in float32, so none is beyond 6.7. Logarithm, sine and cosine are sums of our own, of additions,
 * multiplications, one division and one root: the same bits on every machine, within 2e-5 of the
 * exact value. */
#ifndef TRANSFORM_GAUSSIAN_H
#define TRANSFORM_GAUSSIAN_H

#include <stdint.h>

/* Numbers first .. first + count - 1 of the stream; mean 0, deviation 1. */
void gaussian_fill(uint64_t key, uint64_t first, uint64_t count, float *to);

#endif
