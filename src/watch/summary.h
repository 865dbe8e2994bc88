/* summary.h -- what a watched run was like: the result of attribution, the input of the advice, of
 * the run file (summary_json.h) and of the words on the terminal (verdict.h).
 * Owns: all that it points to, freed by summary_free.   Threads: none.   Errors: none.
 * Not here: how it is found (attribution.h), what follows from it (advice_rules.h). */
#ifndef WATCH_SUMMARY_H
#define WATCH_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "watch/causes.h"

enum watch_mode {
    WATCH_NOTHING, /* neither steps nor a GPU were seen */
    WATCH_CPU,     /* no GPU: "busy" is the compute step of the main thread */
    WATCH_SAMPLED, /* a GPU whose kernels were not recorded: NVML's samples */
    WATCH_GPU      /* every kernel was recorded */
};

struct summary_function {
    char *function, *file;
    uint32_t line;
    uint64_t ns;
};

struct summary_cause {
    uint64_t ns;                          /* of idle time */
    struct summary_function functions[3]; /* most first; function NULL: none */
};

struct summary_epoch {
    uint64_t start, end; /* since the run began */
    uint64_t steps, samples;
};

struct summary_rank {
    int32_t rank; /* -1: not distributed */
    uint32_t pid, device;
    uint64_t start, end; /* of training within the run: what came before and after is not judged */
    uint64_t busy_ns, compute_ns, communication_ns, copy_ns; /* unions; busy: compute */
    uint64_t idle_ns;     /* end - start - excluded_ns - compute_ns; the causes add up to it */
    uint64_t excluded_ns; /* of start to end: not judged, a notice says why */
    double recorded;      /* share of the rest that the GPU was recorded; all is scaled by it */
    struct summary_cause causes[CAUSE_COUNT];
    uint64_t steps, samples;
    uint64_t step_median_ns, step_p95_ns;
    uint64_t next_ns; /* the loop was in next() */
    uint64_t kernels, copies, copied_bytes, pageable_bytes, graph_kernels;
    struct summary_epoch *epochs;
    size_t epoch_count;
    int loop_unseen; /* neither a loader nor torch told of it: only the GPU and the host are known
                      */
};

struct summary_gap {
    uint64_t start, ns;
    enum cause cause; /* of its largest part */
    int32_t rank;
};

/* A loader as the script made it, from RECORD_LOADER. Texts are "" where unknown. */
struct summary_loader {
    uint32_t id;
    int32_t rank;
    char kind[16]; /* "torch", "stoker" */
    char class_name[64], dataset[96], collate[96], file[256];
    uint32_t line; /* where the script made it */
    int32_t batch_size, workers, prefetch_factor, cpus;
    int32_t pin_memory, persistent_workers, in_order; /* 0, 1; -1: unknown */
    int64_t samples, batches;                         /* -1: unknown */
    uint64_t epochs, handed_out, starts;
    uint64_t next_ns, start_ns; /* in next(), in making iterators and first batches */
    /* of its workers (or of the loop, without workers) */
    uint64_t fetch_ns, fetch_cpu_ns, collate_ns, send_ns, idle_ns, pin_ns;
    uint64_t fetch_max_ns, fetch_median_ns; /* of one batch */
    uint64_t batch_bytes;                   /* mean; 0: unknown */
    /* files that it opened */
    uint64_t opens, distinct_files, opened_bytes; /* 0: none was seen */
    char folder[256], extension[16];
};

struct summary_node { /* of the tree of calls; children follow by index, siblings too; 0: none */
    char *function, *file;
    uint32_t line;
    uint32_t first_child, next_sibling;
    uint64_t ns, cpu_ns; /* with its children */
};
struct summary_tree {
    struct summary_node *nodes; /* [0] is the root */
    size_t count;
};

struct summary_process {
    uint32_t pid;
    char role[12], name[128];
    int32_t rank, worker;
    unsigned told; /* enum use_told (event.h): the rest is 0 and not known */
    uint64_t cpu_ns, run_delay_ns, block_ns;
    uint64_t read_bytes, written_bytes;           /* from and to the disk */
    uint64_t read_calls_bytes, write_calls_bytes; /* by system calls */
    uint64_t minor_faults, major_faults, max_rss;
};

struct summary_thread {
    uint32_t pid, thread;
    char name[16]; /* as the system has it: "pt_data_pin" */
    uint64_t cpu_ns, run_delay_ns;
};

struct summary_machine_io { /* bytes of the whole machine, over the run */
    unsigned told;          /* enum machine_told (event.h): the rest is 0 and not known */
    uint64_t disk_read, disk_written, network_in, network_out;
};

struct summary_device {
    uint32_t device;
    struct summary_rate {
        int told;
        uint64_t mean, most; /* bytes a second */
    } pcie_in, pcie_out;
};

/* One value a bin; bins double in length when there are too many. */
enum summary_series {
    SERIES_COMPUTE,
    SERIES_COMMUNICATION,
    SERIES_COPY,
    SERIES_WAITING, /* shares of the bin; in next() */
    SERIES_SAMPLES, /* a second */
    SERIES_CPU,
    SERIES_MACHINE_CPU,
    SERIES_IOWAIT, /* CPUs in use: own, all */
    SERIES_RSS,
    SERIES_READ,
    SERIES_WRITTEN,
    SERIES_NETWORK, /* bytes; bytes a second */
    SERIES_GPU_MEMORY,
    SERIES_GPU_POWER,
    SERIES_GPU_CLOCK,
    SERIES_GPU_NVML, /* bytes, W, MHz, share */
    SERIES_PCIE_IN,
    SERIES_PCIE_OUT, /* bytes a second, of a GPU */
    SERIES_COUNT
};

struct summary_slice {
    uint64_t start, end;
    char *name;
};
struct summary_lane {
    char *name;
    struct summary_slice *slices;
    size_t count;
};

struct summary_what_if { /* of a second run with the loader's batches replayed */
    int measured;
    uint64_t wall_ns, steps, step_median_ns;
    double samples_s, busy; /* busy: share */
    double gain;            /* times faster, a step */
};

#define SUMMARY_REASONS 16
#define SUMMARY_THREADS 16
#define SUMMARY_DEVICES 16
struct summary {
    enum watch_mode mode;
    char **command;
    int exit_status, exit_signal; /* signal 0: it ended by itself */
    int64_t started;              /* seconds since 1970 */
    uint64_t wall_ns;
    uint32_t cpus;
    uint64_t memory_bytes;
    char gpu_name[96], driver[32], cupti[32], kernel[96], python[16], torch[32];
    char *unreliable[SUMMARY_REASONS]; /* sentences; NULL ends them. Any: no verdict is given */
    char *notices[SUMMARY_REASONS];    /* sentences: what was not seen, and why */
    struct summary_rank *ranks;
    size_t rank_count;
    struct summary_loader *loaders;
    size_t loader_count;
    struct summary_gap *gaps; /* the longest, in order of time */
    size_t gap_count;
    uint64_t gap_total; /* all that there were */
    struct {
        uint64_t upto_ns, count, ns;
    } gap_sizes[8];
    struct summary_tree main_tree, worker_tree;
    struct summary_process *processes;
    size_t process_count;
    struct summary_thread threads[SUMMARY_THREADS]; /* that used most CPU, the most first */
    size_t thread_count;
    struct summary_machine_io machine_io;
    struct summary_device devices[SUMMARY_DEVICES]; /* that NVML told of */
    size_t device_count;
    float *series[SERIES_COUNT]; /* NULL: not seen; NAN: not yet */
    size_t bins;
    uint64_t bin_ns;
    struct summary_lane *lanes; /* an excerpt of some seconds, for the picture */
    size_t lane_count;
    uint64_t excerpt_start, excerpt_end;
    uint64_t records, lost; /* of the rings */
    double sampled_hz;      /* that was reached; 0: no stacks */
    uint64_t watcher_cpu_ns, watcher_rss;
    double own_cpu_share;            /* CPUs that the watched used, of those it may use: 1 is all */
    double foreign_cpu_share;        /* that other programs used */
    uint64_t throttle;               /* NVML's reasons, all that were seen */
    struct summary_what_if *what_if; /* NULL: not measured */
};

void summary_free(struct summary *summary); /* NULL is fine */

/* Over all ranks. Shares of the idle time; 0 where there was none. */
uint64_t summary_idle(const struct summary *summary);
double summary_share(const struct summary *summary, enum cause cause);
double summary_busy(const struct summary *summary); /* compute, of the time */

#endif
