/* series.h -- packs tables into a series: a flat array of many entities' rows, scaled, that
 * stk_dataset_open samples as sliding windows.
 * Owns: nothing after return.   Threads: one caller a call.   Errors: status, words in nullable
 * *err that name file, row and column; a failed call leaves the folder as it was.   Not here:
 * reading Parquet and its kin (whoever gives the tables), windows (dataset.h). */
#ifndef STOKER_SERIES_H
#define STOKER_SERIES_H

#include "stoker/arrow.h"
#include "stoker/context.h"
#include "stoker/tensor.h"

/* Tables one after the other, each a stream of record batches. The caller fills it in. */
struct stk_tables {
    void *user;
    /* STK_OK: *stream is the callee's to release, and *name (the file) lives until the next call.
     * STK_END: there are no more. total and done: bytes of the sources, for the progress bar; 0
     * where unknown. */
    stk_status (*next)(void *user, struct ArrowArrayStream *stream, const char **name,
                       struct stk_error *err);
    void (*close)(void *user); /* may be NULL; called once, by whoever was given the tables */
    uint64_t rows;             /* of all tables together, or about so many; 0: not known */
    int own_names; /* not 0: a table's name is its entity's as it is; 0: it is a file's */
};

/* Opens files and folders as tables through the context's open_tables hook. STK_UNSUPPORTED, with
 * what to install, where there is none. On failure *tables is all zero. */
STK_API STK_CHECK stk_status stk_tables_open(struct stk_context *context,
                                             const char *const *sources, uint32_t source_count,
                                             const struct stk_tables_options *options,
                                             struct stk_tables *tables, struct stk_error *err);

enum stk_missing {
    STK_MISSING_ERROR,
    STK_MISSING_DROP,  /* the row is left out */
    STK_MISSING_FFILL, /* the entity's last observed value; before the first one, the mean */
    STK_MISSING_MEAN,  /* the column's mean over the rows that the scaler is fitted on */
    STK_MISSING_ZERO   /* 0, before scaling */
};

enum stk_scaler_kind {
    STK_SCALER_STANDARD, /* (x - mean) / standard deviation (of the population) */
    STK_SCALER_MINMAX,   /* (x - min) / (max - min) */
    STK_SCALER_ROBUST,   /* (x - median) / (75 % - 25 % quantile), by a sketch */
    STK_SCALER_NONE
};

enum stk_scale {
    STK_SCALE_STORED, /* the file holds scaled values */
    STK_SCALE_LATE    /* the file holds raw values; windows are scaled while they are copied */
};

/* All zero is a good default but for out. Lists of names: NULL and 0 mean the default. */
struct stk_series_options {
    const char *out;    /* folder */
    const char *entity; /* column that names the entity; NULL: one entity a table, named by file */
    const char *time;   /* column to order by; NULL: rows are in order as they come */
    const char *const *features; /* default: all numeric columns but entity, time and statics */
    uint32_t feature_count;
    const char *const *labels; /* default: the first feature */
    uint32_t label_count;
    const char *const *statics; /* one value an entity */
    uint32_t static_count;
    const char *dtype; /* "f32" (NULL), "f16", "bf16" */
    enum stk_missing missing;
    enum stk_scaler_kind scaler;
    enum stk_scale scale;
    /* Rows that shape the scaler. "all"; "time:FROM..TO" (either may be empty; TO is not in it);
     * a fraction "0.8" of the time (of each entity's rows where there is no time); "entities:A,B".
     * NULL: the first part of the split, or all rows without one. */
    const char *fit_on;
    /* "time:2024-01-01[,2024-07-01]", "0.8,0.1,0.1" (by time), "entity:0.8,0.1,0.1" (by a hash of
     * the name): train, val, test; two parts are train and val. NULL: none. */
    const char *split;
    uint64_t window, horizon, stride, gap; /* what open takes when it is not told: 0, 0, 0, 0 mean
                                              60, 1, 1, 0 */
    uint64_t memory;                       /* byte budget; 0: 256 MiB */
    uint32_t threads; /* 0: one a core; the bytes written are the same for any number */
    int append; /* not 0: adds entities and newer rows to the series in `out`; its columns, dtype,
                   scaler and splits stay, and options that say otherwise are refused */
    int force;  /* not 0: a series that is there already is replaced */
};

struct stk_series_result {
    uint64_t rows, entities; /* in the folder now */
    uint64_t added_rows;     /* by this call */
    uint64_t dropped_rows;   /* STK_MISSING_DROP */
    uint64_t missing;        /* values that were missing */
    uint64_t bytes;          /* of the array */
    int sorted;              /* not 0: the rows did not come in order and were sorted */
};

/* Takes tables over (closes them), also when it fails. */
STK_API STK_CHECK stk_status stk_pack_series(struct stk_context *context, struct stk_tables *tables,
                                             const struct stk_series_options *options,
                                             struct stk_series_result *result,
                                             struct stk_error *err);

/* Fits another scaler to a series of raw values (STK_SCALE_LATE) without touching the array. */
STK_API STK_CHECK stk_status stk_series_rescale(struct stk_context *context, const char *folder,
                                                enum stk_scaler_kind scaler, const char *fit_on,
                                                struct stk_error *err);

/* Tables of synthetic entities: seasons, trends and a memory under noise, so that the next value
 * can be learned. */
struct stk_gen_series_options {
    const char *out; /* folder for entity-0000.parquet ... */
    uint64_t entities, rows;
    uint32_t features; /* at least 1; the first is `value` */
    uint64_t seed;
    int csv;   /* not 0: CSV files, also where Parquet could be written */
    int force; /* not 0: tables that are there already are replaced */
};
struct stk_gen_series_result {
    uint64_t files, rows, bytes;
};
/* Writes Parquet through the context's write_table hook; CSV where there is none. */
STK_API STK_CHECK stk_status stk_gen_series(struct stk_context *context,
                                            const struct stk_gen_series_options *options,
                                            struct stk_gen_series_result *result,
                                            struct stk_error *err);

#endif
