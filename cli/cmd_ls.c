/* `stoker ls`: the samples of a dataset, and where their fields lie. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "series_report.h"
#include "source.h"

#define SERIES_LIMIT 10 /* windows that are listed when nobody says how many */

struct ls_arguments {
    struct arguments base;
    uint64_t limit; /* UINT64_MAX: all */
    int stat;
};

/* An object of no name: the value is no bytes of one (a class by its folder, a window's entity). */
static void json_field(struct json_out *json, const char *name, const struct stk_place *place,
                       const char *folder)
{
    json_out_object(json, name);
    json_out_text(json, "object", place->object[0] ? source_path(folder, place->object) : NULL);
    json_out_place(json, "offset", place->offset);
    json_out_place(json, "length", place->length);
    json_out_end_object(json);
}

static void text_field(const char *name, const struct stk_place *place)
{
    char size[24];

    printf("  ");
    message_word(name, strlen(name), 0);
    printf(" %s", !place->object[0]              ? "(value)"
                  : place->length == STK_NOWHERE ? "(compressed)"
                                                 : message_size(place->length, size));
}

/* folder: what paths are told without. NULL: words, not JSON. */
static stk_status print_sample(const struct stk_dataset *dataset, uint64_t sample,
                               const char *folder, struct stk_error *err)
{
    struct json_out json = {.stream = stdout};
    struct stk_bytes key;
    struct stk_place place;
    stk_status status = stk_dataset_key(dataset, sample, &key, err);

    if (status)
        return status;
    if (folder) {
        json_out_object(&json, NULL);
        json_out_number(&json, "sample", sample);
        json_out_bytes(&json, "key", key);
        json_out_object(&json, "fields");
    } else {
        printf("%8" PRIu64 "  ", sample);
        message_word((const char *)key.data, key.len, 16);
    }
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        status = stk_dataset_place(dataset, sample, f, &place, err);
        if (status == STK_NOT_FOUND)
            continue;
        if (status)
            return status;
        if (folder)
            json_field(&json, stk_dataset_field(dataset, f)->name, &place, folder);
        else
            text_field(stk_dataset_field(dataset, f)->name, &place);
    }
    if (folder) {
        json_out_end_object(&json);
        json_out_end_object(&json);
    }
    putchar('\n');
    return STK_OK;
}

static int print_samples(const struct stk_dataset *dataset, const struct ls_arguments *arguments)
{
    uint64_t samples = stk_dataset_samples(dataset), limit = arguments->limit;
    int summary = stk_dataset_series(dataset) && !arguments->base.json;
    char folder[PATH_MAX];
    struct stk_error err;

    source_folder(&arguments->base, folder);
    if (summary) { /* windows are too many, and too alike, for a list to tell of a series */
        series_report_text(dataset);
        putchar('\n');
        limit = limit == UINT64_MAX ? SERIES_LIMIT : limit;
    }
    limit = limit < samples ? limit : samples;
    if (!arguments->base.json && limit)
        printf("%8s  %-16s  %s\n", "SAMPLE", "KEY", "FIELDS");
    for (uint64_t i = 0; i < limit && !message_stopped(); i++)
        if (print_sample(dataset, i, arguments->base.json ? folder : NULL, &err))
            return message_error(&err);
    if (summary && limit < samples)
        printf("     ...  %" PRIu64 " more; --limit N lists N\n", samples - limit);
    return EXIT_DONE;
}

static void stat_json(const struct stk_dataset *dataset, const struct source_count *counts)
{
    struct json_out json = {.stream = stdout};
    char text[SOURCE_KIND_CAP];

    json_out_object(&json, NULL);
    json_out_number(&json, "samples", stk_dataset_samples(dataset));
    json_out_number(&json, "objects", stk_dataset_object_count(dataset));
    json_out_number(&json, "skipped", stk_dataset_skipped(dataset));
    json_out_text(&json, "fingerprint", source_fingerprint(dataset, text));
    if (stk_dataset_series(dataset))
        series_report_json(dataset, &json);
    json_out_array(&json, "classes");
    for (uint32_t i = 0; i < stk_dataset_class_count(dataset); i++)
        json_out_text(&json, NULL, stk_dataset_class(dataset, i));
    json_out_end_array(&json);
    json_out_object(&json, "fields");
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        const struct stk_field *field = stk_dataset_field(dataset, f);
        json_out_object(&json, field->name);
        json_out_text(&json, "kind", source_kind(field, text));
        json_out_number(&json, "samples", counts[f].samples);
        json_out_number(&json, "bytes", counts[f].bytes);
        json_out_number(&json, "longest", field->max_length);
        json_out_end_object(&json);
    }
    json_out_end_object(&json);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void stat_text(const struct stk_dataset *dataset, const struct source_count *counts)
{
    char text[SOURCE_KIND_CAP], size[24], longest[24];

    if (stk_dataset_series(dataset))
        series_report_text(dataset);
    printf("samples      %" PRIu64 "\n", stk_dataset_samples(dataset));
    printf("objects      %" PRIu32 "\n", stk_dataset_object_count(dataset));
    if (stk_dataset_class_count(dataset))
        printf("classes      %" PRIu32 "\n", stk_dataset_class_count(dataset));
    printf("skipped      %" PRIu64 "\n", stk_dataset_skipped(dataset));
    printf("fingerprint  %s\n\n", source_fingerprint(dataset, text));
    printf("%-16s %10s %12s %12s  %s\n", "FIELD", "SAMPLES", "BYTES", "LONGEST", "KIND");
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        const struct stk_field *field = stk_dataset_field(dataset, f);
        message_word(field->name, strlen(field->name), 16);
        printf(" %10" PRIu64 " %12s %12s  %s\n", counts[f].samples,
               message_size(counts[f].bytes, size), message_size(field->max_length, longest),
               source_kind(field, text));
    }
}

static int print_stat(const struct stk_dataset *dataset, const struct ls_arguments *arguments)
{
    struct source_count *counts = calloc(stk_dataset_field_count(dataset) + 1, sizeof(*counts));
    struct stk_error err = {0};
    int status = EXIT_DONE;

    if (!counts)
        return message_failed("out of memory");
    if (source_count(dataset, counts, &err))
        status = message_error(&err);
    else if (arguments->base.json)
        stat_json(dataset, counts);
    else
        stat_text(dataset, counts);
    free(counts);
    return status;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct ls_arguments arguments = {.limit = UINT64_MAX};
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (source_open(context, &arguments.base, arguments.base.words, arguments.base.word_count,
                    &dataset, &err))
        return message_error(&err);
    status = arguments.stat ? print_stat(dataset, &arguments) : print_samples(dataset, &arguments);
    stk_dataset_close(dataset);
    return status;
}

static const struct option options[] = {
    {"limit", 0, OPTION_U64, offsetof(struct ls_arguments, limit), "N", "at most so many samples"},
    {"stat", 0, OPTION_FLAG, offsetof(struct ls_arguments, stat), NULL,
     "how many, how large and of what kind, instead of a list"},
    {0},
};

const struct command cmd_ls = {
    .name = "ls",
    .summary =
        "Lists the samples: their keys, fields and sizes.\n"
        "With --json one object a line, with the place of each field's bytes (null where the\n"
        "shard is compressed). Of a series it tells what it is made of, and lists the first "
        "windows.",
    .usage = "SRC... [options]",
    .examples = "  stoker ls shards/\n"
                "  stoker ls 'train-{0000..0999}.tar' --stat\n"
                "  stoker ls shard-0000.tar --json --limit 1\n"
                "  stoker ls prices.series --window 30 --split val\n",
    .options = options,
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
