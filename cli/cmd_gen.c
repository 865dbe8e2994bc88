/* `stoker gen`: synthetic data sets. */
#include <string.h>

#include "stoker/pack.h"
#include "stoker/series.h"
#include "exit_status.h"
#include "made_report.h"
#include "message.h"
#include "options.h"

#define UNSAID UINT32_MAX /* as a number */

struct gen_arguments {
    struct arguments base;
    const char *out;
    uint64_t seed;
    int force;
    /* tensors */
    const char *loose;
    uint32_t shards, classes, threads;
    uint64_t samples;
    struct option_shape shape;
    enum stk_dtype dtype;
    /* series */
    uint64_t entities, rows;
    uint32_t features;
    int csv;
};

/* --- tensors --------------------------------------------------------------------------------- */

static int gen_tensors(struct stk_context *context, const struct gen_arguments *arguments)
{
    static const int64_t usual[] = {16, 112, 112, 3};
    struct stk_gen_tensors_options options = {
        .out = arguments->out,
        .loose = arguments->loose,
        .shards = arguments->shards == UNSAID ? 10 : arguments->shards,
        .samples = arguments->samples == UNSAID ? 1000 : arguments->samples,
        .shape = {.dtype = arguments->dtype == STK_DTYPE_COUNT ? STK_F16 : arguments->dtype,
                  .rank = arguments->shape.rank},
        .classes = arguments->classes == UNSAID ? 10 : arguments->classes,
        .seed = arguments->seed,
        .threads = arguments->threads == UNSAID ? 0 : arguments->threads,
        .force = arguments->force,
    };
    struct stk_pack_result result;
    struct stk_error err;

    memcpy(options.shape.shape, arguments->shape.shape, sizeof(options.shape.shape));
    if (arguments->shape.rank == 0) {
        options.shape.rank = 4;
        memcpy(options.shape.shape, usual, sizeof(usual));
    }
    if (stk_gen_tensors(context, &options, &result, &err))
        return message_error(&err);
    made_report_shards(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, &result);
    return EXIT_DONE;
}

/* --- series ---------------------------------------------------------------------------------- */

static int gen_series(struct stk_context *context, const struct gen_arguments *arguments)
{
    struct stk_gen_series_options options = {
        .out = arguments->out,
        .entities = arguments->entities == UNSAID ? 100 : arguments->entities,
        .rows = arguments->rows == UNSAID ? 1000 : arguments->rows,
        .features = arguments->features == UNSAID ? 4 : arguments->features,
        .seed = arguments->seed,
        .csv = arguments->csv,
        .force = arguments->force,
    };
    struct stk_gen_series_result result;
    struct stk_error err;

    if (stk_gen_series(context, &options, &result, &err))
        return message_error(&err);
    made_report_tables(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, &result);
    return EXIT_DONE;
}

/* --- the command ----------------------------------------------------------------------------- */

/* An option that the other kind takes would do nothing: better said than passed over. */
static int check_kind(const struct command *command, const struct gen_arguments *arguments,
                      int is_series)
{
    const struct {
        int given, of_series;
        const char *name;
    } options[] = {
        {arguments->loose != NULL, 0, "--loose"},
        {arguments->shards != UNSAID, 0, "--shards"},
        {arguments->classes != UNSAID, 0, "--classes"},
        {arguments->threads != UNSAID, 0, "--threads"},
        {arguments->samples != UNSAID, 0, "--samples"},
        {arguments->shape.rank != 0, 0, "--shape"},
        {arguments->dtype != STK_DTYPE_COUNT, 0, "--dtype"},
        {arguments->entities != UNSAID, 1, "--entities"},
        {arguments->rows != UNSAID, 1, "--rows"},
        {arguments->features != UNSAID, 1, "--features"},
        {arguments->csv != 0, 1, "--csv"},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].given && options[i].of_series != is_series)
            return message_usage(command->name, "%s goes with gen %s", options[i].name,
                                 options[i].of_series ? "series" : "tensors");
    return 0;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct gen_arguments arguments = {.shards = UNSAID,
                                      .classes = UNSAID,
                                      .threads = UNSAID,
                                      .samples = UNSAID,
                                      .dtype = STK_DTYPE_COUNT,
                                      .entities = UNSAID,
                                      .rows = UNSAID,
                                      .features = UNSAID};
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    const char *kind = arguments.base.words[0];
    int is_series = !strcmp(kind, "series");
    if (!is_series && strcmp(kind, "tensors"))
        return message_usage(command->name, "cannot generate %s; it can generate: %s", kind,
                             command->kinds);
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    status = check_kind(command, &arguments, is_series);
    if (status)
        return status;
    return is_series ? gen_series(context, &arguments) : gen_tensors(context, &arguments);
}

#define AT(member) offsetof(struct gen_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "OUT", "the folder for what is written; made when missing"},
    {"seed", 0, OPTION_U64, AT(seed), "N", "another seed gives other values (0)"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace what is there already"},
    {"shards", 0, OPTION_U32, AT(shards), "N", "tensors: how many shards (10)"},
    {"samples", 0, OPTION_U64, AT(samples), "N", "tensors: how many samples in all (1000)"},
    {"shape", 0, OPTION_SHAPE, AT(shape), "N,N,...", "tensors: of one sample (16,112,112,3)"},
    {"dtype", 0, OPTION_DTYPE, AT(dtype), "TYPE",
     "tensors: f16, bf16, f32, f64, u8, i8, ... (f16)"},
    {"classes", 0, OPTION_U32, AT(classes), "N", "tensors: how many classes (10)"},
    {"loose", 0, OPTION_TEXT, AT(loose), "DIR", "tensors: the same samples as loose files too"},
    {"threads", 0, OPTION_U32, AT(threads), "N",
     "tensors: threads (one a core); the bytes stay the same"},
    {"entities", 0, OPTION_U64, AT(entities), "N", "series: how many, a table each (100)"},
    {"rows", 0, OPTION_U64, AT(rows), "N", "series: rows of each (1000)"},
    {"features", 0, OPTION_U32, AT(features), "N", "series: columns of values (4)"},
    {"csv", 0, OPTION_FLAG, AT(csv), NULL, "series: CSV, also where Parquet could be written"},
    {0},
};

const struct command cmd_gen = {
    .name = "gen",
    .summary =
        "Writes a synthetic data set: tensors that carry their class as a pattern under noise, or\n"
        "tables of entities whose next value can be learned from the last ones.\n"
        "Run from the Python package it writes Parquet: metadata.parquet of tensors, and tables\n"
        "that are CSV otherwise.",
    .usage = "tensors|series -o OUT [options]",
    .examples = "  stoker gen tensors -o shards --shards 10 --samples 1000 --shape 16,112,112,3 "
                "--dtype f16 \\\n      --classes 10 --seed 0\n"
                "  stoker gen tensors -o shards --loose files --samples 100 --shape 3,32,32\n"
                "  stoker gen series -o tables --entities 100 --rows 1000 --features 4\n",
    .kinds = "tensors series",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .word = "what to generate (tensors or series)",
    .run = run,
};
