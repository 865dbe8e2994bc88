/* series_ingest.h -- tables in, rows out: pulls record batches, checks them, and spools their rows.
 * Owns: what it collected, until series_ingest_reset.   Threads: one.   Errors: status, words that
 * name the table, row (from 0, in the table) and column, and both schemas where two tables differ.
 * Not here: Arrow's buffers (arrow_column.h), order and scaling (pack_series.c).
 *
 * The first table decides: names are looked up in its schema and every later table must have the
 * same columns with the same types. Inf is an error. Missing values become NaN (policy DROP: the
 * row is left out; ERROR: an error). */
#ifndef PACK_SERIES_INGEST_H
#define PACK_SERIES_INGEST_H

#include "stoker/series.h"

#include "format/series_meta.h"
#include "pack/row_spool.h"

/* One entity as it came. */
struct ingest_entity {
    char *name;
    uint64_t rows;
    uint64_t first_row; /* in the spool: where it began */
    int64_t last_time;  /* of the row that came last */
    double *statics;    /* [static_count]; NaN until seen */
};

struct series_ingest {
    /* set by the caller */
    const struct stk_series_options *options;
    struct stk_context *context;
    int folder_fd; /* where the spool is made */
    const char *label;
    const struct series_meta *known; /* append: columns, categories and entities that are there;
                                        entities keep their numbers, new ones follow */
    /* Every row is added to it; NULL: none. Made by the ingest when fit_all, but not of sketches of
     * very many columns. */
    struct fit *fit;
    int fit_all;

    /* made by series_ingest_run */
    struct row_spool *spool; /* F32 or F64; times when options->time; entities when they come mixed
                                or options->entity is given */
    char **columns;          /* features, then labels that are none */
    uint32_t column_count, feature_count;
    uint32_t *labels;
    uint32_t label_count;
    char **statics;
    uint32_t static_count;
    struct series_category *categories;
    uint32_t category_count;
    uint8_t *is_category; /* [column_count] */
    char *time_unit, *time_zone;
    struct ingest_entity *entities; /* by first appearance (known ones first) */
    uint64_t entity_count;
    uint64_t *missing; /* [column_count] */
    uint64_t dropped_rows, rows;
    int is_grouped; /* every entity's rows came in one piece, in the order of entities */
    int is_ordered; /* times rose within every entity */
};

/* Takes no ownership of tables. STK_NOT_FOUND when there is no row at all, with words. Progress
 * "packing", "rows". */
STK_CHECK stk_status series_ingest_run(struct series_ingest *ingest, struct stk_tables *tables,
                                       struct stk_error *err);
void series_ingest_reset(struct series_ingest *ingest);

#endif
