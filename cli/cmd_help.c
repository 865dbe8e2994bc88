/* `stoker help`: the commands, one command, or a completion script. */
#include <stdio.h>
#include <string.h>

#include "stoker/version.h"
#include "commands.h"
#include "completion.h"
#include "exit_status.h"
#include "json_out.h"
#include "transform_options.h"

struct help_arguments {
    struct arguments base;
    int completion;
};

static void print_all(void)
{
    printf("stoker %s feeds training loops: exact, shuffled batches from tar shards, arrays, "
           "folders and tables.\n\nstoker COMMAND [arguments]\n\n",
           stk_version());
    for (int row = 0; commands_at(row); row++) {
        const struct command *command = commands_at(row);
        printf("  %-9s %.*s\n", command->name, (int)strcspn(command->summary, ":.\n"),
               command->summary);
    }
    printf("\nstoker COMMAND --help tells more, with examples. Every command takes --json.\n"
           "A SRC is a path, a folder, a glob, a brace list 'train-{0000..0999}.tar' or a file:// "
           "URI.\nExit status: 0 done, 1 failed, 2 bad usage, 130 ended by Ctrl-C.\n");
}

static void json_command(struct json_out *json, const struct command *command)
{
    json_out_object(json, NULL);
    json_out_text(json, "name", command->name);
    json_out_text(json, "usage", command->usage);
    json_out_text(json, "summary", command->summary);
    json_out_array(json, "options");
    for (int i = 0; options_table(command, i); i++)
        for (const struct option *option = options_table(command, i); option->name; option++) {
            json_out_object(json, NULL);
            json_out_text(json, "name", option->name);
            json_out_text(json, "argument", option->argument);
            json_out_text(json, "help", option->help);
            json_out_end_object(json);
        }
    json_out_end_array(json);
    json_out_end_object(json);
}

static void print_json(const struct command *only)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_text(&json, "version", stk_version());
    json_out_array(&json, "commands");
    for (int row = 0; commands_at(row); row++)
        if (!only || only == commands_at(row))
            json_command(&json, commands_at(row));
    json_out_end_array(&json);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct help_arguments arguments = {0};
    const struct command *only = NULL;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (arguments.base.word_count && !strcmp(arguments.base.words[0], "transforms")) {
        transforms_print(context, arguments.base.json);
        return EXIT_DONE;
    }
    if (arguments.base.word_count) {
        only = commands_find(arguments.base.words[0]);
        if (!only)
            return commands_unknown(arguments.base.words[0]);
    }
    if (arguments.completion)
        completion_print((enum completion_shell)arguments.completion);
    else if (arguments.base.json)
        print_json(only);
    else if (only)
        options_help(only);
    else
        print_all();
    return EXIT_DONE;
}

static const struct option options[] = {
    {"completion", 0, OPTION_CHOICE, offsetof(struct help_arguments, completion), "none|bash|zsh",
     "print the completion script of that shell"},
    {0},
};

const struct command cmd_help = {
    .name = "help",
    .summary = "Lists the commands, or tells about one; `stoker help transforms` lists what a\n"
               "chain of transforms may hold.",
    .usage = "[COMMAND | transforms] [options]",
    .examples =
        "  stoker help stream\n"
        "  stoker help transforms\n"
        "  stoker help --completion bash > ~/.local/share/bash-completion/completions/stoker\n",
    .options = options,
    .max_words = 1,
    .run = run,
};
