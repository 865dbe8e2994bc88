/* random.h -- numbers that are a pure function of a key and a counter (no state), and a keyed
 * bijection over [0, n).
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: an epoch's order (loader/plan.h). */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* Joins parts of a key: random_key(random_key(seed, epoch), sample). */
uint64_t random_key(uint64_t key, uint64_t part);
/* The counter-th number of the stream `key`: all 64 bits uniform. */
uint64_t random_at(uint64_t key, uint64_t counter);
/* Uniform in [0, bound), without bias worth naming (multiply-shift of 64 bits); bound > 0. */
uint64_t random_below(uint64_t key, uint64_t counter, uint64_t bound);
/* Uniform in [0, 1): 53 bits. */
double random_unit(uint64_t key, uint64_t counter);

/* A mixed-radix Feistel network: i -> a permutation of [0, n), for any n <= 2^63, in constant time
 * and memory. 8 rounds; 24 below n = 256, where 8 would favour some orders visibly (n = 6: by a
 * third). */
#define PERMUTATION_ROUNDS 24
struct permutation {
    uint64_t n, a, b; /* a * b >= n, both near sqrt(n), and so below 2^32 */
    uint64_t inverse; /* 2^64 / b, rounded down */
    uint64_t keys[PERMUTATION_ROUNDS];
    int rounds; /* how many of them are used: even */
};
void permutation_init(struct permutation *permutation, uint64_t n, uint64_t key);
uint64_t permutation_at(const struct permutation *permutation, uint64_t i); /* i < n */
/* permutation_at of first, first + 1 .. first + count - 1 < n, each into its place of out. */
void permutation_many(const struct permutation *permutation, uint64_t first, uint32_t count,
                      uint64_t *out);
/* The same in one way of those that there are, for tests: the best that can is taken otherwise. 0:
 * it cannot, for this processor or for n as small; out is as it was. */
enum permutation_way { PERMUTATION_PLAIN, PERMUTATION_AVX2, PERMUTATION_AVX512 };
struct permutation_range {
    uint64_t first;
    uint32_t count;
};
int permutation_many_by(enum permutation_way way, const struct permutation *permutation,
                        const struct permutation_range *range, uint64_t *out);
/* The i that permutation_at turns into value < n. */
uint64_t permutation_find(const struct permutation *permutation, uint64_t value);

#endif
