/* series_schema.h -- which columns of the tables a series takes, and for what.
 * Owns: its lists, until series_schema_reset.   Threads: one.   Errors: STK_USAGE for a column that
 * is not there or of a type that will not do; STK_SHAPE for a table that differs from the first,
 * with both schemas.   Not here: values (series_ingest.c). */
#ifndef PACK_SERIES_SCHEMA_H
#define PACK_SERIES_SCHEMA_H

#include "stoker/series.h"

#include "format/series_meta.h"
#include "pack/arrow_type.h"

#define SCHEMA_NONE UINT32_MAX

struct schema_column {
    char *name;
    struct arrow_type type; /* of the table at hand */
    int64_t child;          /* its place there */
    struct arrow_type first_type;
    int64_t first_child;
    uint32_t category; /* its number among the categories; SCHEMA_NONE: numbers */
};

struct series_schema {
    struct schema_column *columns; /* of the array, then statics, the entity, the time */
    uint32_t count;
    uint32_t array_count, feature_count; /* of the array: features, then labels that are none */
    uint32_t static_count;               /* from array_count on */
    uint32_t *labels;                    /* numbers of columns */
    uint32_t label_count;
    uint32_t entity, time; /* places in columns; SCHEMA_NONE */
    uint32_t category_count;
    char *table; /* the first one's name */
};

/* What the first table is asked. known: the series that is added to; its columns are taken, and
 * options must not say otherwise. Columns that the default leaves out are told in a notice. */
struct schema_ask {
    const struct stk_series_options *options;
    const struct series_meta *known; /* may be NULL */
    const struct stk_context *context;
    const char *table;
};
STK_CHECK stk_status series_schema_first(struct series_schema *schema, const struct schema_ask *ask,
                                         const struct ArrowSchema *from, struct stk_error *err);
/* Finds the same columns in a later table, in whatever order they are. */
STK_CHECK stk_status series_schema_next(struct series_schema *schema, const char *table,
                                        const struct ArrowSchema *from, struct stk_error *err);
/* F32 when every column of the array fits it exactly, else F64. */
enum stk_dtype series_schema_dtype(const struct series_schema *schema);
void series_schema_reset(struct series_schema *schema); /* zeroed is fine */

#endif
