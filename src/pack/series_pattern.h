/* series_pattern.h -- the numbers of synthetic series: for each entity a level, a trend, a day and
 * a week, a memory under noise, and features that run ahead of `value` by some hours: the next
 * value can be learned from the last ones, and the last one alone is a poor guess. Owns: nothing.
 * Threads: any.   Errors: none.   Not here: files (gen_series.c).
 *
 * Every number is a pure function of (seed, entity, column, row), made of sums, products and
 * comparisons that are rounded one by one: the same bits on every machine, and a longer series
 * begins with the shorter one. Columns after the first depend on nothing but their own number; the
 * first hangs on how many there are. */
#ifndef PACK_SERIES_PATTERN_H
#define PACK_SERIES_PATTERN_H

#include <stdint.h>

#define SERIES_PATTERN_START INT64_C(1577836800) /* 2020-01-01T00:00:00Z, in seconds */
#define SERIES_PATTERN_STEP 3600

struct series_pattern {
    uint64_t seed;
    uint32_t features; /* columns: `value`, then what leads it */
};

/* Hours by which a feature (from 1 on) leads the value. */
uint32_t series_pattern_lead(const struct series_pattern *pattern, uint32_t feature);
/* rows of every column of an entity: columns[features][rows]. scratch: rows doubles. */
void series_pattern_fill(const struct series_pattern *pattern, uint64_t entity, uint64_t rows,
                         float *const *columns, double *scratch);

#endif
