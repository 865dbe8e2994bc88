/* `stoker gen`: synthetic data sets. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "stoker/pack.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "options.h"

struct gen_arguments {
    struct arguments base;
    const char *out, *loose;
    uint32_t shards, classes, threads;
    uint64_t samples, seed;
    struct option_shape shape;
    enum stk_dtype dtype;
    int force;
};

static void print(const struct gen_arguments *arguments, const struct stk_pack_result *result)
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

static int generate(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_tensors_options options = {
        .out = arguments->out,
        .loose = arguments->loose,
        .shards = arguments->shards,
        .samples = arguments->samples,
        .shape = {.dtype = arguments->dtype, .rank = arguments->shape.rank},
        .classes = arguments->classes,
        .seed = arguments->seed,
        .threads = arguments->threads,
        .force = arguments->force,
    };
    struct stk_pack_result result;
    struct stk_error err;

    memcpy(options.shape.shape, arguments->shape.shape, sizeof(options.shape.shape));
    if (stk_gen_tensors(context, &options, &result, &err))
        return message_error(&err);
    print(arguments, &result);
    return EXIT_DONE;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct gen_arguments arguments = {
        .shards = 10,
        .classes = 10,
        .samples = 1000,
        .shape = {4, {16, 112, 112, 3}},
        .dtype = STK_F16,
    };
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (strcmp(arguments.base.words[0], "tensors"))
        return message_usage(command->name, "cannot generate %s; it can generate: %s",
                             arguments.base.words[0], command->kinds);
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    return generate(context, &arguments);
}

#define AT(member) offsetof(struct gen_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "OUT", "the folder for the shards; made when missing"},
    {"shards", 0, OPTION_U32, AT(shards), "N", "how many shards (10)"},
    {"samples", 0, OPTION_U64, AT(samples), "N", "how many samples in all (1000)"},
    {"shape", 0, OPTION_SHAPE, AT(shape), "N,N,...", "of one sample (16,112,112,3)"},
    {"dtype", 0, OPTION_DTYPE, AT(dtype), "TYPE", "f16, bf16, f32, f64, u8, i8, ... (f16)"},
    {"classes", 0, OPTION_U32, AT(classes), "N", "how many classes (10)"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "another seed gives other samples (0)"},
    {"loose", 0, OPTION_TEXT, AT(loose), "DIR", "the same samples as loose files too"},
    {"threads", 0, OPTION_U32, AT(threads), "N", "threads (one a core); the bytes stay the same"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace shards that are there already"},
    {0},
};

const struct command cmd_gen = {
    .name = "gen",
    .summary =
        "Writes a synthetic data set: tensors that carry their class as a pattern under noise.\n"
        "Run from the Python package it writes metadata.parquet too.",
    .usage = "tensors -o OUT [options]",
    .examples = "  stoker gen tensors -o shards --shards 10 --samples 1000 --shape 16,112,112,3 "
                "--dtype f16 \\\n      --classes 10 --seed 0\n"
                "  stoker gen tensors -o shards --loose files --samples 100 --shape 3,32,32\n",
    .kinds = "tensors",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .word = "what to generate (tensors)",
    .run = run,
};
