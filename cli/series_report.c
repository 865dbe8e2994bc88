#include "series_report.h"

#include <inttypes.h>
#include <string.h>

#include "message.h"

static void print_names(const char *title, uint32_t count, const char *const *names)
{
    printf("%-12s ", title);
    for (uint32_t i = 0; i < count; i++) {
        fputs(i ? ", " : "", stdout);
        message_word(names[i], strlen(names[i]), 0);
    }
    putchar('\n');
}

static void print_cut(const struct stk_series_info *series)
{
    printf("%-12s window %" PRIu64 ", horizon %" PRIu64 ", stride %" PRIu64 ", gap %" PRIu64, "cut",
           series->window, series->horizon, series->stride, series->gap);
    if (series->pad || series->min_history != series->window)
        printf(", history from %" PRIu64 " rows on", series->min_history);
    printf(series->pad ? ", padded\n" : "\n");
}

void series_report_text(const struct stk_dataset *dataset)
{
    const struct stk_series_info *series = stk_dataset_series(dataset);

    printf("%-12s %" PRIu64 "\n", "entities", series->entity_count);
    printf("%-12s %" PRIu64 "\n", "rows", series->rows);
    print_names("features", series->features.count, series->features.columns);
    print_names("labels", series->labels.count, series->labels.columns);
    if (series->static_count)
        print_names("statics", series->static_count, series->statics);
    printf("%-12s %s\n", "time",
           !series->time_unit     ? "none"
           : series->time_unit[0] ? series->time_unit
                                  : "plain numbers");
    if (series->split_count)
        print_names("splits", series->split_count, series->splits);
    if (series->split)
        print_names("split", 1, &series->split);
    printf("%-12s %s, %s\n", "scaler", series->features.kind ? series->features.kind : "not known",
           series->late ? "applied when read" : "applied in the file");
    print_cut(series);
    printf("%-12s %" PRIu64 "\n", "windows", stk_dataset_samples(dataset));
    if (series->short_entities)
        printf("%-12s %" PRIu64 " of %" PRIu64 " entities have too few rows for one window\n",
               "short", series->short_entities, series->entity_count);
}

static void json_names(struct json_out *json, const char *name, uint32_t count,
                       const char *const *names)
{
    json_out_array(json, name);
    for (uint32_t i = 0; i < count; i++)
        json_out_text(json, NULL, names[i]);
    json_out_end_array(json);
}

void series_report_json(const struct stk_dataset *dataset, struct json_out *json)
{
    const struct stk_series_info *series = stk_dataset_series(dataset);

    json_out_object(json, "series");
    json_out_number(json, "entities", series->entity_count);
    json_out_number(json, "short_entities", series->short_entities);
    json_out_number(json, "rows", series->rows);
    json_names(json, "features", series->features.count, series->features.columns);
    json_names(json, "labels", series->labels.count, series->labels.columns);
    json_names(json, "statics", series->static_count, series->statics);
    json_out_text(json, "time_unit", series->time_unit);
    json_names(json, "splits", series->split_count, series->splits);
    json_out_text(json, "split", series->split);
    json_out_text(json, "scaler", series->features.kind);
    json_out_text(json, "scale", series->late ? "late" : "stored");
    json_out_number(json, "window", series->window);
    json_out_number(json, "horizon", series->horizon);
    json_out_number(json, "stride", series->stride);
    json_out_number(json, "gap", series->gap);
    json_out_number(json, "min_history", series->min_history);
    json_out_bool(json, "pad", series->pad);
    json_out_number(json, "windows", stk_dataset_samples(dataset));
    json_out_end_object(json);
}
