/* time_search.h -- moments in the times of a series: at a rank among all rows, and where they fall
 * within an entity. Constant memory.
 * Owns: a search its block of times, until time_search_free.   Threads: one at a time for one
 * search.   Errors: what the reader of times returns; STK_MEMORY.   Not here: what is cut there
 * (series_split.h), dates (series_time.c). */
#ifndef PACK_TIME_SEARCH_H
#define PACK_TIME_SEARCH_H

#include "pack/series_split.h"

/* out[i]: the first moment before which at least ranks[i] rows of entities lie (INT64_MAX where
 * there is none); ranks from 1 up to their rows, at most TIME_SEARCH_RANKS of them. */
#define TIME_SEARCH_RANKS 8
struct time_ranks {
    const struct series_meta *meta;
    const struct series_times *times;
    uint64_t ranks[TIME_SEARCH_RANKS];
    uint32_t count;
};
STK_CHECK stk_status time_search_ranks(const struct time_ranks *wanted, int64_t *out,
                                       struct stk_error *err);

struct time_search;
STK_CHECK stk_status time_search_new(struct time_search **out, const struct series_times *times,
                                     struct stk_error *err);
void time_search_free(struct time_search *search); /* NULL is fine */
/* The first row of the range at or after the moment, else its end. Times rise there. */
STK_CHECK stk_status time_search_row(struct time_search *search, struct series_range range,
                                     int64_t moment, uint64_t *out, struct stk_error *err);

#endif
