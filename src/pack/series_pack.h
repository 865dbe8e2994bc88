/* series_pack.h -- the steps that packing and adding to a series share.
 * Owns: all that a pack holds, until series_pack_reset.   Threads: one.   Errors: status, words.
 * Not here: the order of the steps (pack_series.c, append_series.c). */
#ifndef PACK_SERIES_PACK_H
#define PACK_SERIES_PACK_H

#include "stoker/series.h"

#include "pack/series_files.h"
#include "pack/series_finish.h"
#include "pack/series_ingest.h"
#include "pack/series_split.h"

struct series_pack {
    struct stk_context *context;
    const struct stk_series_options *options;
    struct stk_tables *tables;
    uint64_t memory; /* the budget, in bytes */
    struct series_folder *folder;
    struct series_ingest ingest;
    struct series_meta meta;     /* of the series as it will be */
    struct series_hashes hashes; /* of its blocks */
    float *statics;              /* [entities][statics] */
    uint64_t missing;            /* values, of all columns */
    int was_sorted;
};

void series_pack_reset(struct series_pack *pack); /* zeroed and half-built are fine */

enum scaler_kind series_pack_kind(enum stk_scaler_kind kind);
const char *series_pack_policy(enum stk_missing missing); /* "error" */
/* "f32", "f16" or "bf16", or a longer name of these; NULL is f32. */
STK_CHECK stk_status series_pack_dtype(const char *text, enum stk_dtype *out,
                                       struct stk_error *err);

/* Reads the tables into the spool, and puts its rows in order. known: the series added to. */
STK_CHECK stk_status series_pack_rows(struct series_pack *pack, const struct series_meta *known,
                                      struct stk_error *err);

/* What is left to do with the rows of the spool; see series_finish.h. */
struct series_pack_values {
    const struct series_meta *meta; /* columns, dtype, scaler, late */
    const struct finish_entity *entities;
    uint64_t entity_count;
    stk_status (*last)(void *user, uint64_t number, double *out, struct stk_error *err);
    void *last_user;
};
/* The rows as the array has them, in the file `name` of the hidden folder, and their times in
 * times_name; the spool is gone. pack->hashes: of the blocks of that file. */
STK_CHECK stk_status series_pack_values(struct series_pack *pack,
                                        const struct series_pack_values *values, const char *name,
                                        const char *times_name, struct stk_error *err);

/* A static value as the table holds it. STK_CORRUPT: float32 is too small for it. */
STK_CHECK stk_status series_pack_static(const struct series_pack *pack, const char *entity,
                                        uint32_t column, double value, float *out,
                                        struct stk_error *err);

/* Tells of columns that are constant or empty, and of raw values that the array's type is too
 * coarse for. */
void series_pack_notices(const struct series_pack *pack, const struct series_meta *meta);

/* Times of a file of int64 a row, for series_split.h. */
struct series_time_file {
    int fd;
    const char *label;
};
stk_status series_time_file_read(void *user, uint64_t first, uint64_t n, int64_t *out,
                                 struct stk_error *err);

#endif
