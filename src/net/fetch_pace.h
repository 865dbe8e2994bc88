/* fetch_pace.h -- what was measured of a host, and the advice made of it.
 * Owns: nothing.   Threads: one at a time for one pace.   Errors: none.   Not here: who follows the
 * advice (store/remote_queue.c).
 *
 * A link is full when bandwidth * latency bytes are under way: two and a half times as many ranges
 * as that takes are always worth having. Latency is the least that was seen lately, since queues of
 * our own making must not ask for longer queues. Hosts that give each connection only so much need
 * more: the number climbs while that brings bytes, and sinks while it costs none. A site that
 * throttles cuts the number, and each answer raises it a little: the window. */
#ifndef NET_FETCH_PACE_H
#define NET_FETCH_PACE_H

#include <stdint.h>

#define PACE_LEAST_IN_FLIGHT 4
#define PACE_MOST_IN_FLIGHT 256
#define PACE_FIRST_IN_FLIGHT 32
#define PACE_LEAST_RANGE ((uint64_t)256 << 10)
#define PACE_MOST_RANGE ((uint64_t)16 << 20)
#define PACE_FIRST_RANGE ((uint64_t)2 << 20)

struct pace {
    double least_ns[2];  /* time to the first byte: the least of this half minute and of the last */
    int64_t half_ns;     /* when this half minute began */
    double bandwidth;    /* bytes a second; 0: not known */
    double answer_bytes; /* of a usual answer */
    uint64_t answers;

    double number;       /* what climbs and sinks */
    int is_rising;       /* which of the two it did last */
    double last, best;   /* bytes a second of the last step, of the best of late */
    int64_t step_ns;     /* when the running step began; 0: none runs */
    uint64_t step_bytes; /* what came in it, in how many answers, and how many were under way */
    uint64_t step_answers, step_used;

    double window;  /* what throttling leaves of PACE_MOST_IN_FLIGHT */
    int64_t cut_ns; /* when it was last cut */
    uint64_t range; /* what was last advised */
};

void pace_init(struct pace *pace);
/* An answer came: how many bytes, after how long the first of them, and how many requests to the
 * host were under way when it came, itself not counted. */
struct pace_answer {
    int64_t now_ns, first_byte_ns;
    uint64_t bytes;
    uint32_t in_flight;
};
void pace_learn(struct pace *pace, const struct pace_answer *answer);
void pace_throttled(struct pace *pace, int64_t now_ns);
uint32_t pace_in_flight(const struct pace *pace);
uint64_t pace_range(struct pace *pace);

#endif
