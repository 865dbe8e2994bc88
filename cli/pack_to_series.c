/* Tables -> a series. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/dataset.h"
#include "stoker/series.h"
#include "exit_status.h"
#include "interrupt.h"
#include "json_out.h"
#include "message.h"
#include "pack_to.h"

#define MIB (UINT64_C(1) << 20)
#define BUDGET (256 * MIB)

/* Names of columns, each once. */
struct column_names {
    const char **words;
    uint32_t count;
};

static void add_name(struct column_names *names, const char *name)
{
    for (uint32_t i = 0; name && i < names->count; i++)
        if (!strcmp(names->words[i], name))
            return;
    if (name)
        names->words[names->count++] = name;
}

static void add_names(struct column_names *names, const struct option_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        add_name(names, list->words[i]);
}

/* Reading ahead takes its share of the budget; the rest is for packing. */
static uint64_t reading_memory(uint64_t budget)
{
    uint64_t share = budget / 4 < 128 * MIB ? budget / 4 : 128 * MIB;

    return share > 8 * MIB ? share : 8 * MIB;
}

/* Columns that nobody asked for are not even decoded. An append needs what the series that is there
 * says, so it leaves the choice to the packer. */
static stk_status open_tables(struct stk_context *context, const struct pack_arguments *arguments,
                              uint64_t memory, struct stk_tables *tables, struct stk_error *err)
{
    const struct option_list *features = &arguments->base.windows.features;
    size_t most = 2u + arguments->labels.count + arguments->statics.count + features->count;
    struct column_names names = {.words = malloc(most * sizeof(*names.words))};
    struct stk_tables_options options = {.entity = arguments->entity,
                                         .append_to = arguments->append ? arguments->out : NULL,
                                         .memory = memory};

    if (!names.words) {
        *err = (struct stk_error){.status = STK_MEMORY, .what = "out of memory"};
        return STK_MEMORY;
    }
    add_name(&names, arguments->entity);
    add_name(&names, arguments->time);
    add_names(&names, &arguments->labels);
    add_names(&names, &arguments->statics);
    if (!arguments->append) {
        options.keys = names.words;
        options.key_count = names.count;
    }
    add_names(&names, features);
    if (features->count && !arguments->append) {
        options.columns = names.words;
        options.column_count = names.count;
    }
    stk_status status =
        stk_tables_open(context, (const char *const *)arguments->base.words,
                        (uint32_t)arguments->base.word_count, &options, tables, err);
    free(names.words);
    return status;
}

static void print_text(const struct pack_arguments *arguments,
                       const struct stk_series_result *result)
{
    char size[24];

    printf("%" PRIu64 " rows of %" PRIu64 " entities, %s, in %s\n", result->rows, result->entities,
           message_size(result->bytes, size), arguments->out);
    if (arguments->append)
        printf("  %" PRIu64 " rows were added\n", result->added_rows);
    if (result->sorted)
        printf("  the rows did not come in order: they were sorted\n");
    if (result->missing)
        printf("  %" PRIu64 " values were missing\n", result->missing);
    if (result->dropped_rows)
        printf("  %" PRIu64 " rows were left out for missing values\n", result->dropped_rows);
}

static void print_json(const struct pack_arguments *arguments,
                       const struct stk_series_result *result)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_text(&json, "out", arguments->out);
    json_out_number(&json, "rows", result->rows);
    json_out_number(&json, "entities", result->entities);
    json_out_number(&json, "added_rows", result->added_rows);
    json_out_number(&json, "dropped_rows", result->dropped_rows);
    json_out_number(&json, "missing", result->missing);
    json_out_number(&json, "bytes", result->bytes);
    json_out_bool(&json, "sorted", result->sorted);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

/* As the options struct wants it: 0 for what was not said. */
static uint64_t said(uint64_t number)
{
    return number == STK_DEFAULT ? 0 : number;
}

static int check_sizes(const struct option_windows *windows)
{
    const struct {
        const char *name;
        uint64_t number;
    } sizes[] = {
        {"window", windows->window}, {"horizon", windows->horizon}, {"stride", windows->stride}};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i].number == 0)
            return message_usage("pack", "--%s 0: at least 1 was expected", sizes[i].name);
    return 0;
}

int pack_to_series(struct stk_context *context, const struct pack_arguments *arguments)
{
    const struct option_windows *windows = &arguments->base.windows;
    uint64_t budget = arguments->memory ? arguments->memory : BUDGET;
    uint64_t reading = reading_memory(budget);
    struct stk_series_options options = {
        .out = arguments->out,
        .entity = arguments->entity,
        .time = arguments->time,
        .features = windows->features.count ? windows->features.words : NULL,
        .feature_count = windows->features.count,
        .labels = arguments->labels.count ? arguments->labels.words : NULL,
        .label_count = arguments->labels.count,
        .statics = arguments->statics.count ? arguments->statics.words : NULL,
        .static_count = arguments->statics.count,
        .dtype = arguments->base.dtype,
        .missing = (enum stk_missing)arguments->missing,
        .scaler = (enum stk_scaler_kind)arguments->scaler,
        .scale = (enum stk_scale)arguments->scale,
        .fit_on = arguments->fit_on,
        .split = windows->split,
        .window = said(windows->window),
        .horizon = said(windows->horizon),
        .stride = said(windows->stride),
        .gap = said(windows->gap),
        .memory = budget > 2 * reading ? budget - reading : budget / 2,
        .threads = arguments->threads,
        .append = arguments->append,
        .force = arguments->force,
    };
    struct stk_series_result result;
    struct stk_tables tables;
    struct stk_error err;
    int status = check_sizes(windows);

    if (status)
        return status;
    interrupt_patience(10); /* gigabytes of unfinished files are to be removed, not left */
    if (open_tables(context, arguments, reading, &tables, &err) ||
        stk_pack_series(context, &tables, &options, &result, &err))
        return message_error(&err);
    if (arguments->base.json)
        print_json(arguments, &result);
    else
        print_text(arguments, &result);
    return EXIT_DONE;
}
