#include "transform/gaussian.h"

#include <math.h>
#include <string.h>

#include "base/random.h"

#if defined(__clang__) /* which would fuse a multiplication with an addition where it can */
#pragma STDC FP_CONTRACT OFF
#endif

#define LANES 4
#define PAIRS 32 /* made at a time */

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef int32_t ints __attribute__((vector_size(4 * LANES)));
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

/* -2 ln u for u in (0, 1]. u = m * 2^e with m in [0.7, 1.42): ln m = 2 artanh((m - 1) / (m + 1)),
 * by the first five terms of its series; what is left out is below 1e-9. */
static inline floats minus_two_log(floats u)
{
    ints bits = (ints)u;
    ints exponent = (bits - 0x3f350000) >> 23; /* about the root of a half: its exponent is 0 */
    floats m = (floats)(bits - (ints)((words)exponent << 23));
    floats s = (m - 1.0f) / (m + 1.0f), t = s * s;
    floats series = t * (1.0f / 9) + 1.0f / 7;
    series = series * t + 1.0f / 5;
    series = series * t + 1.0f / 3;
    series = series * t;
    floats log = (s + s * series) * 2.0f + __builtin_convertvector(exponent, floats) * 0.693147181f;
    return log * -2.0f;
}

/* Sine and cosine of x in [-pi/4, pi/4], by their series. */
static inline void sine_cosine(floats x, floats *sine, floats *cosine)
{
    floats t = x * x;
    floats s = t * (1.0f / 362880) - 1.0f / 5040;
    s = s * t + 1.0f / 120;
    s = s * t - 1.0f / 6;
    *sine = x + x * (s * t);
    floats c = t * (1.0f / 40320) - 1.0f / 720;
    c = c * t + 1.0f / 24;
    c = c * t - 0.5f;
    *cosine = c * t + 1.0f;
}

/* The point of the unit circle at low / 2^32 of its way round: the nearest quarter is taken off the
 * angle, and put back by exchange and sign. */
static inline void circle(words low, floats *x, floats *y)
{
    words turned = low + 0x20000000u, quarter = turned >> 30;
    ints rest = (ints)(turned & 0x3fffffffu) - 0x20000000;
    floats sine, cosine;
    sine_cosine(__builtin_convertvector(rest, floats) * (0x1p-30f * 1.57079633f), &sine, &cosine);
    words s = (words)sine, c = (words)cosine, swap = -(quarter & 1u);
    words first = (c & ~swap) | (s & swap), second = (s & ~swap) | (c & swap);
    *x = (floats)(first ^ ((quarter + 1u) & 2u) << 30); /* below 0 in quarters 1 and 2 ... */
    *y = (floats)(second ^ (quarter & 2u) << 30);       /* ... and in 2 and 3 */
}

static void make_pairs(const uint32_t high[PAIRS], const uint32_t low[PAIRS], float to[2 * PAIRS])
{
    float radius[PAIRS];
    for (int i = 0; i < PAIRS; i += LANES) {
        words h;
        memcpy(&h, high + i, sizeof h);
        floats u = __builtin_convertvector((ints)(h >> 1), floats) * 0x1p-31f + 0x1p-32f;
        u = minus_two_log(u);
        memcpy(radius + i, &u, sizeof u);
    }
    for (int i = 0; i < PAIRS; i++)
        radius[i] = sqrtf(radius[i]);
    for (int i = 0; i < PAIRS; i += LANES) {
        words l;
        floats r, x, y;
        memcpy(&l, low + i, sizeof l);
        memcpy(&r, radius + i, sizeof r);
        circle(l, &x, &y);
        x *= r;
        y *= r;
        for (int k = 0; k < LANES; k++) {
            to[2 * (i + k)] = x[k];
            to[2 * (i + k) + 1] = y[k];
        }
    }
}

void gaussian_fill(uint64_t key, uint64_t first, uint64_t count, float *to)
{
    uint32_t high[PAIRS], low[PAIRS];
    float made[2 * PAIRS];
    while (count > 0) {
        uint64_t skip = first & 1, pair = first / 2;
        for (uint64_t i = 0; i < PAIRS; i++) {
            uint64_t bits = random_at(key, pair + i);
            high[i] = (uint32_t)(bits >> 32);
            low[i] = (uint32_t)bits;
        }
        make_pairs(high, low, made);
        uint64_t len = 2 * PAIRS - skip < count ? 2 * PAIRS - skip : count;
        memcpy(to, made + skip, len * sizeof *to);
        first += len;
        to += len;
        count -= len;
    }
}
