#include "dataset/subset.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define SUBSET_BLOCK 2048 /* bits a block: 3 % for the counts before them */
#define SUBSET_WORDS (SUBSET_BLOCK / 64)
#define SUBSET_HINT 4096 /* set bits a hint */

/* ---- split --------------------------------------------------------------------------------- */

static stk_status split_check(const double *shares, uint32_t part_count, uint32_t part,
                              struct stk_error *err)
{
    double sum = 0;
    for (uint32_t i = 0; i < part_count; i++) {
        if (!(shares[i] >= 0)) /* NaN too */
            return fail(err, STK_USAGE, "share %u of the split is not a number from 0 on", i);
        sum += shares[i];
    }
    if (sum > 1 + 1e-9)
        return fail(err, STK_USAGE, "the shares of the split add up to %g, over 1", sum);
    if (part >= part_count)
        return fail(err, STK_USAGE, "part %u of a split into %u", part, part_count);
    return STK_OK;
}

/* Where the part before `part` ends. A sum that is 1 but for rounding is 1. */
static uint64_t split_bound(uint64_t n, const double *shares, uint32_t part)
{
    double sum = 0;
    for (uint32_t i = 0; i < part; i++)
        sum += shares[i];
    double bound = floor(sum * (double)n + 0.5);
    return sum > 1 - 1e-9 || bound >= (double)n ? n : (uint64_t)bound;
}

stk_status subset_split(struct subset *subset, uint64_t n, const double *shares,
                        uint32_t part_count, uint32_t part, uint64_t seed, struct stk_error *err)
{
    *subset = (struct subset){.kind = SUBSET_SHUFFLED};
    stk_status status = split_check(shares, part_count, part, err);
    if (status)
        return status;
    subset->first = split_bound(n, shares, part);
    subset->count = split_bound(n, shares, part + 1) - subset->first;
    if (subset->count)
        permutation_init(&subset->shuffle, n, random_key(seed, 0x73706c6974)); /* "split" */
    return STK_OK;
}

/* ---- select -------------------------------------------------------------------------------- */

static stk_status bits_alloc(struct subset *subset, uint64_t n, struct stk_error *err)
{
    subset->block_count = n / SUBSET_BLOCK + 1;
    subset->words = memory_zero(subset->block_count, SUBSET_BLOCK / 8);
    subset->before = memory_zero(subset->block_count + 1, sizeof *subset->before);
    subset->hints = memory_zero(subset->count / SUBSET_HINT + 2, sizeof *subset->hints);
    if (!subset->words || !subset->before || !subset->hints)
        return fail_memory(err, n / 8);
    return STK_OK;
}

static void bits_count(struct subset *subset)
{
    uint64_t total = 0, hint = 0;
    for (uint64_t block = 0; block < subset->block_count; block++) {
        subset->before[block] = total;
        for (uint32_t i = 0; i < SUBSET_WORDS; i++)
            total += (uint64_t)__builtin_popcountll(subset->words[block * SUBSET_WORDS + i]);
        for (; hint * SUBSET_HINT < total; hint++)
            subset->hints[hint] = (uint32_t)block;
    }
    subset->before[subset->block_count] = total;
    subset->hints[hint] = (uint32_t)(subset->block_count - 1);
}

/* The number of the rank-th set bit of a word. */
static uint32_t word_select(uint64_t word, uint32_t rank)
{
    uint32_t at = 0;
    for (uint32_t width = 32; width; width /= 2) {
        uint32_t low = (uint32_t)__builtin_popcountll(word & ((UINT64_C(1) << width) - 1));
        if (rank >= low) {
            rank -= low;
            word >>= width;
            at += width;
        }
    }
    return at;
}

static uint64_t bits_select(const struct subset *subset, uint64_t rank)
{
    uint64_t low = subset->hints[rank / SUBSET_HINT], high = subset->hints[rank / SUBSET_HINT + 1];
    while (low < high) { /* the last block with before[block] <= rank */
        uint64_t middle = low + (high - low + 1) / 2;
        if (subset->before[middle] <= rank)
            low = middle;
        else
            high = middle - 1;
    }
    const uint64_t *word = subset->words + low * SUBSET_WORDS;
    uint32_t left = (uint32_t)(rank - subset->before[low]);
    for (;; word++) {
        uint32_t here = (uint32_t)__builtin_popcountll(*word);
        if (left < here)
            return (uint64_t)(word - subset->words) * 64 + word_select(*word, left);
        left -= here;
    }
}

/* How many bits are set before this one; STK_NOWHERE when it is not set itself. */
static uint64_t bits_rank(const struct subset *subset, uint64_t bit)
{
    uint64_t block = bit / SUBSET_BLOCK, mask = UINT64_C(1) << bit % 64;
    if (block >= subset->block_count || !(subset->words[bit / 64] & mask))
        return STK_NOWHERE;
    uint64_t rank = subset->before[block];
    for (uint64_t word = block * SUBSET_WORDS; word < bit / 64; word++)
        rank += (uint64_t)__builtin_popcountll(subset->words[word]);
    return rank + (uint64_t)__builtin_popcountll(subset->words[bit / 64] & (mask - 1));
}

static stk_status select_check(uint64_t n, const uint64_t *positions, uint64_t count, int *sorted,
                               struct stk_error *err)
{
    *sorted = 1;
    for (uint64_t i = 0; i < count; i++) {
        if (positions[i] >= n)
            return fail(err, STK_USAGE, "position %llu is past the last of %llu samples",
                        (unsigned long long)positions[i], (unsigned long long)n);
        if (i && positions[i] <= positions[i - 1])
            *sorted = 0;
    }
    return STK_OK;
}

/* The leanest way to keep them. */
static enum subset_kind select_kind(uint64_t n, const uint64_t *positions, uint64_t count,
                                    int sorted)
{
    if (!count || (sorted && positions[count - 1] - positions[0] == count - 1))
        return SUBSET_RANGE;
    return sorted && count > n / 64 && n / SUBSET_BLOCK < UINT32_MAX ? SUBSET_BITS : SUBSET_LIST;
}

stk_status subset_select(struct subset *subset, uint64_t n, const uint64_t *positions,
                         uint64_t count, struct stk_error *err)
{
    int sorted;
    *subset = (struct subset){0};
    stk_status status = select_check(n, positions, count, &sorted, err);
    if (status)
        return status;
    subset->count = count;
    subset->kind = select_kind(n, positions, count, sorted);
    if (subset->kind == SUBSET_RANGE) {
        subset->first = count ? positions[0] : 0;
    } else if (subset->kind == SUBSET_BITS) {
        status = bits_alloc(subset, n, err);
        for (uint64_t i = 0; i < count && !status; i++)
            subset->words[positions[i] / 64] |= UINT64_C(1) << positions[i] % 64;
        if (!status)
            bits_count(subset);
    } else {
        subset->list = memory_zero(count, sizeof *subset->list);
        if (subset->list)
            memcpy(subset->list, positions, count * sizeof *positions);
        else
            status = fail_memory(err, count * sizeof *positions);
    }
    if (status)
        subset_reset(subset);
    return status;
}

void subset_reset(struct subset *subset)
{
    memory_free(subset->words);
    memory_free(subset->before);
    memory_free(subset->hints);
    memory_free(subset->list);
    *subset = (struct subset){0};
}

void subset_map(const struct subset *subset, uint64_t *positions, uint32_t n)
{
    switch (subset->kind) {
    case SUBSET_RANGE:
        for (uint32_t i = 0; i < n; i++)
            positions[i] += subset->first;
        break;
    case SUBSET_SHUFFLED:
        for (uint32_t i = 0; i < n; i++)
            positions[i] = permutation_at(&subset->shuffle, subset->first + positions[i]);
        break;
    case SUBSET_BITS:
        for (uint32_t i = 0; i < n; i++)
            positions[i] = bits_select(subset, positions[i]);
        break;
    case SUBSET_LIST:
        for (uint32_t i = 0; i < n; i++)
            positions[i] = subset->list[positions[i]];
        break;
    }
}

uint64_t subset_find(const struct subset *subset, uint64_t position)
{
    uint64_t place = STK_NOWHERE;
    switch (subset->kind) {
    case SUBSET_RANGE:
        place = position - subset->first; /* wraps past the count when it is before the first */
        break;
    case SUBSET_SHUFFLED:
        if (subset->count)
            place = permutation_find(&subset->shuffle, position) - subset->first;
        break;
    case SUBSET_BITS:
        place = bits_rank(subset, position);
        break;
    case SUBSET_LIST:
        for (place = 0; place < subset->count && subset->list[place] != position;)
            place++;
        break;
    }
    return place < subset->count ? place : STK_NOWHERE;
}
