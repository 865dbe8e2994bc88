/* series_fit.h -- fits the scaler by a pass over rows: those that shape it, and no others.
 * Owns: its memory and threads, for the length of the call.   Threads: several inside; one caller.
 * Errors: STK_IO, STK_MEMORY, STK_CANCELLED.   Not here: which rows (series_split.h), the
 * arithmetic (transform/scaler.h).
 *
 * Rows are cut into pieces by their numbers alone and joined in order: the scaler has the same bits
 * for any number of threads. Columns whose sketches do not fit into memory all at once are fitted
 * some at a time, with a pass over the rows for each part: so it has for any memory. */
#ifndef PACK_SERIES_FIT_H
#define PACK_SERIES_FIT_H

#include "stoker/context.h"

#include "format/series_meta.h"

struct series_fit {
    struct stk_context *context;
    uint32_t threads;
    uint64_t memory;      /* bytes; bounds the threads and the columns of a pass */
    int fd;               /* rows x columns, C order */
    const char *label;    /* of that file */
    enum stk_dtype dtype; /* F64, F32, F16 or BF16 */
    uint32_t columns;
    const char *const *names; /* [columns], for errors */
    const uint8_t *skip;      /* as for fit_new */
    enum scaler_kind kind;
    const struct series_range *ranges; /* of rows; any may be empty */
    uint64_t range_count;
};

STK_CHECK stk_status series_fit_run(const struct series_fit *fit, struct scaler *out,
                                    struct stk_error *err);

#endif
