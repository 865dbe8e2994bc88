#include "transform/image_coefficients.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"

#define PI 3.14159265358979323846

/* --- filters: weight at a distance, in pixels of the smaller side --------------------------- */

static inline double bilinear_at(double x)
{
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

static inline double cubic_at(double x, double a)
{
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static inline double area_at(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

static inline double sinc_at(double x)
{
    if (x == 0.0)
        return 1.0;
    x *= PI;
    return sin(x) / x;
}

static inline double lanczos_at(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc_at(x) * sinc_at(x / 3) : 0.0;
}

static double filter_support(enum image_filter filter)
{
    static const double support[] = {[IMAGE_BILINEAR] = 1.0,
                                     [IMAGE_BICUBIC] = 2.0,
                                     [IMAGE_AREA] = 0.5,
                                     [IMAGE_NEAREST] = 0.5,
                                     [IMAGE_LANCZOS] = 3.0};
    return support[filter];
}

struct tap_range {
    int32_t from, count;
};

/* weights[i]: of pixel from + i, whose middle is at from + i + 0.5. Returns their sum. */
static double filter_weights(enum image_filter filter, struct tap_range range, double middle,
                             double inverse, double *weights)
{
    double sum = 0;
#define EACH(weight)                                                                               \
    for (int32_t i = 0; i < range.count; i++) {                                                    \
        double x = (range.from + i - middle + 0.5) * inverse;                                      \
        weights[i] = weight;                                                                       \
        sum += weights[i];                                                                         \
    }
    switch (filter) {
    case IMAGE_BICUBIC:
        EACH(cubic_at(x, -0.5))
        break;
    case IMAGE_AREA:
    case IMAGE_NEAREST:
        EACH(area_at(x))
        break;
    case IMAGE_LANCZOS:
        EACH(lanczos_at(x))
        break;
    default:
        EACH(bilinear_at(x))
    }
#undef EACH
    return sum;
}

/* --- tables --------------------------------------------------------------------------------- */

static double axis_scale(const struct axis *axis)
{
    return (axis->stop - axis->start) / axis->to;
}

int axis_is_copy(const struct axis *axis, int32_t *offset)
{
    *offset = (int32_t)axis->start;
    return axis->start == *offset && axis->stop - axis->start == axis->to;
}

/* The number of an output in the order in which they are wanted. */
static int32_t axis_place(const struct axis *axis, int32_t i)
{
    return axis->mirrored ? axis->count - 1 - i : i;
}

static inline int32_t weight_fixed(double weight)
{
    double scaled = weight * (1 << COEFFICIENT_BITS);
    return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

/* Widened by how much is scaled down, so that every pixel counts; the weights of what lies inside
 * add up to 1. */
static struct tap_range taps_widened(const struct axis *axis, double middle, double widen,
                                     double *weights)
{
    double support = filter_support(axis->filter) * widen;
    int32_t from = (int32_t)(middle - support + 0.5), to = (int32_t)(middle + support + 0.5);
    from = from < 0 ? 0 : from;
    to = to > axis->from ? axis->from : to;
    from = from < to ? from : to - 1; /* rounding may put the last middle on the edge */
    struct tap_range range = {from, to - from};
    double sum = filter_weights(axis->filter, range, middle, 1.0 / widen, weights);
    if (sum == 0.0)
        weights[0] = sum = 1.0;
    for (int32_t i = 0; i < range.count; i++)
        weights[i] /= sum;
    return range;
}

/* Not antialiased, bicubic: as torchvision's, whose cubic is another (a = -0.75), and which repeats
 * the outermost pixel beyond the edge. */
static struct tap_range taps_cubic(const struct axis *axis, double middle, double *weights)
{
    int32_t at = (int32_t)floor(middle - 0.5), last = axis->from - 1;
    double part = middle - 0.5 - at;
    int32_t from = at - 1 < 0 ? 0 : at - 1;
    int32_t to = at + 2 > last ? last : at + 2;
    from = from > last ? last : from;
    for (int32_t i = 0; i <= to - from; i++)
        weights[i] = 0;
    for (int32_t i = 0; i < 4; i++) {
        int32_t pixel = at - 1 + i;
        pixel = pixel < from ? from : pixel > to ? to : pixel;
        weights[pixel - from] += cubic_at(i - 1 - part, -0.75);
    }
    return (struct tap_range){from, to - from + 1};
}

/* The window moves back until all its taps lie inside: vectors load them all. */
static void taps_place(const struct axis *axis, const struct coefficients *table, int32_t i,
                       struct tap_range range, const double *weights)
{
    if (range.count > table->taps) { /* rounding let one in whose weight is nothing */
        int first = fabs(weights[0]) < fabs(weights[range.count - 1]);
        range = (struct tap_range){range.from + first, range.count - 1};
        weights += first;
    }
    int32_t from = range.from, most = axis->from - table->taps;
    if (from > most)
        from = most > 0 ? most : 0;
    int32_t *to = table->weights + (int64_t)i * table->taps;
    memset(to, 0, (size_t)table->taps * sizeof *to);
    for (int32_t k = 0; k < range.count; k++)
        to[range.from - from + k] = weight_fixed(weights[k]);
    table->from[i] = from;
    struct weight_pair *pairs = table->pairs + (int64_t)i * (table->taps / 2);
    for (int32_t k = 0; k < table->taps; k++) {
        pairs[k / 2].high[k % 2] = (int16_t)(to[k] >> COEFFICIENT_SPLIT);
        pairs[k / 2].low[k % 2] = (int16_t)(to[k] & ((1 << COEFFICIENT_SPLIT) - 1));
    }
}

stk_status coefficients_make(struct coefficients *out, const struct axis *axis,
                             struct scratch *scratch, struct stk_error *err)
{
    double scale = axis_scale(axis);
    int sharp = !axis->antialias && axis->filter <= IMAGE_BICUBIC;
    double widen = scale > 1.0 && !sharp ? scale : 1.0;
    int32_t most = (int32_t)ceil(2 * filter_support(axis->filter) * widen);
    if (most > axis->from)
        most = axis->from;
    *out = (struct coefficients){.count = axis->count, .taps = (most + 1) & ~1};
    uint64_t cells = (uint64_t)out->count * (uint64_t)out->taps;
    out->from = scratch_take(scratch, (uint64_t)out->count * sizeof *out->from);
    out->weights = scratch_take(scratch, cells * sizeof *out->weights);
    out->pairs = scratch_take(scratch, cells / 2 * sizeof *out->pairs);
    double *weights = scratch_take(scratch, (uint64_t)(most + 4) * sizeof *weights);
    if (!out->from || !out->weights || !out->pairs || !weights)
        return fail_memory(err, cells * (sizeof *out->weights + sizeof *out->pairs / 2));
    for (int32_t i = 0; i < axis->count; i++) {
        double middle = axis->start + (axis->first + i + 0.5) * scale;
        struct tap_range range = sharp && axis->filter == IMAGE_BICUBIC
                                     ? taps_cubic(axis, middle, weights)
                                     : taps_widened(axis, middle, widen, weights);
        taps_place(axis, out, axis_place(axis, i), range, weights);
    }
    return STK_OK;
}

stk_status nearest_make(int32_t **out, const struct axis *axis, struct scratch *scratch,
                        struct stk_error *err)
{
    uint64_t bytes = (uint64_t)axis->count * sizeof **out;
    *out = scratch_take(scratch, bytes);
    if (!*out)
        return fail_memory(err, bytes);
    double scale = axis_scale(axis);
    double at = axis->start + scale * 0.5; /* added up step by step, as Pillow does */
    for (int32_t i = 0; i < axis->first + axis->count; i++, at += scale) {
        int32_t pixel = (int32_t)at;
        if (i >= axis->first)
            (*out)[axis_place(axis, i - axis->first)] = pixel < axis->from ? pixel : axis->from - 1;
    }
    return STK_OK;
}
