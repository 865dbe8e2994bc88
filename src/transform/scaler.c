#include "transform/scaler.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "transform/moments.h"
#include "transform/quantile_sketch.h"

#define GROUP 16 /* columns turned at a time: a cache line of float32 */
/* From one turned column to the next: not a power of two, so that they share the cache. */
#define PITCH (FIT_BLOCK + 16)

_Static_assert(FIT_BLOCK == MOMENTS_BLOCK, "one block is one call");

/* --- the scaler ------------------------------------------------------------------------------ */

static const char *const kind_names[] = {
    [SCALER_STANDARD] = "standard",
    [SCALER_MINMAX] = "minmax",
    [SCALER_ROBUST] = "robust",
    [SCALER_NONE] = "none",
};

stk_status scaler_init(struct scaler *scaler, enum scaler_kind kind, uint32_t count,
                       struct stk_error *err)
{
    *scaler = (struct scaler){.kind = kind};
    scaler->columns = memory_zero(count, sizeof(*scaler->columns));
    if (!scaler->columns)
        return fail_memory(err, (uint64_t)count * sizeof(*scaler->columns));
    scaler->count = count;
    for (uint32_t i = 0; i < count; i++)
        scaler->columns[i].scale = 1;
    return STK_OK;
}

void scaler_reset(struct scaler *scaler)
{
    memory_free(scaler->columns);
    *scaler = (struct scaler){0};
}

const char *scaler_kind_name(enum scaler_kind kind)
{
    return kind_names[kind];
}

int scaler_kind_parse(const char *text, enum scaler_kind *out)
{
    for (uint32_t i = 0; i < sizeof(kind_names) / sizeof(*kind_names); i++)
        if (!strcmp(text, kind_names[i])) {
            *out = (enum scaler_kind)i;
            return 1;
        }
    return 0;
}

/* --- JSON ------------------------------------------------------------------------------------ */

/* A list of the object and where its numbers lie in a column. The other names are those that
 * scikit-learn's objects have for them. */
struct member {
    const char *names[4];
    size_t at;
};

static const struct member members[] = {
    {{"center", "center_", "data_min_", "mean_"}, offsetof(struct scaler_column, center)},
    {{"scale", "data_range_", "scale_"}, offsetof(struct scaler_column, scale)},
    {{"mean", "mean_"}, offsetof(struct scaler_column, mean)},
    {{"var", "var_"}, offsetof(struct scaler_column, variance)},
    {{"min", "data_min_"}, offsetof(struct scaler_column, min)},
    {{"max", "data_max_"}, offsetof(struct scaler_column, max)},
};
static const struct member quantiles[] = {
    {{"0.25"}, offsetof(struct scaler_column, low)},
    {{"0.5"}, offsetof(struct scaler_column, median)},
    {{"0.75"}, offsetof(struct scaler_column, high)},
};
#define MEMBERS (sizeof(members) / sizeof(*members))
#define REQUIRED 2 /* center and scale */
#define QUANTILES (sizeof(quantiles) / sizeof(*quantiles))

static double *column_number(const struct scaler *scaler, uint32_t column, size_t at)
{
    return (double *)((char *)&scaler->columns[column] + at);
}

static void add_list(const struct scaler *scaler, const struct member *member, struct text *text)
{
    text_format(text, "\"%s\": [", member->names[0]);
    for (uint32_t i = 0; i < scaler->count; i++) {
        if (i)
            text_add(text, ", ", 2);
        json_add_double(text, *column_number(scaler, i, member->at));
    }
    text_add(text, "]", 1);
}

void scaler_json(const struct scaler *scaler, const char *const *names, struct text *text)
{
    text_format(text, "{\"kind\": \"%s\", \"features\": [", scaler_kind_name(scaler->kind));
    for (uint32_t i = 0; i < scaler->count; i++) {
        if (i)
            text_add(text, ", ", 2);
        json_add_string(text, names[i], strlen(names[i]));
    }
    text_add(text, "]", 1);
    for (size_t i = 0; i < MEMBERS; i++) {
        text_add(text, ", ", 2);
        add_list(scaler, &members[i], text);
    }
    if (scaler->kind == SCALER_ROBUST) {
        text_format(text, ", \"quantiles\": {");
        for (size_t i = 0; i < QUANTILES; i++) {
            if (i)
                text_add(text, ", ", 2);
            add_list(scaler, &quantiles[i], text);
        }
        text_format(text, "}, \"quantile_rank_error\": %g", FIT_RANK_ERROR);
    }
    text_format(text, ", \"count\": [");
    for (uint32_t i = 0; i < scaler->count; i++)
        text_format(text, "%s%" PRIu64, i ? ", " : "", scaler->columns[i].count);
    text_add(text, "]}", 2);
}

static stk_status check_list(const struct json *list, const char *name, uint32_t count,
                             struct stk_error *err)
{
    if (json_kind(list) != JSON_KIND_LIST)
        return fail(err, STK_CORRUPT, "the scaler's \"%s\" is not a list", name);
    if (json_count(list) != count)
        return fail(err, STK_CORRUPT, "the scaler's \"%s\" has %zu entries for %" PRIu32 " columns",
                    name, json_count(list), count);
    return STK_OK;
}

/* The member under the first of its names that is there; *found 0: under none. */
static stk_status parse_list(struct scaler *scaler, const struct json *json,
                             const struct member *member, int *found, struct stk_error *err)
{
    const struct json *list = NULL;
    const char *name = NULL;

    for (size_t i = 0; i < 4 && !list && member->names[i]; i++) {
        name = member->names[i];
        list = json_member(json, name);
    }
    *found = list != NULL;
    if (!list)
        return STK_OK;
    stk_status status = check_list(list, name, scaler->count, err);
    for (uint32_t i = 0; i < scaler->count && !status; i++) {
        double number;
        if (!json_double(json_item(list, i), &number) || !isfinite(number))
            status = fail(err, STK_CORRUPT,
                          "the scaler's \"%s\" has no finite number for column %" PRIu32, name, i);
        else
            *column_number(scaler, i, member->at) = number;
    }
    return status;
}

static stk_status parse_counts(struct scaler *scaler, const struct json *json,
                               struct stk_error *err)
{
    const struct json *list = json_member(json, "count");
    stk_status status = list ? check_list(list, "count", scaler->count, err) : STK_OK;

    for (uint32_t i = 0; i < scaler->count && list && !status; i++)
        if (!json_u64(json_item(list, i), &scaler->columns[i].count))
            status = fail(err, STK_CORRUPT,
                          "the scaler's \"count\" has no whole number for column %" PRIu32, i);
    return status;
}

static stk_status parse_kind(struct scaler *scaler, const struct json *json, struct stk_error *err)
{
    const struct json *kind = json_member(json, "kind");
    const char *text;

    scaler->kind = SCALER_STANDARD;
    if (!kind)
        return STK_OK;
    if (!json_text(kind, &text))
        return fail(err, STK_CORRUPT, "the scaler's \"kind\" is not a text");
    if (!scaler_kind_parse(text, &scaler->kind))
        return fail(err, STK_CORRUPT,
                    "the scaler's \"kind\" is \"%.40s\", not standard, minmax, robust or none",
                    text);
    return STK_OK;
}

static stk_status parse_members(struct scaler *scaler, const struct json *json,
                                struct stk_error *err)
{
    const struct json *features = json_member(json, "features");
    const struct json *shares = json_member(json, "quantiles");
    stk_status status = parse_kind(scaler, json, err);
    int found = 1;

    if (!status && features)
        status = check_list(features, "features", scaler->count, err);
    for (size_t i = 0; i < MEMBERS && !status; i++) {
        status = parse_list(scaler, json, &members[i], &found, err);
        if (!status && !found && i < REQUIRED && scaler->kind != SCALER_NONE)
            status = fail(err, STK_CORRUPT, "the scaler has no list \"%s\"", members[i].names[0]);
    }
    for (size_t i = 0; i < QUANTILES && shares && !status; i++)
        status = parse_list(scaler, shares, &quantiles[i], &found, err);
    if (!status)
        status = parse_counts(scaler, json, err);
    for (uint32_t i = 0; i < scaler->count && !status; i++)
        if (scaler->columns[i].scale == 0)
            status = fail(err, STK_CORRUPT, "the scaler's scale of column %" PRIu32 " is 0", i);
    return status;
}

stk_status scaler_parse(struct scaler *scaler, const struct json *json, uint32_t count,
                        struct stk_error *err)
{
    *scaler = (struct scaler){0};
    if (json_kind(json) != JSON_KIND_OBJECT)
        return fail(err, STK_CORRUPT, "the scaler is not an object");
    stk_status status = scaler_init(scaler, SCALER_NONE, count, err);
    if (!status)
        status = parse_members(scaler, json, err);
    if (status)
        scaler_reset(scaler);
    return status;
}

/* --- fitting --------------------------------------------------------------------------------- */

struct fit {
    enum scaler_kind kind;
    uint32_t columns;
    uint8_t *skip; /* NULL: none */
    struct moments *moments;
    struct quantile_sketch **sketches; /* ROBUST; NULL for columns that are skipped */
    void *scratch;                     /* GROUP columns of a block, one after the other */
};

size_t fit_column_bytes(enum scaler_kind kind)
{
    size_t sketch = kind == SCALER_ROBUST ? quantile_sketch_bytes() : 0;

    return sketch + sizeof(struct moments) + sizeof(struct quantile_sketch *);
}

stk_status fit_new(struct fit **out, enum scaler_kind kind, uint32_t columns, const uint8_t *skip,
                   struct stk_error *err)
{
    struct fit *fit = memory_zero(1, sizeof(*fit));
    stk_status status = STK_OK;

    *out = NULL;
    if (!fit)
        return fail_memory(err, sizeof(*fit));
    fit->kind = kind;
    fit->columns = columns;
    fit->moments = memory_zero(columns, sizeof(*fit->moments));
    fit->sketches = memory_zero(columns, sizeof(*fit->sketches));
    fit->scratch = memory_alloc(GROUP * PITCH * sizeof(double));
    fit->skip = skip ? memory_alloc(columns) : NULL;
    if (!fit->moments || !fit->sketches || !fit->scratch || (skip && !fit->skip)) {
        status = fail_memory(err, columns * sizeof(*fit->moments));
        goto done;
    }
    if (skip)
        memcpy(fit->skip, skip, columns);
    for (uint32_t i = 0; i < columns && kind == SCALER_ROBUST && !status; i++)
        if (!skip || !skip[i]) /* one seed: a fit of some columns gives what one of all does */
            status = quantile_sketch_new(&fit->sketches[i], 0, err);
    if (status)
        goto done;
    *out = fit;
    fit = NULL;
done:
    fit_free(fit);
    return status;
}

void fit_free(struct fit *fit)
{
    if (!fit)
        return;
    for (uint32_t i = 0; i < fit->columns && fit->sketches; i++)
        quantile_sketch_free(fit->sketches[i]);
    memory_free(fit->sketches);
    memory_free(fit->moments);
    memory_free(fit->scratch);
    memory_free(fit->skip);
    memory_free(fit);
}

void fit_reset(struct fit *fit)
{
    memset(fit->moments, 0, fit->columns * sizeof(*fit->moments));
    for (uint32_t i = 0; i < fit->columns; i++)
        if (fit->sketches[i])
            quantile_sketch_reset(fit->sketches[i]);
}

static void add_to_sketch(struct quantile_sketch *sketch, const void *values, enum stk_dtype dtype,
                          size_t n)
{
    double observed[FIT_BLOCK];
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        float small;
        if (dtype == STK_F32) {
            memcpy(&small, (const char *)values + i * sizeof(small), sizeof(small));
            observed[count] = small;
        } else {
            memcpy(&observed[count], (const char *)values + i * sizeof(double), sizeof(double));
        }
        count += observed[count] == observed[count];
    }
    quantile_sketch_add(sketch, observed, count);
}

/* At most FIT_BLOCK values side by side. */
static void add_block(struct fit *fit, uint32_t column, const void *values, enum stk_dtype dtype,
                      size_t n)
{
    moments_add(&fit->moments[column], values, dtype, n);
    if (fit->sketches[column])
        add_to_sketch(fit->sketches[column], values, dtype, n);
}

/* Rows whose starts are `stride` elements apart; values [first, end) of each are turned into
 * columns of PITCH elements. */
struct turn {
    void *to;
    const void *from;
    size_t rows, stride, first, end;
};

#define TURN(name, type)                                                                           \
    static void name(const struct turn *turn)                                                      \
    {                                                                                              \
        for (size_t row = 0; row < turn->rows; row++)                                              \
            for (size_t i = turn->first; i < turn->end; i++)                                       \
                memcpy((type *)turn->to + i * PITCH + row,                                         \
                       (const type *)turn->from + row * turn->stride + i, sizeof(type));           \
    }
TURN(turn_f32, float)
TURN(turn_f64, double)

#if defined(__SSE2__)

#include <emmintrin.h>

static inline void turn_four(float *to, const float *from, size_t stride)
{
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + stride);
    __m128 c = _mm_loadu_ps(from + 2 * stride), d = _mm_loadu_ps(from + 3 * stride);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + PITCH, b);
    _mm_storeu_ps(to + 2 * PITCH, c);
    _mm_storeu_ps(to + 3 * PITCH, d);
}

#else

static inline void turn_four(float *to, const float *from, size_t stride)
{
    turn_f32(&(struct turn){to, from, 4, stride, 0, 4});
}

#endif

/* Squares of four by four, then what is left of the rows, then of the columns. */
static void turn_squares(const struct turn *turn)
{
    size_t rows = turn->rows & ~(size_t)3, end = turn->end & ~(size_t)3;
    float *to = turn->to;
    const float *from = turn->from;

    for (size_t row = 0; row < rows; row += 4)
        for (size_t i = 0; i < end; i += 4)
            turn_four(to + i * PITCH + row, from + row * turn->stride + i, turn->stride);
    turn_f32(&(struct turn){to, from, rows, turn->stride, end, turn->end});
    turn_f32(&(struct turn){to + rows, from + rows * turn->stride, turn->rows - rows, turn->stride,
                            0, turn->end});
}

static void turn_block(const struct turn *turn, enum stk_dtype dtype)
{
    (dtype == STK_F32 ? turn_squares : turn_f64)(turn);
}

void fit_add(struct fit *fit, uint32_t column, const void *values, enum stk_dtype dtype, uint64_t n,
             uint64_t stride)
{
    size_t size = stk_dtype_size(dtype);

    assert(column < fit->columns && (dtype == STK_F32 || dtype == STK_F64));
    for (uint64_t at = 0; at < n; at += FIT_BLOCK) {
        size_t count = n - at < FIT_BLOCK ? (size_t)(n - at) : FIT_BLOCK;
        const void *block = (const char *)values + at * stride * size;
        if (stride != 1) {
            turn_block(&(struct turn){fit->scratch, block, count, stride, 0, 1}, dtype);
            block = fit->scratch;
        }
        add_block(fit, column, block, dtype, count);
    }
}

void fit_add_rows(struct fit *fit, const void *rows, enum stk_dtype dtype, uint64_t n)
{
    size_t size = stk_dtype_size(dtype);

    assert(dtype == STK_F32 || dtype == STK_F64);
    for (uint64_t at = 0; at < n; at += FIT_BLOCK) {
        size_t count = n - at < FIT_BLOCK ? (size_t)(n - at) : FIT_BLOCK;
        for (uint32_t first = 0; first < fit->columns; first += GROUP) {
            uint32_t group = fit->columns - first < GROUP ? fit->columns - first : GROUP;
            const char *from = (const char *)rows + (at * fit->columns + first) * size;
            turn_block(&(struct turn){fit->scratch, from, count, fit->columns, 0, group}, dtype);
            for (uint32_t i = 0; i < group; i++)
                add_block(fit, first + i, (char *)fit->scratch + i * PITCH * size, dtype, count);
        }
    }
}

void fit_merge(struct fit *into, const struct fit *from)
{
    assert(into->columns == from->columns && into->kind == from->kind);
    for (uint32_t i = 0; i < into->columns; i++) {
        moments_merge(&into->moments[i], &from->moments[i]);
        if (into->sketches[i])
            quantile_sketch_merge(into->sketches[i], from->sketches[i]);
    }
}

/* --- from a fit to a scaler ------------------------------------------------------------------ */

/* The bound of rounding in a variance of n numbers around a mean: below it scikit-learn takes a
 * column for constant, and so do we. */
static double standard_scale(const struct moments *seen, double variance)
{
    double n = (double)seen->count;
    double shift = n * seen->mean * DBL_EPSILON;

    return variance <= n * DBL_EPSILON * variance + shift * shift ? 1 : sqrt(variance);
}

/* scikit-learn's bound for ranges. */
static double range_scale(double range)
{
    return range < 10 * DBL_EPSILON ? 1 : range;
}

static stk_status fail_too_large(uint32_t number, const char *const *names, struct stk_error *err)
{
    char numbered[16];

    snprintf(numbered, sizeof(numbered), "%" PRIu32, number);
    const char *name = names ? names[number] : numbered;
    fail(err, STK_CORRUPT, "column %.60s has values that are infinite or too large to be scaled",
         name);
    fail_field(err, name);
    fail_remedy(err, "leave the column out, or divide it in the source");
    return STK_CORRUPT;
}

static stk_status column_scaler(const struct fit *fit, uint32_t number, const char *const *names,
                                struct scaler_column *column, struct stk_error *err)
{
    static const double shares[QUANTILES] = {0.25, 0.5, 0.75};
    const struct moments *seen = &fit->moments[number];
    double found[QUANTILES];
    stk_status status = STK_OK;

    column->count = seen->count;
    if (seen->count == 0)
        return STK_OK;
    column->mean = seen->mean;
    column->variance = seen->m2 / (double)seen->count;
    column->min = seen->min;
    column->max = seen->max;
    if (!isfinite(seen->mean) || !isfinite(seen->m2) || !isfinite(seen->max - seen->min))
        return fail_too_large(number, names, err);
    if (fit->skip && fit->skip[number])
        return STK_OK;
    if (fit->kind == SCALER_STANDARD) {
        column->center = column->mean;
        column->scale = standard_scale(seen, column->variance);
    } else if (fit->kind == SCALER_MINMAX) {
        column->center = column->min;
        column->scale = range_scale(column->max - column->min);
    } else if (fit->kind == SCALER_ROBUST) {
        status = quantile_sketch_at(fit->sketches[number], shares, QUANTILES, found, err);
        column->low = found[0];
        column->center = column->median = found[1];
        column->high = found[2];
        column->scale = range_scale(column->high - column->low);
    }
    return status;
}

stk_status fit_scaler(const struct fit *fit, const char *const *names, struct scaler *out,
                      struct stk_error *err)
{
    stk_status status = scaler_init(out, fit->kind, fit->columns, err);

    for (uint32_t i = 0; i < fit->columns && !status; i++)
        status = column_scaler(fit, i, names, &out->columns[i], err);
    if (status)
        scaler_reset(out);
    return status;
}
