/* rows_pack.h -- columns into rows, and a quick look for values that are no finite numbers.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: where columns come from
 * (arrow_column.h), where rows go (row_spool.h). */
#ifndef PACK_ROWS_PACK_H
#define PACK_ROWS_PACK_H

#include <stdint.h>

#include "stoker/tensor.h"

/* to[i * count + c] = columns[c][i] for i < rows; F32 or F64. Columns need not be aligned; those of
 * a few thousand rows at a time stay in the nearest caches. */
void rows_pack(void *to, const void *const *columns, uint32_t count, uint32_t rows,
               enum stk_dtype dtype);

/* 1: no value is NaN or Inf. */
int rows_all_finite(const void *values, uint32_t n, enum stk_dtype dtype);

#endif
