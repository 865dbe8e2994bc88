#include "net/fetch_pace.h"

#define STEP_NS 250000000LL
#define HALF_NS 30000000000LL
#define CUT_AGAIN_NS 500000000LL /* throttles that come together are one */
/* A range shorter than this much time of the link costs more in requests than it brings. */
#define RANGE_SECONDS 0.002

void pace_init(struct pace *pace)
{
    *pace = (struct pace){.window = PACE_MOST_IN_FLIGHT,
                          .number = PACE_FIRST_IN_FLIGHT,
                          .is_rising = 1,
                          .range = PACE_FIRST_RANGE};
}

static void learn_latency(struct pace *pace, const struct pace_answer *answer)
{
    const double first = (double)answer->first_byte_ns;
    if (first <= 0)
        return;
    if (answer->now_ns - pace->half_ns > HALF_NS) {
        pace->least_ns[1] = pace->least_ns[0];
        pace->least_ns[0] = 0;
        pace->half_ns = answer->now_ns;
    }
    if (pace->least_ns[0] <= 0 || first < pace->least_ns[0])
        pace->least_ns[0] = first;
}

static double latency_ns(const struct pace *pace)
{
    const double now = pace->least_ns[0], before = pace->least_ns[1];
    return before > 0 && (before < now || now <= 0) ? before : now;
}

/* One step with this number is over: `rate` came of it. */
static void climb(struct pace *pace, double rate)
{
    const int rose = rate > 1.03 * pace->last;
    if (pace->is_rising && !rose)
        pace->best = rate; /* more did not help: this is what there is */
    if (rate > pace->best)
        pace->best = rate;
    pace->is_rising = rate < 0.93 * pace->best || (pace->is_rising && rose);
    pace->number *= pace->is_rising ? 1.125 : 0.9375;
    if (pace->number > pace->window)
        pace->number = pace->window;
    if (pace->number < PACE_LEAST_IN_FLIGHT)
        pace->number = PACE_LEAST_IN_FLIGHT;
    pace->last = rate;
    pace->best *= 0.995;
}

/* A step lasts as long as all that was asked for takes to come, and a quarter of a second. */
static void learn_step(struct pace *pace, const struct pace_answer *answer)
{
    if (!pace->step_ns || !answer->in_flight) {
        /* Of the first answer after a pause nobody knows since when it came. */
        pace->step_ns = answer->in_flight ? answer->now_ns : 0;
        pace->step_bytes = pace->step_answers = pace->step_used = 0;
        return;
    }
    pace->step_bytes += answer->bytes;
    pace->step_answers++;
    pace->step_used += answer->in_flight + 1;
    const int64_t took = answer->now_ns - pace->step_ns;
    const double advised = pace_in_flight(pace);
    if (took < STEP_NS || (double)pace->step_answers < advised)
        return;
    const double rate = (double)pace->step_bytes * 1e9 / (double)took;
    const double up = rate - pace->bandwidth;
    pace->bandwidth += pace->bandwidth > 0 ? (up > 0 ? up / 2 : up / 8) : rate;
    /* Who does not do as was advised teaches nothing about the advice. */
    const double used = (double)pace->step_used / (double)pace->step_answers;
    if (used > 0.75 * advised)
        climb(pace, rate);
    pace->step_ns = answer->now_ns;
    pace->step_bytes = pace->step_answers = pace->step_used = 0;
}

void pace_learn(struct pace *pace, const struct pace_answer *answer)
{
    const double bytes = (double)answer->bytes;
    pace->answer_bytes += pace->answers ? (bytes - pace->answer_bytes) / 16 : bytes;
    pace->answers++;
    pace->window += 1 / pace->window;
    if (pace->window > PACE_MOST_IN_FLIGHT)
        pace->window = PACE_MOST_IN_FLIGHT;
    learn_latency(pace, answer);
    learn_step(pace, answer);
}

void pace_throttled(struct pace *pace, int64_t now_ns)
{
    if (pace->cut_ns && now_ns - pace->cut_ns < CUT_AGAIN_NS)
        return;
    pace->cut_ns = now_ns;
    pace->window = 0.7 * pace_in_flight(pace); /* of what was too much, not of what might be */
    if (pace->window < PACE_LEAST_IN_FLIGHT)
        pace->window = PACE_LEAST_IN_FLIGHT;
    if (pace->number > pace->window)
        pace->number = pace->window;
}

/* What fills the link, were there nothing but its length. */
static double number_least(const struct pace *pace)
{
    const double bytes = pace->answer_bytes > 4096 ? pace->answer_bytes : 4096;
    return 8 + 2.5 * pace->bandwidth * latency_ns(pace) * 1e-9 / bytes;
}

uint32_t pace_in_flight(const struct pace *pace)
{
    double wanted = pace->number;
    if (pace->bandwidth > 0 && wanted < number_least(pace))
        wanted = number_least(pace);
    if (wanted > pace->window)
        wanted = pace->window;
    if (wanted > PACE_MOST_IN_FLIGHT)
        return PACE_MOST_IN_FLIGHT;
    return wanted < PACE_LEAST_IN_FLIGHT ? PACE_LEAST_IN_FLIGHT : (uint32_t)wanted;
}

uint64_t pace_range(struct pace *pace)
{
    if (pace->bandwidth <= 0)
        return pace->range;
    double seconds = latency_ns(pace) * 1e-9 / 10;
    if (seconds < RANGE_SECONDS)
        seconds = RANGE_SECONDS;
    const double wanted = pace->bandwidth * seconds;
    /* Powers of two, left only when half as much again is wanted: it does not swing. */
    while (pace->range < PACE_MOST_RANGE && wanted > 1.5 * (double)pace->range)
        pace->range *= 2;
    while (pace->range > PACE_LEAST_RANGE && wanted < 0.375 * (double)pace->range)
        pace->range /= 2;
    return pace->range;
}
