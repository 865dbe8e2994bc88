#include "base/fail.h"
#include "transform/audio_resample.h"

/* The filter of SOXR_HQ is some 200 frames of the lower rate long; what lies further away does not
 * count any more. */
#define MARGIN 512

stk_status audio_rates_check(double from, double to, struct stk_error *err)
{
    if (from <= to * AUDIO_RATES_APART && to <= from * AUDIO_RATES_APART)
        return STK_OK;
    return fail(err, STK_LIMIT, "from %.15g to %.15g frames a second: %d times at most", from, to,
                AUDIO_RATES_APART);
}

int64_t audio_resampled(int64_t frames, double from, double to)
{
    if (from == to)
        return frames;
    __int128 scaled = (__int128)frames * (int64_t)to * 2 + (int64_t)from;
    scaled /= (__int128)(int64_t)from * 2;
    return scaled > INT64_MAX ? INT64_MAX : (int64_t)scaled;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void audio_part_find(int64_t frames, double from, double to, int64_t first, int64_t count,
                     struct audio_part *part)
{
    int64_t common = common_divisor((int64_t)from, (int64_t)to);
    int64_t in_step = (int64_t)from / common, out_step = (int64_t)to / common;
    double ratio = from / to, margin = ratio > 1 ? MARGIN * ratio : MARGIN;
    double begin = (double)first * ratio - margin, end = (double)(first + count) * ratio + margin;
    int64_t steps = begin > 0 ? (int64_t)(begin / (double)in_step) : 0;
    *part = (struct audio_part){.in_first = steps * in_step, .skip = first - steps * out_step};
    part->in_count = (end < (double)frames ? (int64_t)end : frames) - part->in_first;
    part->out_count = audio_resampled(part->in_count, from, to);
}
