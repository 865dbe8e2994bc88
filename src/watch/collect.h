/* collect.h -- the thread that watches: reads rings, looks at /proc and NVML, and hands all of it
 * to attribution and to the trace as the run goes on. Owns: its thread, the open rings and files of
 * /proc.   Threads: new, start, stop and free from one; between start and stop attribution and
 * trace belong to the collector.   Errors: STK_MEMORY, STK_RESOURCE (no thread). What fails while
 * it runs becomes a notice or a reason not to trust the run, never a fault of the command.   Not
 * here: the command (child.h). */
#ifndef WATCH_COLLECT_H
#define WATCH_COLLECT_H

#include "stoker/watch.h"
#include "watch/attribution.h"
#include "watch/host_sample.h"
#include "watch/trace_out.h"

#define COLLECT_NOTICES 12

struct collect;

struct collect_options {
    int folder;          /* of the run */
    uint32_t root;       /* the process whose tree is watched */
    uint64_t begun;      /* when the run began */
    uint64_t until;      /* when watching ends; 0: with the run */
    const char *visible; /* CUDA_VISIBLE_DEVICES; NULL: all */
    struct attribution *attribution;
    struct trace_out *trace; /* NULL: none */
    void (*live)(void *user, const struct stk_watch_now *now);
    void *user;
};

struct collect_facts {
    uint64_t records, lost;
    uint64_t cpu_ns;                                        /* of the collector's thread */
    uint64_t ended;                                         /* when watching ended */
    const char *gpu_name, *driver, *cupti, *python, *torch; /* "" where unknown */
    const char *notices[COLLECT_NOTICES + 1];               /* NULL ends them */
    const char *fault; /* why what was seen is not all; NULL: it is */
};

STK_CHECK stk_status collect_new(struct collect **out, const struct collect_options *options,
                                 struct stk_error *err);
STK_CHECK stk_status collect_start(struct collect *collect, struct stk_error *err);
/* Reads what is left and settles it. Legal when it was not started. */
void collect_stop(struct collect *collect);
/* One round at a moment, without a thread: 20 of them a second. */
void collect_round(struct collect *collect, uint64_t now);
/* After stop; lives as long as the collector. */
void collect_facts(const struct collect *collect, struct collect_facts *out);
void collect_free(struct collect *collect); /* NULL is fine */

#endif
