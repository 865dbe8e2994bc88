/* series_sort.h -- puts the rows of a spool in order: by entity, by time, then as they came.
 * Owns: its memory and files, for the length of the call.   Threads: one.   Errors: STK_CORRUPT for
 * two rows of an entity at one time, with its name and the time; STK_IO; STK_CANCELLED.
 * Not here: whether it is needed (pack_series.c).
 *
 * Rows that fit into `memory` are sorted there. Else sorted runs of that size go to a file and are
 * merged; more runs than have room for a buffer each are merged in several rounds. */
#ifndef PACK_SERIES_SORT_H
#define PACK_SERIES_SORT_H

#include "stoker/context.h"

#include "pack/row_spool.h"
#include "pack/series_ingest.h"

struct series_sort {
    struct stk_context *context;
    int folder_fd; /* for runs and for the rows in order */
    const char *label;
    uint64_t memory;                      /* bytes */
    const struct ingest_entity *entities; /* where a spool has no numbers of entities, they lie one
                                             behind the other: their rows tell which is which */
    uint64_t entity_count;
    const char *time_unit;
    int is_final; /* as in row_spool_options */
};

/* *spool is replaced by one in order, without numbers of entities; the old one is gone, also when
 * this fails (then *spool is NULL). */
STK_CHECK stk_status series_sort_run(const struct series_sort *sort, struct row_spool **spool,
                                     struct stk_error *err);

#endif
