#include "pack/series_pattern.h"

#include "base/random.h"

#define DAY 24
#define WEEK 168
#define WARM 64 /* steps before row 0: by then no process remembers that it began at 0 */
#define MAX_LEAD 8

/* cos and sin of 2 pi / 168. */
#define TURN_COS 0.9993007047883985
#define TURN_SIN 0.037391194276325625

/* A draw's place among an entity's streams. Features follow by their numbers. */
enum { STREAM_SHAPE, STREAM_MEMORY, STREAM_BLUR, STREAM_FEATURES = 16 };
enum { SHAPE_LEVEL, SHAPE_TREND, SHAPE_DAY, SHAPE_DAY_PHASE, SHAPE_WEEK, SHAPE_WEEK_PHASE };

/* a * b + c, rounded twice: a compiler may not fuse what stands in two statements. */
static inline double product_sum(double a, double b, double c)
{
    double product = a * b;

    return product + c;
}

/* Mean 0, variance 1, near to normal: four numbers of 16 bits, summed. */
static inline double noise(uint64_t key, uint64_t counter)
{
    uint64_t bits = random_at(key, counter);
    int64_t sum =
        (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48)) -
        131070;

    return (double)sum * 2.6429e-5; /* 1 / (65536 * sqrt(4 / 12)) */
}

/* Uniform in [low, high). */
static double between(uint64_t key, uint64_t counter, double low, double high)
{
    return product_sum(random_unit(key, counter), high - low, low);
}

/* A sine over a week, step by step. */
static void sine_week(double sines[WEEK])
{
    double x = 1, y = 0;

    for (int i = 0; i < WEEK; i++) {
        sines[i] = y;
        double x_turned = product_sum(-TURN_SIN, y, TURN_COS * x);
        double y_turned = product_sum(TURN_SIN, x, TURN_COS * y);
        x = x_turned;
        y = y_turned;
    }
}

uint32_t series_pattern_lead(const struct series_pattern *pattern, uint32_t feature)
{
    return 1 +
           (uint32_t)random_below(random_key(pattern->seed, STREAM_FEATURES), feature, MAX_LEAD);
}

/* An entity on its way: the value is summed up in double. */
struct entity {
    const struct series_pattern *pattern;
    uint64_t key, rows;
    double *value;
};

/* Level, trend and seasons. */
static void add_shape(const struct entity *entity)
{
    double sines[WEEK];
    uint64_t key = random_key(entity->key, STREAM_SHAPE);
    double level = between(key, SHAPE_LEVEL, 8, 12);
    double trend = between(key, SHAPE_TREND, -5e-5, 5e-5); /* half a unit a year, at most */
    double day = between(key, SHAPE_DAY, 1, 2.5), week = between(key, SHAPE_WEEK, 0.3, 0.9);
    uint64_t day_phase = random_below(key, SHAPE_DAY_PHASE, DAY);
    uint64_t week_phase = random_below(key, SHAPE_WEEK_PHASE, WEEK);

    sine_week(sines);
    for (uint64_t i = 0; i < entity->rows; i++) {
        double sum = product_sum(trend, (double)i, level);
        sum = product_sum(day, sines[(i + day_phase) % DAY * (WEEK / DAY)], sum);
        entity->value[i] = product_sum(week, sines[(i + week_phase) % WEEK], sum);
    }
}

/* A feature: a process with a memory of its own, seen through some noise and on a scale of its own.
 * The value takes it up, undisturbed, `lead` steps later. Later features weigh less. */
static void add_feature(const struct entity *entity, uint32_t feature, float *column)
{
    static const double scales[] = {1, 100, 0.01, 10};
    uint64_t key = random_key(entity->key, STREAM_FEATURES + (uint64_t)feature);
    uint64_t blur = random_key(key, STREAM_BLUR);
    uint32_t lead = series_pattern_lead(entity->pattern, feature);
    double weight = (feature % 2 ? 1.0 : -1.0) / feature, scale = scales[feature % 4];
    double past[MAX_LEAD] = {0}, state = 0;

    for (uint64_t step = 0; step < entity->rows + WARM; step++) {
        double before = past[(step + MAX_LEAD - lead) % MAX_LEAD]; /* MAX_LEAD: its own place */
        state = product_sum(0.8, state, 0.6 * noise(key, step));   /* variance 1 */
        past[step % MAX_LEAD] = state;
        if (step < WARM)
            continue;
        double seen = product_sum(0.1, noise(blur, step), state);
        double scaled = scale * seen;
        double *value = &entity->value[step - WARM];
        column[step - WARM] = (float)scaled;
        *value = product_sum(weight, before, *value);
    }
}

/* What cannot be foreseen, which the value forgets slowly. */
static void add_memory(const struct entity *entity)
{
    uint64_t key = random_key(entity->key, STREAM_MEMORY);
    double state = 0;

    for (uint64_t step = 0; step < entity->rows + WARM; step++) {
        state = product_sum(0.7, state, 0.25 * noise(key, step));
        if (step >= WARM)
            entity->value[step - WARM] += state;
    }
}

void series_pattern_fill(const struct series_pattern *pattern, uint64_t entity, uint64_t rows,
                         float *const *columns, double *scratch)
{
    struct entity made = {pattern, random_key(random_key(pattern->seed, 1), entity), rows, scratch};

    add_shape(&made);
    for (uint32_t i = 1; i < pattern->features; i++)
        add_feature(&made, i, columns[i]);
    add_memory(&made);
    for (uint64_t i = 0; i < rows; i++)
        columns[0][i] = (float)scratch[i];
}
