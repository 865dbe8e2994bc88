#include "commands.h"

#include <string.h>

#include "message.h"

/* Each is defined in the file of its name. */
extern const struct command cmd_check, cmd_gen, cmd_pack, cmd_rescale, cmd_index, cmd_warm,
    cmd_cache, cmd_ls, cmd_cat, cmd_show, cmd_verify, cmd_stream, cmd_run, cmd_report, cmd_version,
    cmd_help;

static const struct command *const commands[] = {
    &cmd_check, &cmd_gen,    &cmd_pack,    &cmd_rescale, &cmd_index,  &cmd_warm,
    &cmd_cache, &cmd_ls,     &cmd_cat,     &cmd_show,    &cmd_verify, &cmd_stream,
    &cmd_run,   &cmd_report, &cmd_version, &cmd_help,
};

const struct command *commands_at(int row)
{
    return row < (int)(sizeof(commands) / sizeof(commands[0])) ? commands[row] : NULL;
}

const struct command *commands_find(const char *name)
{
    for (int row = 0; commands_at(row); row++)
        if (!strcmp(commands_at(row)->name, name))
            return commands_at(row);
    return NULL;
}

int commands_unknown(const char *typed)
{
    const char *names[32];
    int count = 0;

    for (; commands_at(count); count++)
        names[count] = commands_at(count)->name;
    names[count] = NULL;
    const char *nearest = options_nearest(typed, names);
    if (nearest)
        return message_usage(NULL, "there is no command %s; did you mean %s?", typed, nearest);
    return message_usage(NULL, "there is no command %s", typed);
}
