/* series_finish.h -- rows of a spool in order into the array: what is missing is filled, values are
 * scaled and rounded, blocks are hashed and written.
 * Owns: its memory and threads, for the length of the call.   Threads: several inside; one caller.
 * Errors: STK_CORRUPT for a value that the array's type cannot hold, with entity, row and column;
 * STK_IO; STK_CANCELLED.   Not here: the arithmetic (series_convert.h), which rows (pack_series.c).
 */
#ifndef PACK_SERIES_FINISH_H
#define PACK_SERIES_FINISH_H

#include "stoker/context.h"
#include "stoker/series.h"

#include "pack/row_spool.h"
#include "transform/scaler.h"

/* One entity's rows in the spool. They lie one behind the other, in the order of this list. */
struct finish_entity {
    const char *name;
    uint64_t rows;
    uint64_t before; /* rows it has already, in the array (append) */
    uint64_t number; /* for `last` */
};

struct series_finish {
    struct stk_context *context;
    uint32_t threads;
    uint64_t memory; /* bytes; bounds the threads */
    const struct row_spool *spool;
    int array_fd;      /* where blocks go: the spool's own file when both are of one type */
    const char *label; /* of the array, for messages */
    enum stk_dtype dtype;
    const char *const *columns;  /* names */
    const struct scaler *scaler; /* NULL: values stay as they are */
    enum stk_missing missing;
    int has_missing;     /* 0: there is no NaN in the spool, whatever the policy */
    const double *means; /* [columns]: MEAN, and FFILL before the first value */
    const struct finish_entity *entities;
    uint64_t entity_count;
    /* FFILL: the values of an entity's last row in the array, as they were before scaling; NULL:
     * no entity has any. */
    stk_status (*last)(void *user, uint64_t number, double *out, struct stk_error *err);
    void *last_user;
};

/* STK_OK: *hashes, one a block of SERIES_BLOCK bytes, is the caller's. The bytes are the same for
 * any number of threads. */
STK_CHECK stk_status series_finish_run(const struct series_finish *finish, uint64_t **hashes,
                                       uint64_t *hash_count, struct stk_error *err);

#endif
