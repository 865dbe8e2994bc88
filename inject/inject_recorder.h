/* inject_recorder.h -- records what the GPU does by CUPTI's activity functions: takes CUPTI over,
 * asks for records, hands CUPTI back.
 * Owns: CUPTI's callbacks while it records.   Threads: one caller at a time; CUPTI's callbacks come
 * from any.   Errors: words, for the report.   Not here: when this is done, and for whom
 * (inject.c).
 *
 * Kernels that a CUDA graph launches have records of their own as long as CUPTI is not asked for
 * graphs as a whole; that is what we want, for a graph's time is not all work. To notice a graph
 * whose kernels CUPTI does not see (it was made before CUPTI was started, or the device launches
 * it), the one call that launches graphs is recorded too, and compared.
 *
 * The clock: CUPTI asks a function of ours for the time, so that its times are those of all other
 * records. PyTorch's profiler gives it another; that is why the clock is given again whenever
 * CUPTI is taken over, and why a clock that is not ours shows that somebody took CUPTI away. */
#ifndef INJECT_RECORDER_H
#define INJECT_RECORDER_H

#include <stdint.h>

#include "inject_buffers.h"
#include "inject_cupti.h"
#include "inject_sink.h"
#include "inject_turns.h"

struct inject_recorder {
    struct cupti_table table;
    struct inject_sink sink;
    struct inject_buffers buffers;
    int has_clock;      /* CUPTI uses our clock */
    int is_clock_told;  /* and says so when asked: it can be checked */
    uint64_t earliest;  /* no record of ours began before */
    int failures;       /* flushes that failed, one after the other */
    uint64_t rate_time; /* when the rate of records was last measured */
    uint64_t rate_records;
    uint64_t graph_time; /* when launches of graphs were last counted */
    uint64_t graph_launches;
    uint64_t look_time; /* when launches of graphs are looked at next, or no longer */
    int is_looking;     /* all the time until then */
    struct inject_turns turns;
    int never_rests; /* every kernel is wanted, whatever that costs */
};

enum recorder_health {
    RECORDER_WELL,
    RECORDER_RESET, /* CUPTI was shut down or started anew: it is to be taken over again */
    RECORDER_TAKEN  /* another tool records now */
};

/* Opens CUPTI; the sink is open. 0, or -1 with words. There is one recorder in a process. */
int inject_recorder_open(struct inject_recorder *recorder, char words[CUPTI_WORDS]);
/* From now on there are records. 0, or -1 with words; then nothing is recorded. */
int inject_recorder_start(struct inject_recorder *recorder, char words[CUPTI_WORDS]);
/* The device is seconds behind its launches: each flush makes CUPTI begin a new buffer, and those
 * of work that is queued stay with it. Any thread. */
int inject_recorder_is_behind(struct inject_recorder *recorder);
/* Asks for what is complete, and says up to when the ring is. Recording rests now and then, where
 * there is much of it (inject_turns.h). */
enum recorder_health inject_recorder_flush(struct inject_recorder *recorder);
/* Asks for everything and lets CUPTI go. The caller has waited for the device, or does not care
 * for what still runs. */
void inject_recorder_stop(struct inject_recorder *recorder);

#endif
