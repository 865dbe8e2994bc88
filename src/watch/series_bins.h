/* series_bins.h -- values over the time of a run, in bins that double when there are too many: a
 * minute is seen by tenths of a second, ten hours by half minutes.
 * Owns: the bins.   Threads: one.   Errors: STK_MEMORY.   Not here: where values come from. */
#ifndef WATCH_SERIES_BINS_H
#define WATCH_SERIES_BINS_H

#include "stoker/error.h"
#include "watch/summary.h"

#define SERIES_BINS 2048u
#define SERIES_BIN_FIRST UINT64_C(100000000)

struct series_bins {
    uint64_t begun, bin_ns;
    size_t used;                    /* bins up to the latest moment */
    double *sums[SERIES_COUNT];     /* NULL: nothing was seen */
    uint32_t *counts[SERIES_COUNT]; /* of values that are a mean; NULL: they are spread */
};

void series_bins_init(struct series_bins *series, uint64_t begun);
/* Spreads an amount evenly over a stretch of time. What lies before the beginning is left out. */
STK_CHECK stk_status series_spread(struct series_bins *series, enum summary_series which,
                                   uint64_t start, uint64_t end, double amount,
                                   struct stk_error *err);
/* A value at a moment; a bin is the mean of its values. */
STK_CHECK stk_status series_value(struct series_bins *series, enum summary_series which,
                                  uint64_t time, double value, struct stk_error *err);
/* The mean of a series' values in [start, end); < 0: there is none. */
double series_mean(const struct series_bins *series, enum summary_series which, uint64_t start,
                   uint64_t end);
/* Adds all values of another run of bins that began at the same moment. */
STK_CHECK stk_status series_add(struct series_bins *series, const struct series_bins *other,
                                struct stk_error *err);
/* What was spread becomes an amount a second; `ranks` share those that are shares of time. */
STK_CHECK stk_status series_summary(const struct series_bins *series, size_t ranks,
                                    struct summary *out, struct stk_error *err);
void series_bins_reset(struct series_bins *series);

#endif
