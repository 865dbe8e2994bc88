/* plan.h -- which sample comes when: a pure function of (dataset, options, seed, epoch, position).
 * Owns: the weights' table, and for the local order a table of chunks.   Threads: immutable once
 * made; a cursor belongs to one thread at a time.   Errors: status from plan_new, and from
 * plan_samples in the order of time. Not here: reading (fetch_stage.h), where a loader stands
 * (loader_state.c).
 *
 * The local order of data that is not compressed has lanes: so each rank reads parts of its own, of
 * the same sequence. It is the default of a shuffle where much data lies on the network.
 *
 * An epoch is one sequence of positions 0 .. samples-1. A step takes the next `global` of them,
 * whatever the number of ranks; each rank takes a share of the step. World size does not enter the
 * order. */
#ifndef LOADER_PLAN_H
#define LOADER_PLAN_H

#include <stdint.h>

#include "stoker/loader.h"
#include "base/random.h"
#include "dataset/dataset_view.h"
#include "loader/time_order.h"

struct plan_chunk {
    uint64_t first, count; /* places in plan->grouped, or samples when that is NULL */
};

/* A part of the samples that is read side by side with the others (lanes.h); where chunks are
 * decoded whole there is one. */
struct plan_lane {
    uint64_t first_chunk, chunk_count;
    uint64_t first_group, group_count;
};

struct plan {
    const struct stk_dataset *dataset;
    uint64_t samples, global, seed;
    uint32_t rank, world, reach;
    enum stk_order order; /* never AUTO */
    enum stk_last last;   /* never AUTO */
    /* weights: Walker's alias table */
    double *chance;
    uint64_t *alias;
    uint64_t weights_hash; /* 0: no weights */
    /* local order */
    struct plan_chunk *chunks;
    uint64_t *grouped; /* positions sorted by chunk; NULL when the dataset is whole */
    uint64_t chunk_count, group_count;
    struct plan_lane *lanes;
    uint32_t lane_count;      /* 0: not the local order */
    uint64_t stored;          /* bytes of all objects; 0: loose files */
    struct time_order *times; /* STK_ORDER_TIME; else NULL */
};

/* What a cursor remembers; only the local order and that of time need one. */
struct plan_cursor {
    uint64_t epoch;             /* of ends; STK_NOWHERE: none yet */
    struct permutation *chunks; /* of each lane */
    uint64_t *ends;             /* where each group of reach chunks ends in its lane */
    struct time_cursor *times;  /* made when first asked */
};

/* Positions of an epoch. */
struct plan_range {
    uint64_t epoch, position;
    uint32_t n;
};

STK_CHECK stk_status plan_new(struct plan **out, const struct stk_dataset *dataset,
                              const struct stk_loader_options *options, struct stk_error *err);
void plan_free(struct plan *plan);

STK_CHECK stk_status plan_cursor_init(struct plan_cursor *cursor, const struct plan *plan,
                                      struct stk_error *err);
void plan_cursor_reset(struct plan_cursor *cursor);

/* Bytes that a cursor may come to hold. */
uint64_t plan_cursor_size(const struct plan *plan);
/* Not 0: plan_samples needs a cursor, and is quick only when positions move on. */
int plan_needs_cursor(const struct plan *plan);

/* The samples of the index at n positions of an epoch. Fails only in the order of time, whose times
 * are read; then out is undefined. */
STK_CHECK stk_status plan_samples(const struct plan *plan, struct plan_cursor *cursor,
                                  const struct plan_range *range, uint64_t *out,
                                  struct stk_error *err);
/* The sample that stands in for a bad one: the attempt-th try. */
uint64_t plan_substitute(const struct plan *plan, uint64_t epoch, uint64_t position,
                         uint32_t attempt);

/* One rank's share of the step that begins at `position`. With lanes, the step's positions are
 * laid out lane by lane before they are cut; first is then a place in that layout. */
struct plan_share {
    uint64_t start; /* position of the step, and how many it takes */
    uint64_t taken;
    uint64_t first; /* position of its first sample */
    uint32_t real;  /* samples */
    uint32_t count; /* places: real, or the full batch when the rest is masked */
    uint64_t end;   /* the epoch's position after the step */
};
void plan_share(const struct plan *plan, uint64_t position, struct plan_share *share);
/* The samples of the share, `real` of them, as plan_samples. */
STK_CHECK stk_status plan_share_samples(const struct plan *plan, struct plan_cursor *cursor,
                                        uint64_t epoch, const struct plan_share *share,
                                        uint64_t *out, struct stk_error *err);
/* The position in the epoch of the share's place-th sample. */
uint64_t plan_share_position(const struct plan *plan, const struct plan_share *share,
                             uint32_t place);
/* Places in this rank's largest batch. */
uint32_t plan_capacity(const struct plan *plan);
/* Steps from `position` to the end of the epoch; 0: it is over. */
uint64_t plan_steps(const struct plan *plan, uint64_t position);

/* Small samples: so many of them are worth one request. 0: they are not small, or loose files. */
uint64_t plan_run_samples(const struct plan *plan);
/* Local order: the group of its lane that holds the lane's place-th sample, and which places those
 * are. The cursor is at the epoch. */
struct plan_part {
    uint64_t number, start, end;
};
void plan_lane_group(const struct plan *plan, const struct plan_cursor *cursor, uint32_t lane,
                     uint64_t place, struct plan_part *out);
/* The chunk (of plan->chunks) that comes number-th in its lane. Needs no cursor. */
uint64_t plan_lane_chunk(const struct plan *plan, uint64_t epoch, uint32_t lane, uint64_t number);

/* Local order of one lane, for reading ahead: the group of chunks that holds `position`; and its
 * chunks, each as a sample that lies in it. *chunk is where to look, 0 at first, and moves on;
 * STK_NOWHERE: no more. */
uint64_t plan_group(const struct plan *plan, struct plan_cursor *cursor, uint64_t epoch,
                    uint64_t position);
uint64_t plan_group_next(const struct plan *plan, const struct plan_cursor *cursor, uint64_t group,
                         uint32_t *chunk);

#endif
