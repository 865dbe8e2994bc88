#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/name_guess.h"
#include "dataset/series_state.h"

/* What was asked for, over what the metadata says. */

struct series_range series_rows(const struct series *series, uint64_t entity)
{
    const struct series_meta *meta = &series->meta;
    if (series->split != SERIES_ALL_ROWS)
        return meta->ranges[entity * meta->split_count + series->split];
    return (struct series_range){meta->entities[entity].start, meta->entities[entity].end};
}

/* ---- rows ---------------------------------------------------------------------------------- */

static uint64_t or_default(uint64_t number, uint64_t own)
{
    return number == STK_DEFAULT ? own : number;
}

static stk_status check_rows(const struct stk_series_info *info, struct stk_error *err)
{
    uint64_t reach;
    stk_status status = STK_OK;
    if (!info->window)
        return fail(err, STK_USAGE, "a window of 0 rows");
    if (!info->stride)
        return fail(err, STK_USAGE, "a stride of 0 rows: windows would never move on");
    if (!info->min_history)
        return fail(err, STK_USAGE, "a window needs a row of history: min_history is at least 1");
    if (!checked_add(info->window, info->gap, &reach) ||
        !checked_add(reach, info->horizon, &reach) || reach > INT64_MAX)
        return fail(err, STK_USAGE,
                    "window %" PRIu64 ", gap %" PRIu64 " and horizon %" PRIu64
                    " are more rows than can be counted",
                    info->window, info->gap, info->horizon);
    if (info->min_history < info->window && !info->pad) {
        status = fail(err, STK_USAGE,
                      "min_history %" PRIu64 " is less than the window of %" PRIu64 " rows",
                      info->min_history, info->window);
        fail_remedy(err, "give pad too: what is missing in front of a window is filled with 0");
    }
    return status;
}

static stk_status choose_rows(struct series *series, const struct stk_window_options *options,
                              struct stk_error *err)
{
    const struct series_sequence *own = &series->meta.sequence;
    struct stk_series_info *info = &series->info;
    info->window = or_default(options->window, own->window);
    info->horizon = or_default(options->horizon, own->horizon);
    info->stride = or_default(options->stride, own->stride);
    info->gap = or_default(options->gap, own->gap);
    info->pad = options->pad != 0;
    info->min_history = or_default(options->min_history, info->pad ? 1 : info->window);
    return check_rows(info, err);
}

static stk_status choose_split(struct series *series, const char *name, struct stk_error *err)
{
    const struct series_meta *meta = &series->meta;
    struct name_guess guess = {.wanted = name};
    series->split = SERIES_ALL_ROWS;
    if (!name)
        return STK_OK;
    for (uint32_t i = 0; i < meta->split_count; i++)
        if (!strcmp(meta->split_names[i], name)) {
            series->split = i;
            series->info.split = meta->split_names[i];
            return STK_OK;
        }
    for (uint32_t i = 0; i < meta->split_count; i++)
        name_guess_add(&guess, meta->split_names[i]);
    stk_status status = name_guess_fail(&guess, "split", err);
    if (!meta->split_count)
        fail_remedy(err, "the series was packed without a split: pack it with --split");
    return status;
}

/* ---- columns ------------------------------------------------------------------------------- */

static stk_status columns_alloc(struct series_columns *columns, uint32_t count,
                                struct stk_error *err)
{
    columns->count = count;
    columns->numbers = memory_zero(count, sizeof *columns->numbers);
    columns->names = memory_zero(count, sizeof *columns->names);
    columns->center = memory_zero(count, sizeof *columns->center);
    columns->scale = memory_zero(count, sizeof *columns->scale);
    if (!columns->numbers || !columns->names || !columns->center || !columns->scale)
        return fail_memory(err, count * sizeof(double));
    return STK_OK;
}

static stk_status column_number(const struct series_meta *meta, const char *what, const char *name,
                                uint32_t *out, struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    for (uint32_t i = 0; i < meta->column_count; i++)
        if (!strcmp(meta->columns[i], name)) {
            *out = i;
            return STK_OK;
        }
    for (uint32_t i = 0; i < meta->column_count; i++)
        name_guess_add(&guess, meta->columns[i]);
    stk_status status = name_guess_fail(&guess, what, err);
    for (uint32_t i = 0; i < meta->static_count; i++)
        if (!strcmp(meta->statics[i], name))
            fail_remedy(err, "\"%s\" is one value an entity: it comes in the field static", name);
    return status;
}

struct columns_wish {
    const char *what;         /* "feature" */
    const char *const *names; /* NULL: the first ones */
    uint32_t count;
};

/* The columns by name, each once. */
static stk_status columns_choose(struct series_columns *columns, const struct series_meta *meta,
                                 const struct columns_wish *wish, struct stk_error *err)
{
    uint8_t *seen = memory_zero(meta->column_count, 1);
    stk_status status =
        seen ? columns_alloc(columns, wish->count, err) : fail_memory(err, meta->column_count);
    for (uint32_t i = 0; i < wish->count && !status; i++) {
        uint32_t number = i;
        if (wish->names)
            status = column_number(meta, wish->what, wish->names[i], &number, err);
        if (!status && seen[number]++)
            status = fail(err, STK_USAGE, "%s \"%s\" is named twice", wish->what, wish->names[i]);
        if (!status)
            columns->numbers[i] = number;
    }
    memory_free(seen);
    return status;
}

static stk_status choose_x(struct series *series, const struct stk_window_options *options,
                           struct stk_error *err)
{
    const struct series_meta *meta = &series->meta;
    struct columns_wish wish = {"feature", options->features, options->feature_count};
    if (!wish.names)
        wish.count = meta->feature_count;
    if (!wish.count)
        return fail(err, STK_USAGE, "no feature is asked for: x would have no column");
    return columns_choose(&series->x, meta, &wish, err);
}

static stk_status choose_y(struct series *series, const struct stk_window_options *options,
                           struct stk_error *err)
{
    const struct series_meta *meta = &series->meta;
    struct columns_wish wish = {"label", options->labels, options->label_count};
    if (wish.names && !wish.count) {
        stk_status status = fail(err, STK_USAGE, "no label is asked for");
        fail_remedy(err, "horizon=0 gives windows without y");
        return status;
    }
    if (wish.names)
        return columns_choose(&series->y, meta, &wish, err);
    stk_status status = columns_alloc(&series->y, meta->label_count, err);
    for (uint32_t i = 0; i < meta->label_count && !status; i++)
        series->y.numbers[i] = meta->labels[i];
    if (!status && !meta->label_count && series->info.horizon)
        status = fail(err, STK_USAGE, "the series has no label: name it, or give horizon=0");
    return status;
}

/* ---- scaling ------------------------------------------------------------------------------- */

/* Names, centers and scales, for whoever wants to undo the scaling. Not 0: some are not 0 and 1. */
static int columns_tell(struct series_columns *columns, const struct series_meta *meta)
{
    int scaled = 0;
    for (uint32_t i = 0; i < columns->count; i++) {
        uint32_t number = columns->numbers[i];
        int known = number < meta->scaler.count;
        columns->names[i] = meta->columns[number];
        columns->center[i] = known ? meta->scaler.columns[number].center : 0;
        columns->scale[i] = known ? meta->scaler.columns[number].scale : 1;
        scaled |= columns->center[i] != 0 || columns->scale[i] != 1;
    }
    return scaled;
}

static int is_whole_row(const struct series_columns *columns, const struct series_meta *meta)
{
    for (uint32_t i = 0; i < columns->count; i++)
        if (columns->numbers[i] != i)
            return 0;
    return columns->count == meta->column_count;
}

/* Windows of small floats are multiplied by 1 / scale as a float32 (window_scale.h): one that is
 * infinite would make NaN of every value. */
static stk_status columns_check(const struct series_columns *columns,
                                const struct series_meta *meta, struct stk_error *err)
{
    for (uint32_t i = 0; i < columns->count && meta->dtype != STK_F64; i++) {
        if (1 / columns->scale[i] <= FLT_MAX && 1 / columns->scale[i] >= -FLT_MAX)
            continue;
        stk_status status =
            fail(err, STK_UNSUPPORTED, "column \"%s\" has scale %g, too small for windows of %s",
                 columns->names[i], columns->scale[i], stk_dtype_name(meta->dtype));
        fail_remedy(err, "pack it with --scale stored, or leave the column out");
        return status;
    }
    return STK_OK;
}

/* Rows that can be taken as they lie need no gather. */
static stk_status columns_ready(struct series_columns *columns, const struct series_meta *meta,
                                int padded, struct stk_error *err)
{
    int scaled = columns_tell(columns, meta) && meta->late;
    if (!columns->count || (is_whole_row(columns, meta) && !scaled && !padded))
        return STK_OK;
    struct window_gather_options options = {
        .dtype = meta->dtype,
        .row_columns = meta->column_count,
        .columns = columns->numbers,
        .count = columns->count,
        .scaler = scaled ? &meta->scaler : NULL,
    };
    stk_status status = scaled ? columns_check(columns, meta, err) : STK_OK;
    return status ? status : window_gather_new(&columns->gather, &options, err);
}

static void tell_scaler(struct stk_scaler *out, const struct series_columns *columns,
                        const struct series_meta *meta)
{
    *out = (struct stk_scaler){
        .kind = meta->scaler.count ? scaler_kind_name(meta->scaler.kind) : "none",
        .count = columns->count,
        .columns = columns->names,
        .center = columns->center,
        .scale = columns->scale,
    };
}

stk_status series_choose(struct series *series, const struct stk_window_options *options,
                         struct stk_error *err)
{
    static const struct stk_window_options defaults = STK_WINDOW_DEFAULTS;
    const struct series_meta *meta = &series->meta;
    struct stk_series_info *info = &series->info;
    options = options ? options : &defaults;
    stk_status status = choose_rows(series, options, err);
    if (!status)
        status = choose_split(series, options->split, err);
    if (!status)
        status = choose_x(series, options, err);
    if (!status)
        status = choose_y(series, options, err);
    if (!status)
        status = columns_ready(&series->x, meta, info->min_history < info->window, err);
    if (!status)
        status = columns_ready(&series->y, meta, 0, err);
    if (status)
        return status;
    info->rows = meta->rows;
    info->entity_count = meta->entity_count;
    info->late = meta->late;
    info->split_count = meta->split_count;
    info->splits = (const char *const *)meta->split_names;
    info->time_unit = meta->time_column ? (meta->time_unit ? meta->time_unit : "") : NULL;
    info->static_count = meta->static_count;
    info->statics = (const char *const *)meta->statics;
    tell_scaler(&info->features, &series->x, meta);
    tell_scaler(&info->labels, &series->y, meta);
    return STK_OK;
}
