/* options.h -- one table of options a command: it drives parsing, --help and completion.
 * Owns: nothing; words point into argv.   Threads: any.   Errors: words on standard error and
 * EXIT_USAGE.   Not here: the commands themselves (commands.h). */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/tensor.h"

struct stk_context;

/* What an option fills in the command's arguments. */
enum option_kind {
    OPTION_FLAG,   /* int: 1 */
    OPTION_TEXT,   /* const char * */
    OPTION_U32,    /* uint32_t */
    OPTION_U64,    /* uint64_t */
    OPTION_SIZE,   /* uint64_t: "512MiB" */
    OPTION_CHOICE, /* int: the number of the word among argument's "a|b|c" */
    OPTION_DTYPE,  /* enum stk_dtype */
    OPTION_SHAPE,  /* struct option_shape: "16,112,112,3" */
    OPTION_LIST,   /* struct option_list: "jpg,cls" */
    OPTION_EACH    /* struct option_list: one word each time that it is given */
};

struct option {
    const char *name; /* "batch-size", typed as --batch-size */
    char letter;      /* 'o', typed as -o; 0: none */
    enum option_kind kind;
    size_t at;            /* offsetof in the command's arguments */
    const char *argument; /* "N"; NULL for a flag */
    const char *help;
};

struct option_shape {
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
};

#define OPTION_LIST_CAP 4096
struct option_list {
    uint32_t count;
    const char *words[OPTION_LIST_CAP];
};

/* How a series is cut into windows: see struct stk_window_options. */
struct option_windows {
    uint64_t window, horizon, stride, gap, min_history; /* UINT64_MAX: as the series says */
    int pad;
    const char *split;
    struct option_list features, labels;
};

/* What every command's arguments begin with. */
struct arguments {
    int json, help;
    char **words; /* what is no option, in order: a part of argv */
    int word_count;
    /* of the commands that open a dataset */
    const char *format, *dtype, *index;
    struct option_shape shape;
    struct option_list fields;
    int reindex;
    int share_index; /* set by the command, not by an option */
    uint64_t chunk_limit;
    const char *cache, *ca; /* of data on the network, as all up to timeout */
    uint64_t cache_size;
    uint32_t timeout;
    struct option_windows windows;
};

/* Which of the shared options a command takes. */
enum option_opens {
    OPENS_NOTHING,
    OPENS_DATASET,
    OPENS_WINDOWS /* a dataset that may be a series, cut as its options say */
};

struct command {
    const char *name;             /* "ls" */
    const char *summary;          /* one line */
    const char *usage;            /* what follows the name: "SRC... [options]" */
    const char *examples;         /* lines, indented by two */
    const char *kinds;            /* words that the first word may be: "tensors"; NULL: any */
    const struct option *options; /* its own; a row with a NULL name ends them */
    enum option_opens opens;
    int min_words, max_words;
    int runs;         /* not 0: the words are another program and its arguments. The first one ends
                         the options, and --json is the command's own */
    const char *word; /* what is missing when there are fewer than min_words */
    int (*run)(const struct command *command, struct stk_context *context, int argc, char **argv);
};

/* Tables that commands share. */
extern const struct option options_common[];
extern const struct option options_dataset[];
extern const struct option options_network[];
extern const struct option options_windows[];

/* Reads argv[1 ..] into arguments (defaults already there, but those of windows), which is the
 * first member of the command's own struct. 0: go on. Else the command is over and *status is its
 * exit status: --help was asked for, or the usage is bad and standard error says how. */
int options_read(const struct command *command, struct arguments *arguments, int argc, char **argv,
                 int *status);
/* The text of --help on standard output. */
void options_help(const struct command *command);
/* The tables of a command in the order of --help: number 0, 1, ...; NULL past the last. */
const struct option *options_table(const struct command *command, int number);

/* The word of a NULL-ended list that is nearest to what was typed; NULL when none is near. */
const char *options_nearest(const char *typed, const char *const *words);

#endif
