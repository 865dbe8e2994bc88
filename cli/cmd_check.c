/* `stoker check`: what this machine and this build can do, and what to do about what is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stoker/check.h"
#include "stoker/version.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "probe_report.h"
#include "source.h"

static void json_row(void *user, const struct stk_check_row *row)
{
    static const char *const states[] = {"good", "absent", "warn"};
    struct json_out *json = user;

    json_out_object(json, NULL);
    json_out_text(json, "group", row->group);
    json_out_text(json, "name", row->name);
    json_out_text(json, "state", states[row->state]);
    json_out_text(json, "value", row->value);
    json_out_text(json, "remedy", row->remedy);
    json_out_end_object(json);
}

/* user: the group of the row before, so that each group gets its title once. */
static void text_row(void *user, const struct stk_check_row *row)
{
    static const char *const marks[] = {"ok", "-", "!"};
    char *group = user;

    if (strcmp(group, row->group)) {
        printf("%s%s\n", *group ? "\n" : "", row->group);
        snprintf(group, 32, "%s", row->group);
    }
    printf("  %-2s %-18s %s\n", marks[row->state], row->name, row->value);
    if (row->remedy[0])
        printf("     %-18s %s\n", "", row->remedy);
}

static void dataset_json(struct json_out *json, const struct stk_dataset *dataset)
{
    char text[SOURCE_KIND_CAP];

    json_out_object(json, "dataset");
    json_out_number(json, "samples", stk_dataset_samples(dataset));
    json_out_number(json, "objects", stk_dataset_object_count(dataset));
    json_out_number(json, "classes", stk_dataset_class_count(dataset));
    json_out_number(json, "skipped", stk_dataset_skipped(dataset));
    json_out_text(json, "index", stk_dataset_index_path(dataset));
    json_out_text(json, "fingerprint", source_fingerprint(dataset, text));
    json_out_object(json, "fields");
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        const struct stk_field *field = stk_dataset_field(dataset, f);
        json_out_text(json, field->name, source_kind(field, text));
    }
    json_out_end_object(json);
    json_out_end_object(json);
}

static void dataset_text(const struct stk_dataset *dataset)
{
    char text[SOURCE_KIND_CAP];

    printf("\ndataset\n");
    printf("  ok %-18s %" PRIu64 "\n", "samples", stk_dataset_samples(dataset));
    printf("  ok %-18s %" PRIu32 "\n", "objects", stk_dataset_object_count(dataset));
    if (stk_dataset_class_count(dataset))
        printf("  ok %-18s %" PRIu32 "\n", "classes", stk_dataset_class_count(dataset));
    if (stk_dataset_skipped(dataset))
        printf("  !  %-18s %" PRIu64 " members are no plain files\n", "skipped",
               stk_dataset_skipped(dataset));
    printf("  ok %-18s %s\n", "index", stk_dataset_index_path(dataset));
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset); f++) {
        const struct stk_field *field = stk_dataset_field(dataset, f);
        printf("  ok field ");
        message_word(field->name, strlen(field->name), 12);
        printf(" %s\n", source_kind(field, text));
    }
}

static void print(struct stk_context *context, const struct stk_dataset *dataset, int as_json)
{
    struct json_out json = {.stream = stdout};
    char group[32] = "";

    if (!as_json) {
        stk_check(context, text_row, group);
        if (dataset)
            dataset_text(dataset);
        return;
    }
    json_out_object(&json, NULL);
    json_out_text(&json, "version", stk_version());
    json_out_array(&json, "rows");
    stk_check(context, json_row, &json);
    json_out_end_array(&json);
    if (dataset)
        dataset_json(&json, dataset);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct arguments arguments = {0};
    struct stk_dataset *dataset = NULL;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments, argc, argv, &status))
        return status;
    if (arguments.word_count && stk_is_remote(arguments.words[0]))
        return probe_report(context, &arguments);
    if (arguments.word_count &&
        source_open(context, &arguments, arguments.words, arguments.word_count, &dataset, &err))
        status = message_error(&err); /* the machine's rows may say why: they come all the same */
    print(context, dataset, arguments.json);
    stk_dataset_close(dataset);
    return status;
}

const struct command cmd_check = {
    .name = "check",
    .summary =
        "Tells what this machine and this build can do, and what to do about what is missing.\n"
        "With a path: opens it and tells what it holds.\n"
        "With the URI of a store on the network: looks at each step on the way there, and how fast "
        "it is.",
    .usage = "[URI...] [options]",
    .examples = "  stoker check\n  stoker check shards/ --json\n"
                "  stoker check s3://bucket/shards/\n"
                "  stoker check abfss://container@account.dfs.core.windows.net/shards/\n",
    .opens = OPENS_DATASET,
    .max_words = INT32_MAX,
    .run = run,
};
