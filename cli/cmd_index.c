/* `stoker index`: builds the index where it is missing or stale, and tells what it holds. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "source.h"

struct index_report {
    const char *path, *fingerprint;
    uint64_t samples, members, skipped, index_bytes;
    uint32_t fields, objects;
    int built;
    int computed; /* a series, tokens: windows are counted, no file is kept */
    double seconds;
};

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
    return (double)(to->tv_sec - from->tv_sec) + 1e-9 * (double)(to->tv_nsec - from->tv_nsec);
}

/* Files are stamped by a clock that ticks every few milliseconds. Waits for its next tick: what was
 * written before is older. */
static void wait_for_tick(struct timespec *begun)
{
    const struct timespec moment = {.tv_nsec = 200000};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    do {
        nanosleep(&moment, NULL);
        clock_gettime(CLOCK_REALTIME_COARSE, begun);
    } while (now.tv_sec == begun->tv_sec && now.tv_nsec == begun->tv_nsec);
}

static double per_member(const struct index_report *report)
{
    return report->members ? (double)report->index_bytes / (double)report->members : 0;
}

static double members_per_s(const struct index_report *report)
{
    return report->seconds > 0 ? (double)report->members / report->seconds : 0;
}

static void print_json(const struct index_report *report)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_text(&json, "path", report->computed ? NULL : report->path);
    json_out_bool(&json, "built", report->built);
    json_out_number(&json, "samples", report->samples);
    json_out_number(&json, "fields", report->fields);
    json_out_number(&json, "members", report->members);
    json_out_number(&json, "objects", report->objects);
    json_out_number(&json, "skipped", report->skipped);
    json_out_number(&json, "index_bytes", report->index_bytes);
    json_out_real(&json, "bytes_per_field", per_member(report));
    json_out_real(&json, "seconds", report->seconds);
    if (report->built)
        json_out_real(&json, "members_per_s", members_per_s(report));
    else
        json_out_text(&json, "members_per_s", NULL);
    json_out_text(&json, "fingerprint", report->fingerprint);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void print_text(const struct index_report *report)
{
    char size[24];

    if (report->computed)
        printf("index        computed from %s; no file is kept\n",
               *report->path ? report->path : "the sizes of the files");
    else
        printf("index        %s (%s)\n", report->path, report->built ? "built" : "up to date");
    printf("samples      %" PRIu64 "\n", report->samples);
    printf("fields       %" PRIu32 "\n", report->fields);
    printf("members      %" PRIu64 "\n", report->members);
    printf("objects      %" PRIu32 "\n", report->objects);
    printf("skipped      %" PRIu64 "\n", report->skipped);
    if (!report->computed)
        printf("size         %s, %.1f bytes a field\n", message_size(report->index_bytes, size),
               per_member(report));
    printf("time         %.3f s", report->seconds);
    if (report->built)
        printf(", %.0f members/s", members_per_s(report));
    printf("\nfingerprint  %s\n", report->fingerprint);
}

/* Fields that no sample lacks need no walk over the samples. */
static int count_members(const struct stk_dataset *dataset, const struct arguments *arguments,
                         uint64_t *members)
{
    uint32_t fields = stk_dataset_field_count(dataset);
    struct source_count *counts = calloc(fields + 1, sizeof(*counts));
    struct stk_error err = {0};
    int walk = arguments->fields.count != 0 || stk_dataset_series(dataset), status = EXIT_DONE;

    *members = 0;
    if (!counts)
        return message_failed("out of memory");
    for (uint32_t f = 0; f < fields; f++) {
        walk |= stk_dataset_field(dataset, f)->optional;
        counts[f].samples = stk_dataset_samples(dataset);
    }
    if (walk && source_count(dataset, counts, &err))
        status = message_error(&err);
    for (uint32_t f = 0; f < fields; f++)
        *members += counts[f].samples;
    free(counts);
    return status;
}

/* begun: by wait_for_tick, so that an index is not older only when this call has built it. */
static int report(const struct stk_dataset *dataset, const struct arguments *arguments,
                  const struct timespec *begun, double seconds)
{
    char fingerprint[33];
    struct stat file = {0};
    struct index_report report = {
        .path = stk_dataset_index_path(dataset),
        .fingerprint = source_fingerprint(dataset, fingerprint),
        .samples = stk_dataset_samples(dataset),
        .skipped = stk_dataset_skipped(dataset),
        .fields = stk_dataset_field_count(dataset),
        .objects = stk_dataset_object_count(dataset),
        .computed = stk_dataset_series(dataset) || !*stk_dataset_index_path(dataset),
        .seconds = seconds,
    };
    int status = count_members(dataset, arguments, &report.members);

    if (status)
        return status;
    /* An index that could be kept nowhere has no name any more. */
    int kept = !report.computed && !stat(report.path, &file);
    report.index_bytes = kept ? (uint64_t)file.st_size : 0;
    report.built = !report.computed && (!kept || seconds_between(begun, &file.st_mtim) >= 0);
    if (arguments->json)
        print_json(&report);
    else
        print_text(&report);
    return EXIT_DONE;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct arguments arguments = {.share_index = 1};
    struct stk_dataset *dataset;
    struct stk_error err;
    struct timespec begun, from, to;
    int status;

    if (options_read(command, &arguments, argc, argv, &status))
        return status;
    wait_for_tick(&begun);
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (source_open(context, &arguments, arguments.words, arguments.word_count, &dataset, &err))
        return message_error(&err);
    clock_gettime(CLOCK_MONOTONIC, &to);
    status = report(dataset, &arguments, &begun, seconds_between(&from, &to));
    stk_dataset_close(dataset);
    return status;
}

const struct command cmd_index = {
    .name = "index",
    .summary =
        "Builds the index where it is missing or stale: tells where it is and what it holds.\n"
        "Of data on the network it is written beside the data, too, where that is allowed.",
    .usage = "SRC... [options]",
    .examples = "  stoker index shards/\n"
                "  stoker index shards/ --reindex --json\n"
                "  stoker index 'train-*.tar' --index train.stokeridx\n"
                "  stoker index s3://bucket/shards/\n",
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
