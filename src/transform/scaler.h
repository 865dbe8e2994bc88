/* scaler.h -- center and scale of columns: scaled = (raw - center) / scale, and how they are
 * fitted. Owns: its arrays, until scaler_reset; a fit its accumulators, until fit_free.   Threads:
 * a fit is for one thread; several are merged, in a fixed order, so that any number of threads
 * gives the same bits.   Errors: STK_MEMORY.   Not here: which rows are fitted on
 * (pack/series_fit.h), copying windows (window_gather.h). */
#ifndef TRANSFORM_SCALER_H
#define TRANSFORM_SCALER_H

#include <stdint.h>

#include "stoker/error.h"
#include "stoker/tensor.h"
#include "base/json.h"
#include "base/text.h"

enum scaler_kind { SCALER_STANDARD, SCALER_MINMAX, SCALER_ROBUST, SCALER_NONE };

/* What was seen of a column; what is not known of its kind is 0. */
struct scaler_column {
    double center, scale; /* scale is never 0: a constant column has 1 */
    double mean, variance, min, max;
    double low, median, high; /* 25 %, 50 % and 75 % quantiles: ROBUST */
    uint64_t count;           /* observed values; 0: center 0, scale 1 */
};

struct scaler {
    enum scaler_kind kind;
    uint32_t count;
    struct scaler_column *columns;
};

STK_CHECK stk_status scaler_init(struct scaler *scaler, enum scaler_kind kind, uint32_t count,
                                 struct stk_error *err);        /* center 0, scale 1 */
void scaler_reset(struct scaler *scaler);                       /* zeroed is fine */
const char *scaler_kind_name(enum scaler_kind kind);            /* "standard" */
int scaler_kind_parse(const char *text, enum scaler_kind *out); /* 0: no such kind */

/* Appends the JSON object: kind, features (the columns' names), center, scale, mean, var, min, max,
 * quantiles and quantile_rank_error (robust), count: lists in the order of the columns. */
void scaler_json(const struct scaler *scaler, const char *const *names, struct text *text);
/* Reads such an object; lists that are missing but for center and scale (or the names that
 * scikit-learn gives them: mean_, scale_, var_) are left 0. STK_CORRUPT with words: a list of
 * another length, a number that is not finite, a scale of 0. */
STK_CHECK stk_status scaler_parse(struct scaler *scaler, const struct json *json, uint32_t count,
                                  struct stk_error *err);

/* --- fitting --------------------------------------------------------------------------------- */
/* Every call cuts its values into blocks of FIT_BLOCK from its first value on; blocks are joined in
 * the order they come. So for the same bits with any number of threads: cut the rows at fixed row
 * numbers (multiples of FIT_BLOCK are best: 65536, say), never by the number of threads; give each
 * piece a fit of its own, filled from its first row to its last with the same calls; and merge the
 * pieces' fits in the order of their rows into one that was empty. fit_add and fit_add_rows of the
 * same rows give the same bits; so does a column among others, whatever its number. */
#define FIT_BLOCK 1024
struct fit;

/* Bytes that a fit takes for each column, but for a few. */
size_t fit_column_bytes(enum scaler_kind kind);
/* skip: a byte a column, not 0: it keeps center 0 and scale 1 (codes of categories); NULL: none. */
STK_CHECK stk_status fit_new(struct fit **out, enum scaler_kind kind, uint32_t columns,
                             const uint8_t *skip, struct stk_error *err);
void fit_free(struct fit *fit);
void fit_reset(struct fit *fit); /* as new, without an allocation: for the next piece */
/* n values of one column, F32 or F64, `stride` elements apart, at any address; NaN is a value that
 * is missing. Mean and variance by blocks merged with Chan's rule, in float64. */
void fit_add(struct fit *fit, uint32_t column, const void *values, enum stk_dtype dtype, uint64_t n,
             uint64_t stride);
/* n rows of all columns, one after the other: as fit_add of each column, in one walk over memory.
 */
void fit_add_rows(struct fit *fit, const void *rows, enum stk_dtype dtype, uint64_t n);
/* Adds what `from` saw: a fit of the same kind and columns. */
void fit_merge(struct fit *into, const struct fit *from);
/* Makes *out, which must hold nothing. Columns that vary by no more than rounding would (as
 * scikit-learn judges it) have scale 1; so do columns without a value, with center 0. Means,
 * variances, ends and counts are set for every kind and for columns that are skipped. STK_CORRUPT:
 * a column has an infinite value, or numbers so large that their variance is; it is named by
 * names[columns], or by its number where that is NULL. */
STK_CHECK stk_status fit_scaler(const struct fit *fit, const char *const *names, struct scaler *out,
                                struct stk_error *err);

/* Rank error of the quantiles, as a share of the rows, with 99 % confidence. */
#define FIT_RANK_ERROR 0.005

#endif
