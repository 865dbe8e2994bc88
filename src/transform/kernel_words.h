/* kernel_words.h -- loads and stores of several words at once, for kernels.
 * Owns: nothing.   Threads: a kernel's.   Errors: none.   Not here: what the words are. */
#ifndef TRANSFORM_KERNEL_WORDS_H
#define TRANSFORM_KERNEL_WORDS_H

#include "gpu/kernel_language.h"

struct __attribute__((aligned(8))) word_pair {
    uint32_t words[2];
};
struct __attribute__((aligned(16))) word_quad {
    uint32_t words[4];
};

/* `from` is aligned as the loads are: to 16, 8 or 4 bytes. */
DEVICE void words_load(uint64_t from, uint32_t *words, int count)
{
    if (count % 4 == 0)
        for (int i = 0; i < count; i += 4) {
            struct word_quad quad = ((const struct word_quad *)device_memory(from))[i / 4];
            for (int k = 0; k < 4; k++)
                words[i + k] = quad.words[k];
        }
    else if (count % 2 == 0)
        for (int i = 0; i < count; i += 2) {
            struct word_pair pair = ((const struct word_pair *)device_memory(from))[i / 2];
            words[i] = pair.words[0];
            words[i + 1] = pair.words[1];
        }
    else
        for (int i = 0; i < count; i++)
            words[i] = ((const uint32_t *)device_memory(from))[i];
}

/* `to` is aligned likewise. */
DEVICE void words_store(uint64_t to, const uint32_t *words, int count)
{
    if (count % 4 == 0)
        for (int i = 0; i < count; i += 4) {
            struct word_quad quad = {{words[i], words[i + 1], words[i + 2], words[i + 3]}};
            ((struct word_quad *)device_memory(to))[i / 4] = quad;
        }
    else if (count % 2 == 0)
        for (int i = 0; i < count; i += 2) {
            struct word_pair pair = {{words[i], words[i + 1]}};
            ((struct word_pair *)device_memory(to))[i / 2] = pair;
        }
    else
        for (int i = 0; i < count; i++)
            ((uint32_t *)device_memory(to))[i] = words[i];
}

#endif
