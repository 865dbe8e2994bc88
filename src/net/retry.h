/* retry.h -- how often and how soon something is tried again: a budget of tokens for each host,
 * and waits that grow and are random.
 * Owns: nothing.   Threads: one at a time for one budget.   Errors: none.   Not here: what is worth
 * trying again (fetch_words.c). */
#ifndef NET_RETRY_H
#define NET_RETRY_H

#include <stdint.h>

/* A retry costs tokens; an answer at the first try brings one back, and an answer to a retry what
 * that retry cost, so that a server which fails now and then never empties the budget. Time brings
 * back a few a second: a host that is down is asked some times a second by all of the process, and
 * not by every fetch there is. */
#define RETRY_TOKENS 500
#define RETRY_TOKENS_A_SECOND 50
#define RETRY_COST 14
#define RETRY_COST_THROTTLED 5

struct retry_budget {
    double tokens;
    int64_t filled_ns; /* when time was last reckoned */
};
void retry_budget_init(struct retry_budget *budget, int64_t now_ns);
int retry_pay(struct retry_budget *budget, int64_t now_ns, double cost); /* 0: too poor */
void retry_earn(struct retry_budget *budget, double tokens);

/* Full jitter: anything from 0 to base * 2^tries, at most the cap. With a Retry-After it is that,
 * and up to a tenth or a base more, lest all come back at once. */
#define RETRY_BASE_NS 50000000LL
#define RETRY_BASE_THROTTLED_NS 1000000000LL
#define RETRY_CAP_NS 20000000000LL

struct retry_cause {
    uint32_t tries; /* how many there were: 1 .. */
    int is_throttle;
    int64_t retry_after_ms; /* -1: not told */
    double random;          /* [0, 1) */
};
int64_t retry_wait(const struct retry_cause *cause);

#endif
