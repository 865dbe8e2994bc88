/* series_convert.h -- values of a spool into values of the array: fills what is missing, scales in
 * float64, rounds once to the array's type.
 * Owns: tables of its columns, until series_convert_reset.   Threads: any, once initialised.
 * Errors: STK_MEMORY.   Not here: blocks, threads and files (series_finish.h). */
#ifndef PACK_SERIES_CONVERT_H
#define PACK_SERIES_CONVERT_H

#include <stdint.h>

#include "stoker/error.h"
#include "stoker/tensor.h"

#include "transform/scaler.h"

/* The array lies before us as one long run of elements; element e is of column e % columns. */
struct series_convert {
    enum stk_dtype from, to; /* F32 or F64; F32, F16 or BF16 */
    uint32_t columns;
    uint32_t length; /* of the tables: whole rows, so that short ones make long loops */
    double *center, *inverse,
        *fill; /* [length]; NULL: not scaled; not filled. inverse: 1 / scale */
};

/* scaler NULL: as it is. fill: a value a column that NaN becomes; NULL: there is no NaN. */
STK_CHECK stk_status series_convert_init(struct series_convert *convert, uint32_t columns,
                                         const struct scaler *scaler, const double *fill,
                                         struct stk_error *err);
void series_convert_reset(struct series_convert *convert); /* zeroed is fine */

/* n elements from element `first` on. Returns n, or the number of the first whose value is not
 * finite in the array's type; *value is then what it was before it was rounded. */
uint64_t series_convert_run(const struct series_convert *convert, uint64_t first, uint64_t n,
                            const void *in, void *out, double *value);

/* The array's values as float32: F32, F16 or BF16. */
void series_convert_back(const void *in, enum stk_dtype dtype, uint64_t n, float *out);

#endif
