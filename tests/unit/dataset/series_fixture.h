/* series_fixture.h -- small series written byte by byte, and a naive walk over their windows to
 * compare with. Owns: nothing beyond the fixture's folder.   Threads: one.   Errors: cmocka's
 * asserts. Not here: any test. */
#ifndef UNIT_DATASET_SERIES_FIXTURE_H
#define UNIT_DATASET_SERIES_FIXTURE_H

#include "dataset/fixture.h"

#include <math.h>

#include "format/series_meta.h"

#define SERIES_TEST __attribute__((unused)) static

/* Entities of these rows, one after the other; columns a, b, c, ... */
struct plan {
    const char *name; /* of the folder */
    uint32_t columns;
    uint32_t features;  /* the first ones; 0: all */
    const char *labels; /* JSON list; NULL: not said */
    uint64_t rows[8];   /* of each entity, e0, e1, ...; ended by `entities` */
    uint32_t entities;
    enum stk_dtype dtype;
    int has_dtype;    /* said in the metadata */
    uint32_t statics; /* s0, s1, ... */
    int time, late, splits, hashes;
    const char *more; /* keys added to the metadata: ", \"x\": 1" */
};

SERIES_TEST uint64_t plan_rows(const struct plan *plan)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < plan->entities; i++)
        rows += plan->rows[i];
    return rows;
}

/* Small whole numbers: bfloat16 holds them exactly. */
SERIES_TEST double plan_value(uint64_t row, uint32_t column)
{
    return (double)((row * 7 + column * 31) % 251) - 100;
}
SERIES_TEST int64_t plan_time(uint64_t row)
{
    return 1000000 + (int64_t)row * 60;
}
/* Powers of two: scaling is exact. */
SERIES_TEST double plan_center(uint32_t column)
{
    return column + 1;
}
SERIES_TEST double plan_scale(uint32_t column)
{
    return column % 2 ? 4 : 0.5;
}

/* Split 0 takes the first half of an entity's rows, split 1 all but one of the others. */
SERIES_TEST void plan_range(const struct plan *plan, uint32_t entity, int split, uint64_t *start,
                            uint64_t *end)
{
    *start = 0;
    for (uint32_t i = 0; i < entity; i++)
        *start += plan->rows[i];
    *end = *start + plan->rows[entity];
    uint64_t half = *start + plan->rows[entity] / 2;
    if (split == 0)
        *end = half;
    else if (split == 1)
        *start = half < *end ? half + 1 : half;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* float32 <-> float16 for numbers that both hold: no rounding, no small exponents. */
SERIES_TEST uint16_t to_half(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000, exponent = bits >> 23 & 0xff;
    if (exponent == 0)
        return (uint16_t)sign;
    if (exponent == 0xff)
        return (uint16_t)(sign | 0x7c00);
    return (uint16_t)(sign | (exponent - 112) << 10 | (bits >> 13 & 0x3ff));
}

SERIES_TEST uint32_t from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f;
    return exponent ? sign | (exponent + 112) << 23 | (uint32_t)(half & 0x3ff) << 13 : sign;
}

SERIES_TEST void put_value(uint8_t *to, enum stk_dtype dtype, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    if (dtype == STK_F64) {
        memcpy(to, &value, sizeof value);
    } else if (dtype == STK_F32) {
        memcpy(to, &single, sizeof single);
    } else {
        uint16_t half = dtype == STK_BF16 ? (uint16_t)(bits >> 16) : to_half(bits);
        memcpy(to, &half, sizeof half);
    }
}

SERIES_TEST double get_value(const void *from, enum stk_dtype dtype)
{
    double value = 0;
    float single;
    uint16_t half;
    uint32_t bits;
    if (dtype == STK_F64) {
        memcpy(&value, from, sizeof value);
    } else if (dtype == STK_F32) {
        memcpy(&single, from, sizeof single);
        value = single;
    } else {
        memcpy(&half, from, sizeof half);
        bits = dtype == STK_BF16 ? (uint32_t)half << 16 : from_half(half);
        memcpy(&single, &bits, sizeof single);
        value = single;
    }
    return value;
}

SERIES_TEST char *series_path(const struct fixture *fixture, const struct plan *plan,
                              const char *file)
{
    char name[512];
    snprintf(name, sizeof name, "%s/%s", plan->name, file);
    return path_of(fixture, name);
}

SERIES_TEST void write_names(FILE *file, const char *key, uint32_t count, char first)
{
    fprintf(file, ", \"%s\": [", key);
    for (uint32_t i = 0; i < count; i++)
        fprintf(file, "%s\"%c\"", i ? ", " : "", first + (int)i);
    fprintf(file, "]");
}

SERIES_TEST void write_entities(FILE *file, const struct plan *plan)
{
    uint64_t start, end;
    fprintf(file, ", \"entities\": [");
    for (uint32_t i = 0; i < plan->entities; i++) {
        plan_range(plan, i, -1, &start, &end);
        fprintf(file, "%s{\"name\": \"e%u\", \"start\": %llu, \"end\": %llu", i ? ", " : "", i,
                (unsigned long long)start, (unsigned long long)end);
        for (int s = 0; plan->splits && s < 2; s++) {
            plan_range(plan, i, s, &start, &end);
            fprintf(file, "%s[%llu, %llu]%s", s ? ", " : ", \"splits\": [",
                    (unsigned long long)start, (unsigned long long)end, s ? "]" : "");
        }
        fprintf(file, "}");
    }
    fprintf(file, "]");
}

SERIES_TEST void write_metadata(const struct fixture *fixture, const struct plan *plan)
{
    FILE *file = fopen(series_path(fixture, plan, SERIES_METADATA), "w");
    uint32_t features = plan->features ? plan->features : plan->columns;
    assert_non_null(file);
    fprintf(file, "{\"version\": 1, \"rows\": %llu", (unsigned long long)plan_rows(plan));
    write_names(file, "features", features, 'a');
    write_names(file, "columns", plan->columns, 'a');
    if (plan->labels)
        fprintf(file, ", \"labels\": %s", plan->labels);
    if (plan->statics)
        write_names(file, "statics", plan->statics, 's');
    if (plan->has_dtype)
        fprintf(file, ", \"dtype\": \"%s\"", stk_dtype_name(plan->dtype));
    if (plan->time)
        fprintf(file, ", \"time\": {\"column\": \"when\", \"unit\": \"s\", \"timezone\": null}");
    if (plan->splits)
        fprintf(file, ", \"splits\": {\"text\": \"0.5,0.5\", \"names\": [\"train\", \"val\"], "
                      "\"by\": \"rows\", \"cuts\": []}");
    if (plan->hashes)
        fprintf(file, ", \"hashes\": true");
    fprintf(file, ", \"scale\": \"%s\", \"scaler\": {\"kind\": \"standard\", \"center\": [",
            plan->late ? "late" : "stored");
    for (uint32_t i = 0; i < plan->columns; i++)
        fprintf(file, "%s%.17g", i ? ", " : "", plan_center(i));
    fprintf(file, "], \"scale\": [");
    for (uint32_t i = 0; i < plan->columns; i++)
        fprintf(file, "%s%.17g", i ? ", " : "", plan_scale(i));
    fprintf(file, "]}");
    write_entities(file, plan);
    fprintf(file, "%s}\n", plan->more ? plan->more : "");
    assert_int_equal(fclose(file), 0);
}

SERIES_TEST enum stk_dtype plan_dtype(const struct plan *plan)
{
    return plan->has_dtype ? plan->dtype : STK_F32;
}

SERIES_TEST void write_array(const struct fixture *fixture, const struct plan *plan)
{
    uint64_t rows = plan_rows(plan), size = stk_dtype_size(plan_dtype(plan));
    uint8_t *data = malloc(rows * plan->columns * size + 1), *to = data;
    for (uint64_t row = 0; row < rows; row++)
        for (uint32_t c = 0; c < plan->columns; c++, to += size)
            put_value(to, plan_dtype(plan), plan_value(row, c));
    make_file(series_path(fixture, plan, SERIES_ARRAY), data, (size_t)(to - data));
    free(data);
}

SERIES_TEST void make_series(const struct fixture *fixture, const struct plan *plan)
{
    uint64_t rows = plan_rows(plan);
    mkdir(path_of(fixture, plan->name), 0777);
    write_metadata(fixture, plan);
    write_array(fixture, plan);
    if (plan->time) {
        int64_t *times = malloc(rows * sizeof *times + 1);
        for (uint64_t row = 0; row < rows; row++)
            times[row] = plan_time(row);
        make_file(series_path(fixture, plan, SERIES_TIME), times, rows * sizeof *times);
        free(times);
    }
    if (plan->statics) {
        float table[64];
        for (uint32_t i = 0; i < plan->entities * plan->statics; i++)
            table[i] = (float)i + 0.5f;
        make_file(series_path(fixture, plan, SERIES_STATIC), table,
                  plan->entities * plan->statics * sizeof *table);
    }
}

/* ---- windows, one after the other ---------------------------------------------------------- */

struct naive {
    uint32_t entity;
    uint64_t last;          /* t */
    uint64_t start, origin; /* of the rows that may be taken, of the entity */
};

struct naive_rule {
    uint64_t window, horizon, stride, gap, history;
    int split; /* -1: all rows */
};

/* Every row is tried; *out is the caller's. */
SERIES_TEST uint64_t naive_windows(const struct plan *plan, const struct naive_rule *rule,
                                   struct naive **out)
{
    uint64_t count = 0;
    *out = malloc((plan_rows(plan) + 1) * sizeof **out);
    for (uint32_t e = 0; e < plan->entities; e++) {
        uint64_t start, end, origin, ignored, wait = 0;
        plan_range(plan, e, -1, &origin, &ignored);
        plan_range(plan, e, rule->split, &start, &end);
        for (uint64_t t = start; t < end; t++) {
            uint64_t need = rule->horizon ? t + rule->gap + rule->horizon : t;
            if (t - start + 1 < rule->history || need >= end)
                continue;
            if (wait == 0)
                (*out)[count++] = (struct naive){e, t, start, origin};
            wait = wait ? wait - 1 : rule->stride - 1;
        }
    }
    return count;
}

#endif
