/* series_split.h -- what --split and --fit-on mean, as rows.
 * Owns: its texts and lists, until _reset.   Threads: any.   Errors: STK_USAGE with words.
 * Not here: cutting windows (index/windows_index.h). */
#ifndef PACK_SERIES_SPLIT_H
#define PACK_SERIES_SPLIT_H

#include "format/series_meta.h"

/* Times of rows in final order: times(user, first, n, out). */
struct series_times {
    stk_status (*read)(void *user, uint64_t first, uint64_t n, int64_t *out, struct stk_error *err);
    void *user;
    uint64_t rows;
};

/* "2024-01-01", "2024-01-01T12:30:00[.fraction][Z|+01:00]" or a plain number, in a unit of
 * series_meta.time_unit. 0: not a time. */
int series_time_parse(const char *text, size_t len, const char *unit, int64_t *out);
/* ISO 8601 where the unit is one of a calendar, else the number. */
void series_time_format(int64_t time, const char *unit, char *out, size_t cap);

/* Checks the text alone, before any row is read (has_time: a time column was named). */
STK_CHECK stk_status series_split_check(const char *split, int has_time, struct stk_error *err);
STK_CHECK stk_status series_fit_on_check(const char *fit_on, int has_time, struct stk_error *err);

/* Fills split_text, split_names, split_count, cuts, split_by_time and ranges of a meta whose
 * entities and time_unit are set. Shares by time are cut at one moment for all entities: the first
 * one at which at least that share of all rows lies before it (found in the times by counting
 * digits, in constant memory); without times each entity is cut by its own rows. Entities are dealt
 * by a hash of their names, so that a new one never moves another. times may be NULL when there are
 * none. A part without a row is STK_USAGE. */
STK_CHECK stk_status series_split_apply(struct series_meta *meta, const char *split,
                                        const struct series_times *times, struct stk_error *err);
/* For entities [first, entity_count) that were added to a series that has splits: their ranges. */
STK_CHECK stk_status series_split_extend(struct series_meta *meta, uint64_t first,
                                         const struct series_times *times, struct stk_error *err);

/* The rows of each entity that shape the scaler: out[entity_count]. fit_on NULL: the first part of
 * the split, or all. */
STK_CHECK stk_status series_fit_ranges(const struct series_meta *meta, const char *fit_on,
                                       const struct series_times *times, struct series_range *out,
                                       struct stk_error *err);

#endif
