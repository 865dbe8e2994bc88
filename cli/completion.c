#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"

/* The words of "a|b|c", separated by spaces. */
static void print_choices(const char *choices)
{
    for (; *choices; choices++)
        putchar(*choices == '|' ? ' ' : *choices);
}

/* What `stoker help` tells about. */
static void print_topics(void)
{
    for (int row = 0; commands_at(row); row++)
        printf("%s ", commands_at(row)->name);
    printf("transforms");
}

/* --- bash ------------------------------------------------------------------------------------ */

static void bash_options(const struct command *command)
{
    for (int i = 0; options_table(command, i); i++)
        for (const struct option *option = options_table(command, i); option->name; option++) {
            printf(" --%s", option->name);
            if (option->letter)
                printf(" -%c", option->letter);
        }
}

static void bash_choices(const struct command *command)
{
    for (const struct option *option = options_table(command, 0); option->name; option++)
        if (option->kind == OPTION_CHOICE) {
            printf("        %s:--%s) words=\"", command->name, option->name);
            print_choices(option->argument);
            printf("\" ;;\n");
        }
}

static void bash_print(void)
{
    printf("# Completion of the stoker command for bash. Made by: stoker help --completion bash\n"
           "_stoker()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local command=${COMP_WORDS[1]} words=\n\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (int row = 0; commands_at(row); row++)
        printf("%s%s", row ? " " : "", commands_at(row)->name);
    printf("\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case $command:$before in\n");
    for (int row = 0; commands_at(row); row++)
        bash_choices(commands_at(row));
    printf("    esac\n"
           "    case $command:$COMP_CWORD:$word in\n"
           "        *:-*) ;;\n");
    for (int row = 0; commands_at(row); row++)
        if (commands_at(row)->kinds)
            printf("        %s:2:*) words=\"%s\" ;;\n", commands_at(row)->name,
                   commands_at(row)->kinds);
    printf("        help:2:*) words=\"");
    print_topics();
    printf("\" ;;\n"
           "    esac\n"
           "    if [ -z \"$words\" ] && [[ $word == -* ]]; then\n"
           "        case $command in\n");
    for (int row = 0; commands_at(row); row++) {
        printf("            %s) words=\"", commands_at(row)->name);
        bash_options(commands_at(row));
        printf("\" ;;\n");
    }
    printf("        esac\n"
           "    fi\n"
           "    [ -n \"$words\" ] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "}\n"
           "complete -o default -F _stoker stoker\n");
}

/* --- zsh ------------------------------------------------------------------------------------- */

/* Text inside '...[...]' of _arguments: quotes, brackets and colons mean something there. */
static void zsh_text(const char *text)
{
    for (; *text && *text != '\n'; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr("[]:\\", *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

static void zsh_option(const struct option *option, const char *dashes, const char *name)
{
    printf(" \\\n                '%s%s", dashes, name);
    if (option->argument && !strcmp(dashes, "--"))
        putchar('=');
    putchar('[');
    zsh_text(option->help);
    putchar(']');
    if (option->kind == OPTION_CHOICE) {
        printf(":%s:(", option->name);
        print_choices(option->argument);
        putchar(')');
    } else if (option->argument) {
        printf(":%s:_files", option->name);
    }
    putchar('\'');
}

static void zsh_command(const struct command *command)
{
    printf("            %s)\n                _arguments", command->name);
    for (int i = 0; options_table(command, i); i++)
        for (const struct option *option = options_table(command, i); option->name; option++) {
            const char letter[2] = {option->letter, 0};
            zsh_option(option, "--", option->name);
            if (option->letter)
                zsh_option(option, "-", letter);
        }
    if (command->kinds)
        printf(" \\\n                '1:kind:(%s)'", command->kinds);
    if (!strcmp(command->name, "help")) {
        printf(" \\\n                '1:topic:(");
        print_topics();
        printf(")'");
    }
    printf(" \\\n                '*:file:_files'\n                ;;\n");
}

static void zsh_print(void)
{
    printf("#compdef stoker\n"
           "# Completion of the stoker command for zsh. Made by: stoker help --completion zsh\n"
           "_stoker()\n{\n"
           "    local line state\n"
           "    local -a commands\n"
           "    commands=(\n");
    for (int row = 0; commands_at(row); row++) {
        printf("        '%s:", commands_at(row)->name);
        zsh_text(commands_at(row)->summary);
        printf("'\n");
    }
    printf("    )\n"
           "    _arguments -C '1: :->command' '*:: :->rest'\n"
           "    case $state in\n"
           "    command) _describe command commands ;;\n"
           "    rest)\n"
           "        case $line[1] in\n");
    for (int row = 0; commands_at(row); row++)
        zsh_command(commands_at(row));
    printf("        esac\n"
           "        ;;\n"
           "    esac\n"
           "}\n"
           "_stoker \"$@\"\n");
}

void completion_print(enum completion_shell shell)
{
    if (shell == COMPLETION_BASH)
        bash_print();
    else if (shell == COMPLETION_ZSH)
        zsh_print();
}
