#include "net/hedge.h"

/* Four buckets an octave: the exponent of the microseconds, and the two bits behind it. */
static uint32_t bucket_of(int64_t ns)
{
    const uint64_t us = ns < 1000 ? 1 : (uint64_t)ns / 1000;
    const uint32_t octave = 63u - (uint32_t)__builtin_clzll(us);
    const uint32_t quarter = octave >= 2 ? (uint32_t)(us >> (octave - 2)) & 3 : 0;
    const uint32_t bucket = octave * 4 + quarter;
    return bucket < HEDGE_BUCKETS ? bucket : HEDGE_BUCKETS - 1;
}

static int64_t bucket_end_ns(uint32_t bucket)
{
    return (int64_t)(((uint64_t)(bucket % 4 + 5) << (bucket / 4)) / 4 * 1000 + 1000);
}

void hedge_learn(struct hedge *hedge, int64_t first_byte_ns)
{
    hedge->buckets[bucket_of(first_byte_ns)]++;
    if (++hedge->total < 1024)
        return;
    hedge->total = 0;
    for (uint32_t i = 0; i < HEDGE_BUCKETS; i++)
        hedge->total += hedge->buckets[i] /= 2;
}

void hedge_learn_body(struct hedge *hedge, uint64_t bytes, int64_t took_ns)
{
    if (bytes < 4096 || took_ns <= 0)
        return; /* says more of the clock than of the link */
    const double rate = (double)bytes * 1e9 / (double)took_ns;
    hedge->rate += hedge->rate > 0 ? (rate - hedge->rate) / 16 : rate;
}

int64_t hedge_percentile(const struct hedge *hedge, double portion)
{
    const double below = portion * hedge->total;
    double sum = 0;
    for (uint32_t i = 0; i < HEDGE_BUCKETS; i++) {
        sum += hedge->buckets[i];
        if (hedge->buckets[i] && sum >= below)
            return bucket_end_ns(i);
    }
    return 0;
}

int64_t hedge_wait(const struct hedge *hedge)
{
    if (hedge->total < HEDGE_SAMPLES)
        return HEDGE_UNKNOWN_NS;
    const int64_t tail = hedge_percentile(hedge, 0.97);
    const int64_t wait = tail + tail / 4;
    return wait > HEDGE_LEAST_NS ? wait : HEDGE_LEAST_NS;
}

int hedge_is_slow(const struct hedge *hedge, uint64_t received, uint64_t left, int64_t took_ns)
{
    if (received == 0 || took_ns <= 0)
        return 1;
    const double to_come_ns = (double)left * (double)took_ns / (double)received;
    const double usual_ns = hedge->rate > 0 ? (double)left * 1e9 / hedge->rate : 0;
    return to_come_ns > 4 * usual_ns + 2 * (double)hedge_wait(hedge);
}

int hedge_may(const struct hedge *hedge)
{
    return hedge->hedges < HEDGE_FIRST + hedge->requests / HEDGE_ONE_IN;
}

void hedge_sent(struct hedge *hedge)
{
    if (++hedge->requests < 65536)
        return;
    hedge->requests /= 2;
    hedge->hedges /= 2;
}

void hedge_took(struct hedge *hedge)
{
    hedge->hedges++;
}
