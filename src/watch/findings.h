/* findings.h -- what rules and sentences ask of a summary, worked out once: sums over the ranks,
 * the loader that was waited for, which rank is slow, where a function ran. Owns: nothing; texts
 * stay the summary's.   Threads: any.   Errors: none. Not here: what follows from it
 * (advice_rules.h, verdict.h). */
#ifndef WATCH_FINDINGS_H
#define WATCH_FINDINGS_H

#include "watch/summary.h"

struct findings {
    const struct summary *summary;
    int slowest; /* the rank that all wait for, in summary->ranks; -1: none. Then all below is of
                    that rank alone: what it saves, all save */
    const struct summary_loader *loader; /* the one that was waited for most; NULL: none was seen */
    int gpu;                             /* a GPU is what waits, not the compute step */
    int loop_unseen;                     /* of no rank is known what its loop does */
    double judged, compute, idle;        /* seconds, of all ranks together */
    double seconds[CAUSE_COUNT];         /* of idle */
    double input;                        /* all of input/... */
    double next;                         /* in next() */
    double steps, step;                  /* of all ranks; the mean length of one in seconds */
    double free_cpus, foreign_cpus;      /* of those that it may use */
    struct summary_cause transform;      /* over all ranks */
    int on_main; /* its first function ran on the main thread, outside of next() */
    int pooled;  /* no loader was seen, and processes of the script's own make batches */
    /* of the loader, a batch, in seconds; 0: not known */
    double batch_work, batch_cpu; /* of a worker, all told; of which it had a CPU */
    double worker_idle;           /* share of the workers' time in which they had nothing to do */
    double work;                  /* seconds that the workers' own work holds up */
    double step_alone;            /* a step's length if none of that were waited for */
    double ranks;
    double main_delay;       /* seconds in which the main threads could run but had no CPU */
    double copied, pageable; /* bytes to and from the device */
    double kernels, read_bytes, major_faults, rss;
    double clock_gain; /* the GPU's best clock over its mean */
};

/* Nanoseconds of a rank that are judged: from its first to its last, less what does not count. */
uint64_t findings_judged(const struct summary_rank *rank);
/* Of all ranks; of the slowest alone, where there is one, with FINDINGS_SLOWEST. */
enum findings_of { FINDINGS_ALL, FINDINGS_SLOWEST };
void findings_make(struct findings *out, const struct summary *summary, enum findings_of of);
/* Workers a rank that would keep up with the step, as far as there are CPUs for them. */
int findings_workers(const struct findings *findings);
/* Seconds that so many workers save: until the step itself, or the CPUs, are the bound. */
double findings_workers_save(const struct findings *findings, int workers);
/* A cause over all ranks: its time, and the functions that took most. */
void findings_cause(struct summary_cause *out, const struct summary *summary, enum cause cause);
/* The function to name for it: not one of Python's own, and where the loop merely waits one of the
 * script's own. NULL: there is none. */
const struct summary_function *findings_function(const struct summary_cause *causes,
                                                 enum cause cause);
/* The place in summary->ranks of the one that the others wait for, and a sentence about it; -1:
 * there is none. */
int findings_slowest(const struct summary *summary, char *words, size_t room);
/* The greatest cause of one rank; CAUSE_COUNT: it was never idle. */
enum cause findings_first_cause(const struct summary_rank *rank);
/* One of NVML's reasons to slow down, in words; NULL for what is none. */
const char *findings_throttle(uint64_t reason);

#endif
