/* `stoker verify`: reads and decodes everything, and lists what is bad. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "source.h"

struct verify_arguments {
    struct arguments base;
    uint32_t threads;
};

/* One bad sample, already in the form it will be printed in: an error struct is far larger. */
struct finding {
    uint64_t sample;
    char *line;
};

struct findings {
    pthread_mutex_t lock; /* of all below: findings come from any thread */
    struct finding *items;
    size_t count, cap;
    int as_json, failed;
};

static void write_json(FILE *stream, const struct stk_bad *bad)
{
    struct json_out json = {.stream = stream};
    const struct stk_error *err = &bad->error;

    json_out_object(&json, NULL);
    json_out_text(&json, "object", err->object[0] ? err->object : NULL);
    json_out_place(&json, "offset", err->offset);
    json_out_place(&json, "sample", bad->sample);
    json_out_text(&json, "key", err->key[0] ? err->key : NULL);
    json_out_text(&json, "field", err->field[0] ? err->field : NULL);
    json_out_text(&json, "reason", err->what);
    json_out_end_object(&json);
}

static void write_text(FILE *stream, const struct stk_bad *bad)
{
    char words[2048];

    message_words(&bad->error, words, sizeof(words));
    words[strcspn(words, "\n")] = 0; /* one line a sample; the remedy is the same for all */
    fprintf(stream, "bad: %s", words);
    if (bad->error.sample == STK_NOWHERE && bad->sample != STK_NOWHERE)
        fprintf(stream, " (sample %" PRIu64 ")", bad->sample);
    fputc('\n', stream);
}

static char *make_line(const struct stk_bad *bad, int as_json)
{
    char *line = NULL;
    size_t len;
    FILE *stream = open_memstream(&line, &len);

    if (!stream)
        return NULL;
    if (as_json)
        write_json(stream, bad);
    else
        write_text(stream, bad);
    if (fclose(stream)) {
        free(line);
        line = NULL;
    }
    return line;
}

static void add_finding(void *user, const struct stk_bad *bad)
{
    struct findings *findings = user;
    char *line = make_line(bad, findings->as_json);

    pthread_mutex_lock(&findings->lock);
    if (line && findings->count == findings->cap) {
        size_t cap = findings->cap ? 2 * findings->cap : 64;
        struct finding *items = realloc(findings->items, cap * sizeof(*items));
        if (items) {
            findings->items = items;
            findings->cap = cap;
        }
    }
    if (line && findings->count < findings->cap) {
        findings->items[findings->count++] = (struct finding){bad->sample, line};
        line = NULL;
    } else {
        findings->failed = 1;
    }
    pthread_mutex_unlock(&findings->lock);
    free(line);
}

static void findings_free(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].line);
    free(findings->items);
}

static int compare(const void *left, const void *right)
{
    const struct finding *a = left, *b = right;

    if (a->sample != b->sample)
        return a->sample < b->sample ? -1 : 1;
    return strcmp(a->line, b->line);
}

static void print_json(const struct findings *findings, const struct stk_dataset *dataset,
                       uint64_t bad, double time)
{
    const struct stk_series_info *series = dataset ? stk_dataset_series(dataset) : NULL;
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_number(&json, "samples", dataset ? stk_dataset_samples(dataset) : 0);
    if (series)
        json_out_number(&json, "rows", series->rows);
    json_out_number(&json, "bad_count", bad);
    json_out_array(&json, "bad");
    for (size_t i = 0; i < findings->count; i++)
        printf("%s%s", i ? ", " : "", findings->items[i].line);
    json_out_end_array(&json);
    json_out_real(&json, "seconds", time);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

/* A series is read row by row, not window by window. */
static void print_text(const struct findings *findings, const struct stk_dataset *dataset,
                       uint64_t bad, double time)
{
    const struct stk_series_info *series = stk_dataset_series(dataset);

    for (size_t i = 0; i < findings->count; i++)
        fputs(findings->items[i].line, stdout);
    if (series)
        printf("%" PRIu64 " rows of %" PRIu64 " entities read in %.2f s, %" PRIu64 " bad\n",
               series->rows, series->entity_count, time, bad);
    else
        printf("%" PRIu64 " samples read in %.2f s, %" PRIu64 " bad\n",
               stk_dataset_samples(dataset), time, bad);
}

static int verify(struct stk_dataset *dataset, const struct verify_arguments *arguments)
{
    struct findings findings = {.lock = PTHREAD_MUTEX_INITIALIZER, .as_json = arguments->base.json};
    uint64_t bad = 0;
    struct timespec from, to;
    struct stk_error err;
    int status;

    clock_gettime(CLOCK_MONOTONIC, &from);
    if (stk_dataset_verify(dataset, arguments->threads, add_finding, &findings, &bad, &err)) {
        status = message_error(&err);
        goto done;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double time = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    if (findings.count)
        qsort(findings.items, findings.count, sizeof(*findings.items), compare);
    if (arguments->base.json)
        print_json(&findings, dataset, bad, time);
    else
        print_text(&findings, dataset, bad, time);
    status = bad ? EXIT_FAILED : EXIT_DONE;
    if (findings.failed)
        status = message_failed("out of memory: not all bad samples are listed");
done:
    findings_free(&findings);
    return status;
}

/* An object that cannot be indexed is bad too: scripts find it where they look for bad samples. Its
 * words are for people. */
static int cannot_open(const struct verify_arguments *arguments, const struct stk_error *err)
{
    struct findings findings = {.lock = PTHREAD_MUTEX_INITIALIZER, .as_json = 1};
    const struct stk_bad bad = {.sample = err->sample, .error = *err};
    int of_the_data = err->status == STK_CORRUPT || err->status == STK_TRUNCATED ||
                      err->status == STK_SHAPE || err->status == STK_LIMIT ||
                      err->status == STK_UNSUPPORTED;

    if (arguments->base.json && of_the_data && err->object[0]) {
        add_finding(&findings, &bad);
        print_json(&findings, NULL, 1, 0);
        findings_free(&findings);
    }
    return message_error(err);
}

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct verify_arguments arguments = {0};
    struct stk_dataset *dataset;
    struct stk_error err;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    if (source_open(context, &arguments.base, arguments.base.words, arguments.base.word_count,
                    &dataset, &err))
        return cannot_open(&arguments, &err);
    status = verify(dataset, &arguments);
    stk_dataset_close(dataset);
    return status;
}

static const struct option options[] = {
    {"threads", 0, OPTION_U32, offsetof(struct verify_arguments, threads), "N",
     "threads that read and decode (one a core)"},
    {0},
};

const struct command cmd_verify = {
    .name = "verify",
    .summary = "Reads and decodes everything: every field of every sample, and the index.\n"
               "Lists each bad sample; exit status 1 when there is one.",
    .usage = "SRC... [options]",
    .examples = "  stoker verify shards/\n"
                "  stoker verify 'train-{0000..0999}.tar' --json > bad.json\n",
    .options = options,
    .opens = OPENS_WINDOWS,
    .min_words = 1,
    .max_words = INT32_MAX,
    .word = "SRC",
    .run = run,
};
