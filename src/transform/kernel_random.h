/* kernel_random.h -- base/random.h for kernels: the same numbers from the same keys.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: keys, which are made on the host. */
#ifndef TRANSFORM_KERNEL_RANDOM_H
#define TRANSFORM_KERNEL_RANDOM_H

#include "gpu/kernel_language.h"

#define KERNEL_GOLDEN 0x9e3779b97f4a7c15ull

DEVICE uint64_t kernel_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ull;
    x ^= x >> 29;
    x *= 0xa0761d6478bd642full;
    x ^= x >> 32;
    return x;
}

/* random_at */
DEVICE uint64_t kernel_random_at(uint64_t key, uint64_t counter)
{
    uint64_t x = kernel_mix(counter * KERNEL_GOLDEN + key);
    return kernel_mix(x ^ ((key << 29 | key >> 35) + 0x8ebc6af09c88c6e3ull));
}

/* random_unit */
DEVICE double kernel_random_unit(uint64_t key, uint64_t counter)
{
    return (double)(kernel_random_at(key, counter) >> 11) * (1.0 / 9007199254740992.0);
}

#endif
