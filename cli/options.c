#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exit_status.h"
#include "message.h"
#include "option_value.h"

#define AT(member) offsetof(struct arguments, member)

const struct option options_common[] = {
    /* --json first: options_table leaves it out */
    {"json", 0, OPTION_FLAG, AT(json), NULL, "print JSON"},
    {"help", 'h', OPTION_FLAG, AT(help), NULL, "show this and end"},
    {0},
};

const struct option options_dataset[] = {
    {"format", 0, OPTION_TEXT, AT(format), "NAME",
     "tar, npy, npz, raw, folder, series or tokens; else found out"},
    {"dtype", 0, OPTION_TEXT, AT(dtype), "TYPE", "raw arrays and tokens: the type of one element"},
    {"shape", 0, OPTION_SHAPE, AT(shape), "N,N,...", "raw arrays: the shape of one sample"},
    {"fields", 0, OPTION_LIST, AT(fields), "A,B,...",
     "only these fields; \"jpg;png\" the first there is, \"txt?\" may be missing, \"x=tensor\" "
     "sets the kind: tensor, int, text, json, bytes, image, audio, video or points"},
    {"index", 0, OPTION_TEXT, AT(index), "PATH", "where the index is kept"},
    {"reindex", 0, OPTION_FLAG, AT(reindex), NULL, "build the index anew"},
    {"chunk-limit", 0, OPTION_SIZE, AT(chunk_limit), "SIZE",
     "most bytes a compressed shard may decode to (1GiB)"},
    {0},
};

const struct option options_network[] = {
    {"cache", 0, OPTION_TEXT, AT(cache), "FOLDER",
     "keep what is fetched here, for all processes of this machine (STOKER_CACHE); \"\": nowhere"},
    {"cache-size", 0, OPTION_SIZE, AT(cache_size), "SIZE",
     "most that the cache may take (STOKER_CACHE_SIZE; a tenth of the disk)"},
    {"ca", 0, OPTION_TEXT, AT(ca), "FILE",
     "trust these certificates instead of the system's (STOKER_CA)"},
    {"timeout", 0, OPTION_U32, AT(timeout), "SECONDS",
     "how long one read or list may take with all its retries (STOKER_TIMEOUT; 60)"},
    {0},
};

const struct option options_windows[] = {
    {"window", 0, OPTION_U64, AT(windows.window), "ROWS", "rows of x"},
    {"horizon", 0, OPTION_U64, AT(windows.horizon), "ROWS", "rows of y; 0: no y"},
    {"stride", 0, OPTION_U64, AT(windows.stride), "ROWS", "rows from one window to the next"},
    {"gap", 0, OPTION_U64, AT(windows.gap), "ROWS", "rows between x and y"},
    {"min-history", 0, OPTION_U64, AT(windows.min_history), "ROWS",
     "least rows up to the window's last one (all of the window; 1 with --pad)"},
    {"pad", 0, OPTION_FLAG, AT(windows.pad), NULL,
     "zeros before histories that are shorter than the window, and a mask x_mask"},
    {"split", 0, OPTION_TEXT, AT(windows.split), "NAME", "only this part: train, val or test"},
    {"features", 0, OPTION_LIST, AT(windows.features), "A,B,...", "columns of x, in this order"},
    {"labels", 0, OPTION_LIST, AT(windows.labels), "A,B,...", "columns of y"},
    {0},
};

static const struct option no_options[] = {{0}};

const struct option *options_table(const struct command *command, int number)
{
    switch (number) {
    case 0:
        return command->options ? command->options : no_options;
    case 1:
        return command->opens != OPENS_NOTHING ? options_dataset : no_options;
    case 2:
        return command->opens == OPENS_WINDOWS ? options_windows : no_options;
    case 3:
        return command->opens != OPENS_NOTHING ? options_network : no_options;
    case 4:
        return command->runs ? options_common + 1 : options_common;
    default:
        return NULL;
    }
}

/* --- nearest name ---------------------------------------------------------------------------- */

#define NEAREST_CAP 32 /* no name is longer */

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_CAP + 1];
    size_t a_len = strlen(a), b_len = strlen(b);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];

    if (a_len > NEAREST_CAP || b_len > NEAREST_CAP)
        return NEAREST_CAP;
    for (size_t j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = last[j] + 1 < best ? last[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
            row[j] = best;
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b_len];
}

const char *options_nearest(const char *typed, const char *const *words)
{
    size_t limit = strlen(typed) / 3 + 1;
    const char *nearest = NULL;

    for (; *words; words++) {
        size_t distance = edit_distance(typed, *words);
        if (distance <= limit && (!nearest || distance < edit_distance(typed, nearest)))
            nearest = *words;
        /* what was begun and not ended: "--batch" for "--batch-size" */
        if (!nearest && strlen(typed) >= 3 && !strncmp(typed, *words, strlen(typed)))
            nearest = *words;
    }
    return nearest;
}

/* --- parsing --------------------------------------------------------------------------------- */

static const struct option *find_option(const struct command *command, const char *name, size_t len,
                                        char letter)
{
    for (int i = 0; options_table(command, i); i++)
        for (const struct option *option = options_table(command, i); option->name; option++)
            if (letter ? option->letter == letter
                       : strlen(option->name) == len && !memcmp(option->name, name, len))
                return option;
    return NULL;
}

static int unknown_option(const struct command *command, const char *typed)
{
    const char *names[64];
    size_t count = 0;
    size_t dashes = strspn(typed, "-");
    char name[NEAREST_CAP + 1];

    for (int i = 0; options_table(command, i); i++)
        for (const struct option *option = options_table(command, i); option->name; option++)
            if (count < 63)
                names[count++] = option->name;
    names[count] = NULL;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(typed + dashes, "="), typed + dashes);
    const char *nearest = options_nearest(name, names);
    if (nearest)
        return message_usage(command->name, "there is no option %s; did you mean --%s?", typed,
                             nearest);
    return message_usage(command->name, "there is no option %s", typed);
}

/* Reads the option at argv[*i] and moves *i past its argument. Returns 0 or an exit status. */
static int read_option(const struct command *command, struct arguments *arguments, int argc,
                       char **argv, int *i)
{
    char *typed = argv[*i];
    int is_long = typed[1] == '-';
    char *name = typed + 2;
    size_t len = is_long ? strcspn(name, "=") : 0;
    const struct option *option = find_option(command, name, len, is_long ? 0 : typed[1]);
    char *value = is_long ? (name[len] ? name + len + 1 : NULL) : (typed[2] ? typed + 2 : NULL);

    if (!option)
        return unknown_option(command, typed);
    if (option->kind == OPTION_FLAG && value)
        return message_usage(command->name, "--%s takes no argument", option->name);
    if (option->kind != OPTION_FLAG && !value) {
        if (*i + 1 >= argc)
            return message_usage(command->name, "--%s needs an argument: %s", option->name,
                                 option->argument);
        value = argv[++*i];
    }
    const char *wanted = option_value_read(option, value, (char *)arguments + option->at);
    if (wanted)
        return message_usage(command->name, "--%s %s: %s was expected", option->name, value,
                             wanted);
    return 0;
}

static int check_words(const struct command *command, const struct arguments *arguments)
{
    if (arguments->word_count < command->min_words)
        return message_usage(command->name, "%s is missing", command->word);
    if (arguments->word_count > command->max_words)
        return message_usage(command->name, "%s is one argument too many",
                             arguments->words[command->max_words]);
    return 0;
}

int options_read(const struct command *command, struct arguments *arguments, int argc, char **argv,
                 int *status)
{
    struct option_windows *windows = &arguments->windows;
    int only_words = 0;

    windows->window = windows->horizon = windows->stride = UINT64_MAX;
    windows->gap = windows->min_history = UINT64_MAX;
    /* Words move to the front of argv: there is always room, they come from further back. */
    arguments->words = argv;
    *status = 0;
    for (int i = 1; i < argc && !*status; i++) {
        if (!only_words && !strcmp(argv[i], "--")) {
            only_words = 1;
            continue;
        }
        only_words |= command->runs && (argv[i][0] != '-' || !argv[i][1]);
        if (!only_words && argv[i][0] == '-' && argv[i][1])
            *status = read_option(command, arguments, argc, argv, &i);
        else
            arguments->words[arguments->word_count++] = argv[i];
    }
    if (*status)
        return 1;
    if (arguments->help) {
        options_help(command);
        return 1;
    }
    *status = check_words(command, arguments);
    return *status != 0;
}

/* --- help ------------------------------------------------------------------------------------ */

#define HELP_COLUMN 28
#define HELP_WIDTH 92

/* Prints words from HELP_COLUMN on, the first line behind what is there already. */
static void help_wrapped(const char *words)
{
    int column = HELP_COLUMN;

    while (*words) {
        int len = (int)strcspn(words, " ");
        if (column > HELP_COLUMN && column + len > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        column += printf("%s%.*s", column > HELP_COLUMN ? " " : "", len, words);
        words += len;
        words += strspn(words, " ");
    }
    putchar('\n');
}

static void help_table(const char *title, const struct option *option)
{
    if (!option->name)
        return;
    printf("\n%s\n", title);
    for (; option->name; option++) {
        int len = option->letter ? printf("  -%c, --%s", option->letter, option->name)
                                 : printf("  --%s", option->name);
        if (option->argument)
            len += printf(" %s", option->argument);
        if (len + 2 > HELP_COLUMN)
            printf("\n%*s", HELP_COLUMN, "");
        else
            printf("%*s", HELP_COLUMN - len, "");
        help_wrapped(option->help);
    }
}

void options_help(const struct command *command)
{
    printf("stoker %s %s\n\n%s\n", command->name, command->usage, command->summary);
    help_table("Options", options_table(command, 0));
    help_table("Dataset options", options_table(command, 1));
    help_table("Series options (else as the series says)", options_table(command, 2));
    help_table("Options for data on the network", options_table(command, 3));
    help_table("Always", options_table(command, 4));
    printf("\nExamples\n%s", command->examples);
}
