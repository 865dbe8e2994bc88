/* `stoker warm`: fetches a dataset into the cache before it is needed. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "stoker/cache.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "source.h"

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_json(const struct stk_cache_warmed *warmed, double time)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_number(&json, "bytes", warmed->bytes);
    json_out_number(&json, "blocks", warmed->blocks);
    json_out_number(&json, "here_blocks", warmed->here_blocks);
    json_out_number(&json, "fetched_blocks", warmed->fetched_blocks);
    json_out_number(&json, "fetched_bytes", warmed->fetched_bytes);
    json_out_number(&json, "left_blocks", warmed->left_blocks);
    json_out_real(&json, "seconds", time);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void print_text(const struct stk_cache_warmed *warmed, double time)
{
    char fetched[24];

    printf("%" PRIu64 " blocks: %" PRIu64 " were there, %" PRIu64 " fetched (%s in %.1f s)\n",
           warmed->blocks, warmed->here_blocks, warmed->fetched_blocks,
           message_size(warmed->fetched_bytes, fetched), time);
    if (warmed->left_blocks)
        printf("%" PRIu64 " blocks (%.0f %%) do not fit: they are read past the cache; a larger "
               "--cache-size holds them\n",
               warmed->left_blocks, 100 * (double)warmed->left_blocks / (double)warmed->blocks);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct arguments arguments = {0};
    struct stk_cache_warmed warmed;
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments, argc, argv, &status))
        return status;
    if (source_open(context, &arguments, arguments.words, arguments.word_count, &dataset, &err))
        return message_error(&err);
    double from = seconds();
    stk_status result = stk_cache_warm(context, dataset, &warmed, &err);
    double time = seconds() - from;
    stk_dataset_close(dataset);
    if (result)
        return message_error(&err);
    if (arguments.json)
        print_json(&warmed, time);
    else
        print_text(&warmed, time);
    return EXIT_DONE;
}

const struct command cmd_warm = {
    .name = "warm",
    .summary =
        "Fetches a dataset on the network into the cache, so that the first epoch finds it.\n"
        "What is there already is not fetched again. Of data that is larger than the cache\n"
        "it fetches the blocks that will be kept.",
    .usage = "SRC... --cache FOLDER [options]",
    .examples = "  stoker warm s3://bucket/train/ --cache /scratch/cache --cache-size 200GiB\n"
                "  STOKER_CACHE=/scratch/cache stoker warm 'https://host/train-{0000..0999}.tar'\n",
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
