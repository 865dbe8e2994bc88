/* append_plan.h -- where the rows of each entity go when rows are added to a series, and what its
 * metadata says then.
 * Owns: its lists, until append_plan_reset.   Threads: one.   Errors: STK_MEMORY; STK_CORRUPT for a
 * static value that changed.   Not here: files (append_series.c). */
#ifndef PACK_APPEND_PLAN_H
#define PACK_APPEND_PLAN_H

#include "pack/series_append.h"
#include "pack/series_pack.h"

/* An entity of the series as it will be; its number is its place in the list. */
struct append_entity {
    const char *name;
    uint64_t number;              /* in the ingest */
    uint64_t old_start, old_rows; /* in the array; 0 rows: it is new */
    uint64_t new_start, new_rows; /* in what is added; 0 rows: nothing */
    uint64_t start;               /* in the array as it will be */
    int is_tail; /* its rows are the array's last ones: newer ones follow without a copy */
};

struct append_plan {
    struct append_entity *entities;
    uint64_t count, known; /* known: those that are there already */
    uint64_t old_rows;     /* of the array, unused ones too */
    uint64_t rows;         /* of the array as it will be */
    uint64_t first_row;    /* the first that is written */
    uint64_t used_rows, added_rows;
    int is_compact; /* all rows are written, to a new array */
    struct append_piece *pieces;
    uint64_t piece_count;
};

/* Compact when more rows would be unused than used. Names belong to the meta and the ingest. */
STK_CHECK stk_status append_plan_make(struct append_plan *plan, const struct series_meta *meta,
                                      const struct series_ingest *ingest, struct stk_error *err);
void append_plan_reset(struct append_plan *plan);
void append_plan_compact(struct append_plan *plan); /* whatever there is unused */
/* The pieces in the order in which they are written. */
STK_CHECK stk_status append_plan_pieces(struct append_plan *plan, const struct append_source *old,
                                        const struct append_source *added, struct stk_error *err);
/* pack->meta becomes that of the series with the rows added, pack->statics its table. times: of the
 * array as it is now; NULL: there are none. */
STK_CHECK stk_status append_plan_meta(const struct append_plan *plan, struct series_pack *pack,
                                      const struct series_times *times, struct stk_error *err);

#endif
