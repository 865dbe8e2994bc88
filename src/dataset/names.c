#include "dataset/names.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/braces.h"
#include "dataset/remote_names.h"
#include "dataset/series_find.h"
#include "format/format.h"

#define NAMES_MAX_SOURCE 8192 /* bytes in one source; bounds the depth of nested braces */

/* ---- from what was written to an absolute path --------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static stk_status add_decoded(struct text *path, const char *text, const char *source,
                              struct stk_error *err)
{
    for (; *text; text++) {
        char byte = *text;
        if (byte == '%') {
            int high = hex_digit(text[1]), low = high < 0 ? -1 : hex_digit(text[2]);
            if (low < 0 || high * 16 + low == 0)
                return fail(err, STK_USAGE, "%s has a %% that no two hexadecimal digits follow",
                            source);
            byte = (char)(high * 16 + low);
            text += 2;
        }
        text_add(path, &byte, 1);
    }
    return STK_OK;
}

/* The length of "scheme" when source is scheme://..., else 0. */
static size_t scheme_length(const char *source)
{
    size_t len =
        strspn(source, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return len && !strncmp(source + len, "://", 3) ? len : 0;
}

static stk_status unknown_scheme(const char *source, int len, struct stk_error *err)
{
    stk_status status = fail(err, STK_UNSUPPORTED, "there is no store for %.*s://", len, source);
    fail_remedy(err, "stores: file, http, https, s3, gs, az, abfss");
    return status;
}

/* The path that a plain source or a file:// URI means, as it was written. */
static stk_status add_source(struct text *path, const char *source, struct stk_error *err)
{
    size_t scheme = scheme_length(source);
    if (!scheme) {
        text_add(path, source, strlen(source));
        return STK_OK;
    }
    const char *rest = source + scheme + 3;
    if (scheme != 4 || strncasecmp(source, "file", 4))
        return unknown_scheme(source, (int)scheme, err);
    if (!strncasecmp(rest, "localhost/", 10))
        rest += 9;
    if (*rest != '/')
        return fail(err, STK_UNSUPPORTED, "%s names another machine", source);
    return add_decoded(path, rest, source, err);
}

/* Takes out "//", "/./" and slashes at the end, so that one file has one name. ".." stays: what it
 * means depends on links. */
static void tidy(char *path)
{
    char *to = path;
    for (const char *from = path; *from;) {
        if (from[0] == '/' && from[1] == '/')
            from++;
        else if (from[0] == '/' && from[1] == '.' && (from[2] == '/' || !from[2]))
            from += 2;
        else
            *to++ = *from++;
    }
    if (to > path + 1 && to[-1] == '/')
        to--;
    if (to == path)
        *to++ = '/';
    *to = 0;
}

static stk_status absolute(struct text *out, const char *source, struct stk_error *err)
{
    struct text path = {0};
    stk_status status = add_source(&path, source, err);
    if (!status && path.failed)
        status = fail_memory(err, strlen(source));
    if (!status && (!path.len || strlen(source) > NAMES_MAX_SOURCE))
        status = fail(err, STK_USAGE, path.len ? "a source is too long" : "a source is empty");
    if (!status && path.data[0] != '/') {
        char *here = getcwd(NULL, 0);
        if (here)
            text_format(out, "%s/", here);
        else
            status = fail_errno(err, errno, "the working folder cannot be found");
        free(here); /* the C library's, not ours */
    }
    if (!status)
        text_add(out, path.data, path.len);
    if (!status && out->failed)
        status = fail_memory(err, path.len + out->len);
    if (!status)
        tidy(out->data);
    text_free(&path);
    return status;
}

/* ---- from a path to objects ---------------------------------------------------------------- */

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static stk_status no_series(const char *path, struct stk_error *err)
{
    stk_status status = fail(err, STK_USAGE, "%s is no series", path);
    fail_remedy(err, "name the folder that holds metadata.json and all_features.mmap");
    return status;
}

/* Notes the folder when path means a series; *taken says so. */
static stk_status add_series(struct names *names, const char *path, int *taken,
                             struct stk_error *err)
{
    size_t len = 0;
    *taken = 0;
    if (names->policy == NAMES_SERIES_FOUND)
        len = series_find(path);
    else if (names->policy == NAMES_SERIES_WANTED && !(len = series_find_folder(path)))
        return no_series(path, err);
    if (!len)
        return STK_OK;
    if (names->series) {
        stk_status status = fail(err, STK_USAGE,
                                 "%s and %s are two series, and one is opened at a "
                                 "time",
                                 names->series, path);
        fail_remedy(err, "open each by itself, or pack their tables into one");
        return status;
    }
    *taken = 1;
    names->series = memory_text(path, len);
    return names->series ? STK_OK : fail_memory(err, len);
}

static stk_status refuse_mixed(const struct names *names, struct stk_error *err)
{
    if (!names->series || !names->list.count)
        return STK_OK;
    return fail(err, STK_USAGE, "%s is a series, but %s is not: one dataset has one format",
                names->series, names->list.items[0].name);
}

static stk_status add_path(struct names *names, const char *path, struct stk_error *err)
{
    int taken;
    struct stat info;
    if (stat(path, &info)) {
        int number = errno == ENOTDIR ? ENOENT : errno;
        stk_status status = fail_errno(err, number, "cannot open it");
        fail_at(err, path, STK_NOWHERE);
        return status;
    }
    stk_status status = add_series(names, path, &taken, err);
    if (status || taken)
        return status;
    names->from_folder |= S_ISDIR(info.st_mode);
    return list_add(&names->list, path, err);
}

static stk_status add_glob(struct names *names, const char *pattern, struct stk_error *err)
{
    glob_t found = {0};
    stk_status status = STK_OK;
    int result = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOSPACE)
        status = fail_memory(err, 0);
    else if (result)
        status = fail(err, STK_NOT_FOUND, "nothing matches %s", pattern);
    else
        names->from_glob = 1;
    if (!status)
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, name_compare);
    for (size_t i = 0; !status && i < found.gl_pathc; i++)
        status = add_path(names, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

static stk_status add_expanded(void *user, const char *name, struct stk_error *err)
{
    stk_status status = add_path(user, name, err);
    if (status == STK_NOT_FOUND && strpbrk(name, "*?["))
        status = add_glob(user, name, err);
    return status;
}

/* ---- what lies in a folder beside the data ------------------------------------------------- */

static const char *base_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static int is_shard(const char *name)
{
    const struct format_ops *format = format_by_suffix(name);
    return format && (!strcmp(format->name, "tar") || !strcmp(format->name, "npz"));
}

/* What tools write beside shards: statistics, tables, indexes of others, notes. */
static int is_beside(const char *name)
{
    static const char *const suffixes[] = {".parquet", ".json", ".idx", ".index",
                                           ".md",      ".txt",  ".csv", ".yaml"};
    size_t len = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
        size_t own = strlen(suffixes[i]);
        if (len >= own && !strcasecmp(name + len - own, suffixes[i]))
            return 1;
    }
    return !strchr(base_name(name), '.'); /* LICENSE, _SUCCESS */
}

/* Leaves out of a folder what is no data: the table of its samples and, where it holds shards and
 * what lies beside shards, all but the shards. */
static void drop_beside(struct list *list)
{
    uint64_t shards = 0, others = 0, kept = 0;
    for (uint64_t i = 0; i < list->count; i++) {
        int shard = is_shard(list->items[i].name);
        shards += (uint64_t)shard;
        others += !shard && !is_beside(list->items[i].name);
    }
    for (uint64_t i = 0; i < list->count; i++) {
        const char *name = list->items[i].name;
        int metadata = !strcmp(base_name(name), "metadata.parquet");
        if (!metadata && (!shards || others || is_shard(name)))
            list->items[kept++] = list->items[i];
    }
    list->count = kept;
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* A folder's names are sorted already, and each is there once. */
static int is_ascending(const struct list *list)
{
    for (uint64_t i = 1; i < list->count; i++)
        if (strcmp(list->items[i - 1].name, list->items[i].name) >= 0)
            return 0;
    return 1;
}

static stk_status refuse_twice(const struct list *list, struct stk_error *err)
{
    if (is_ascending(list))
        return STK_OK;
    const char **sorted = memory_alloc(list->count * sizeof *sorted);
    stk_status status = sorted ? STK_OK : fail_memory(err, list->count * sizeof *sorted);
    if (status)
        return status;
    for (uint64_t i = 0; i < list->count; i++)
        sorted[i] = list->items[i].name;
    qsort(sorted, list->count, sizeof *sorted, name_compare);
    for (uint64_t i = 1; i < list->count && !status; i++)
        if (!strcmp(sorted[i - 1], sorted[i])) {
            status = fail(err, STK_USAGE, "%s is named twice", sorted[i]);
            fail_remedy(err, "name each object once; weights= draws samples more often");
        }
    memory_free(sorted);
    return status;
}

static uint64_t hash_source(const char *path, const char *root, uint64_t seed)
{
    size_t len = strlen(root);
    if (len && !strncmp(path, root, len) && (path[len] == '/' || !path[len]))
        path += len;
    return hash_bytes(path, strlen(path), seed);
}

/* One source; or, when the list is there already, only its part of the key. */
static stk_status add_one(struct names *names, const char *source, int keys, struct stk_error *err)
{
    struct text path = {0};
    struct stat info;
    stk_status status = absolute(&path, source, err);
    if (!status && keys)
        names->key = hash_source(path.data, names->list.root ? names->list.root : "", names->key);
    else if (!status && !stat(path.data, &info))
        status = add_path(names, path.data, err); /* it is there: no pattern */
    else if (!status)
        status = braces_expand(path.data, add_expanded, names, err);
    text_free(&path);
    return status;
}

/* Files and URIs in one dataset would have no root in common, and two ways to be read. */
static stk_status find_place(struct names *names, const char *const *sources, uint32_t count,
                             struct stk_error *err)
{
    char first[REMOTE_NAMES_SHOWN], other[REMOTE_NAMES_SHOWN];
    names->remote = remote_names_is(sources[0]);
    for (uint32_t i = 1; i < count; i++)
        if (remote_names_is(sources[i]) != names->remote) {
            stk_status status =
                fail(err, STK_USAGE,
                     "%s and %s: a dataset lies on this machine or in a store, "
                     "not in both",
                     remote_names_shown(sources[0], first), remote_names_shown(sources[i], other));
            fail_remedy(err, "copy the smaller part to where the other one is");
            return status;
        }
    return STK_OK;
}

static stk_status add_all(struct names *names, const char *const *sources, uint32_t count,
                          struct stk_error *err)
{
    stk_status status = find_place(names, sources, count, err);
    if (!status && names->remote)
        return remote_names_add(names, sources, count, err);
    for (uint32_t i = 0; i < count && !status; i++)
        status = add_one(names, sources[i], 0, err);
    return status;
}

static stk_status add_key(struct names *names, const char *source, struct stk_error *err)
{
    if (!names->remote)
        return add_one(names, source, 1, err);
    size_t len = remote_names_length(source);
    char *uri = memory_text(source, len);
    if (!uri)
        return fail_memory(err, len);
    names->key = hash_source(uri, names->list.root ? names->list.root : "", names->key);
    memory_free(uri);
    return STK_OK;
}

stk_status names_expand(struct names *names, const char *const *sources, uint32_t count,
                        struct stk_error *err)
{
    char shown[REMOTE_NAMES_SHOWN];
    *names = (struct names){.policy = names->policy};
    if (!count)
        return fail(err, STK_USAGE, "no source was given");
    stk_status status = add_all(names, sources, count, err);
    if (!status)
        status = refuse_mixed(names, err);
    if (!status && (names->from_folder || names->from_glob))
        drop_beside(&names->list);
    if (!status && !names->list.count && !names->series)
        status = fail(err, STK_NOT_FOUND, "%s holds no samples: there is no file in it",
                      remote_names_shown(sources[0], shown));
    if (!status)
        status = refuse_twice(&names->list, err);
    for (uint32_t i = 0; i < count && !status; i++)
        status = add_key(names, sources[i], err);
    if (status)
        names_free(names);
    return status;
}

void names_free(struct names *names)
{
    list_free(&names->list);
    memory_free(names->series);
    *names = (struct names){0};
}
