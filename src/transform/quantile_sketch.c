#include "transform/quantile_sketch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"

/* The top level holds up to TOP items before it is compacted, each level below two thirds of the
 * one above. The error falls as 1 / TOP. */
#define TOP 1024
#define LEAST 128     /* items of the lowest levels: what is sorted at a time should not be less */
#define MAX_LEVELS 16 /* the sampler keeps it below 12 */
#define ITEMS (3 * TOP + LEAST * MAX_LEVELS)
/* One value in 2^shift is sampled while seen >= 2^(SAMPLED + shift): a standard error of at most
 * 2^(-SAMPLED / 2) / 2 of the values, a fifth of what is promised. */
#define SAMPLED 18
#define SMALL_SORT 48

_Static_assert(ITEMS >= QUANTILE_SKETCH_EXACT, "exact as long as promised");

struct quantile_sketch {
    uint64_t seed, key, draws; /* the next coin is number `draws` of the stream `key` */
    uint64_t seen;
    /* The sampler: of each group of 2^shift values, one; `have` of the group went by. */
    uint64_t have, target;
    double candidate;
    uint32_t shift; /* an item of level 0 stands for 2^shift values */
    uint32_t levels;
    /* Level i is items[start[i]] to items[start[i + 1]]; all but level 0 are sorted. Level 0 grows
     * downwards, into the room before it. */
    uint32_t start[MAX_LEVELS + 1];
    double items[ITEMS];
};

size_t quantile_sketch_bytes(void)
{
    return sizeof(struct quantile_sketch);
}

stk_status quantile_sketch_new(struct quantile_sketch **out, uint64_t seed, struct stk_error *err)
{
    *out = memory_alloc(sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    (*out)->seed = seed;
    quantile_sketch_reset(*out);
    return STK_OK;
}

void quantile_sketch_free(struct quantile_sketch *sketch)
{
    memory_free(sketch);
}

void quantile_sketch_reset(struct quantile_sketch *sketch)
{
    sketch->key = sketch->seed;
    sketch->draws = sketch->seen = sketch->have = sketch->target = 0;
    sketch->shift = 0;
    sketch->levels = 1;
    sketch->start[0] = sketch->start[1] = ITEMS;
}

uint64_t quantile_sketch_seen(const struct quantile_sketch *sketch)
{
    return sketch->seen;
}

static uint64_t draw_below(struct quantile_sketch *sketch, uint64_t bound)
{
    return random_below(sketch->key, sketch->draws++, bound);
}

/* --- sorting --------------------------------------------------------------------------------- */

static void sort_few(double *items, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        double item = items[i];
        uint32_t at = i;
        for (; at > 0 && items[at - 1] > item; at--)
            items[at] = items[at - 1];
        items[at] = item;
    }
}

/* Bits that order as the numbers do: negative ones are turned over. */
static uint64_t sort_key(double item)
{
    uint64_t bits;

    memcpy(&bits, &item, sizeof(bits));
    return bits ^ (bits >> 63 ? UINT64_MAX : UINT64_C(1) << 63);
}

static double sort_item(uint64_t key)
{
    double item;

    key ^= key >> 63 ? UINT64_C(1) << 63 : UINT64_MAX;
    memcpy(&item, &key, sizeof(item));
    return item;
}

/* One round: by the eight bits from `shift` on. */
static void sort_round(const uint64_t *from, uint64_t *to, uint32_t count, uint32_t shift)
{
    uint32_t places[256] = {0}, place = 0;

    for (uint32_t i = 0; i < count; i++)
        places[from[i] >> shift & 255]++;
    for (int digit = 0; digit < 256; digit++) {
        uint32_t here = places[digit];
        places[digit] = place;
        place += here;
    }
    for (uint32_t i = 0; i < count; i++)
        to[places[from[i] >> shift & 255]++] = from[i];
}

/* From the lowest bits in which keys differ to the highest: numbers that were float32 differ in
 * half of them. */
static void sort_many(double *items, uint32_t count)
{
    uint64_t buffers[2][ITEMS], *from = buffers[0], *to = buffers[1], differ = 0;

    for (uint32_t i = 0; i < count; i++) {
        from[i] = sort_key(items[i]);
        differ |= from[i] ^ from[0];
    }
    if (!differ)
        return;
    uint32_t last = 63 - (uint32_t)__builtin_clzll(differ);
    for (uint32_t shift = (uint32_t)__builtin_ctzll(differ); shift <= last; shift += 8) {
        sort_round(from, to, count, shift);
        uint64_t *other = from;
        from = to;
        to = other;
    }
    for (uint32_t i = 0; i < count; i++)
        items[i] = sort_item(from[i]);
}

static void sort_items(double *items, uint32_t count)
{
    if (count <= SMALL_SORT)
        sort_few(items, count);
    else
        sort_many(items, count);
}

/* Two sorted runs into one. b may be the end of out: no item of it is overwritten before it is
 * read. */
static void merge_runs(const double *a, uint32_t a_count, const double *b, uint32_t b_count,
                       double *out)
{
    const double *a_end = a + a_count, *b_end = b + b_count;

    while (a < a_end && b < b_end) {
        int from_b = *b < *a;
        *out++ = from_b ? *b : *a;
        b += from_b;
        a += !from_b;
    }
    while (a < a_end)
        *out++ = *a++;
    if (out != b)
        memmove(out, b, (size_t)(b_end - b) * sizeof(*b));
}

/* --- levels ---------------------------------------------------------------------------------- */

static uint32_t level_size(const struct quantile_sketch *sketch, uint32_t level)
{
    return sketch->start[level + 1] - sketch->start[level];
}

static uint32_t level_limit(const struct quantile_sketch *sketch, uint32_t level)
{
    uint32_t limit = TOP;

    for (uint32_t above = level + 1; above < sketch->levels && limit > LEAST; above++)
        limit = limit * 2 / 3;
    return limit > LEAST ? limit : LEAST;
}

static void level_new(struct quantile_sketch *sketch)
{
    assert(sketch->levels < MAX_LEVELS);
    sketch->levels++;
    sketch->start[sketch->levels] = ITEMS;
}

/* Every other item of the level moves up, a coin says which; the rest goes. An odd one stays. */
static void level_compact(struct quantile_sketch *sketch, uint32_t level)
{
    double *items = sketch->items;
    uint32_t odd = level_size(sketch, level) & 1;
    uint32_t first = sketch->start[level] + odd, end = sketch->start[level + 1];
    uint32_t half = (end - first) / 2;

    if (level + 1 == sketch->levels)
        level_new(sketch);
    if (half == 0)
        return;
    if (level == 0)
        sort_items(items + first, end - first);
    uint32_t coin = (uint32_t)draw_below(sketch, 2);
    for (uint32_t i = 0; i < half; i++)
        items[first + i] = items[first + 2 * i + coin];
    merge_runs(items + first, half, items + end, sketch->start[level + 2] - end,
               items + end - half);
    memmove(items + sketch->start[0] + half, items + sketch->start[0],
            (first - sketch->start[0]) * sizeof(*items));
    sketch->start[level + 1] -= half;
    for (uint32_t i = 0; i <= level; i++)
        sketch->start[i] += half;
}

/* Makes room before level 0, where there is none. */
static void make_room(struct quantile_sketch *sketch)
{
    uint32_t level = 0;

    /* Some level is over its limit: all limits together are less than ITEMS. */
    while (level_size(sketch, level) < level_limit(sketch, level))
        level++;
    assert(level < sketch->levels);
    level_compact(sketch, level);
}

static void push(struct quantile_sketch *sketch, double item)
{
    if (sketch->start[0] == 0)
        make_room(sketch);
    sketch->items[--sketch->start[0]] = item;
}

static void push_all(struct quantile_sketch *sketch, const double *values, size_t n)
{
    while (n) {
        if (sketch->start[0] == 0)
            make_room(sketch);
        uint32_t take = n < sketch->start[0] ? (uint32_t)n : sketch->start[0];
        sketch->start[0] -= take;
        memcpy(sketch->items + sketch->start[0], values, take * sizeof(*values));
        values += take;
        n -= take;
    }
}

/* --- the sampler ----------------------------------------------------------------------------- */

/* A group that is not full counts as a whole one with the probability of being so full: its target
 * went by, or it did not. */
static void end_group(struct quantile_sketch *sketch)
{
    if (sketch->have && sketch->target < sketch->have)
        push(sketch, sketch->candidate);
    sketch->have = 0;
}

/* Items of level 0 stand for twice as many values from now on. */
static void raise_shift(struct quantile_sketch *sketch)
{
    end_group(sketch);
    level_compact(sketch, 0);
    uint32_t left = level_size(sketch, 0); /* one at most */
    double odd = left ? sketch->items[sketch->start[0]] : 0;
    for (uint32_t i = 0; i < sketch->levels; i++)
        sketch->start[i] = sketch->start[i + 1];
    sketch->levels--;
    sketch->shift++;
    if (left && draw_below(sketch, 2))
        push(sketch, odd);
}

static void raise_for(struct quantile_sketch *sketch, uint64_t seen)
{
    while (seen >> SAMPLED >> sketch->shift > 1)
        raise_shift(sketch);
}

static void sample(struct quantile_sketch *sketch, const double *values, size_t n)
{
    uint64_t group = UINT64_C(1) << sketch->shift;

    for (size_t at = 0; at < n;) {
        if (sketch->have == 0)
            sketch->target = draw_below(sketch, group);
        uint64_t left = group - sketch->have;
        uint64_t take = left < n - at ? left : n - at;
        if (sketch->target >= sketch->have && sketch->target - sketch->have < take)
            sketch->candidate = values[at + (sketch->target - sketch->have)];
        sketch->have += take;
        at += take;
        if (sketch->have == group)
            end_group(sketch);
    }
}

void quantile_sketch_add(struct quantile_sketch *sketch, const double *values, size_t n)
{
    uint64_t bits;

    if (n == 0)
        return;
    if (sketch->seen == 0) { /* sketches of a column's parts do not err alike */
        memcpy(&bits, values, sizeof(bits));
        sketch->key = random_key(sketch->seed, bits);
    }
    if (sketch->shift == 0)
        push_all(sketch, values, n);
    else
        sample(sketch, values, n);
    sketch->seen += n;
    raise_for(sketch, sketch->seen);
}

/* --- merging --------------------------------------------------------------------------------- */

/* Adds a run (sorted, but for level 0) to a level. */
static void add_run(struct quantile_sketch *sketch, uint32_t level, const double *run,
                    uint32_t count)
{
    while (sketch->levels <= level)
        level_new(sketch);
    while (count) {
        if (sketch->start[0] == 0)
            make_room(sketch);
        uint32_t room = sketch->start[0];
        uint32_t take = count < room ? count : room;
        double *items = sketch->items;
        uint32_t below = sketch->start[level] - sketch->start[0];
        memmove(items + sketch->start[0] - take, items + sketch->start[0], below * sizeof(*items));
        uint32_t at = sketch->start[level], size = level_size(sketch, level);
        if (level == 0)
            memcpy(items + at - take, run, take * sizeof(*items));
        else
            merge_runs(run, take, items + at, size, items + at - take);
        for (uint32_t i = 0; i <= level; i++)
            sketch->start[i] -= take;
        run += take;
        count -= take;
    }
}

void quantile_sketch_merge(struct quantile_sketch *into, const struct quantile_sketch *from)
{
    if (from->seen == 0)
        return;
    into->key = random_key(into->key, from->key);
    raise_for(into, into->seen + from->seen);
    while (into->shift < from->shift)
        raise_shift(into);
    for (uint32_t level = 0; level < from->levels; level++) {
        const double *run = from->items + from->start[level];
        uint32_t count = level_size(from, level), weight = from->shift + level;
        if (weight >= into->shift) {
            add_run(into, weight - into->shift, run, count);
            continue;
        }
        /* Lighter than anything here: one in so many, evenly. */
        uint64_t step = UINT64_C(1) << (into->shift - weight);
        for (uint64_t i = draw_below(into, step); i < count; i += step)
            push(into, run[i]);
    }
    if (from->have && from->target < from->have &&
        draw_below(into, UINT64_C(1) << (into->shift - from->shift)) == 0)
        push(into, from->candidate);
    into->seen += from->seen;
}

/* --- quantiles ------------------------------------------------------------------------------- */

struct weighted {
    double item;
    uint64_t weight;
};

static int compare_weighted(const void *a, const void *b)
{
    const struct weighted *one = a, *other = b;

    if (one->item != other->item)
        return one->item < other->item ? -1 : 1;
    return (one->weight > other->weight) - (one->weight < other->weight);
}

/* An item stands for neighbouring ranks and lies in their middle. With weights of 1 these are the
 * ranks themselves. */
static double quantile_of(const struct weighted *items, uint32_t count, double rank)
{
    uint64_t before = 0;
    double middle = 0, last = 0;

    for (uint32_t i = 0; i < count; i++) {
        middle = (double)before + (double)(items[i].weight - 1) / 2;
        if (middle >= rank) {
            if (i == 0 || middle == rank)
                return items[i].item;
            double share = (rank - last) / (middle - last);
            double low = items[i - 1].item, high = items[i].item;
            /* From the nearer end, so that both ends are met. */
            return share < 0.5 ? low + (high - low) * share : high - (high - low) * (1 - share);
        }
        last = middle;
        before += items[i].weight;
    }
    return items[count - 1].item;
}

stk_status quantile_sketch_at(const struct quantile_sketch *sketch, const double *shares,
                              size_t count, double *out, struct stk_error *err)
{
    uint32_t used = ITEMS - sketch->start[0], filled = 0;
    uint64_t total = 0;

    memset(out, 0, count * sizeof(*out));
    if (used == 0)
        return STK_OK;
    struct weighted *items = memory_alloc(used * sizeof(*items));
    if (!items)
        return fail_memory(err, used * sizeof(*items));
    for (uint32_t level = 0; level < sketch->levels; level++)
        for (uint32_t i = sketch->start[level]; i < sketch->start[level + 1]; i++) {
            uint64_t weight = UINT64_C(1) << (sketch->shift + level);
            items[filled++] = (struct weighted){sketch->items[i], weight};
            total += weight;
        }
    qsort(items, filled, sizeof(*items), compare_weighted);
    for (size_t i = 0; i < count; i++)
        out[i] = quantile_of(items, filled, shares[i] * (double)(total - 1));
    memory_free(items);
    return STK_OK;
}
