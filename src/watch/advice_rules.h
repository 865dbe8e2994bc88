/* advice_rules.h -- what would help a run, and what would not: a table of rules, each with the
 * evidence that it needs and an estimate of what it gains at most.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: words for a terminal (verdict.h). */
#ifndef WATCH_ADVICE_RULES_H
#define WATCH_ADVICE_RULES_H

#include "watch/summary.h"

#define ADVICE_TEXT 768
#define ADVICE_SNIPPET 1536

struct advice {
    const char *rule;             /* its name, never changes: "more-workers" */
    char action[ADVICE_TEXT];     /* what to do */
    char why[ADVICE_TEXT];        /* the evidence, with its numbers */
    char snippet[ADVICE_SNIPPET]; /* code to paste; "": none */
    double gain;                  /* times faster at most; 1: nothing */
    int measured;                 /* 0: estimated */
};

/* The names of the rules, one after the other; NULL: there are no more. */
const char *advice_rule_name(size_t number);
/* The best first; at most `room`. Returns how many. Of an unreliable run: none. */
size_t advice_find(const struct summary *summary, struct advice *out, size_t room);
/* What people would try and what would gain nothing here, with the reason. */
size_t advice_against(const struct summary *summary, struct advice *out, size_t room);

#endif
