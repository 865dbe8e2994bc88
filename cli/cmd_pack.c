/* `stoker pack`: any dataset -> tar shards, or tables -> a series. */
#include "stoker/pack.h"
#include "stoker/remote.h"
#include "exit_status.h"
#include "interrupt.h"
#include "made_report.h"
#include "message.h"
#include "pack_to.h"
#include "source.h"

int pack_to_tar(struct stk_context *context, const struct pack_arguments *arguments)
{
    struct stk_pack_options options = {
        .out = arguments->out,
        .prefix = arguments->prefix,
        .shard_size = arguments->shard_size,
        .shard_samples = arguments->shard_samples,
        .force = arguments->force,
    };
    struct stk_pack_result result;
    struct stk_dataset *dataset;
    struct stk_error err;
    int status = EXIT_DONE;

    if (stk_is_remote(arguments->out))
        interrupt_patience(3); /* what is there is noted, and files on their way are removed */
    if (source_open(context, &arguments->base, arguments->base.words, arguments->base.word_count,
                    &dataset, &err))
        return message_error(&err);
    if (stk_pack_tar(context, dataset, &options, &result, &err))
        status = message_error(&err);
    else
        made_report_shards(arguments->base.json ? MADE_JSON : MADE_WORDS, arguments->out, &result);
    stk_dataset_close(dataset);
    return status;
}

/* An option that the other kind of output takes would do nothing: better said than passed over. */
static int check_kind(const struct command *command, const struct pack_arguments *arguments)
{
    const struct {
        int given, to;
        const char *name;
    } options[] = {
        {arguments->prefix != NULL, PACK_TO_TAR, "--prefix"},
        {arguments->shard_size != 0, PACK_TO_TAR, "--shard-size"},
        {arguments->shard_samples != 0, PACK_TO_TAR, "--shard-samples"},
        {arguments->base.fields.count != 0, PACK_TO_TAR, "--fields"},
        {arguments->base.format != NULL, PACK_TO_TAR, "--format"},
        {arguments->base.shape.rank != 0, PACK_TO_TAR, "--shape"},
        {arguments->base.index != NULL || arguments->base.reindex, PACK_TO_TAR, "--index"},
        {arguments->entity != NULL, PACK_TO_SERIES, "--entity"},
        {arguments->time != NULL, PACK_TO_SERIES, "--time"},
        {arguments->labels.count != 0, PACK_TO_SERIES, "--label"},
        {arguments->statics.count != 0, PACK_TO_SERIES, "--static"},
        {arguments->missing != 0, PACK_TO_SERIES, "--nan"},
        {arguments->scaler != 0, PACK_TO_SERIES, "--scaler"},
        {arguments->fit_on != NULL, PACK_TO_SERIES, "--fit-on"},
        {arguments->scale != 0, PACK_TO_SERIES, "--scale"},
        {arguments->append != 0, PACK_TO_SERIES, "--append"},
        {arguments->memory != 0, PACK_TO_SERIES, "--memory"},
        {arguments->threads != 0, PACK_TO_SERIES, "--threads"},
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (options[i].given && options[i].to != arguments->to)
            return message_usage(command->name, "%s goes with --to %s", options[i].name,
                                 options[i].to == PACK_TO_TAR ? "tar" : "series");
    return 0;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct pack_arguments arguments = {0};
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    status = check_kind(command, &arguments);
    if (status)
        return status;
    if (arguments.to == PACK_TO_SERIES)
        return pack_to_series(context, &arguments);
    return pack_to_tar(context, &arguments);
}

#define AT(member) offsetof(struct pack_arguments, member)

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, AT(out), "OUT", "the folder for what is written; made when missing"},
    {"to", 0, OPTION_CHOICE, AT(to), "tar|series", "what to write (tar)"},
    {"force", 0, OPTION_FLAG, AT(force), NULL, "replace what is there already"},
    {"shard-size", 0, OPTION_SIZE, AT(shard_size), "SIZE", "tar: most bytes a shard (256MiB)"},
    {"shard-samples", 0, OPTION_U64, AT(shard_samples), "N",
     "tar: most samples a shard (no limit)"},
    {"prefix", 0, OPTION_TEXT, AT(prefix), "NAME", "tar: shards are NAME-0000.tar ... (shard)"},
    {"entity", 0, OPTION_TEXT, AT(entity), "COL", "series: whose row it is (one entity a file)"},
    {"time", 0, OPTION_TEXT, AT(time), "COL", "series: rows are ordered by it (as they come)"},
    {"features", 0, OPTION_LIST, AT(base.windows.features), "A,B,...",
     "series: columns (all numbers but entity, time and statics)"},
    {"label", 0, OPTION_LIST, AT(labels), "A,B,...", "series: what is predicted (the first)"},
    {"static", 0, OPTION_LIST, AT(statics), "A,B,...", "series: columns of one value an entity"},
    {"nan", 0, OPTION_CHOICE, AT(missing), "error|drop|ffill|mean|zero",
     "series: what a missing value becomes (error)"},
    {"scaler", 0, OPTION_CHOICE, AT(scaler), "standard|minmax|robust|none",
     "series: how columns are scaled (standard)"},
    {"fit-on", 0, OPTION_TEXT, AT(fit_on), "ROWS",
     "series: rows that shape the scaler: all, 0.8, time:FROM..TO or entities:A,B (the first part "
     "of the split, else all)"},
    {"split", 0, OPTION_TEXT, AT(base.windows.split), "PARTS",
     "series: 0.8,0.1,0.1 or time:2024-01-01,... or entity:0.8,0.1,0.1: train, val, test"},
    {"scale", 0, OPTION_CHOICE, AT(scale), "stored|late",
     "series: scaled values in the file, or raw ones that are scaled when read (stored)"},
    {"window", 0, OPTION_U64, AT(base.windows.window), "ROWS", "series: rows of x (60)"},
    {"horizon", 0, OPTION_U64, AT(base.windows.horizon), "ROWS", "series: rows of y (1)"},
    {"stride", 0, OPTION_U64, AT(base.windows.stride), "ROWS", "series: between windows (1)"},
    {"gap", 0, OPTION_U64, AT(base.windows.gap), "ROWS", "series: between x and y (0)"},
    {"append", 0, OPTION_FLAG, AT(append), NULL, "series: add entities and newer rows"},
    {"threads", 0, OPTION_U32, AT(threads), "N", "series: threads (one a core)"},
    {"memory", 0, OPTION_SIZE, AT(memory), "SIZE", "series: most bytes it holds (256MiB)"},
    {0},
};

const struct command cmd_pack = {
    .name = "pack",
    .summary =
        "Packs a dataset into tar shards, or tables into a series of sliding windows.\n"
        "tar: folders, loose files or any other dataset, for WebDataset too.\n"
        "series: Parquet, CSV, ORC and Arrow files, here or in a store; this needs the Python\n"
        "package with pyarrow.\n"
        "Here --dtype is f32, f16 or bf16 (f32), and the window's sizes are what the series is\n"
        "opened with by default.\n"
        "OUT may be s3://, az://, abfss:// or gs://: files are made in $TMPDIR (/var/tmp) and\n"
        "sent whole, metadata last; the same command goes on with a run that was broken off.",
    .usage = "SRC... -o OUT --to tar|series [options]",
    .examples = "  stoker pack photos/ -o shards --to tar --shard-size 256MiB\n"
                "  stoker pack 'part-*/' -o shards --to tar --shard-samples 1000 --prefix train\n"
                "  stoker pack photos/ -o s3://bucket/photos --to tar\n"
                "  stoker pack prices/ -o prices.series --to series --time day --split "
                "0.8,0.1,0.1\n"
                "  stoker pack all.parquet -o out --to series --entity ticker --time day \\\n"
                "      --features open,close,volume --label close --nan ffill --scale late\n"
                "  stoker pack 's3://bucket/prices/*.parquet' -o out --to series --time day\n"
                "  stoker pack 2026-02.parquet -o out --to series --entity ticker --time day "
                "--append\n",
    .options = options,
    .opens = OPENS_DATASET,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
