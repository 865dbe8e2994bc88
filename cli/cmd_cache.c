/* `stoker cache`: what this machine keeps of data on the network. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stoker/cache.h"
#include "exit_status.h"
#include "json_out.h"
#include "message.h"
#include "options.h"

struct cache_arguments {
    struct arguments base;
    const char *folder;
};

/* --- ls -------------------------------------------------------------------------------------- */

static void ls_json(void *user, const struct stk_cache_object *object)
{
    struct json_out json = {.stream = stdout};

    (void)user;
    json_out_object(&json, NULL);
    json_out_text(&json, "uri", object->uri[0] ? object->uri : NULL);
    json_out_number(&json, "size", object->size);
    json_out_number(&json, "cached_bytes", object->cached_bytes);
    json_out_number(&json, "blocks", object->blocks);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static void ls_text(void *user, const struct stk_cache_object *object)
{
    char cached[24], size[24];
    double share = object->size ? (double)object->cached_bytes / (double)object->size : 1;

    (void)user;
    printf("%10s of %10s %3.0f %%  ", message_size(object->cached_bytes, cached),
           message_size(object->size, size), 100 * share);
    if (object->uri[0])
        message_word(object->uri, strlen(object->uri), 0);
    else
        printf("(not named)");
    putchar('\n');
}

static int run_ls(struct stk_context *context, const struct cache_arguments *arguments)
{
    struct stk_error err;

    (void)context;
    if (stk_cache_list(arguments->folder, arguments->base.json ? ls_json : ls_text, NULL, &err))
        return message_error(&err);
    return EXIT_DONE;
}

/* --- stat ------------------------------------------------------------------------------------ */

static void stat_json(const struct stk_cache_stat *stat)
{
    struct json_out json = {.stream = stdout};

    json_out_object(&json, NULL);
    json_out_number(&json, "limit", stat->limit);
    json_out_number(&json, "disk_bytes", stat->disk_bytes);
    json_out_number(&json, "cached_bytes", stat->cached_bytes);
    json_out_number(&json, "objects", stat->objects);
    json_out_number(&json, "blocks", stat->blocks);
    json_out_number(&json, "files", stat->files);
    json_out_number(&json, "hidden_files", stat->hidden_files);
    json_out_number(&json, "old_layouts", stat->old_layouts);
    json_out_end_object(&json);
    json_out_end_line(&json);
}

static int run_stat(struct stk_context *context, const struct cache_arguments *arguments)
{
    char disk[24], limit[24], cached[24];
    struct stk_cache_stat stat;
    struct stk_error err;

    (void)context;
    if (stk_cache_stat(arguments->folder, &stat, &err))
        return message_error(&err);
    if (arguments->base.json) {
        stat_json(&stat);
        return EXIT_DONE;
    }
    printf("%s of %s on the disk, in %" PRIu64 " files\n", message_size(stat.disk_bytes, disk),
           message_size(stat.limit, limit), stat.files);
    printf("%s of %" PRIu64 " objects, in %" PRIu64 " blocks\n",
           message_size(stat.cached_bytes, cached), stat.objects, stat.blocks);
    if (stat.hidden_files)
        printf("%" PRIu64 " files of other users, which you may not read\n", stat.hidden_files);
    if (stat.old_layouts)
        printf("%" PRIu64 " folders of other versions: stoker cache clear removes them\n",
               stat.old_layouts);
    return EXIT_DONE;
}

/* --- verify ---------------------------------------------------------------------------------- */

static void verify_json(void *user, const char *uri, uint64_t offset)
{
    struct json_out *json = user;

    json_out_object(json, NULL);
    json_out_text(json, "uri", uri[0] ? uri : NULL);
    json_out_number(json, "offset", offset);
    json_out_end_object(json);
}

static void verify_text(void *user, const char *uri, uint64_t offset)
{
    (void)user;
    printf("damaged: ");
    message_word(uri, strlen(uri), 0);
    printf(" at %" PRIu64 "; dropped, it will be fetched again\n", offset);
}

static int run_verify(struct stk_context *context, const struct cache_arguments *arguments)
{
    struct json_out json = {.stream = stdout};
    struct stk_cache_stat stat;
    struct stk_error err;
    uint64_t bad = 0;
    stk_status status = stk_cache_stat(arguments->folder, &stat, &err);

    if (status)
        return message_error(&err);
    if (arguments->base.json) {
        json_out_object(&json, NULL);
        json_out_array(&json, "bad");
    }
    status = stk_cache_verify(context, arguments->folder,
                              arguments->base.json ? verify_json : verify_text, &json, &bad, &err);
    if (arguments->base.json) {
        json_out_end_array(&json);
        json_out_number(&json, "blocks", stat.blocks);
        json_out_number(&json, "bad_count", bad);
        json_out_end_object(&json);
        json_out_end_line(&json);
    } else if (!status) {
        printf("%" PRIu64 " blocks compared, %" PRIu64 " damaged\n", stat.blocks, bad);
    }
    if (status)
        return message_error(&err);
    return bad ? EXIT_FAILED : EXIT_DONE;
}

/* --- clear ----------------------------------------------------------------------------------- */

static int run_clear(struct stk_context *context, const struct cache_arguments *arguments)
{
    struct json_out json = {.stream = stdout};
    struct stk_cache_cleared cleared;
    struct stk_error err;
    char size[24];

    (void)context;
    if (stk_cache_clear(arguments->folder, &cleared, &err))
        return message_error(&err);
    if (arguments->base.json) {
        json_out_object(&json, NULL);
        json_out_number(&json, "files", cleared.files);
        json_out_number(&json, "bytes", cleared.bytes);
        json_out_number(&json, "kept_files", cleared.kept_files);
        json_out_end_object(&json);
        json_out_end_line(&json);
    } else {
        printf("%" PRIu64 " files removed, %s\n", cleared.files, message_size(cleared.bytes, size));
    }
    if (cleared.kept_files)
        return message_failed("%" PRIu64 " files of other users could not be removed",
                              cleared.kept_files);
    return EXIT_DONE;
}

/* --- the command ----------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct stk_context *context, const struct cache_arguments *arguments);
} kinds[] = {{"ls", run_ls}, {"stat", run_stat}, {"verify", run_verify}, {"clear", run_clear}};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int run(const struct command *command, struct stk_context *context, int argc, char **argv)
{
    struct cache_arguments arguments = {0};
    size_t kind = 0;
    int status;

    if (options_read(command, &arguments.base, argc, argv, &status))
        return status;
    while (kind < KINDS && strcmp(arguments.base.words[0], kinds[kind].name))
        kind++;
    if (kind == KINDS)
        return message_usage(command->name, "there is no cache %s; there are: %s",
                             arguments.base.words[0], command->kinds);
    if (!arguments.folder)
        arguments.folder = getenv("STOKER_CACHE");
    if (!arguments.folder || !arguments.folder[0])
        return message_usage(command->name, "which cache? --cache FOLDER is missing, and "
                                            "STOKER_CACHE is not set");
    return kinds[kind].run(context, &arguments);
}

static const struct option options[] = {
    {"cache", 0, OPTION_TEXT, offsetof(struct cache_arguments, folder), "FOLDER",
     "the cache's folder (STOKER_CACHE)"},
    {0},
};

const struct command cmd_cache = {
    .name = "cache",
    .summary = "Shows, checks or empties what this machine keeps of data on the network.\n"
               "ls lists the objects, stat adds up, verify compares all blocks with their\n"
               "checksums and drops the damaged ones (exit status 1 when there is one), clear\n"
               "removes everything. All may be done while others use the cache.",
    .usage = "ls|stat|verify|clear [options]",
    .examples = "  stoker cache stat --cache /scratch/cache\n"
                "  STOKER_CACHE=/scratch/cache stoker cache ls\n"
                "  stoker cache verify --cache /scratch/cache --json\n",
    .kinds = "ls stat verify clear",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .word = "what to do (ls, stat, verify or clear)",
    .run = run,
};
