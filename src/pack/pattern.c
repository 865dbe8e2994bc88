#include "pack/pattern.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "pack/element_table.h"

#define WAVES 2
#define TURN_BITS 16 /* an angle is a number of 1/65536 turns */
#define COSINE_BITS 10
#define COSINE_COUNT (1 << COSINE_BITS)
#define COSINE_ONE (1 << 14)
#define NOISE_COUNT (1 << 16)
#define ROW_LIMIT 4096  /* elements worked on at a time */
#define NOISE_SIGMA 0.6 /* of 1.0 */
#define AMPLITUDE 0.35  /* of each wave; every sample varies it by up to a quarter */
#define SHORTEST 4      /* wave length in elements */
#define LONGEST 16
#define LEVEL 0.25        /* most that a class lifts or lowers a channel */
#define LEVEL_JITTER 0.10 /* most that a sample adds to that */

/* A tensor is seen as `spans` spans of `span` elements: the last axes, as many as stay within
 * ROW_LIMIT, or the last one alone; then a span is worked on in rows of ROW_LIMIT. */
struct pattern {
    struct stk_tensor shape;
    uint32_t classes;
    uint64_t seed;
    struct permutation deal; /* sample -> place; place % classes is the label */
    int32_t span_axis;       /* the first axis that lies within a span */
    uint64_t spans, span;
    uint32_t row; /* min(span, ROW_LIMIT) */
    int16_t cosine[COSINE_COUNT];
    int16_t noise[NOISE_COUNT + ROW_LIMIT];
    void *elements; /* element_table */
};

/* One sample's waves. */
struct wave {
    uint32_t phase;              /* at the origin */
    uint32_t step[STK_MAX_RANK]; /* an element further along each axis */
    int32_t amplitude;           /* of COSINE_ONE */
};

/* A row's share of each wave, as cosine and sine: cos(a + b) = cos a cos b - sin a sin b. */
struct scratch {
    int16_t cosine[WAVES][ROW_LIMIT], sine[WAVES][ROW_LIMIT];
    int16_t level[ROW_LIMIT];
    int16_t values[ROW_LIMIT];
};

enum key { KEY_DEAL = 1, KEY_NOISE_TABLE, KEY_CLASS, KEY_LEVEL, KEY_SAMPLE, KEY_JITTER };

static int32_t cosine_at(const struct pattern *pattern, uint32_t turn)
{
    return pattern->cosine[(turn & 0xFFFF) >> (TURN_BITS - COSINE_BITS)];
}

static int32_t sine_at(const struct pattern *pattern, uint32_t turn)
{
    return cosine_at(pattern, turn - (1u << (TURN_BITS - 2)));
}

/* Sums of twelve uniform numbers are near enough to Gaussian ones: variance 1, at most 6 sigma. */
static void fill_noise(struct pattern *pattern)
{
    uint64_t key = random_key(pattern->seed, KEY_NOISE_TABLE);
    const int32_t scale = (int32_t)(NOISE_SIGMA * ELEMENT_ONE);

    for (uint32_t i = 0; i < NOISE_COUNT; i++) {
        int64_t sum = 0;
        for (uint32_t part = 0; part < 3; part++) {
            uint64_t bits = random_at(key, (uint64_t)i * 3 + part);
            for (int shift = 0; shift < 64; shift += 16)
                sum += (int64_t)(bits >> shift & 0xFFFF);
        }
        sum -= 6 * 65535;
        pattern->noise[i] = (int16_t)(sum * scale / 65536);
    }
    memcpy(pattern->noise + NOISE_COUNT, pattern->noise, ROW_LIMIT * sizeof(pattern->noise[0]));
}

static void cut_into_spans(struct pattern *pattern)
{
    const int64_t *shape = pattern->shape.shape;
    int32_t axis = pattern->shape.rank - 1;
    uint64_t span = (uint64_t)shape[axis];

    while (axis > 0 && span * (uint64_t)shape[axis - 1] <= ROW_LIMIT)
        span *= (uint64_t)shape[--axis];
    pattern->span_axis = axis;
    pattern->span = span;
    pattern->row = (uint32_t)(span < ROW_LIMIT ? span : ROW_LIMIT);
    pattern->spans = 1;
    for (int32_t i = 0; i < axis; i++)
        pattern->spans *= (uint64_t)shape[i];
}

stk_status pattern_new(struct pattern **out, const struct stk_tensor *shape, uint32_t classes,
                       uint64_t samples, uint64_t seed, struct stk_error *err)
{
    struct pattern *pattern = memory_zero(1, sizeof(*pattern));
    size_t table = ELEMENT_COUNT * stk_dtype_size(shape->dtype);

    *out = NULL;
    if (!pattern)
        return fail_memory(err, sizeof(*pattern));
    pattern->elements = memory_alloc(table);
    if (!pattern->elements) {
        pattern_free(pattern);
        return fail_memory(err, table);
    }
    pattern->shape = *shape;
    pattern->classes = classes;
    pattern->seed = seed;
    permutation_init(&pattern->deal, samples, random_key(seed, KEY_DEAL));
    cut_into_spans(pattern);
    for (int i = 0; i < COSINE_COUNT; i++)
        pattern->cosine[i] = (int16_t)lrint(COSINE_ONE * cos(2 * M_PI * i / COSINE_COUNT));
    fill_noise(pattern);
    element_table_fill(pattern->elements, shape->dtype);
    *out = pattern;
    return STK_OK;
}

void pattern_free(struct pattern *pattern)
{
    if (pattern)
        memory_free(pattern->elements);
    memory_free(pattern);
}

uint32_t pattern_label(const struct pattern *pattern, uint64_t sample)
{
    return (uint32_t)(permutation_at(&pattern->deal, sample) % pattern->classes);
}

size_t pattern_scratch_size(const struct pattern *pattern)
{
    (void)pattern;
    return sizeof(struct scratch);
}

/* The class gives the directions and lengths of the waves; the sample their phases (so that no
 * element tells the class alone) and amplitudes. */
static void make_wave(const struct pattern *pattern, uint64_t sample, uint32_t number,
                      struct wave *wave)
{
    uint64_t class_key = random_key(random_key(pattern->seed, KEY_CLASS),
                                    (uint64_t)pattern_label(pattern, sample) * WAVES + number);
    uint64_t key = random_key(random_key(pattern->seed, KEY_SAMPLE), sample);
    const uint32_t slow = (1u << TURN_BITS) / LONGEST, fast = (1u << TURN_BITS) / SHORTEST;
    const int32_t amplitude = (int32_t)(AMPLITUDE * COSINE_ONE);

    wave->phase = (uint32_t)random_below(key, number, 1u << TURN_BITS);
    wave->amplitude = amplitude +
                      (int32_t)random_below(key, WAVES + number, (uint64_t)(amplitude / 2)) -
                      amplitude / 4;
    for (int32_t axis = 0; axis < pattern->shape.rank; axis++) {
        uint32_t step = slow + (uint32_t)random_below(class_key, (uint64_t)axis, fast - slow);
        int backward = random_at(class_key, (uint64_t)(STK_MAX_RANK + axis)) & 1;
        /* Short axes (channels) take any phase. */
        if (pattern->shape.shape[axis] <= SHORTEST)
            step = (uint32_t)random_below(class_key, (uint64_t)(2 * STK_MAX_RANK + axis),
                                          1u << TURN_BITS);
        wave->step[axis] = backward ? 0u - step : step;
    }
}

/* The angle that a row's or an element's place among axes [first, last) adds. */
static uint32_t angle_of(const struct pattern *pattern, const struct wave *wave, uint64_t place,
                         int32_t first, int32_t last)
{
    uint32_t angle = 0;

    for (int32_t axis = last; axis-- > first;) {
        uint64_t size = (uint64_t)pattern->shape.shape[axis];
        angle += wave->step[axis] * (uint32_t)(place % size);
        place /= size;
    }
    return angle;
}

/* Uniform in [-most, most], in ELEMENT_ONE's. */
static int32_t random_level(uint64_t key, uint64_t counter, double most)
{
    const int32_t limit = (int32_t)(most * ELEMENT_ONE);

    return (int32_t)random_below(key, counter, 2 * (uint64_t)limit + 1) - limit;
}

/* A short last axis is taken for channels, each with a level of its own. */
static void fill_level(const struct pattern *pattern, uint64_t sample, struct scratch *scratch)
{
    uint64_t class_key =
        random_key(random_key(pattern->seed, KEY_LEVEL), pattern_label(pattern, sample));
    uint64_t key = random_key(random_key(pattern->seed, KEY_JITTER), sample);
    uint64_t last = (uint64_t)pattern->shape.shape[pattern->shape.rank - 1];
    uint64_t channels = last <= SHORTEST ? last : 1;
    int32_t levels[SHORTEST];

    for (uint64_t i = 0; i < channels; i++)
        levels[i] = random_level(class_key, i, LEVEL) + random_level(key, i, LEVEL_JITTER);
    for (uint32_t i = 0; i < pattern->row; i++)
        scratch->level[i] = (int16_t)levels[i % channels];
}

static void fill_row_share(const struct pattern *pattern, const struct wave *waves,
                           struct scratch *scratch)
{
    for (uint32_t w = 0; w < WAVES; w++)
        for (uint32_t i = 0; i < pattern->row; i++) {
            uint32_t angle =
                angle_of(pattern, &waves[w], i, pattern->span_axis, pattern->shape.rank);
            scratch->cosine[w][i] = (int16_t)cosine_at(pattern, angle);
            scratch->sine[w][i] = (int16_t)sine_at(pattern, angle);
        }
}

/* values = the waves at this row, plus noise, cut to what the table knows. angles: of the row's
 * start. */
static void fill_row(const struct pattern *pattern, const struct wave *waves,
                     const uint32_t *angles, const int16_t *noise, struct scratch *scratch)
{
    const int16_t *c0 = scratch->cosine[0], *s0 = scratch->sine[0];
    const int16_t *c1 = scratch->cosine[1], *s1 = scratch->sine[1];
    int32_t a = waves[0].amplitude * cosine_at(pattern, angles[0]) / COSINE_ONE;
    int32_t b = waves[0].amplitude * sine_at(pattern, angles[0]) / COSINE_ONE;
    int32_t c = waves[1].amplitude * cosine_at(pattern, angles[1]) / COSINE_ONE;
    int32_t d = waves[1].amplitude * sine_at(pattern, angles[1]) / COSINE_ONE;
    int16_t *values = scratch->values;

    for (uint32_t i = 0; i < pattern->row; i++) {
        /* Q14 by Q14; four of at most 2^28 stay within 32 bits; down to ELEMENT_ONE's ten bits */
        int32_t wave = (a * c0[i] - b * s0[i] + c * c1[i] - d * s1[i]) / (1 << 18);
        int32_t value = wave + scratch->level[i] + noise[i];
        value = value > ELEMENT_LIMIT ? ELEMENT_LIMIT : value;
        values[i] = (int16_t)(value < -ELEMENT_LIMIT ? -ELEMENT_LIMIT : value);
    }
}

void pattern_fill(const struct pattern *pattern, uint64_t sample, void *to, void *scratch_memory)
{
    struct scratch *scratch = scratch_memory;
    uint64_t noise_key = random_key(random_key(pattern->seed, KEY_SAMPLE), ~sample);
    size_t size = stk_dtype_size(pattern->shape.dtype);
    uint32_t last_step[WAVES], angles[WAVES];
    struct wave waves[WAVES];
    uint64_t row = 0;

    for (uint32_t w = 0; w < WAVES; w++) {
        make_wave(pattern, sample, w, &waves[w]);
        last_step[w] = waves[w].step[pattern->shape.rank - 1];
    }
    fill_row_share(pattern, waves, scratch);
    fill_level(pattern, sample, scratch);
    for (uint64_t span = 0; span < pattern->spans; span++)
        for (uint64_t at = 0; at < pattern->span; at += ROW_LIMIT, row++) {
            uint64_t left = pattern->span - at;
            for (uint32_t w = 0; w < WAVES; w++)
                angles[w] = waves[w].phase + last_step[w] * (uint32_t)at +
                            angle_of(pattern, &waves[w], span, 0, pattern->span_axis);
            fill_row(pattern, waves, angles,
                     pattern->noise + random_below(noise_key, row, NOISE_COUNT), scratch);
            element_table_map(pattern->elements, pattern->shape.dtype, scratch->values,
                              (uint8_t *)to + (span * pattern->span + at) * size,
                              left < ROW_LIMIT ? (uint32_t)left : ROW_LIMIT);
        }
}
