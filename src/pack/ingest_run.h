/* ingest_run.h -- what the parts of the ingest share while tables come in: series_ingest.c pulls
 * batches and spools blocks, ingest_values.c turns columns into rows, ingest_entities.c tells whose
 * rows they are.
 * Owns: all of it, until series_ingest_run returns.   Threads: one.   Errors: status, words with
 * table, row and column.   Not here: the contract (series_ingest.h). */
#ifndef PACK_INGEST_RUN_H
#define PACK_INGEST_RUN_H

#include "base/context.h"
#include "pack/arrow_column.h"
#include "pack/name_table.h"
#include "pack/series_ingest.h"
#include "pack/series_schema.h"

#define INGEST_MAX_CATEGORY (UINT32_C(1) << 24) /* codes are exact in float32 */

/* Where an entity's last row came from. */
struct ingest_place {
    uint64_t row;
    uint32_t table;
};

/* Numbers of texts of one column that were looked up in the batch at hand. */
struct text_memory {
    uint32_t *by_index; /* of a dictionary; NAME_NONE: not yet */
    uint64_t cap;
    struct arrow_text last; /* the row before, which often says the same; data NULL: none */
    int64_t last_integer;
    uint32_t last_number; /* NAME_NONE: none */
};

/* Rows of one batch that go through together, and stay in the nearest caches while they do. */
struct ingest_chunk {
    uint64_t first;       /* row of the batch */
    uint32_t rows;        /* that came */
    uint32_t kept;        /* of these: not dropped */
    uint32_t *origin;     /* [kept]: which of the rows that came */
    uint8_t *dropped;     /* [rows] */
    uint32_t *numbers;    /* [kept]: of entities */
    void *scratch;        /* [array_count][chunk_rows] of the spool's dtype */
    const void **sources; /* [array_count]: where each column's values are */
    double *statics;      /* [chunk_rows] of one static column */
};

struct ingest_run {
    struct series_ingest *ingest;
    struct series_schema schema;
    enum stk_dtype dtype;
    size_t row_bytes;

    char **tables; /* names of those that came; the last one is at hand */
    uint32_t table_count, table_cap;
    int own_names;       /* a table's name is its entity's, not a file's */
    uint64_t batch_row;  /* rows of the table before the batch at hand */
    int64_t batch_width; /* columns that its schema has */

    struct arrow_column *views;   /* [schema.count] of the batch at hand */
    struct text_memory *memories; /* [schema.count] */
    struct name_table *categories;

    struct name_table names; /* of entities */
    struct ingest_place *places;
    uint64_t entity_cap;
    uint32_t table_entity; /* one entity a table: the number of this one's; NAME_NONE: no row yet */
    uint32_t last_entity;  /* of the row that came last; NAME_NONE */

    struct ingest_chunk chunk;
    uint32_t chunk_rows; /* at most */
    struct row_block block;
    uint32_t block_rows; /* at most */
    uint32_t fitted;     /* rows of the block that the fit has seen */
    struct context_timer timer;
};

const char *ingest_table(const struct ingest_run *run); /* the name of the table at hand */
/* Adds table and column to an error. column: NULL: none. */
stk_status ingest_failed(const struct ingest_run *run, const struct schema_column *column,
                         stk_status status, struct stk_error *err);

/* --- ingest_values.c ---------------------------------------------------------------------- */

/* For a new batch: what was looked up in the last one is forgotten. */
STK_CHECK stk_status ingest_memories_start(struct ingest_run *run, struct stk_error *err);
/* The chunk's rows of a column of numbers or categories; dtype and scratch are set. */
STK_CHECK stk_status ingest_numbers(struct ingest_run *run, uint32_t column,
                                    struct arrow_numbers *numbers, struct stk_error *err);
/* Puts the chunk's rows behind those of the block (which must have room for all that came); sets
 * kept, origin and times. The block's count stays. */
STK_CHECK stk_status ingest_values(struct ingest_run *run, struct stk_error *err);
/* The words for an Inf, a value that is missing or an integer that is not exact. */
enum ingest_problem { PROBLEM_NONE, PROBLEM_MISSING, PROBLEM_INFINITE, PROBLEM_INEXACT };
stk_status ingest_problem(const struct ingest_run *run, enum ingest_problem problem,
                          uint32_t column, uint32_t row, struct stk_error *err);
/* A name that a series can hold: UTF-8 without NUL. */
STK_CHECK stk_status ingest_name_check(const struct arrow_text *name, struct stk_error *err);

/* --- ingest_entities.c -------------------------------------------------------------------- */

/* Entities of the series that is added to come first. */
STK_CHECK stk_status ingest_entities_start(struct ingest_run *run, struct stk_error *err);
/* Whose rows the chunk has; counts them, and checks times and statics. */
STK_CHECK stk_status ingest_entities(struct ingest_run *run, struct stk_error *err);
/* The entity's name that a table's name gives: no folder, no suffix of a file's kind. */
void ingest_stem(const char *table, struct arrow_text *out);

#endif
