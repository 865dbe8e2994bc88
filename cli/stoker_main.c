#include "stoker_main.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "exit_status.h"
#include "interrupt.h"
#include "message.h"
#include "progress_bar.h"

static int hook_progress(void *user, const struct stk_progress *progress)
{
    (void)user;
    if (progress->total && progress->done >= progress->total)
        progress_bar_clear();
    else
        progress_bar_draw(progress);
    return interrupt_pending();
}

static int hook_waiting(void *user)
{
    (void)user;
    return interrupt_pending();
}

static void hook_notice(void *user, const char *text)
{
    (void)user;
    message_note(text);
}

void stoker_hooks(struct stk_hooks *hooks)
{
    hooks->progress = hook_progress;
    hooks->waiting = hook_waiting;
    hooks->notice = hook_notice;
}

static int run(int argc, char **argv, struct stk_context *context)
{
    if (argc < 2)
        return message_usage(NULL, "a command is missing");

    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const struct command *command = commands_find(name);
    if (!command)
        return commands_unknown(name);
    return command->run(command, context, argc - 1, argv + 1);
}

int stoker_main(int argc, char **argv, struct stk_context *context)
{
    struct interrupt interrupt;

    interrupt_begin(&interrupt);
    int status = message_flush(run(argc, argv, context));
    if (interrupt_pending())
        status = EXIT_SIGNALLED + interrupt_pending();
    interrupt_end(&interrupt);
    return status;
}
