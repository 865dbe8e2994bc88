/* idle_split.h -- the rules: which cause a moment of idleness goes to, by what overlaps it in time.
 * Owns: nothing; it reads the lists of a rank and of its workers and adds to an account.
 * Threads: one.   Errors: STK_MEMORY.   Not here: when a rank is judged, and up to where
 * (attribution.h); what held next() (input_split.h).
 *
 * In this order: the script's own profiler and compiling are not judged; checkpoints; validation;
 * making iterators; next(), by what its batch went through meanwhile. A loop without a loader that
 * is known makes its batches in what it iterates over or indexes, or takes them from a queue. Then,
 * with a GPU: copies to it, other ranks, the user's own code (before the model it is input, after a
 * step it logs), others on the CPU, the end of a synchronisation, other threads of Python, and what
 * is left is Python that launches; of a loop that is not known nothing but others on the CPU is
 * told. Without a GPU: other ranks, the user's own code between next()
 * and the model, others on the CPU; what is left computes. */
#ifndef WATCH_IDLE_SPLIT_H
#define WATCH_IDLE_SPLIT_H

#include "watch/rank_line.h"

/* Where a list was read last. Time goes on, so the next item is near. */
struct split_cursor {
    const struct time_list *list;
    size_t at;
};

enum split_device { SPLIT_COPY, SPLIT_TALK, SPLIT_COST, SPLIT_YIELD, SPLIT_AHEAD, SPLIT_DEVICES };

struct idle_split {
    /* to be set */
    struct process_line *main;
    struct process_line *const *workers; /* and helpers: those that serve it, ended ones too */
    size_t worker_count;
    struct loader_facts *loaders;
    size_t loader_count;
    const struct time_list *machine; /* struct machine_look */
    enum watch_mode mode;
    struct stretch set_up; /* of the first step: libraries and kernels are loaded */
    struct account *account;
    /* Told of each piece as it is given to its largest cause; idle may be less than its length. */
    void (*told)(void *user, uint64_t start, uint64_t end, uint64_t idle, uint32_t slot);
    void *user;
    /* its own */
    struct split_cursor spans[SPAN_KINDS], devices[SPLIT_DEVICES];
    uint64_t gap_ns;               /* length of the gap at hand */
    int in_sync;                   /* it began in a synchronisation */
    uint64_t given[ACCOUNT_SLOTS]; /* of the gap at hand */
    struct stk_error *err;
    stk_status status; /* the first failure; nothing is given after it */
};

/* After the lists are sorted, and again when they changed. */
void idle_split_begin(struct idle_split *split);
/* Gives a gap of the device to its causes. Gaps come in order of time. */
STK_CHECK stk_status idle_split_gap(struct idle_split *split, const struct busy_gap *gap,
                                    struct stk_error *err);
/* The same for time of the loop's thread, where there is no GPU: some of it computes. Mode
 * WATCH_NOTHING: there is one, but nothing is known of it. */
STK_CHECK stk_status idle_split_host(struct idle_split *split, uint64_t start, uint64_t end,
                                     struct stk_error *err);

/* --- for input_split.c ------------------------------------------------------------------------ */
/* Which time in a stack counts: of the loop's thread, or all of the other threads. */
enum split_side { SIDE_ALL, SIDE_RAN, SIDE_STOOD, SIDE_OTHERS };
struct split_part {
    uint32_t slot;
    double weight;
    const struct process_line *process; /* whose stacks tell the function; NULL: nobody's */
    enum split_side side;
};
struct split_moment {
    uint64_t start, end, idle;
    const struct host_span *spans[SPAN_KINDS]; /* that go on; NULL: none */
    const void *devices[SPLIT_DEVICES];
};
/* The part of a moment from *from to upto, with its idle time; *from moves on. 0: there is none. */
int split_cut(const struct split_moment *whole, uint64_t *from, uint64_t upto,
              struct split_moment *part);
/* Shares out the idle time of [start, end) by weight, exactly. */
void split_give(struct idle_split *split, const struct split_moment *moment,
                const struct split_part *parts, size_t count);
void split_give_all(struct idle_split *split, const struct split_moment *moment, uint32_t slot,
                    const struct process_line *process, enum split_side side);
/* Of the time that a thread could have run and did not: the share that is due to other programs. */
double split_foreign(const struct idle_split *split, uint64_t start, uint64_t end, double own_cpu);
struct loader_facts *split_loader(const struct idle_split *split, uint32_t id);

#endif
