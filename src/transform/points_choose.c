/* Floyd's sampling: for j from n - m to n - 1, one number of 0 .. j is drawn; when it was taken
 * already, j itself is taken, which nobody can have drawn before. So every set of m numbers is
 * equally likely after m draws. The set is kept as bits, and read out in order. */
#include "transform/points_choose.h"

#include <assert.h>
#include <string.h>

#include "base/random.h"

static inline int bit_take(uint64_t *bits, uint64_t number)
{
    uint64_t mask = (uint64_t)1 << number % 64, *word = &bits[number / 64];
    int was_free = !(*word & mask);
    *word |= mask;
    return was_free;
}

void points_choose(uint64_t key, uint64_t n, uint64_t count, uint64_t *bits, uint32_t *rows)
{
    assert(count <= n && n <= (uint64_t)1 << 32);
    int inverse = count > n / 2; /* then those that are left out are drawn: they are fewer */
    uint64_t draws = inverse ? n - count : count, words = POINTS_CHOOSE_BITS(n), made = 0;
    memset(bits, 0, words * sizeof *bits);
    for (uint64_t i = 0; i < draws; i++) {
        uint64_t most = n - draws + i;
        if (!bit_take(bits, random_below(key, i, most + 1)))
            bit_take(bits, most);
    }
    for (uint64_t w = 0; w < words; w++) {
        uint64_t word = inverse ? ~bits[w] : bits[w];
        if (w + 1 == words && n % 64)
            word &= ((uint64_t)1 << n % 64) - 1;
        for (; word; word &= word - 1)
            rows[made++] = (uint32_t)(w * 64 + (uint64_t)__builtin_ctzll(word));
    }
    assert(made == count);
}
