/* series_state.h -- the inside of an open series, for src/dataset alone.
 * Owns: all that it points to, until series_free.   Threads: fixed before anybody else sees it.
 * Errors: see each.   Not here: the windows (index/windows_index.h), the fields' places
 * (dataset_view.h). */
#ifndef DATASET_SERIES_STATE_H
#define DATASET_SERIES_STATE_H

#include "stoker/dataset.h"
#include "dataset/dataset_state.h"
#include "format/series_meta.h"
#include "index/windows_index.h"

#define SERIES_NO_OBJECT UINT32_MAX
#define SERIES_ALL_ROWS UINT32_MAX
enum { SERIES_ARRAY_OBJECT = 0, SERIES_MAX_OBJECTS = 3 };

/* Columns of the array that a field takes. */
struct series_columns {
    uint32_t count;
    uint32_t *numbers;
    const char **names; /* the metadata's */
    double *center, *scale;
    struct window_gather *gather; /* NULL: rows are taken as they lie */
};

struct series {
    struct series_meta meta;
    struct stk_series_info info;
    uint32_t split; /* number in meta, or SERIES_ALL_ROWS */
    struct series_columns x, y;
    struct index_object objects[SERIES_MAX_OBJECTS];
    uint32_t object_count;
    uint32_t time_object, static_object; /* or SERIES_NO_OBJECT */
    uint64_t row_bytes;
    uint64_t array_bytes; /* those that the metadata speaks of; the file may have more when.. */
    int unfinished;       /* ..an append did not come to its end */
};

void series_free(struct series *series); /* NULL and half-built are fine */

/* The rows of an entity that may be sampled: all, or those of the split. */
struct series_range series_rows(const struct series *series, uint64_t entity);

/* How the series is cut, by options over the metadata; which columns and rows. options may be NULL.
 * STK_USAGE, or STK_NOT_FOUND for a name that is not there. */
STK_CHECK stk_status series_choose(struct series *series, const struct stk_window_options *options,
                                   struct stk_error *err);

/* Fills source->fields and *fields (one for each that is there, in the order asked for; the
 * caller's). specs NULL: the default ones. */
struct series_fields {
    struct windows_field items[DATASET_MAX_FIELDS];
    uint32_t count;
};
STK_CHECK stk_status series_fields_make(struct dataset_source *source,
                                        const struct stk_dataset_options *options,
                                        struct series_fields *fields, struct stk_error *err);
/* How long stored values are: known once there is an index. */
void series_fields_measure(struct dataset_source *source);

/* The number in the index of the first sample that takes something from rows first .. last of the
 * array; STK_NOWHERE: none does. */
uint64_t series_first_sample(const struct dataset_source *source, uint64_t first, uint64_t last);
/* The number in the index of the sample of that key; STK_NOWHERE: there is none. */
uint64_t series_find_key(const struct dataset_source *source, const char *key);

/* stk_dataset_verify of a series: block by block. */
struct verify_told;
STK_CHECK stk_status series_verify(struct stk_dataset *dataset, uint32_t threads,
                                   struct verify_told *told, struct stk_error *err);

#endif
