/* inject_recorder.h -- records what the GPU does by CUPTI's activity functions: takes CUPTI over,
 * asks for records, hands CUPTI back.
 * Owns: CUPTI's callbacks while it records.   Threads: one caller at a time; CUPTI's callbacks come
 * from any.   Errors: words, for the report.   Not here: when this is done, and for whom
 * (inject.c).
 *
 * Kernels that a CUDA graph launches have records of their own as long as CUPTI is not asked for
 * graphs as a whole; that is what we want, for a graph's time is not all work. To notice a graph
 * whose kernels CUPTI does not see (it was made before CUPTI was started), the hook in PyTorch
 * tells of launches, and they are compared. CUPTI's own records of calls, be it of one alone, make
 * every call of CUDA slower: on an H200 a launch of PyTorch's took 15 us with them, 9 without, 7
 * alone.
 *
 * The clock: CUPTI asks a function of ours for the time, so that its times are those of all other
 * records. PyTorch's profiler gives it another; that is why the clock is given again whenever
 * CUPTI is taken over, and why a clock that is not ours shows that somebody took CUPTI away.
 *
 * Where recording costs the program much (inject_allowance.h), it rests: it ends before the program
 * does, once and for good. On an H200 a program whose recording began before CUDA's context was
 * made is about as fast as ever once it is switched off: 1.02 times a loop of tiny kernels that is
 * alone, with an error of 0.02. After recording that began while the program ran it is not: 1.26
 * (all_stopped and all_late_stopped in results/gpu/cupti_loop.json), however it was switched (kinds
 * of records, contexts, one kind kept, others switched on and off). Only cuptiFinalize ends that,
 * and while other threads launch, it crashes the program. So there is one stretch of records, at
 * the beginning. */
#ifndef INJECT_RECORDER_H
#define INJECT_RECORDER_H

#include <stdatomic.h>
#include <stdint.h>

#include "inject_allowance.h"
#include "inject_buffers.h"
#include "inject_cupti.h"
#include "inject_sink.h"

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
    struct inject_allowance allowance;
    _Atomic uint64_t rested_at; /* not 0: since then it rests */
    int never_rests; /* every kernel is wanted, whatever that costs; or a rest would save nothing */
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
/* A graph is launched. Any thread. */
void inject_recorder_graph(struct inject_recorder *recorder);
/* Asks for what is complete, and says up to when the ring is. Begins to rest when it is time. */
enum recorder_health inject_recorder_flush(struct inject_recorder *recorder);
/* Asks for everything and lets CUPTI go. The caller has waited for the device, or does not care
 * for what still runs. */
void inject_recorder_stop(struct inject_recorder *recorder);

#endif
