/* `stoker report`: run files and benchmark results as a page, as Markdown or as pictures. */
#include <stdio.h>

#include "stoker/report.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "options.h"

struct report_arguments {
    struct arguments base;
    const char *out;
};

static void print_json(const struct report_arguments *arguments)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_text(&json, "out", arguments->out);
    json_out_number(&json, "runs", (uint64_t)arguments->base.word_count);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct report_arguments arguments = {0};
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (!arguments.out)
        return message_usage(command->name, "-o OUT is missing");
    if (stk_report_make(context, (const char *const *)arguments.base.words,
                        (uint32_t)arguments.base.word_count, arguments.out, &err))
        return message_error(&err);
    if (arguments.base.json)
        print_json(&arguments);
    else
        printf("%s\n", arguments.out);
    return EXIT_DONE;
}

static const struct option options[] = {
    {"out", 'o', OPTION_TEXT, offsetof(struct report_arguments, out), "OUT",
     "R.html: one page that needs no network; R.md: Markdown with pictures beside it; R.png: one "
     "picture; a folder: a picture a chart"},
    {0},
};

const struct command cmd_report = {
    .name = "report",
    .summary =
        "Draws runs that `stoker run --json` wrote: what the GPU waited for, and what would help.\n"
        "Several runs are compared, the first one being the start. Results of benchmarks\n"
        "(results/*.json) are drawn too. This needs the Python package with plotly and "
        "matplotlib:\npip install 'stoker[report]'.",
    .usage = "RUN... -o OUT [options]",
    .examples = "  stoker run --json before.json -- python train.py\n"
                "  stoker report before.json -o report.html\n"
                "  stoker report before.json after.json -o report.html\n"
                "  stoker report results/bench-jpeg.json -o jpeg.md\n",
    .options = options,
    .min_words = 1,
    .max_words = 64,
    .word = "RUN",
    .run = run,
};
