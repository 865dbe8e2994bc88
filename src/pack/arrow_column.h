/* arrow_column.h -- one column of a record batch: its buffers checked once, then read.
 * Owns: nothing; a column lives as long as the array it looks at.   Threads: any may read.
 * Errors: STK_CORRUPT for an array that breaks the C data interface; the caller adds file and
 * column. Sizes of plain buffers are not part of that interface: length and offset are believed.
 * Not here: types (arrow_type.h), what the values are for (series_ingest.h). */
#ifndef PACK_ARROW_COLUMN_H
#define PACK_ARROW_COLUMN_H

#include <stddef.h>

#include "stoker/tensor.h"

#include "pack/arrow_type.h"

struct arrow_text {
    const char *data; /* not ended by NUL */
    size_t len;
};

/* Strings in one of the three layouts: of a column, or of its dictionary. */
struct arrow_strings {
    enum arrow_kind kind;
    uint64_t first, count;      /* element of string 0 in the buffers */
    const uint8_t *validity;    /* NULL: none is missing */
    const void *items;          /* offsets or views */
    const char *bytes;          /* what offsets count in */
    const void *const *buffers; /* what views look into */
};

struct arrow_column {
    const struct arrow_type *type;
    uint64_t rows;
    uint64_t first;               /* element of row 0 in the buffers */
    const uint8_t *validity;      /* bit `first` is row 0; NULL: no value is missing */
    const void *values;           /* numbers, bits, times; indices of a dictionary */
    struct arrow_strings strings; /* text */
};

/* A record batch as a struct array with `children` children: the batch itself is checked, not its
 * columns. Rows that are missing as a whole are refused. */
STK_CHECK stk_status arrow_batch_check(const struct ArrowArray *batch, int64_t children,
                                       struct stk_error *err);
/* Looks at rows of child `child` of a checked batch. type, which was read from its schema, must
 * outlive the column and not be ARROW_OTHER. Offsets, views and indices of all rows are checked. */
STK_CHECK stk_status arrow_column_init(struct arrow_column *column, const struct arrow_type *type,
                                       const struct ArrowArray *batch, int64_t child,
                                       struct stk_error *err);

int arrow_column_has(const struct arrow_column *column, uint64_t row); /* 0: missing */

/* Rows of a column of numbers: what is asked for, and what is found. */
struct arrow_numbers {
    uint64_t first;
    uint32_t n;
    enum stk_dtype dtype; /* F32 (then the type must fit it) or F64 */
    void *scratch;        /* n elements of it, used unless the column has them as they are wanted */

    const void *values; /* missing ones are NaN; not always aligned */
    uint32_t inexact;   /* the first integer beyond 2^53 either way; n: none */
    int is_finite;      /* nothing is missing, and the type has no NaN or Inf */
};
void arrow_column_numbers(const struct arrow_column *column, struct arrow_numbers *numbers);

/* n rows of a column of times. Returns n, or the first row that has none or none that fits. */
uint32_t arrow_column_times(const struct arrow_column *column, uint64_t first, uint32_t n,
                            int64_t *out);

/* An integer that is not missing; of unsigned types its bits. */
int64_t arrow_column_integer(const struct arrow_column *column, uint64_t row);

/* 0: missing. A dictionary is looked into. */
int arrow_column_text(const struct arrow_column *column, uint64_t row, struct arrow_text *out);
/* A dictionary's index of a row that is not missing, and the text behind one (0: missing). */
uint64_t arrow_column_index(const struct arrow_column *column, uint64_t row);
int arrow_strings_at(const struct arrow_strings *strings, uint64_t i, struct arrow_text *out);

#endif
