/* hedge.h -- when a request is so much slower than its host's others that a second one is worth
 * its cost.
 * Owns: nothing.   Threads: one at a time for one hedge.   Errors: none.   Not here: the second
 * request itself (fetch_hedge.c).
 *
 * The tail is what lies beyond the 97th percentile of the time to the first byte, as it was
 * measured of this host, and a quarter more. At most one request in 32 is asked for twice, so that
 * a host which is slow as a whole is not given twice the work. */
#ifndef NET_HEDGE_H
#define NET_HEDGE_H

#include <stdint.h>

#define HEDGE_BUCKETS 112 /* four an octave, from a microsecond on */
#define HEDGE_LEAST_NS 50000000LL
#define HEDGE_UNKNOWN_NS 2000000000LL /* until HEDGE_SAMPLES answers were seen */
#define HEDGE_SAMPLES 20
#define HEDGE_ONE_IN 32
#define HEDGE_FIRST 2 /* that many are allowed before there were HEDGE_ONE_IN requests */

struct hedge {
    uint32_t buckets[HEDGE_BUCKETS];
    uint32_t total;
    uint32_t requests, hedges; /* both are halved now and then: what is long ago counts less */
    double rate;               /* bytes a second of one body; 0: not known */
};

void hedge_learn(struct hedge *hedge, int64_t first_byte_ns); /* of an answer that came */
void hedge_learn_body(struct hedge *hedge, uint64_t bytes, int64_t took_ns);
void hedge_sent(struct hedge *hedge);                                /* a request, not a hedge */
int64_t hedge_percentile(const struct hedge *hedge, double portion); /* upper end; 0: unknown */
int64_t hedge_wait(const struct hedge *hedge); /* from the start, while no byte has come */
/* Not 0: a body of which `received` bytes came in took_ns, and of which `left` are to come, is
 * behind by so much that a second request for the rest may be over before it. */
int hedge_is_slow(const struct hedge *hedge, uint64_t received, uint64_t left, int64_t took_ns);
int hedge_may(const struct hedge *hedge); /* 0: too many there were */
void hedge_took(struct hedge *hedge);

#endif
