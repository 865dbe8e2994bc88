/* verdict.h -- a run in plain words: bound by what, how sure, what to do.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: the rules (advice_rules.h). */
#ifndef WATCH_VERDICT_H
#define WATCH_VERDICT_H

#include <stdio.h>

#include "watch/advice_rules.h"

enum verdict_bound {
    BOUND_UNKNOWN, /* unreliable, or nothing was seen */
    BOUND_COMPUTE, /* GPU-bound and healthy */
    BOUND_INPUT,
    BOUND_HOST, /* launches, the GIL, contention, synchronisation, checkpoints, validation */
    BOUND_COPY,
    BOUND_RANK
};

struct verdict {
    enum verdict_bound bound;
    enum cause cause; /* the first one; CAUSE_COUNT where compute binds */
    char words[1024]; /* one to three sentences */
    char why[1024];   /* why that is the bottleneck */
    const char *sure; /* "high", "medium", "low" */
    char sure_why[512];
    double
        gain_bound; /* times faster if input were free (or the cause gone); measured if what_if */
    struct advice advice[3];
    size_t advice_count;
    struct advice against[3];
    size_t against_count;
};

/* The name in the run file: "input". */
const char *verdict_bound_name(enum verdict_bound bound);
void verdict_find(struct verdict *out, const struct summary *summary);
/* For a terminal, 80 columns. Returns the text, to give to memory_free; NULL: no memory. */
char *verdict_text(const struct verdict *verdict, const struct summary *summary);

#endif
