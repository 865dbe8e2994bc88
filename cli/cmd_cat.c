/* `stoker cat`: the stored bytes of one field of one sample. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exit_status.h"
#include "message.h"
#include "option_value.h"
#include "source.h"

struct cat_arguments {
    struct arguments base;
    int key;
};

/* A number as one writes it is a sample's number, where there are so many samples; all else,
 * "000000" too, is a key. */
static int is_number(const char *word, uint64_t samples, uint64_t *number)
{
    if (word[0] == '0' && word[1])
        return 0;
    return samples && option_value_number(word, samples - 1, number);
}

static stk_status find_sample(const struct stk_dataset *dataset, const char *word, int key,
                              uint64_t *sample, struct stk_error *err)
{
    if (!key && is_number(word, stk_dataset_samples(dataset), sample))
        return STK_OK;
    return stk_dataset_find(dataset, word, sample, err);
}

/* The library speaks of a key; whoever typed a number meant the sample. */
static int no_sample(const struct stk_dataset *dataset, const char *word,
                     const struct stk_error *err)
{
    if (err->status != STK_NOT_FOUND || word[strspn(word, "0123456789")])
        return message_error(err);
    return message_failed("there is no sample %s, and none of that key\n  the dataset has %" PRIu64
                          " samples, counted from 0",
                          word, stk_dataset_samples(dataset));
}

static int find_field(const struct stk_dataset *dataset, const char *name, uint32_t *field)
{
    for (*field = 0; *field < stk_dataset_field_count(dataset); ++*field)
        if (!strcmp(stk_dataset_field(dataset, *field)->name, name))
            return 1;
    return 0;
}

static int no_field(const struct stk_dataset *dataset, const char *name)
{
    char names[512];
    size_t len = 0;

    names[0] = 0;
    for (uint32_t f = 0; f < stk_dataset_field_count(dataset) && len < sizeof(names); f++)
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", f ? ", " : "",
                                stk_dataset_field(dataset, f)->name);
    return message_failed(
        "there is no field %s\n  the fields are: %s%s", name, names,
        stk_dataset_series(dataset) ? "; entity, start, time and y_time with --fields" : "");
}

static int print(struct stk_dataset *dataset, const struct cat_arguments *arguments, char **words)
{
    struct stk_reader *reader = NULL;
    struct stk_bytes bytes;
    struct stk_place place;
    struct stk_error err;
    uint64_t sample;
    uint32_t field;
    int status = EXIT_DONE;

    if (find_sample(dataset, words[0], arguments->key, &sample, &err))
        return no_sample(dataset, words[0], &err);
    if (!find_field(dataset, words[1], &field))
        return no_field(dataset, words[1]);
    stk_status found = stk_dataset_place(dataset, sample, field, &place, &err);
    if (found == STK_NOT_FOUND)
        return message_failed("sample %" PRIu64 " has no field %s", sample, words[1]);
    if (found || stk_reader_new(dataset, &reader, &err) ||
        stk_reader_bytes(reader, sample, field, &bytes, &err))
        status = message_error(&err);
    else
        fwrite(bytes.data, 1, bytes.len, stdout);
    stk_reader_free(reader);
    return status;
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct cat_arguments arguments = {0};
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    int sources = arguments.base.word_count - 2;
    if (source_open(context, &arguments.base, arguments.base.words, sources, &dataset, &err))
        return message_error(&err);
    status = print(dataset, &arguments, arguments.base.words + sources);
    status = message_flush(status); /* the reader's bytes are out before it is gone */
    stk_dataset_close(dataset);
    return status;
}

static const struct option options[] = {
    {"key", 0, OPTION_FLAG, offsetof(struct cat_arguments, key), NULL,
     "the sample is named by its key, even if that is a number"},
    {0},
};

const struct command cmd_cat = {
    .name = "cat",
    .summary = "Writes the stored bytes of one field to standard output.\n"
               "A number names the sample of that number; all else (000012 too) is a key.",
    .usage = "SRC... SAMPLE|KEY FIELD [options]",
    .examples = "  stoker cat 'shard-{0000..0009}.tar' 7 npy > seven.npy\n"
                "  stoker cat shards/ 000007 cls\n",
    .options = options,
    .opens = OPENS_WINDOWS,
    .min_words = 3,
    .max_words = INT32_MAX,
    .word = "SRC, SAMPLE or FIELD",
    .run = run,
};
