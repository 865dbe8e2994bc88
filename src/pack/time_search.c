#include "pack/time_search.h"

#include <assert.h>

#include "base/fail.h"
#include "base/memory.h"

#define BLOCK 65536 /* times read at a time by those who read all of them */
#define NEAR 4096   /* by those who look for one */
#define DIGIT_BITS 16
#define DIGITS (1u << DIGIT_BITS)

/* --- ranks ----------------------------------------------------------------------------------- */

/* One rank on its way: times are counted by their next digit of 16 bits among those that share the
 * digits found so far, the highest first. */
struct rank_search {
    uint64_t left;   /* the rank among those: from 1 on */
    uint64_t prefix; /* the digits found */
    uint64_t *counts;
};

struct ranks {
    const struct time_ranks *wanted;
    int64_t *block;
    int64_t lowest, highest;
    uint32_t shift; /* bits below the digit that is counted */
    struct rank_search searches[TIME_SEARCH_RANKS];
};

/* Times from the lowest on: they take no more digits than their span needs. */
static uint64_t offset_of(const struct ranks *ranks, int64_t time)
{
    return (uint64_t)time - (uint64_t)ranks->lowest;
}

static void see_span(struct ranks *ranks, uint64_t n)
{
    int64_t lowest = ranks->lowest, highest = ranks->highest;

    for (uint64_t i = 0; i < n; i++) {
        lowest = ranks->block[i] < lowest ? ranks->block[i] : lowest;
        highest = ranks->block[i] > highest ? ranks->block[i] : highest;
    }
    ranks->lowest = lowest;
    ranks->highest = highest;
}

static void count_digits(struct ranks *ranks, uint64_t n)
{
    for (uint32_t s = 0; s < ranks->wanted->count; s++) {
        struct rank_search *search = &ranks->searches[s];
        for (uint64_t i = 0; i < n; i++) {
            uint64_t digits = offset_of(ranks, ranks->block[i]) >> ranks->shift;
            if (digits >> DIGIT_BITS == search->prefix)
                search->counts[digits & (DIGITS - 1)]++;
        }
    }
}

static stk_status each_block(struct ranks *ranks, void (*see)(struct ranks *ranks, uint64_t n),
                             struct stk_error *err)
{
    const struct series_meta *meta = ranks->wanted->meta;
    const struct series_times *times = ranks->wanted->times;
    stk_status status = STK_OK;

    for (uint64_t i = 0; i < meta->entity_count && !status;) {
        uint64_t at = meta->entities[i].start, end = meta->entities[i].end;
        /* Neighbours are read as one: entities may be short. */
        for (i++; i < meta->entity_count && meta->entities[i].start == end; i++)
            end = meta->entities[i].end;
        for (; at < end && !status; at += BLOCK) {
            uint64_t n = end - at < BLOCK ? end - at : BLOCK;
            status = times->read(times->user, at, n, ranks->block, err);
            if (!status)
                see(ranks, n);
        }
    }
    return status;
}

/* Takes the digit in which the rank lies. */
static stk_status take_digit(struct rank_search *search, struct stk_error *err)
{
    uint32_t digit = 0;

    while (digit < DIGITS && search->left > search->counts[digit])
        search->left -= search->counts[digit++];
    if (digit == DIGITS) /* the reader gave other times than before */
        return fail(err, STK_STALE, "the times changed while they were read");
    search->prefix = search->prefix << DIGIT_BITS | digit;
    for (uint32_t i = 0; i < DIGITS; i++)
        search->counts[i] = 0;
    return STK_OK;
}

static stk_status ranks_run(struct ranks *ranks, struct stk_error *err)
{
    stk_status status;

    ranks->lowest = INT64_MAX;
    ranks->highest = INT64_MIN;
    status = each_block(ranks, see_span, err);
    uint64_t span = status ? 0 : offset_of(ranks, ranks->highest);
    while (ranks->shift + DIGIT_BITS < 64 && span >> ranks->shift >> DIGIT_BITS)
        ranks->shift += DIGIT_BITS;
    for (int last = 0; !last && !status; ranks->shift -= last ? 0 : DIGIT_BITS) {
        status = each_block(ranks, count_digits, err);
        for (uint32_t i = 0; i < ranks->wanted->count && !status; i++)
            status = take_digit(&ranks->searches[i], err);
        last = ranks->shift == 0;
    }
    return status;
}

stk_status time_search_ranks(const struct time_ranks *wanted, int64_t *out, struct stk_error *err)
{
    struct ranks all = {.wanted = wanted};
    stk_status status = STK_OK;

    assert(wanted->count <= TIME_SEARCH_RANKS);
    all.block = memory_alloc(BLOCK * sizeof(*all.block));
    if (!all.block)
        status = fail_memory(err, BLOCK * sizeof(*all.block));
    for (uint32_t i = 0; i < wanted->count && !status; i++) {
        assert(wanted->ranks[i] >= 1);
        all.searches[i].left = wanted->ranks[i];
        all.searches[i].counts = memory_zero(DIGITS, sizeof(uint64_t));
        if (!all.searches[i].counts)
            status = fail_memory(err, DIGITS * sizeof(uint64_t));
    }
    if (!status)
        status = ranks_run(&all, err);
    for (uint32_t i = 0; i < wanted->count && !status; i++) {
        int64_t time = (int64_t)(all.searches[i].prefix + (uint64_t)all.lowest);
        out[i] = time < INT64_MAX ? time + 1 : time;
    }
    for (uint32_t i = 0; i < wanted->count; i++)
        memory_free(all.searches[i].counts);
    memory_free(all.block);
    return status;
}

/* --- rows ------------------------------------------------------------------------------------ */

struct time_search {
    const struct series_times *times;
    uint64_t first, count; /* rows in the block */
    int64_t block[NEAR];
};

stk_status time_search_new(struct time_search **out, const struct series_times *times,
                           struct stk_error *err)
{
    *out = memory_alloc(sizeof(**out));
    if (!*out)
        return fail_memory(err, sizeof(**out));
    (*out)->times = times;
    (*out)->first = (*out)->count = 0;
    return STK_OK;
}

void time_search_free(struct time_search *search)
{
    memory_free(search);
}

/* Neighbours come with it: the last steps of a search, and short entities one after the other, need
 * no reading. */
static stk_status time_at(struct time_search *search, uint64_t row, int64_t *out,
                          struct stk_error *err)
{
    const struct series_times *times = search->times;

    if (row - search->first >= search->count) {
        uint64_t first = row - row % NEAR;
        uint64_t n = times->rows - first < NEAR ? times->rows - first : NEAR;
        search->count = 0;
        stk_status status = times->read(times->user, first, n, search->block, err);
        if (status)
            return status;
        search->first = first;
        search->count = n;
    }
    *out = search->block[row - search->first];
    return STK_OK;
}

stk_status time_search_row(struct time_search *search, struct series_range range, int64_t moment,
                           uint64_t *out, struct stk_error *err)
{
    stk_status status = STK_OK;
    int64_t time;

    assert(range.end <= search->times->rows);
    while (range.start < range.end && !status) {
        uint64_t middle = range.start + (range.end - range.start) / 2;
        status = time_at(search, middle, &time, err);
        if (!status && time < moment)
            range.start = middle + 1;
        else
            range.end = middle;
    }
    *out = range.start;
    return status;
}
