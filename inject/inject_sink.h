/* inject_sink.h -- turns CUPTI's records into those of the ring.
 * Owns: the ring and the names of kernels.   Threads: any; its lock is not held while CUPTI is
 * called.   Errors: none; what cannot be told is counted.   Not here: when records are asked for
 * (inject.c). */
#ifndef INJECT_SINK_H
#define INJECT_SINK_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "inject_cupti.h"
#include "inject_names.h"
#include "inject_ring.h"

/* Why records are missing, as record_lost numbers it. */
enum sink_lost { LOST_DROPPED = 1, LOST_UNTIMED = 2, LOST_GRAPH = 3, LOST_REASONS = 4 };

struct inject_sink {
    pthread_mutex_t lock; /* guards all below */
    struct inject_ring ring;
    struct inject_names names;
    uint64_t earliest; /* what began before cannot be a record of ours: its clock was another's */
    int64_t offset;    /* what to add to CUPTI's times */
    int is_ending;     /* work without an end was cut off with the process: that is no loss */
    uint64_t records;  /* since the start */
    uint64_t busy_ns;  /* the sum of all kernels' lengths */
    uint64_t lost[LOST_REASONS]; /* not told yet */
    uint64_t reached;            /* told */
    uint64_t graph_launches;     /* as the hook tells */
    uint64_t graph_runs;         /* launches of which there are records */
    uint64_t graph_missing;      /* told */
    uint32_t graph_last;         /* correlation of the last one */
};

/* 0, or an error: there is no ring. */
int inject_sink_open(struct inject_sink *sink, const char *folder);
/* All records of a buffer. */
void inject_sink_take(struct inject_sink *sink, const struct cupti_table *table, uint8_t *buffer,
                      size_t valid);
void inject_sink_lost(struct inject_sink *sink, enum sink_lost why, uint64_t count);
/* `words` may be NULL. */
void inject_sink_state(struct inject_sink *sink, enum gpu_state state, const char *words);
/* Everything that ended before `time` is in the ring. */
void inject_sink_reached(struct inject_sink *sink, uint64_t time);
/* From now on times are CUPTI's plus `offset`, and none is before `earliest`. */
void inject_sink_clock(struct inject_sink *sink, uint64_t earliest, int64_t offset);
void inject_sink_ending(struct inject_sink *sink);
/* A graph is launched now. */
void inject_sink_launched(struct inject_sink *sink);
/* How many were so far. */
uint64_t inject_sink_launches(struct inject_sink *sink);
/* Of the first `launches` graphs all records must be here: tells how many have none. */
void inject_sink_check_graphs(struct inject_sink *sink, uint64_t launches);
uint64_t inject_sink_records(struct inject_sink *sink);
uint64_t inject_sink_busy(struct inject_sink *sink);
void inject_sink_close(struct inject_sink *sink);
/* In a forked child: the ring is the parent's, which goes on writing to it, and its lock may have
 * been held by a thread that is not here. Whatever CUPTI still hands over here goes nowhere. */
void inject_sink_forget(struct inject_sink *sink);

#endif
