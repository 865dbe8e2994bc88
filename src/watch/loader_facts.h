/* loader_facts.h -- what is known of one loader: how the script made it, and what it did.
 * Owns: the epochs.   Threads: one.   Errors: STK_MEMORY; text that is not as agreed is left out.
 * Not here: who waited for it (idle_split.h). */
#ifndef WATCH_LOADER_FACTS_H
#define WATCH_LOADER_FACTS_H

#include "stoker/error.h"
#include "watch/durations.h"
#include "watch/record.h"
#include "watch/summary.h"

#define LOADER_EPOCHS 4096u

struct loader_facts {
    uint32_t main; /* the process that it is in */
    struct summary_loader summary;
    int described;
    struct durations next_lengths; /* but those that begin an epoch */
    struct durations fetch_lengths;
    uint64_t steps;                     /* of an optimizer after a batch of it: it trains */
    uint64_t seen;                      /* samples that were handed out */
    uint64_t last_next;                 /* end of the last next() */
    struct durations distances;         /* from one batch to the next */
    uint64_t begun;                     /* when it first made an iterator; 0: never */
    uint64_t busy_cpu_ns, busy_batches; /* of its workers: CPU time, and for how many batches */
    struct summary_epoch *epochs;       /* times are absolute here; end 0: it goes on */
    size_t epoch_count, epoch_cap;
};

/* Reads what the hook says; the last word counts. */
void loader_facts_describe(struct loader_facts *facts, const char *json, size_t len);
void loader_facts_files(struct loader_facts *facts, const char *json, size_t len);
/* Adds a span of a worker, of the pin thread or of the loop itself. */
void loader_facts_span(struct loader_facts *facts, const struct record_span *span);
STK_CHECK stk_status loader_facts_epoch(struct loader_facts *facts, uint64_t start,
                                        struct stk_error *err);
void loader_facts_epoch_end(struct loader_facts *facts, uint64_t end);
struct summary_epoch *loader_facts_now(struct loader_facts *facts); /* NULL: no epoch goes on */
void loader_facts_reset(struct loader_facts *facts);

#endif
