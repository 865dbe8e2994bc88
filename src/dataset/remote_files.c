/* Objects that URIs name, for who reads them himself: a list and a store over it. */
#include <stdatomic.h>
#include <string.h>

#include "stoker/remote.h"

#include "base/checked.h"
#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "dataset/remote_names.h"
#include "store/file_open.h"
#include "store/remote_settings.h"
#include "store/store.h"

struct stk_remote_files {
    struct stk_context *context;
    struct list list;
    size_t *folders; /* as struct stk_remote_file's */
    struct store *store;
    char empty[REMOTE_NAMES_SHOWN]; /* the first folder that nothing was found in; "": none */
    atomic_int stopped;             /* set by stop, read by threads that wait */
};

/* --- waiting ---------------------------------------------------------------------------------- */

static int is_over(void *user)
{
    struct stk_remote_files *files = user;
    const struct stk_hooks *hooks = files->context ? &files->context->hooks : NULL;
    if (atomic_load(&files->stopped))
        return 1;
    return hooks && hooks->waiting && hooks->waiting(hooks->user);
}

static struct remote_patience patience_begin(struct stk_remote_files *files)
{
    return remote_patience_set((struct remote_patience){is_over, files});
}

/* --- opening ---------------------------------------------------------------------------------- */

static stk_status check_uris(const char *const *uris, uint32_t count, struct stk_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        if (remote_names_is(uris[i]))
            continue;
        size_t len = strcspn(uris[i], ":");
        stk_status status =
            fail(err, STK_UNSUPPORTED, "there is no store for %.*s://", (int)len, uris[i]);
        fail_remedy(err, "stores: file, http, https, s3, gs, az, abfss");
        return status;
    }
    return count ? STK_OK : fail(err, STK_USAGE, "no source was given");
}

/* The list is complete by then. */
static void note_share(void *user, const struct remote_share *share)
{
    struct stk_remote_files *files = user;
    if (!share->count && !files->empty[0])
        (void)remote_names_shown(share->uri, files->empty);
    if (!files->folders)
        files->folders = memory_zero(files->list.count, sizeof *files->folders);
    for (uint64_t i = 0; i < share->count && files->folders && share->is_folder; i++)
        files->folders[share->first + i] = remote_names_length(share->uri);
}

static void get_object(const void *owner, uint32_t number, struct object *out)
{
    const struct stk_remote_files *files = owner;
    const struct listed *item = &files->list.items[number];
    *out = (struct object){item->name, item->size, item->version};
}

static stk_status files_fill(struct stk_remote_files *files, const char *const *uris,
                             uint32_t count, struct stk_error *err)
{
    stk_status status = remote_names_list(&files->list, uris, count, note_share, files, err);
    if (!status && !files->folders)
        status = fail_memory(err, files->list.count * sizeof *files->folders);
    if (!status && files->empty[0]) {
        status = fail(err, STK_NOT_FOUND, "there is no file in the folder");
        fail_at(err, files->empty, STK_NOWHERE);
    }
    if (!status && files->list.count > UINT32_MAX)
        status = fail(err, STK_LIMIT, "these are too many objects");
    if (status)
        return status;
    const struct object_table table = {.root = files->list.root ? files->list.root : "",
                                       .count = (uint32_t)files->list.count,
                                       .owner = files,
                                       .get = get_object};
    return store_open(&files->store, &table, NULL, err);
}

stk_status stk_remote_files_open(struct stk_remote_files **out, struct stk_context *context,
                                 const char *const *uris, uint32_t count, struct stk_error *err)
{
    struct net *net = NULL; /* what the list learns of objects, the store shall know */
    *out = NULL;
    stk_status status = check_uris(uris, count, err);
    if (status)
        return status;
    struct stk_remote_files *files = memory_zero(1, sizeof *files);
    if (!files)
        return fail_memory(err, sizeof *files);
    files->context = context;
    struct remote_patience before = patience_begin(files);
    status = remote_hold(&net, err);
    if (!status)
        status = files_fill(files, uris, count, err);
    remote_let_go(net);
    (void)remote_patience_set(before);
    if (status) {
        stk_remote_files_close(files);
        return status;
    }
    *out = files;
    return STK_OK;
}

void stk_remote_files_close(struct stk_remote_files *files)
{
    if (!files)
        return;
    store_close(files->store);
    list_free(&files->list);
    memory_free(files->folders);
    memory_free(files);
}

void stk_remote_files_each(const struct stk_remote_files *files,
                           void (*each)(void *user, const struct stk_remote_file *file), void *user)
{
    char buf[FILE_PATH_CAP];
    for (uint64_t i = 0; i < files->list.count; i++) {
        const struct listed *item = &files->list.items[i];
        const struct stk_remote_file file = {
            .uri = file_path(files->list.root, item->name, buf),
            .size = item->size,
            .folder = files->folders[i],
        };
        each(user, &file);
    }
}

/* --- reading ---------------------------------------------------------------------------------- */

stk_status stk_remote_files_read(struct stk_remote_files *files, uint32_t number, uint64_t offset,
                                 uint64_t length, void *to, struct stk_error *err)
{
    struct iovec part = {to, length};
    struct store_read read = {
        .object = number, .part_count = 1, .offset = offset, .length = length, .parts = &part};
    if (number >= files->list.count ||
        !checked_inside(offset, length, files->list.items[number].size))
        return fail(err, STK_USAGE, "there are no such bytes to read");
    if (!length)
        return STK_OK;
    struct remote_patience before = patience_begin(files);
    stk_status status = is_over(files) ? STK_CANCELLED : store_read_now(files->store, &read);
    (void)remote_patience_set(before);
    if (status == STK_CANCELLED)
        return fail(err, STK_CANCELLED, "stopped on request");
    return status ? store_explain(files->store, &read, err) : STK_OK;
}

void stk_remote_files_stop(struct stk_remote_files *files)
{
    atomic_store(&files->stopped, 1);
}
