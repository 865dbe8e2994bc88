/* row_spool.h -- rows of a table on their way into a series: a file of fixed-size rows, and beside
 * it their times and entities. Owns: its files in the folder it is given, gone with row_spool_free
 * but for those that were taken over.   Threads: append from one; read from any, once all is
 * appended.   Errors: STK_IO with the file's name; a full disk says so.   Not here: where rows come
 * from (series_ingest.h), where they go (series_finish.h). */
#ifndef PACK_ROW_SPOOL_H
#define PACK_ROW_SPOOL_H

#include <stdint.h>

#include "stoker/error.h"
#include "stoker/tensor.h"

/* Rows one after the other. Missing values are NaN. */
struct row_block {
    uint32_t rows;
    void *values;       /* [rows][columns] of the spool's dtype */
    int64_t *times;     /* [rows]; NULL where the spool has none */
    uint32_t *entities; /* [rows]; NULL where the spool has none */
};

struct row_spool_options {
    int folder_fd;        /* where its files are made */
    const char *label;    /* what messages call the folder */
    enum stk_dtype dtype; /* F32 when every source column fits it exactly, else F64 */
    uint32_t columns;
    int has_times, has_entities;
    const char *values_name; /* file of the values: the array itself when they stay there */
    const char *times_name;
    /* Not 0: the values are likely to stay as they are (--scale late, f32). Blocks are hashed on
     * the way and writing them to the disk begins at once, so that the last fsync is short. */
    int is_final;
};

struct row_spool;
STK_CHECK stk_status row_spool_open(struct row_spool **out, const struct row_spool_options *options,
                                    struct stk_error *err);
void row_spool_free(struct row_spool *spool); /* NULL is fine; removes its files */
void row_spool_keep(struct row_spool *spool); /* values and times stay when it is freed */
/* Renames the files of values and times within their folder. NULL: that one keeps its name. */
STK_CHECK stk_status row_spool_rename(struct row_spool *spool, const char *values_name,
                                      const char *times_name, struct stk_error *err);

/* Bytes gathered in memory go to the file in large writes. All must be flushed before it is read;
 * rows may be appended after that. */
STK_CHECK stk_status row_spool_append(struct row_spool *spool, const struct row_block *block,
                                      struct stk_error *err);
STK_CHECK stk_status row_spool_flush(struct row_spool *spool, struct stk_error *err);
uint64_t row_spool_rows(const struct row_spool *spool);
uint64_t row_spool_row_bytes(const struct row_spool *spool);
/* block->rows rows from `first` on into the block's memory; pointers that are NULL are not read. */
STK_CHECK stk_status row_spool_read(const struct row_spool *spool, uint64_t first,
                                    const struct row_block *block, struct stk_error *err);
enum stk_dtype row_spool_dtype(const struct row_spool *spool);
uint32_t row_spool_columns(const struct row_spool *spool);
int row_spool_has_entities(const struct row_spool *spool);
/* is_final: hash_bytes(block, its length, its number) of each block of SERIES_BLOCK bytes of the
 * values, the last one maybe short; made whole by row_spool_flush. NULL: not asked for. */
const uint64_t *row_spool_hashes(const struct row_spool *spool, uint64_t *count);
int row_spool_values_fd(const struct row_spool *spool);
int row_spool_times_fd(const struct row_spool *spool); /* -1: none */

#endif
