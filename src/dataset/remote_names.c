#include "dataset/remote_names.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/braces.h"
#include "format/series_meta.h"
#include "store/remote.h"

#define REMOTE_MAX_SOURCE 8192 /* bytes in one source; bounds the depth of nested braces */

/* All URIs that the sources give, in order. */
struct uris {
    char **items;
    uint32_t count, cap;
};

int remote_names_is(const char *source)
{
    struct object_table table = {.root = source};
    return remote_is(&table);
}

size_t remote_names_length(const char *source)
{
    size_t len = strlen(source);
    while (len > 1 && source[len - 1] == '/' && source[len - 2] != '/')
        len--;
    return len;
}

const char *remote_names_shown(const char *source, char out[REMOTE_NAMES_SHOWN])
{
    const char *rest = strstr(source, "://");
    if (!remote_names_is(source) || !rest) {
        snprintf(out, REMOTE_NAMES_SHOWN, "%s", source);
        return out;
    }
    size_t shown = strcspn(source, "?");
    rest += 3;
    size_t host = strcspn(rest, "/?");
    const char *at = memrchr(rest, '@', host);
    int hides = at && !strncasecmp(source, "http", 4);
    const char *from = hides ? at + 1 : rest;
    snprintf(out, REMOTE_NAMES_SHOWN, "%.*s%.*s", (int)(rest - source), source,
             (int)(source + shown - from), from);
    return out;
}

static stk_status uris_add(void *user, const char *uri, struct stk_error *err)
{
    struct uris *uris = user;
    if (uris->count == uris->cap) {
        uint32_t cap = uris->cap ? uris->cap * 2 : 64;
        char **grown = memory_grow(uris->items, cap * sizeof *grown);
        if (!grown)
            return fail_memory(err, cap * sizeof *grown);
        uris->items = grown;
        uris->cap = cap;
    }
    char *copy = memory_text(uri, strlen(uri));
    if (!copy)
        return fail_memory(err, strlen(uri));
    uris->items[uris->count++] = copy;
    return STK_OK;
}

static void uris_free(struct uris *uris)
{
    for (uint32_t i = 0; i < uris->count; i++)
        memory_free(uris->items[i]);
    memory_free(uris->items);
}

static stk_status uris_expand(struct uris *uris, const char *const *sources, uint32_t count,
                              struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        if (strlen(sources[i]) > REMOTE_MAX_SOURCE)
            return fail(err, STK_USAGE, "a source is too long");
        status = braces_expand(sources[i], uris_add, uris, err);
    }
    return status;
}

/* ---- series -------------------------------------------------------------------------------- */

/* The length of the folder of a URI that ends in metadata.json; 0: it ends otherwise. */
static size_t folder_of_metadata(const char *uri)
{
    const char *slash = strrchr(uri, '/');
    return slash && !strcmp(slash + 1, SERIES_METADATA) ? (size_t)(slash - uri) : 0;
}

static stk_status take_series(struct names *names, const struct uris *uris, const char *uri,
                              size_t len, struct stk_error *err)
{
    char shown[REMOTE_NAMES_SHOWN];
    if (uris->count > 1) {
        stk_status status = fail(err, STK_USAGE, "%s is a series, and one is opened at a time",
                                 remote_names_shown(uri, shown));
        fail_remedy(err, "open each by itself, or pack their tables into one");
        return status;
    }
    names->series = memory_text(uri, len);
    return names->series ? STK_OK : fail_memory(err, len);
}

/* A series by its name alone: nothing need be listed, so plain HTTP will do. */
static stk_status series_by_name(struct names *names, const struct uris *uris,
                                 struct stk_error *err)
{
    int wanted = names->policy == NAMES_SERIES_WANTED;
    for (uint32_t i = 0; i < uris->count; i++) {
        const char *uri = uris->items[i];
        size_t len = folder_of_metadata(uri);
        if (len || wanted)
            return take_series(names, uris, uri, len ? len : remote_names_length(uri), err);
    }
    return STK_OK;
}

/* Not 0: the list has the object FOLDER/name; folder: the first len bytes of a URI. */
static int list_has(const struct list *list, const char *folder, size_t len, const char *name)
{
    size_t root = list->root ? strlen(list->root) : 0;
    if (root > len || strncmp(folder, list->root, root) || (root < len && folder[root] != '/'))
        return 0;
    size_t skip = root < len ? root + 1 : root; /* the names are below the root */
    size_t below = len - skip;
    for (uint64_t i = 0; i < list->count; i++) {
        const char *item = list->items[i].name;
        if (!strncmp(item, folder + skip, below) && (!below || item[below] == '/') &&
            !strcmp(item + below + (below > 0), name))
            return 1;
    }
    return 0;
}

/* A folder that was listed and holds the array of a series. */
static stk_status series_by_list(struct names *names, const struct uris *uris,
                                 const enum remote_kind *kinds, struct stk_error *err)
{
    for (uint32_t i = 0; i < uris->count; i++) {
        const char *uri = uris->items[i];
        size_t len = remote_names_length(uri);
        if (kinds[i] != REMOTE_FOLDER || !list_has(&names->list, uri, len, SERIES_ARRAY))
            continue;
        list_free(&names->list);
        return take_series(names, uris, uri, len, err);
    }
    return STK_OK;
}

/* ---- the whole ----------------------------------------------------------------------------- */

stk_status remote_names_add(struct names *names, const char *const *sources, uint32_t count,
                            struct stk_error *err)
{
    struct uris uris = {0};
    enum remote_kind *kinds = NULL;
    stk_status status = uris_expand(&uris, sources, count, err);
    if (!status && names->policy != NAMES_SERIES_NONE)
        status = series_by_name(names, &uris, err);
    if (status || names->series)
        goto done;
    kinds = memory_zero(uris.count, sizeof *kinds);
    if (!kinds) {
        status = fail_memory(err, uris.count * sizeof *kinds);
        goto done;
    }
    status = remote_list_add(&names->list, (const char *const *)uris.items, uris.count, kinds, err);
    for (uint32_t i = 0; i < uris.count && !status; i++) {
        names->from_folder |= kinds[i] == REMOTE_FOLDER;
        names->from_glob |= kinds[i] == REMOTE_GLOB;
    }
    if (!status && names->policy == NAMES_SERIES_FOUND && names->from_folder)
        status = series_by_list(names, &uris, kinds, err);
done:
    memory_free(kinds);
    uris_free(&uris);
    return status;
}

/* ---- shares -------------------------------------------------------------------------------- */

static int are_objects(const enum remote_kind *kinds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (kinds[i] != REMOTE_OBJECT)
            return 0;
    return 1;
}

/* All are asked about at once, which is enough for objects. Where some are folders or globs, one by
 * one: how many objects each has is seen by how the list grows. ends[i]: the list with those of i.
 */
static stk_status list_shares(struct list *list, const struct uris *uris, enum remote_kind *kinds,
                              uint64_t *ends, struct stk_error *err)
{
    const char *const *items = (const char *const *)uris->items;
    uint64_t before = list->count;
    stk_status status = remote_list_add(list, items, uris->count, kinds, err);
    if (status)
        return status;
    if (uris->count == 1 || are_objects(kinds, uris->count)) {
        for (uint32_t i = 0; i < uris->count; i++)
            ends[i] = before + i + 1;
        ends[uris->count - 1] = list->count;
        return STK_OK;
    }
    list->count = before;
    for (uint32_t i = 0; i < uris->count && !status; i++) {
        status = remote_list_add(list, &items[i], 1, &kinds[i], err);
        ends[i] = list->count;
    }
    return status;
}

stk_status remote_names_list(struct list *list, const char *const *sources, uint32_t count,
                             void (*tell)(void *user, const struct remote_share *share), void *user,
                             struct stk_error *err)
{
    struct uris uris = {0};
    enum remote_kind *kinds = NULL;
    uint64_t *ends = NULL, first = list->count;
    stk_status status = uris_expand(&uris, sources, count, err);
    if (status)
        goto done;
    kinds = memory_zero(uris.count, sizeof *kinds);
    ends = memory_zero(uris.count, sizeof *ends);
    if (!kinds || !ends)
        status = fail_memory(err, uris.count * sizeof *ends);
    else
        status = list_shares(list, &uris, kinds, ends, err);
    for (uint32_t i = 0; i < uris.count && !status; i++) {
        const struct remote_share share = {uris.items[i], kinds[i] == REMOTE_FOLDER, first,
                                           ends[i] - first};
        tell(user, &share);
        first = ends[i];
    }
done:
    memory_free(ends);
    memory_free(kinds);
    uris_free(&uris);
    return status;
}
