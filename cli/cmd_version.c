/* `stoker version`: which one this is, and what it was built with. */
#include <stdio.h>
#include <string.h>

#include "stoker/check.h"
#include "stoker/version.h"
#include "exit_status.h"
#include "json_out.h"
#include "options.h"

static void json_row(void *user, const struct stk_check_row *row)
{
    if (!strcmp(row->group, "libraries"))
        json_out_text(user, row->name, row->state == STK_CHECK_ABSENT ? NULL : row->value);
}

static void text_row(void *user, const struct stk_check_row *row)
{
    (void)user;
    if (!strcmp(row->group, "libraries"))
        printf("  %-12s %s\n", row->name, row->state == STK_CHECK_ABSENT ? "absent" : row->value);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct arguments arguments = {0};
    struct json_out json = {.stream = stdout};
    int status;

    if (options_read(command, &arguments, argc, argv, &status))
        return status;
    if (!arguments.json) {
        printf("stoker %s\n", stk_version());
        stk_check(context, text_row, NULL);
        return EXIT_DONE;
    }
    json_out_object(&json, NULL);
    json_out_text(&json, "version", stk_version());
    json_out_object(&json, "libraries");
    stk_check(context, json_row, &json);
    json_out_end_object(&json);
    json_out_end_object(&json);
    json_out_end_line(&json);
    return EXIT_DONE;
}

const struct command cmd_version = {
    .name = "version",
    .summary = "Tells the version, and which libraries this build uses.",
    .usage = "[options]",
    .examples = "  stoker version\n  stoker version --json\n",
    .run = run,
};
