#include "watch/series_bins.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "watch/time_list.h"

void series_bins_init(struct series_bins *series, uint64_t begun)
{
    *series = (struct series_bins){.begun = begun, .bin_ns = SERIES_BIN_FIRST};
}

static void bins_double(struct series_bins *series)
{
    for (int k = 0; k < SERIES_COUNT; k++) {
        double *sums = series->sums[k];
        uint32_t *counts = series->counts[k];
        for (size_t i = 0; sums && i < SERIES_BINS; i++)
            sums[i] = i < SERIES_BINS / 2 ? sums[2 * i] + sums[2 * i + 1] : 0;
        for (size_t i = 0; counts && i < SERIES_BINS; i++)
            counts[i] = i < SERIES_BINS / 2 ? counts[2 * i] + counts[2 * i + 1] : 0;
    }
    series->bin_ns *= 2;
    series->used = (series->used + 1) / 2;
}

/* The bin of a moment after the beginning, which there is then. */
static size_t bin_of(struct series_bins *series, uint64_t since)
{
    while (since / series->bin_ns >= SERIES_BINS)
        bins_double(series);
    size_t bin = (size_t)(since / series->bin_ns);
    if (bin >= series->used)
        series->used = bin + 1;
    return bin;
}

static stk_status sums_make(struct series_bins *series, enum summary_series which,
                            struct stk_error *err)
{
    if (!series->sums[which])
        series->sums[which] = memory_zero(SERIES_BINS, sizeof *series->sums[which]);
    return series->sums[which] ? STK_OK : fail_memory(err, SERIES_BINS * sizeof(double));
}

stk_status series_spread(struct series_bins *series, enum summary_series which, uint64_t start,
                         uint64_t end, double amount, struct stk_error *err)
{
    if (end <= start || end <= series->begun)
        return STK_OK;
    stk_status status = sums_make(series, which, err);
    if (status)
        return status;
    double rate = amount / (double)(end - start);
    start = start > series->begun ? start - series->begun : 0;
    end -= series->begun;
    size_t last = bin_of(series, end - 1);
    for (size_t bin = bin_of(series, start); bin <= last; bin++) {
        uint64_t from = bin * series->bin_ns, to = from + series->bin_ns;
        uint64_t overlap = (end < to ? end : to) - (start > from ? start : from);
        series->sums[which][bin] += rate * (double)overlap;
    }
    return STK_OK;
}

stk_status series_value(struct series_bins *series, enum summary_series which, uint64_t time,
                        double value, struct stk_error *err)
{
    stk_status status = sums_make(series, which, err);
    if (status)
        return status;
    if (!series->counts[which])
        series->counts[which] = memory_zero(SERIES_BINS, sizeof *series->counts[which]);
    if (!series->counts[which])
        return fail_memory(err, SERIES_BINS * sizeof(uint32_t));
    size_t bin = bin_of(series, time > series->begun ? time - series->begun : 0);
    series->sums[which][bin] += value;
    series->counts[which][bin]++;
    return STK_OK;
}

double series_mean(const struct series_bins *series, enum summary_series which, uint64_t start,
                   uint64_t end)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; series->counts[which] && i < series->used; i++) {
        uint64_t from = series->begun + i * series->bin_ns;
        double part = (double)stretch_overlap(from, from + series->bin_ns, start, end);
        if (!series->counts[which][i])
            continue;
        sum += part * series->sums[which][i] / series->counts[which][i];
        weight += part;
    }
    return weight > 0 ? sum / weight : -1;
}

stk_status series_add(struct series_bins *series, const struct series_bins *other,
                      struct stk_error *err)
{
    stk_status status = STK_OK;
    for (int k = 0; k < SERIES_COUNT; k++)
        for (size_t i = 0; !status && other->counts[k] && i < other->used; i++)
            if (other->counts[k][i])
                status =
                    series_value(series, (enum summary_series)k, other->begun + i * other->bin_ns,
                                 other->sums[k][i] / other->counts[k][i], err);
    return status;
}

/* A bin without a value is as the one before: values come less often than the shortest bins. Before
 * the first value nothing is known. */
static void mean_fill(const struct series_bins *series, int which, float *to)
{
    for (size_t i = 0; i < series->used; i++) {
        uint32_t count = series->counts[which][i];
        to[i] = count ? (float)(series->sums[which][i] / count) : i ? to[i - 1] : NAN;
    }
}

stk_status series_summary(const struct series_bins *series, size_t ranks, struct summary *out,
                          struct stk_error *err)
{
    out->bins = series->used;
    out->bin_ns = series->bin_ns;
    double seconds = (double)series->bin_ns / 1e9;
    for (int k = 0; k < SERIES_COUNT; k++) {
        if (!series->sums[k] || !series->used)
            continue;
        float *values = out->series[k] = memory_zero(series->used, sizeof *values);
        if (!values)
            return fail_memory(err, series->used * sizeof *values);
        if (series->counts[k]) {
            mean_fill(series, k, values);
            continue;
        }
        double scale =
            k <= SERIES_WAITING ? 1 / (seconds * (double)(ranks ? ranks : 1)) : 1 / seconds;
        for (size_t i = 0; i < series->used; i++)
            values[i] = (float)(series->sums[k][i] * scale);
    }
    return STK_OK;
}

void series_bins_reset(struct series_bins *series)
{
    for (int k = 0; k < SERIES_COUNT; k++) {
        memory_free(series->sums[k]);
        memory_free(series->counts[k]);
    }
    *series = (struct series_bins){0};
}
