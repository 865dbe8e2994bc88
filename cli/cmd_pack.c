/* `stoker pack`: any dataset -> tar shards. */
#include <inttypes.h>
#include <stdio.h>

#include "stoker/pack.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "source.h"

struct pack_arguments {
    struct arguments base;
    const char *out, *prefix;
    int to, force;
    uint64_t shard_size, shard_samples;
};

static void print(const struct pack_arguments *arguments, const struct stk_pack_result *result)
{
    struct json_out json = {.stream = stdout};
    char size[24];

    if (!arguments->base.json) {
        printf("%" PRIu64 " samples in %" PRIu32 " shards, %s, in %s\n", result->samples,
               result->shards, message_size(result->bytes, size), arguments->out);
        return;
    }
    json_object(&json, NULL);
    json_text(&json, "out", arguments->out);
    json_number(&json, "samples", result->samples);
    json_number(&json, "shards", result->shards);
    json_number(&json, "bytes", result->bytes);
    json_end_object(&json);
    json_end_line(&json);
}

static int pack(struct stk_context *context, struct stk_dataset *dataset,
                const struct pack_arguments *arguments)
{
    struct stk_pack_options options = {
        .out = arguments->out,
        .prefix = arguments->prefix,
        .shard_size = arguments->shard_size,
        .shard_samples = arguments->shard_samples,
        .force = arguments->force,
    };
    struct stk_pack_result result;
    struct stk_error err;

    if (stk_pack_tar(context, dataset, &options, &result, &err))
        return message_error(&err);
    print(arguments, &result);
    return EXIT_DONE;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct pack_arguments arguments = {0};
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    if (source_open(context, &arguments.base, arguments.base.words, arguments.base.word_count,
                    &dataset, &err))
        return message_error(&err);
    status = pack(context, dataset, &arguments);
    stk_dataset_close(dataset);
    return status;
}

#define AT(member) offsetof(struct pack_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "OUT", "the folder for the shards; made when missing"},
    {"to", 0, OPTION_CHOICE, AT(to), "tar", "what to write"},
    {"shard-size", 0, OPTION_SIZE, AT(shard_size), "SIZE", "most bytes a shard (256MiB)"},
    {"shard-samples", 0, OPTION_U64, AT(shard_samples), "N", "most samples a shard (no limit)"},
    {"prefix", 0, OPTION_TEXT, AT(prefix), "NAME", "shards are NAME-0000.tar ... (shard)"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace shards that are there already"},
    {0},
};

const struct command cmd_pack = {
    .name = "pack",
    .summary =
        "Packs folders, loose files or any other dataset into tar shards that WebDataset reads.",
    .usage = "SRC... -o OUT --to tar [options]",
    .examples = "  stoker pack photos/ -o shards --to tar --shard-size 256MiB\n"
                "  stoker pack 'part-*/' -o shards --to tar --shard-samples 1000 --prefix train\n",
    .options = options,
    .opens_dataset = 1,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
