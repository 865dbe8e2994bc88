#include "watch/watch_environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define INJECTION "CUDA_INJECTION64_PATH"
#define ADDED 3
#define REPLAYED 4 /* batches of each loader that are kept and shown again */

/* --- variables -------------------------------------------------------------------------------- */

struct variables {
    char *added[ADDED]; /* "NAME=value"; NULL: not added */
};

static char *variable_make(const char *name, const char *value, const char *behind)
{
    size_t len = strlen(name) + strlen(value) + strlen(behind) + 3;
    char *text = memory_alloc(len);
    if (text)
        snprintf(text, len, behind[0] ? "%s=%s:%s" : "%s=%s%s", name, value, behind);
    return text;
}

static int replaced(const struct variables *variables, const char *variable)
{
    for (int i = 0; i < ADDED; i++) {
        const char *added = variables->added[i];
        size_t len = added ? (size_t)(strchr(added, '=') - added) + 1 : 0;
        if (len && !strncmp(variable, added, len))
            return 1;
    }
    return 0;
}

/* One block: the list, and the texts behind it. */
static stk_status join(char ***out, const struct variables *variables, struct stk_error *err)
{
    size_t count = 0, bytes = 0;
    for (char **variable = environ; variable && *variable; variable++, count++)
        bytes += strlen(*variable) + 1;
    for (int i = 0; i < ADDED; i++)
        bytes += variables->added[i] ? strlen(variables->added[i]) + 1 : 0;
    size_t list = (count + ADDED + 1) * sizeof(char *);
    char **block = memory_alloc(list + bytes);
    if (!block)
        return fail_memory(err, list + bytes);
    char *text = (char *)block + list;
    size_t at = 0;
    for (size_t i = 0; i < count + ADDED; i++) {
        const char *from = i < count ? environ[i] : variables->added[i - count];
        if (!from || (i < count && replaced(variables, from)))
            continue;
        size_t len = strlen(from) + 1;
        memcpy(text, from, len);
        block[at++] = text;
        text += len;
    }
    block[at] = NULL;
    *out = block;
    return STK_OK;
}

/* Of a watch that this one runs in: what is inside is told to the inner one. */
static int is_outer(const char *path, const char *name)
{
    const char *outer = getenv("STOKER_WATCH");
    size_t len = outer ? strlen(outer) : 0;
    return len > 0 && !strncmp(path, outer, len) && !strcmp(path + len, name);
}

/* The user's PYTHONPATH, without the hook of an outer watch. */
static const char *python_path(void)
{
    const char *old = getenv("PYTHONPATH");
    if (!old)
        return "";
    size_t first = strcspn(old, ":");
    char *copy = memory_text(old, first);
    if (copy && is_outer(copy, "/site"))
        old += first + (old[first] == ':');
    memory_free(copy);
    return old;
}

stk_status environment_make(char ***out, const struct run_folder *folder, char *notice,
                            size_t notice_cap, struct stk_error *err)
{
    struct variables variables = {0};
    const char *injected = getenv(INJECTION);
    const char *library = run_folder_library(folder);
    stk_status status = STK_OK;
    *out = NULL;
    notice[0] = '\0';
    variables.added[0] = variable_make("STOKER_WATCH", run_folder_path(folder), "");
    variables.added[1] = variable_make("PYTHONPATH", run_folder_site(folder), python_path());
    if (injected && injected[0] && !is_outer(injected, "/libstoker_inject.so"))
        snprintf(notice, notice_cap,
                 INJECTION " was set to %.300s, which was left so: what the GPU did could not be "
                           "recorded.",
                 injected);
    else if (library)
        variables.added[2] = variable_make(INJECTION, library, "");
    else
        snprintf(notice, notice_cap,
                 "No folder was found that libraries may be run from, so what a GPU did could not "
                 "be recorded: set TMPDIR to one.");
    if (!variables.added[0] || !variables.added[1] ||
        (library && !notice[0] && !variables.added[2]))
        status = fail_memory(err, 0);
    if (!status)
        status = join(out, &variables, err);
    for (int i = 0; i < ADDED; i++)
        memory_free(variables.added[i]);
    return status;
}

/* --- options ---------------------------------------------------------------------------------- */

static void add_member(struct text *out, const struct json *loader, const char *name)
{
    const struct json *value = json_member(loader, name);
    const char *words;
    int64_t number;
    int flag;
    json_add_string(out, name, strlen(name));
    if (json_text(value, &words)) {
        text_add(out, ":", 1);
        json_add_string(out, words, strlen(words));
    } else if (json_i64(value, &number)) {
        text_format(out, ":%" PRId64, number);
    } else if (json_bool(value, &flag)) {
        text_format(out, ":%s", flag ? "true" : "false");
    } else {
        text_format(out, ":null");
    }
}

/* Batches of an epoch; where the loader does not say, as many as it handed out. */
static void add_epoch(struct text *out, const struct json *loader)
{
    int64_t batches = -1;
    uint64_t handed_out, epochs;
    (void)json_i64(json_member(loader, "batches"), &batches);
    if (batches < 0 && json_u64(json_member(loader, "handed_out"), &handed_out) &&
        json_u64(json_member(loader, "epochs"), &epochs) && epochs > 0)
        batches = (int64_t)(handed_out / epochs);
    text_format(out, ",\"batches_per_epoch\":%" PRId64, batches);
}

static void add_loader(struct text *out, const struct json *loader)
{
    static const char *const members[] = {
        "id",         "rank",       "kind",    "class",   "dataset", "file",      "line",
        "batch_size", "pin_memory", "batches", "workers", "epochs",  "handed_out"};
    text_add(out, "{", 1);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (i)
            text_add(out, ",", 1);
        add_member(out, loader, members[i]);
    }
    add_epoch(out, loader);
    text_add(out, "}", 1);
}

static stk_status add_replay(struct text *out, const char *run, struct stk_error *err)
{
    struct json *json = NULL;
    stk_status status = json_parse(&json, run, strlen(run), err);
    if (status)
        return status;
    const struct json *loaders = json_member(json, "loaders");
    if (json_count(loaders) == 0) {
        status = fail(err, STK_UNSUPPORTED, "no loader was seen, so there is nothing to replay");
        fail_remedy(err, "torch's DataLoader and Stoker's Loader are seen, where the hook is");
        json_free(json);
        return status;
    }
    text_format(out, "{\"batches\":%d,\"loaders\":[", REPLAYED);
    for (size_t i = 0; i < json_count(loaders); i++) {
        if (i)
            text_add(out, ",", 1);
        add_loader(out, json_item(loaders, i));
    }
    text_format(out, "]}");
    json_free(json);
    return STK_OK;
}

stk_status environment_options(struct text *out, const struct stk_watch_options *options,
                               uint64_t until, struct stk_error *err)
{
    stk_status status = STK_OK;
    uint32_t hz = options->stack_hz == 0            ? 100
                  : options->stack_hz == UINT32_MAX ? 0
                                                    : options->stack_hz;
    text_format(out, "{\"stack_hz\":%u,\"until_s\":", hz);
    if (until)
        text_format(out, "%" PRIu64 ".%09" PRIu64, until / 1000000000u, until % 1000000000u);
    else
        text_format(out, "null");
    text_format(out, ",\"stages\":%s,\"replay\":", options->trace_path ? "true" : "false");
    if (options->replay)
        status = add_replay(out, options->replay, err);
    else
        text_format(out, "null");
    text_format(out, "}\n");
    if (!status && out->failed)
        status = fail_memory(err, out->len);
    return status;
}
