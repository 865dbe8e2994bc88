/* attribution_state.h -- what attribution keeps, for the files that it is made of: attribution.c
 * takes events, loop_points.c follows the loops, device_use.c finds the devices, judge.c settles,
 * attribution_finish.c sums up.
 * Owns: see attribution.h.   Threads: one.   Errors: see there.   Not here: the contract. */
#ifndef WATCH_ATTRIBUTION_STATE_H
#define WATCH_ATTRIBUTION_STATE_H

#include "watch/attribution.h"
#include "watch/device_sample.h"
#include "watch/excerpt.h"
#include "watch/gap_list.h"
#include "watch/host_sums.h"
#include "watch/idle_split.h"
#include "watch/kernel_names.h"
#include "watch/series_bins.h"

#define SPEECH 400 /* bytes of a sentence */

/* What is told once, however often it happens. */
enum lost_why { LOST_CUPTI = 1, LOST_ZERO_TIMES, LOST_GRAPHS, LOST_RING, LOST_KINDS };

struct attribution {
    struct attribution_options options;
    struct process_line **processes;
    size_t process_count, process_cap;
    struct process_line *last_found;
    struct loader_facts *loaders;
    size_t loader_count, loader_cap;
    struct call_tree tree;
    struct series_bins series;
    struct gap_list gaps;
    struct excerpt excerpt;
    struct time_list machine; /* struct machine_look */
    struct host_sums host;
    struct {
        uint64_t length, busy, own; /* of all looks */
        uint64_t rss;
    } machine_sums;
    struct {
        struct series_bins series; /* of what NVML says of it */
        double busy;               /* as it said last; < 0: it did not */
    } devices[DEVICES_MOST];       /* by the command's numbers */
    uint64_t throttle;             /* of all that was said */
    uint64_t lost[LOST_KINDS];
    char *unreliable[SUMMARY_REASONS], *notices[SUMMARY_REASONS];
    double sampled_hz;
    uint64_t records, latest, settled;
    uint64_t ended_workers; /* that were forgotten */
    struct stk_watch_now now;
    double samples_seen, samples_before; /* for `now` */
    uint64_t samples_at;
    struct process_line **workers; /* of the rank at hand */
    size_t worker_cap;
    struct process_line *judged; /* the rank at hand */
    stk_status told_status;      /* of what is told by callbacks */
};

/* NULL: no memory. */
struct process_line *attribution_process(struct attribution *attribution, uint32_t pid);
/* The process runs a loop, or has a GPU. NULL: no memory. */
struct rank_line *attribution_rank(struct attribution *attribution, struct process_line *line);
struct loader_facts *attribution_loader(struct attribution *attribution, uint32_t main,
                                        uint32_t id);
/* The first failure in a callback, with its words. */
stk_status attribution_told(const struct attribution *attribution, struct stk_error *err);
/* Keeps a sentence, once. */
void attribution_say(char **sentences, const char *format, ...) STK_PRINTF(2, 3);

/* --- loop_points.c -----------------------------------------------------------------------------
 */
/* Follows the loop of a rank up to a moment. */
STK_CHECK stk_status loop_points_follow(struct attribution *attribution, struct process_line *line,
                                        uint64_t upto, struct stk_error *err);
/* Where judging begins: the first iterator of a loader that trains. 0: nothing to judge yet. */
uint64_t loop_points_begin(const struct attribution *attribution, const struct process_line *line);
/* The loader that most steps followed (or most batches came from); NULL: none. */
struct loader_facts *loop_points_loader(const struct attribution *attribution,
                                        const struct process_line *line);

/* --- judge.c -----------------------------------------------------------------------------------
 */
/* Whether more workers would do: too few of them, or each too slow. */
enum cause judge_worker_cause(const struct attribution *attribution,
                              const struct process_line *line);
/* Settles all that a rank did up to a moment; last: nothing follows. */
STK_CHECK stk_status judge_rank(struct attribution *attribution, struct process_line *line,
                                uint64_t upto, int last, struct stk_error *err);
/* Its last second up to a moment, without settling anything. */
STK_CHECK stk_status judge_now(struct attribution *attribution, uint64_t upto,
                               struct stk_error *err);
/* When the rank's training was over. */
uint64_t judge_end(const struct process_line *line);

/* --- device_use.c ------------------------------------------------------------------------------
 */
/* Whether a process uses a device whose kernels nobody recorded: NVML's samples stand in. */
int device_use_unrecorded(const struct process_line *line);
/* How busy its devices were, by the samples: those that NVML names it on or, where it does not, as
 * in a container, the busiest, as many as there are such processes. < 0: NVML did not say. */
double device_use_busy(const struct attribution *attribution, const struct process_line *line,
                       uint64_t start, uint64_t end);
/* The same of all such processes, as NVML said last. */
double device_use_now(const struct attribution *attribution);
/* Where neither kernels nor a loop were seen, such a process is judged while it has a device. */
STK_CHECK stk_status device_use_judge(struct attribution *attribution, struct stk_error *err);
/* What NVML said of the devices that the run uses becomes part of its series. */
STK_CHECK stk_status device_use_series(struct attribution *attribution, struct stk_error *err);

#endif
