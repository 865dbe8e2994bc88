/* `stoker rescale`: another scaler for a series of raw values. */
#include <stdio.h>

#include "stoker/series.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "options.h"

#define KINDS "standard|minmax|robust|none"

struct rescale_arguments {
    struct arguments base;
    int scaler; /* -1: not said */
    const char *fit_on;
};

static void print(const struct rescale_arguments *arguments)
{
    static const char *const kinds[] = {"standard", "minmax", "robust", "none"};
    struct json_out json = {.stream = stdout};
    const char *folder = arguments->base.words[0], *kind = kinds[arguments->scaler];

    if (!arguments->base.json) {
        printf("%s has the scaler %s now", folder, kind);
        printf(arguments->fit_on ? ", fitted on %s\n" : "\n", arguments->fit_on);
        return;
    }
    json_out_object(&json, NULL);
    json_out_text(&json, "folder", folder);
    json_out_text(&json, "scaler", kind);
    json_out_text(&json, "fit_on", arguments->fit_on);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct rescale_arguments arguments = {.scaler = -1};
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (arguments.scaler < 0)
        return message_usage(command->name, "--scaler is missing: one of " KINDS);
    if (stk_series_rescale(context, arguments.base.words[0], (enum stk_scaler_kind)arguments.scaler,
                           arguments.fit_on, &err))
        return message_error(&err);
    print(&arguments);
    return EXIT_DONE;
}

#define AT(member) offsetof(struct rescale_arguments, member)

static const struct option options[] = {
    {"scaler", 0, OPTION_CHOICE, AT(scaler), KINDS, "how columns are scaled from now on"},
    {"fit-on", 0, OPTION_TEXT, AT(fit_on), "ROWS",
     "rows that shape it: all, 0.8, time:FROM..TO or entities:A,B (the first part of the split, "
     "else all)"},
    {0},
};

const struct command cmd_rescale = {
    .name = "rescale",
    .summary = "Fits another scaler to a series that was packed with --scale late.\n"
               "The array is read once and stays as it is.",
    .usage = "FOLDER --scaler KIND [options]",
    .examples = "  stoker rescale prices.series --scaler robust\n"
                "  stoker rescale prices.series --scaler standard --fit-on time:..2024-01-01\n",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .word = "FOLDER",
    .run = run,
};
