/* series_append.h -- copies pieces of rows behind each other: behind the rows of an array, or into
 * a new one; and hashes its blocks on the way. Owns: nothing after return.   Threads: one. Errors:
 * STK_IO, STK_TRUNCATED, STK_CANCELLED. Not here: which pieces (append_series.c). */
#ifndef PACK_SERIES_APPEND_H
#define PACK_SERIES_APPEND_H

#include <stdint.h>

#include "stoker/context.h"
#include "stoker/error.h"

/* Rows of a pair of files. */
struct append_source {
    int values_fd, times_fd; /* times_fd -1: there are no times */
    const char *label;
};

struct append_piece {
    const struct append_source *from;
    uint64_t row, rows;
};

struct series_append {
    struct stk_context *context;
    uint64_t row_bytes;
    const struct append_piece *pieces;
    uint64_t piece_count;
    struct append_source to; /* open for reading and writing */
    uint64_t first_row; /* of `to`: where the first piece goes; rows before it stay as they are */
    uint64_t *hashes;   /* of all blocks of `to`; those before first_row's are set. NULL: none */
};

STK_CHECK stk_status series_append_run(const struct series_append *append, struct stk_error *err);

#endif
