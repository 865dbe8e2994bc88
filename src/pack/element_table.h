/* element_table.h -- fixed-point numbers as elements of any dtype, by looking them up.
 * Owns: nothing; the table is the caller's.   Threads: any, once filled.   Errors: none.
 * Not here: where the numbers come from (pattern.h). */
#ifndef PACK_ELEMENT_TABLE_H
#define PACK_ELEMENT_TABLE_H

#include <stdint.h>

#include "stoker/tensor.h"

#define ELEMENT_ONE 1024                /* 1.0 */
#define ELEMENT_LIMIT (3 * ELEMENT_ONE) /* numbers lie in [-LIMIT, LIMIT] */
#define ELEMENT_COUNT (2 * ELEMENT_LIMIT + 1)
#define ELEMENT_MAX_SIZE 16

/* Entry v + ELEMENT_LIMIT is v / 1024 as a float or a complex number; scaled to the whole range as
 * an integer; v > 0 as a bool. table: ELEMENT_COUNT * stk_dtype_size(dtype) bytes. */
void element_table_fill(void *table, enum stk_dtype dtype);
/* to[i] = the element of values[i]. */
void element_table_map(const void *table, enum stk_dtype dtype, const int16_t *values, void *to,
                       uint32_t count);

/* Nearest, ties to even; what is too large becomes infinite. */
uint16_t element_half(float value);
uint16_t element_bfloat(float value);

#endif
