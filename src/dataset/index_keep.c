#include "dataset/index_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/index_fresh.h"
#include "dataset/sniff.h"
#include "format/format.h"
#include "index/index_builder.h"
#include "index/index_file.h"
#include "store/remote.h"
#include "store/upload.h"
#include "work/cores.h"

#define KEEP_PLACES 2
#define KEEP_MOST (UINT64_C(4) << 30) /* bytes of an index that is fetched */
#define KEEP_REMOTE_THREADS 32        /* they wait for the network, not for a core */

struct keep {
    const struct stk_context *context;
    struct index_wish wish;
    const struct stk_dataset_options *options;
    struct text places[KEEP_PLACES]; /* paths of the index, the best first; may be empty */
    struct text beside;              /* data on the network: the index's URI there; may be empty */
};

/* ---- places -------------------------------------------------------------------------------- */

/* Of what makes another index of the same sources; version 1 of this rule. */
static uint64_t keep_key(const struct keep *keep, const char *root)
{
    const char *format = keep->wish.format ? keep->wish.format : "";
    uint64_t key = hash_bytes(format, strlen(format), keep->wish.names->key);
    if (keep->wish.raw.rank >= 0) {
        int64_t numbers[STK_MAX_RANK + 1] = {(int64_t)keep->wish.raw.dtype};
        memcpy(numbers + 1, keep->wish.raw.shape, (size_t)keep->wish.raw.rank * sizeof *numbers);
        key = hash_bytes(numbers, ((size_t)keep->wish.raw.rank + 1) * sizeof *numbers, key);
    }
    return hash_bytes(root, strlen(root), key);
}

static void keep_add_cache(const struct keep *keep, struct text *path)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && *cache == '/')
        text_format(path, "%s/stoker/", cache);
    else if (home && *home == '/')
        text_format(path, "%s/.cache/stoker/", home);
    else
        return;
    text_format(path, "%016llx.index",
                (unsigned long long)keep_key(keep, keep->wish.names->list.root));
}

static stk_status keep_places(struct keep *keep, struct stk_error *err)
{
    const char *root = keep->wish.names->list.root;
    int remote = keep->wish.names->remote;
    struct text *beside = remote ? &keep->beside : &keep->places[0];
    if (keep->options->index)
        text_format(&keep->places[0], "%s", keep->options->index);
    else
        keep_add_cache(keep, &keep->places[1]);
    if (*root && strcmp(root, "/") && (remote || !keep->options->index))
        text_format(beside, "%s/.stoker/%016llx.index", root,
                    (unsigned long long)keep_key(keep, ""));
    if (keep->places[0].failed || keep->places[1].failed || keep->beside.failed)
        return fail_memory(err, 0);
    return STK_OK;
}

/* Makes the folder, and at most `above` missing ones above it. What fails shows when it is used. */
static void make_folder(char *folder, int above)
{
    char *slash = strrchr(folder, '/');
    if (!mkdir(folder, 0777) || errno != ENOENT || !above || !slash)
        return;
    *slash = 0;
    make_folder(folder, above - 1);
    *slash = '/';
    mkdir(folder, 0777);
}

/* Makes the folder that path lies in, when it is missing, and says whether files can be made there.
 */
static int keep_writable(const char *path)
{
    char *folder = memory_text(path, strlen(path));
    char *slash = folder ? strrchr(folder, '/') : NULL;
    int writable = folder != NULL;
    if (slash) {
        *slash = 0;
        make_folder(folder, 2);
        writable = !access(folder, W_OK | X_OK);
    }
    memory_free(folder);
    return writable;
}

/* A build that failed leaves no empty folder of ours behind. */
static void keep_tidy(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? memory_text(path, (size_t)(slash - path)) : NULL;
    if (folder)
        rmdir(folder); /* fails when other indexes lie in it: as it should */
    memory_free(folder);
}

/* ---- looking ------------------------------------------------------------------------------- */

static int keep_is_damaged(stk_status status)
{
    return status == STK_CORRUPT || status == STK_TRUNCATED || status == STK_UNSUPPORTED;
}

/* Opens the index at path when it is there and true; else *out is NULL, with STK_OK when it may be
 * built anew. */
static stk_status keep_try(const struct keep *keep, const char *path, struct index **out,
                           struct stk_error *err)
{
    struct stk_error found = {0};
    struct text changed = {0};
    stk_status status = index_open(out, path, &found);
    if (!status) {
        status = index_fresh(*out, &keep->wish, &changed, &found);
        if (!status && changed.failed)
            status = fail_memory(&found, 0);
    }
    if (!status && changed.len)
        context_notice(keep->context, "the index is made anew: %s", changed.data);
    else if (keep_is_damaged(status))
        context_notice(keep->context, "the index is made anew: %s (%s)", found.what, path);
    if (status || changed.len) {
        index_close(*out);
        *out = NULL;
    }
    text_free(&changed);
    if (status == STK_MEMORY || status == STK_RESOURCE) {
        if (err)
            *err = found;
        return status;
    }
    return STK_OK;
}

/* ---- the index beside data on the network -------------------------------------------------- */

/* Puts bytes into a file at once: nobody sees a part of it. */
static int keep_write(const char *path, const struct text *bytes)
{
    struct text name = {0};
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    text_format(&name, "%.*s.%s.00000000-%d-XXXXXX", (int)(base - path), path, base, (int)getpid());
    int fd = name.failed ? -1 : mkostemp(name.data, O_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < bytes->len) {
        ssize_t n = write(fd, bytes->data + done, bytes->len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    int written = fd >= 0 && done == bytes->len && !fchmod(fd, 0644) && !rename(name.data, path);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && !written)
        unlink(name.data);
    text_free(&name);
    return written;
}

/* Opens a copy that has no place to stay. */
static stk_status keep_try_unkept(const struct keep *keep, const struct text *bytes,
                                  struct index **out, struct stk_error *err)
{
    const char *temporary = getenv("TMPDIR");
    struct text folder = {0}, path = {0};
    stk_status status = STK_OK;
    text_format(&folder, "%s/stoker-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!folder.failed && mkdtemp(folder.data)) {
        text_format(&path, "%s/index", folder.data);
        if (!path.failed && keep_write(path.data, bytes))
            status = keep_try(keep, path.data, out, err);
        if (path.data)
            unlink(path.data);
        rmdir(folder.data);
    }
    text_free(&folder);
    text_free(&path);
    return status;
}

/* The index that somebody left beside the data. None, or one that may not be read, is no error. */
static stk_status keep_fetch(const struct keep *keep, struct index **out, struct stk_error *err)
{
    struct text bytes = {0};
    struct stk_error found = {0};
    stk_status status = remote_get(keep->beside.data, KEEP_MOST, &bytes, &found);
    int passing = status == STK_MEMORY || status == STK_CANCELLED;
    if (status && err && passing)
        *err = found;
    if (!status && bytes.failed)
        status = fail_memory(err, bytes.len);
    int kept = 0;
    for (int i = 0; i < KEEP_PLACES && !status && !kept; i++) {
        const char *path = keep->places[i].data;
        if (!path || !keep_writable(path))
            continue;
        kept = keep_write(path, &bytes);
        if (kept)
            status = keep_try(keep, path, out, err);
    }
    if (!status && !kept)
        status = keep_try_unkept(keep, &bytes, out, err);
    text_free(&bytes);
    return passing || !found.status ? status : STK_OK;
}

static int keep_same(const char *path, const struct text *bytes)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC), same = 0;
    if (fd >= 0 && !fstat(fd, &info) && (uint64_t)info.st_size == bytes->len && bytes->len) {
        void *map = mmap(NULL, bytes->len, PROT_READ, MAP_SHARED, fd, 0);
        same = map != MAP_FAILED && !memcmp(map, bytes->data, bytes->len);
        if (map != MAP_FAILED)
            munmap(map, bytes->len);
    }
    if (fd >= 0)
        close(fd);
    return same;
}

void index_keep_share(const struct index_kept *kept, const struct stk_context *context)
{
    const char *path = index_path(kept->index);
    struct text there = {0};
    struct stk_error err = {0};
    if (!kept->beside)
        return;
    int same = !remote_get(kept->beside, KEEP_MOST, &there, NULL) && keep_same(path, &there);
    text_free(&there);
    if (same)
        context_notice(context, "the index lies beside the data: %s", kept->beside);
    else if (upload_file(kept->beside, path, NULL, &err))
        context_notice(context, "the index is not beside the data: %s", err.what);
    else
        context_notice(context, "the index was written beside the data: %s", kept->beside);
}

/* ---- building ------------------------------------------------------------------------------ */

static stk_status keep_build_with(const struct keep *keep, const struct format_ops *format,
                                  struct index_builder *builder, struct stk_error *err)
{
    static const struct stk_hooks none = {0};
    const struct list *list = &keep->wish.names->list;
    struct format_object *objects = memory_zero(list->count, sizeof *objects);
    if (!objects)
        return fail_memory(err, list->count * sizeof *objects);
    for (uint64_t i = 0; i < list->count; i++)
        objects[i] = (struct format_object){list->items[i].name, list->items[i].size,
                                            list->items[i].version};
    struct format_input input = {
        .root = list->root,
        .objects = objects,
        .object_count = list->count,
        .raw = keep->wish.raw,
        .chunk_limit = keep->wish.chunk_limit,
        .threads = keep->wish.names->remote ? KEEP_REMOTE_THREADS : cores_usable(),
        .hooks = keep->context ? &keep->context->hooks : &none,
    };
    stk_status status = format->build(&input, builder, err);
    if (!status && list->skipped) {
        index_builder_skipped(builder, list->skipped);
        context_notice(keep->context,
                       "%llu entries are left out: links to folders or to nothing, or no files",
                       (unsigned long long)list->skipped);
    }
    memory_free(objects);
    return status;
}

/* Formats name objects as they were listed; the user wants the whole path. */
static void keep_name_whole(const struct keep *keep, struct stk_error *err)
{
    const char *root = keep->wish.names->list.root;
    if (!err || !*err->object || *err->object == '/' || strstr(err->object, "://") || !*root)
        return;
    struct text path = {0};
    text_format(&path, "%s/%s", root, err->object);
    if (!path.failed)
        fail_at(err, path.data, err->offset);
    text_free(&path);
}

/* *at_fault: not 0 when it is the place that failed, and another may do. */
static stk_status keep_build(const struct keep *keep, const struct format_ops *format,
                             const char *path, int *at_fault, struct stk_error *err)
{
    struct index_builder *builder = NULL;
    *at_fault = 1;
    stk_status status =
        index_builder_new(&builder, path, format->name, keep->wish.names->list.root, err);
    if (!status) {
        status = keep_build_with(keep, format, builder, err);
        *at_fault = status && index_builder_out_of_room(builder);
        if (status && !*at_fault)
            keep_name_whole(keep, err);
    }
    if (!status) {
        *at_fault = 1;
        status = index_builder_finish(builder, err);
    }
    index_builder_free(builder);
    return status;
}

/* An index that can be kept nowhere lives as long as it is open. */
static stk_status keep_build_unkept(const struct keep *keep, const struct format_ops *format,
                                    struct index **out, struct stk_error *err)
{
    const char *temporary = getenv("TMPDIR");
    struct text folder = {0}, path = {0};
    int at_fault;
    text_format(&folder, "%s/stoker-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    stk_status status = folder.failed ? fail_memory(err, 0) : STK_OK;
    if (!status && !mkdtemp(folder.data)) {
        status = fail_errno(err, errno, "no place for the index: %s cannot be made", folder.data);
        fail_remedy(err, "name a writable file for it (index=), or set XDG_CACHE_HOME or TMPDIR");
    } else if (!status) {
        text_format(&path, "%s/index", folder.data);
        status =
            path.failed ? fail_memory(err, 0) : keep_build(keep, format, path.data, &at_fault, err);
        if (!status)
            status = index_open(out, path.data, err);
        if (path.data)
            unlink(path.data);
        rmdir(folder.data);
    }
    if (!status)
        context_notice(keep->context, "the index can be kept nowhere: it will be made each time");
    text_free(&folder);
    text_free(&path);
    return status;
}

/* Builds it in the best place that takes it. A place may refuse only in the end (a full disk). */
static stk_status keep_make(const struct keep *keep, struct index **out, struct stk_error *err)
{
    const struct format_ops *format;
    stk_status status = sniff(&format, keep->wish.names, keep->options, err);
    if (status)
        return status;
    for (int i = 0; i < KEEP_PLACES; i++) {
        const char *path = keep->places[i].data;
        int at_fault = 0, only = keep->options->index != NULL;
        if (!path || (!keep_writable(path) && !only))
            continue;
        status = keep_build(keep, format, path, &at_fault, err);
        if (!status)
            return index_open(out, path, err);
        if (!only)
            keep_tidy(path);
        if (!at_fault || only || status == STK_MEMORY || status == STK_CANCELLED)
            return status;
    }
    return keep_build_unkept(keep, format, out, err);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static stk_status keep_raw(struct keep *keep, struct stk_error *err)
{
    const struct stk_dataset_options *options = keep->options;
    keep->wish.raw = (struct stk_tensor){.rank = -1};
    if (!options->dtype)
        return STK_OK;
    struct stk_tensor raw = {.dtype = stk_dtype_parse(options->dtype), .rank = options->rank};
    if (raw.dtype == STK_DTYPE_COUNT)
        return fail(err, STK_USAGE, "there is no dtype \"%s\"", options->dtype);
    if (raw.rank < 0 || raw.rank > STK_MAX_RANK || (raw.rank && !options->shape))
        return fail(err, STK_USAGE, "the shape of a sample has 0 to %d axes", STK_MAX_RANK);
    memcpy(raw.shape, options->shape ? options->shape : raw.shape,
           (size_t)raw.rank * sizeof *raw.shape);
    for (int32_t i = 0; i < raw.rank; i++)
        if (raw.shape[i] <= 0)
            return fail(err, STK_USAGE, "the shape of a sample has an axis that is not above 0");
    if (stk_tensor_size(&raw) == UINT64_MAX)
        return fail(err, STK_USAGE, "a sample of that shape has more bytes than can be counted");
    keep->wish.raw = raw;
    return STK_OK;
}

/* A file that the user named for the index but that never was one is not overwritten. */
static stk_status keep_spare(const char *path, struct stk_error *err)
{
    char magic[sizeof INDEX_MAGIC - 1];
    if (strstr(path, "://")) {
        stk_status status = fail(err, STK_USAGE, "an index is kept in a file of this machine");
        fail_remedy(err, "`stoker index` also writes it beside data on the network");
        return status;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STK_OK;
    ssize_t got = read(fd, magic, sizeof magic);
    close(fd);
    if (got == 0 || (got == (ssize_t)sizeof magic && !memcmp(magic, INDEX_MAGIC, sizeof magic)))
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "%s is there and is no index", path);
    fail_remedy(err, "name another file for the index");
    return status;
}

static stk_status keep_look(struct keep *keep, struct index_kept *out, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (int i = 0; i < KEEP_PLACES; i++)
        if (!status && !out->index && keep->places[i].data)
            status = keep_try(keep, keep->places[i].data, &out->index, err);
    if (!status && !out->index && keep->beside.data) {
        status = keep_fetch(keep, &out->index, err);
        out->shared = out->index != NULL;
    }
    return status;
}

stk_status index_keep_open(struct index_kept *out, const struct stk_context *context,
                           const struct names *names, const struct stk_dataset_options *options,
                           struct stk_error *err)
{
    struct keep keep = {.context = context, .options = options};
    *out = (struct index_kept){0};
    keep.wish = (struct index_wish){
        .names = names,
        .format = options->format,
        .chunk_limit = options->chunk_limit ? options->chunk_limit : UINT64_C(1) << 30,
    };
    stk_status status = keep_raw(&keep, err);
    if (!status && options->index)
        status = keep_spare(options->index, err);
    if (!status)
        status = keep_places(&keep, err);
    if (!status && !options->reindex)
        status = keep_look(&keep, out, err);
    if (!status && !out->index)
        status = keep_make(&keep, &out->index, err);
    if (!status && keep.beside.data) {
        out->beside = keep.beside.data;
        keep.beside.data = NULL; /* the caller's now */
    }
    for (int i = 0; i < KEEP_PLACES; i++)
        text_free(&keep.places[i]);
    text_free(&keep.beside);
    return status;
}
