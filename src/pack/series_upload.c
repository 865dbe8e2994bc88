#include "pack/series_upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "format/series_meta.h"
#include "pack/series_folder.h"
#include "pack/spool_folder.h"
#include "pack/upload_notes.h"
#include "store/remote_settings.h"
#include "store/upload.h"
#include "store/upload_place.h"

#define SMALL (8 << 20) /* is sent in one piece */

struct series_upload {
    struct stk_context *context;
    struct upload_place *place;
    struct spool_folder folder;
    char path[PATH_MAX + 16];
    int replaces; /* there was a series */
    struct upload_notes sent;
    struct context_timer timer;
    struct stk_progress progress;
};

/* Files that a series may have and the new one may lack. */
static const char *const other_files[] = {SERIES_TIME, SERIES_STATIC, SERIES_HASHES, SERIES_SCALER,
                                          SERIES_JOBLIB};

static int is_over(void *user)
{
    const struct stk_context *context = user;

    return context && context->hooks.waiting && context->hooks.waiting(context->hooks.user);
}

static stk_status check_free(struct series_upload *upload, const char *uri, int force,
                             struct stk_error *err)
{
    struct upload_entry entry;
    stk_status status = upload_place_stat(upload->place, SERIES_METADATA, &entry, err);

    if (status == STK_NOT_FOUND)
        return STK_OK;
    upload->replaces = !status;
    if (status || force)
        return status;
    fail(err, STK_USAGE, "there is a series already");
    fail_at(err, uri, STK_NOWHERE);
    fail_remedy(err, "use --force to replace it, or choose another place");
    return STK_USAGE;
}

stk_status series_upload_open(struct series_upload **out, struct stk_context *context,
                              const char *uri, int force, struct stk_error *err)
{
    struct series_upload *upload = memory_zero(1, sizeof(*upload));
    stk_status status;

    *out = NULL;
    if (!upload)
        return fail_memory(err, sizeof(*upload));
    upload->context = context;
    struct remote_patience before = remote_patience_set((struct remote_patience){is_over, context});
    status = upload_place_open(&upload->place, uri, err);
    if (!status)
        status = check_free(upload, uri, force, err);
    (void)remote_patience_set(before);
    if (!status)
        status = spool_folder_open(&upload->folder, err);
    if (!status) {
        snprintf(upload->path, sizeof(upload->path), "%s/series", upload->folder.path);
        *out = upload;
        upload = NULL;
    }
    series_upload_close(upload);
    return status;
}

const char *series_upload_path(const struct series_upload *upload)
{
    return upload->path;
}

void series_upload_close(struct series_upload *upload)
{
    if (!upload)
        return;
    spool_folder_close(&upload->folder);
    upload_notes_reset(&upload->sent);
    upload_place_close(upload->place);
    memory_free(upload);
}

/* --- sending --------------------------------------------------------------------------------- */

/* What the site says of an object that was sent, for a look at it later. */
static stk_status note_sent(struct series_upload *upload, const char *name, uint64_t size,
                            struct stk_error *err)
{
    struct upload_entry entry;
    stk_status status = upload_place_stat(upload->place, name, &entry, err);

    if (status)
        return status;
    const struct upload_note note = {(char *)name, size, entry.version, {0}};
    return upload_notes_add(&upload->sent, &note, err);
}

static stk_status send_file(struct series_upload *upload, const char *name, struct stk_error *err)
{
    struct text uri = {0}, path = {0};
    struct stat found = {0};
    stk_status status;

    upload_place_uri(upload->place, name, &uri);
    text_format(&path, "%s/%s", upload->path, name);
    if (uri.failed || path.failed)
        status = fail_memory(err, path.len);
    else if (stat(path.data, &found))
        status = fail_errno(err, errno, "cannot read a file that was written");
    else
        status = upload_file(uri.data, path.data,
                             &(struct upload_options){.size = (uint64_t)found.st_size,
                                                      .resume = found.st_size > SMALL},
                             err);
    if (status && found.st_size > SMALL)
        context_notice(upload->context,
                       "parts of %s stay at the store, and cost what data costs: "
                       "the same command goes on with them",
                       name);
    if (!status)
        status = note_sent(upload, name, (uint64_t)found.st_size, err);
    upload->progress.done += (uint64_t)found.st_size;
    if (!status && context_progress(upload->context, &upload->timer, &upload->progress))
        status = fail(err, STK_CANCELLED, "stopped on request");
    text_free(&uri);
    text_free(&path);
    return status;
}

/* Of two runs that write to one place at once, neither may leave its metadata beside the other's
 * array. */
static stk_status check_all(struct series_upload *upload, struct stk_error *err)
{
    for (uint64_t i = 0; i < upload->sent.count; i++) {
        const struct upload_note *note = &upload->sent.notes[i];
        struct upload_entry entry;
        stk_status status = upload_place_stat(upload->place, note->name, &entry, err);
        if (status && status != STK_NOT_FOUND)
            return status;
        if (!status && entry.size == note->size && entry.version == note->version)
            continue;
        (void)!upload_place_remove(upload->place, SERIES_METADATA, NULL);
        fail(err, STK_STALE, "%s was %s by somebody else since it was sent: there is no series now",
             note->name, status ? "removed" : "replaced");
        fail_remedy(err, "let one run at a time write there, and pack it again");
        return STK_STALE;
    }
    return STK_OK;
}

static int is_file_of_series(const void *user, const char *name)
{
    (void)user;
    return !strcmp(name, SERIES_ARRAY) || !strcmp(name, SERIES_TIME) ||
           !strcmp(name, SERIES_STATIC);
}

/* Calls for each file but the metadata. */
static stk_status each_file(struct series_upload *upload,
                            stk_status (*call)(struct series_upload *, const char *,
                                               struct stk_error *),
                            struct stk_error *err)
{
    DIR *list = opendir(upload->path);
    stk_status status = STK_OK;

    if (!list)
        return fail_errno(err, errno, "cannot list the series that was packed");
    for (struct dirent *entry; !status && (entry = readdir(list));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, SERIES_METADATA))
            status = call(upload, entry->d_name, err);
    closedir(list);
    return status;
}

static stk_status count_file(struct series_upload *upload, const char *name, struct stk_error *err)
{
    struct stat found;
    int folder = open(upload->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failed = folder < 0 || fstatat(folder, name, &found, 0);
    stk_status status =
        failed ? fail_errno(err, errno, "cannot read a file of the series") : STK_OK;

    if (!failed)
        upload->progress.total += (uint64_t)found.st_size;
    if (folder >= 0)
        close(folder);
    return status;
}

/* Of a series that was replaced: what the new one has not. */
static stk_status remove_others(struct series_upload *upload, struct stk_error *err)
{
    stk_status status = STK_OK;

    for (size_t i = 0; i < sizeof(other_files) / sizeof(other_files[0]) && !status; i++) {
        char path[sizeof(upload->path) + 64];
        snprintf(path, sizeof(path), "%s/%s", upload->path, other_files[i]);
        if (access(path, F_OK))
            status = upload_place_remove(upload->place, other_files[i], err);
    }
    return status;
}

stk_status series_upload_send(struct series_upload *upload, struct stk_error *err)
{
    struct remote_patience before =
        remote_patience_set((struct remote_patience){is_over, upload->context});
    stk_status status = STK_OK;

    upload->progress = (struct stk_progress){.what = "uploading", .unit = "bytes"};
    if (upload->replaces) /* from here on there is no series until all of the new one is there */
        status = upload_place_remove(upload->place, SERIES_METADATA, err);
    if (!status && upload->replaces)
        status = remove_others(upload, err);
    if (!status)
        status = each_file(upload, count_file, err);
    if (!status)
        status = count_file(upload, SERIES_METADATA, err);
    if (!status)
        status = each_file(upload, send_file, err);
    if (!status)
        status = send_file(upload, SERIES_METADATA, err);
    if (!status)
        status = check_all(upload, err);
    if (!status)
        upload_place_tidy(upload->place, "", is_file_of_series, NULL);
    (void)remote_patience_set(before);
    return status;
}
