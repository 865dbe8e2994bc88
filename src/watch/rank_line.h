/* rank_line.h -- what one process did, in time: what its threads were in, where its stacks were,
 * what its part of /proc said; and, of a rank, what its GPU did and where its loop stands.
 * Owns: its lists.   Threads: one.   Errors: STK_MEMORY.   Not here: what follows from it
 * (idle_split.h), how it is summed up (attribution.h). */
#ifndef WATCH_RANK_LINE_H
#define WATCH_RANK_LINE_H

#include "watch/account.h"
#include "watch/busy_line.h"
#include "watch/call_tree.h"
#include "watch/durations.h"
#include "watch/event.h"
#include "watch/kernel_names.h"
#include "watch/loader_facts.h"
#include "watch/time_list.h"

enum { SPAN_KINDS = SPAN_STAGE + 1 };
#define CPU_UNKNOWN UINT64_MAX

/* What the lists hold; each begins with start and end. */
struct host_span {
    uint64_t start, end;
    uint32_t loader, flags;
    uint64_t batch;
};
struct host_sample {
    uint64_t start, end;
    uint64_t cpu;                /* CPU_UNKNOWN: not known */
    uint32_t node, place, flags; /* flags: those of its frame, and SAMPLE_JOINED */
    uint32_t thread;
};
#define SAMPLE_JOINED                                                                              \
    0x100u         /* several in a row that were alike; else it was where it was at its end */
struct host_look { /* of a thread or of a process, between two looks at /proc */
    uint64_t start, end;
    uint64_t cpu, delay, block;
};
struct host_queue {
    uint64_t start, end; /* alike */
    uint32_t loader;
    int32_t ready, early, unpinned;
};
struct device_copy {
    uint64_t start, end, bytes;
};
struct machine_look {
    uint64_t start, end;
    uint64_t busy, own;
};

enum point_what {
    POINT_ITER,
    POINT_NEXT,
    POINT_BATCH,
    POINT_STEP,
    POINT_EPOCH,
    POINT_EPOCH_END,
    POINT_AFTER /* a checkpoint or a validation: the loop's, if it follows closely */
};
struct loop_point { /* moments of the loop, to be looked at in order */
    uint64_t start, end;
    enum point_what what;
    uint32_t loader, flags;
    uint64_t value; /* of a batch: its samples; of a step: the optimizer; of next(): its number */
};

/* Of a process that runs a loop. */
struct rank_line {
    struct busy_line compute;
    struct time_list copies_in, copies, talks, syncs; /* talks: NCCL's kernels */
    struct time_list yields, costs;
    struct time_list rests; /* of recording, until it was taken up again */
    struct time_list queues, points;
    uint64_t kernels, copy_count, copied_bytes, pageable_bytes, graph_kernels;
    uint32_t device;
    int device_known, recorded; /* recorded: if it had kernels, they would be here */
    uint64_t absent_at;         /* not 0: they could not be recorded from there on */
    uint64_t yielded_at;        /* not 0: it has yielded and not come back */
    uint64_t rested_at;         /* the same for a rest */
    uint64_t rested_ns;         /* of rests, as far as they are judged */
    uint64_t tail_to;           /* the gap that no kernel ends is judged up to here */
    uint32_t loop_thread;
    int loop_thread_sure, loop_seen;
    /* the loop so far, in order of time */
    uint64_t first_iter, first_point, last_point;          /* 0: none */
    uint64_t first_next, last_next, first_step, last_step; /* ends */
    uint64_t steps, optimizer, batches;
    uint64_t rest_steps, rest_batches; /* of those, while recording rested */
    uint32_t loader_now;               /* that handed out the last batch; UINT32_MAX: none */
    struct durations step_lengths;
    /* what is settled */
    uint64_t judged_from, judged_to; /* 0: nothing yet */
    double busy;                     /* as rank_line_busy, with what is being judged */
    uint64_t needed_from;            /* what ended before is not needed any more; 0: nothing yet */
    /* the last of those that were forgotten; end 0: none */
    struct host_span next_dropped, step_dropped;
    struct account account;
    struct account rest_account; /* of the loop, while recording rested */
    uint64_t talk_ns, copy_ns, next_ns;
    struct idle_run { /* what goes on being idle, for one cause; and, without a GPU, as a gap */
        uint64_t start, end;
        uint32_t slot;
    } told;
    struct {
        uint64_t start, end, ns;
        uint64_t by[ACCOUNT_SLOTS];
    } open_gap;
};

struct process_line {
    struct watch_process facts;
    char name[128];
    int ended, hooked;               /* hooked: it tells of itself */
    int loop_told;                   /* also of its loop, or of torch at work */
    int has_model;                   /* it has made a module of torch's */
    uint32_t devices;                /* that NVML names it on, a bit each */
    uint64_t device_from, device_to; /* it had some, as far as is told; 0: it had none */
    struct time_list spans[SPAN_KINDS];
    struct time_list ahead; /* next() of other threads, for the loop to take from a queue */
    struct time_list samples, others; /* of the loop's thread, of all other threads */
    struct time_list looks, uses;     /* of the main thread, of the process */
    struct call_frames frames;
    struct kernel_names kernels;
    struct watch_use use;   /* sums; rss is the last */
    struct rank_line *rank; /* NULL: it has no loop that was seen */
};

/* Takes a record of the Python hook that is about this process. */
STK_CHECK stk_status process_line_span(struct process_line *line, const struct record_span *span,
                                       struct stk_error *err);
STK_CHECK stk_status process_line_sample(struct process_line *line,
                                         const struct record_sample *sample, struct stk_error *err);
/* Sorts all lists, so that they can be read. */
void process_line_sort(struct process_line *line);
/* Forgets what ended before a moment. Sorted. */
void process_line_drop(struct process_line *line, uint64_t before);
size_t process_line_bytes(const struct process_line *line);
void process_line_reset(struct process_line *line);

/* Shares of [start, end) that the thread of the lists ran, wanted to run and waited for a disk. */
struct host_use {
    double cpu, delay, block;
    int known; /* 0: nothing says */
};
struct host_use process_line_use(const struct process_line *line, uint64_t start, uint64_t end);
/* Which share of the time judged so far the device computed; 0: nothing is judged yet. */
double rank_line_busy(const struct rank_line *rank);
/* Where in a gap recording began to rest; its end: it did not. A kernel that was launched in a rest
 * may have run until the first one that was recorded again, so what follows in the gap is not known
 * either. */
uint64_t rank_line_rest(const struct rank_line *rank, uint64_t start, uint64_t end);
/* Looks at what is to be judged from there on, so that `busy` is of use to whoever judges it. */
void rank_line_look(struct rank_line *rank, uint64_t from);
/* A span's own idea of how much of it the thread ran; < 0: it has none. */
double host_span_cpu(const struct host_span *span);

#endif
