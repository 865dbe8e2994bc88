#include "pack/series_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "format/series_meta.h"
#include "pack/staging.h"
#include "pack/write_all.h"

struct series_folder {
    char *path, *parent; /* without links and slashes behind */
    const char *name;    /* the end of path */
    int fd;              /* of the series that is there; -1: none */
    struct staging *staging;
    int is_committed;
};

/* What a series is made of. Anything else in its folder belongs to someone. */
static const char *const own_files[] = {SERIES_METADATA, SERIES_ARRAY,  SERIES_TIME,
                                        SERIES_STATIC,   SERIES_HASHES, SERIES_SCALER,
                                        SERIES_JOURNAL,  SERIES_JOBLIB};

static stk_status folder_failed(const char *folder, const char *name, const char *what,
                                struct stk_error *err)
{
    char path[PATH_MAX];
    stk_status status = fail_errno(err, errno, "%s", what);

    snprintf(path, sizeof(path), "%s%s%s", folder, name ? "/" : "", name ? name : "");
    fail_at(err, path, STK_NOWHERE);
    return status;
}

/* --- where it is ----------------------------------------------------------------------------- */

static int split_path(struct series_folder *folder)
{
    char *slash = strrchr(folder->path, '/');

    folder->name = slash ? slash + 1 : folder->path;
    if (!folder->name[0] || !strcmp(folder->name, ".") || !strcmp(folder->name, ".."))
        return EISDIR;
    folder->parent = !slash ? memory_text(".", 1)
                     : slash == folder->path
                         ? memory_text("/", 1)
                         : memory_text(folder->path, (size_t)(slash - folder->path));
    return folder->parent ? 0 : ENOMEM;
}

/* A folder that is there is taken without links: what is exchanged is it, not a link to it. */
static stk_status find_path(struct series_folder *folder, const char *path, struct stk_error *err)
{
    char real[PATH_MAX];
    size_t len = strlen(path);
    int number;

    if (realpath(path, real)) {
        path = real;
        len = strlen(real);
    }
    while (len > 1 && path[len - 1] == '/')
        len--;
    folder->path = memory_text(path, len);
    number = !len ? ENOENT : !folder->path ? ENOMEM : split_path(folder);
    if (!number)
        return STK_OK;
    stk_status status = fail_errno(err, number, "this cannot be the folder of a series");
    fail_at(err, path, STK_NOWHERE);
    return status;
}

/* --- what is there --------------------------------------------------------------------------- */

static int is_own(const char *name)
{
    for (size_t i = 0; i < sizeof(own_files) / sizeof(own_files[0]); i++)
        if (strcmp(name, own_files[i]) == 0)
            return 1;
    return 0;
}

/* Files of the folder; other: one that no series has, or "". */
struct folder_content {
    uint64_t files;
    int has_metadata;
    char other[NAME_MAX + 1];
};

static DIR *list_open(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);

    if (!list && copy >= 0)
        close(copy);
    return list;
}

static stk_status folder_list(const struct series_folder *folder, struct folder_content *content,
                              struct stk_error *err)
{
    DIR *list = list_open(folder->fd);

    *content = (struct folder_content){0};
    if (!list)
        return folder_failed(folder->path, NULL, "cannot list the folder", err);
    for (struct dirent *entry; (entry = readdir(list));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        content->files++;
        content->has_metadata |= !strcmp(entry->d_name, SERIES_METADATA);
        if (!is_own(entry->d_name))
            snprintf(content->other, sizeof(content->other), "%s", entry->d_name);
    }
    closedir(list);
    return STK_OK;
}

static stk_status refuse(const struct series_folder *folder, struct stk_error *err,
                         const char *remedy)
{
    fail_at(err, folder->path, STK_NOWHERE);
    fail_remedy(err, "%s", remedy);
    return STK_USAGE;
}

static stk_status check_content(const struct series_folder *folder, enum series_folder_mode mode,
                                struct stk_error *err)
{
    struct folder_content content;
    stk_status status = folder_list(folder, &content, err);

    if (status || (!content.files && mode != SERIES_FOLDER_CHANGE))
        return status;
    if (!content.has_metadata) {
        fail(err, STK_USAGE, "the folder is there and is no series: it has no " SERIES_METADATA);
        return refuse(folder, err, "choose another folder");
    }
    if (mode == SERIES_FOLDER_NEW) {
        fail(err, STK_USAGE, "there is a series already");
        return refuse(folder, err, "use --force to replace it, --append to add to it");
    }
    if (mode == SERIES_FOLDER_REPLACE && content.other[0]) {
        fail(err, STK_USAGE, "'%.200s' in the folder is no part of a series", content.other);
        return refuse(folder, err, "move it away, or choose another folder");
    }
    return STK_OK;
}

/* Puts back what a crash between two renames left (staging_become), or removes it when the new
 * series was already in place. */
static void recover(const struct series_folder *folder)
{
    char old[NAME_MAX + 1];
    int target = staging_target_fd(folder->staging);
    struct stat found;

    if ((size_t)snprintf(old, sizeof(old), ".%s.old", folder->name) >= sizeof(old) ||
        fstatat(target, old, &found, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(found.st_mode))
        return;
    if (faccessat(target, folder->name, F_OK, 0) && errno == ENOENT) {
        (void)renameat(target, old, target, folder->name);
        return;
    }
    int fd = openat(target, old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < sizeof(own_files) / sizeof(own_files[0]); i++)
        (void)unlinkat(fd, own_files[i], 0);
    if (fd >= 0)
        close(fd);
    (void)unlinkat(target, old, AT_REMOVEDIR);
}

static int has_old(const struct series_folder *folder)
{
    struct text path = {0};
    int there;

    text_format(&path, "%s/.%s.old", folder->parent, folder->name);
    there = !path.failed && access(path.data, F_OK) == 0;
    text_free(&path);
    return there;
}

static stk_status open_series(struct series_folder *folder, enum series_folder_mode mode,
                              struct stk_error *err)
{
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0)
        return check_content(folder, mode, err);
    if (errno == ENOENT && mode != SERIES_FOLDER_CHANGE)
        return STK_OK;
    if (errno == ENOTDIR) {
        fail(err, STK_USAGE, "it is a file, and a folder is wanted");
        return refuse(folder, err, "choose another folder");
    }
    return folder_failed(folder->path, NULL, "cannot open the series", err);
}

stk_status series_folder_open(struct series_folder **out, const char *path,
                              enum series_folder_mode mode, struct stk_error *err)
{
    struct series_folder *folder = memory_zero(1, sizeof(*folder));
    stk_status status;

    *out = NULL;
    if (!folder)
        return fail_memory(err, sizeof(*folder));
    folder->fd = -1;
    status = find_path(folder, path, err);
    if (!status) /* before anything is made */
        status = open_series(folder, mode, err);
    if (status == STK_NOT_FOUND && has_old(folder))
        status = STK_OK;
    if (!status)
        status = staging_open(&folder->staging, folder->parent, folder->name, err);
    if (status)
        goto done;
    recover(folder);
    if (folder->fd >= 0)
        close(folder->fd); /* again, now that no other process can change it */
    status = open_series(folder, mode, err);
done:
    if (!status) {
        *out = folder;
        folder = NULL;
    }
    series_folder_close(folder);
    return status;
}

const char *series_folder_path(const struct series_folder *folder)
{
    return folder->path;
}

const char *series_folder_hidden(const struct series_folder *folder)
{
    return staging_path(folder->staging);
}

int series_folder_fd(const struct series_folder *folder)
{
    return staging_fd(folder->staging);
}

/* --- files ----------------------------------------------------------------------------------- */

static int write_file(int folder_fd, const char *name, const void *data, size_t len, int sync)
{
    int fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int number = fd < 0 ? errno : write_all(fd, data, len);

    if (!number && sync && fsync(fd))
        number = errno;
    if (fd >= 0 && close(fd) && !number)
        number = errno;
    return number;
}

stk_status series_folder_write(const struct series_folder *folder, const char *name,
                               const void *data, size_t len, struct stk_error *err)
{
    /* A link of that name is another series' file: it must not be written to. */
    (void)unlinkat(series_folder_fd(folder), name, 0);
    errno = write_file(series_folder_fd(folder), name, data, len, 0);
    return errno ? folder_failed(series_folder_hidden(folder), name, "cannot write a file", err)
                 : STK_OK;
}

stk_status series_folder_rewrite(const struct series_folder *folder, const char *name,
                                 const void *data, size_t len, struct stk_error *err)
{
    int from = series_folder_fd(folder);

    (void)unlinkat(from, name, 0);
    errno = write_file(from, name, data, len, 1);
    if (errno || renameat(from, name, folder->fd, name) || fsync(folder->fd))
        return folder_failed(folder->path, name, "cannot write a file", err);
    return STK_OK;
}

void series_folder_remove(const struct series_folder *folder, const char *name)
{
    (void)unlinkat(folder->fd, name, 0);
}

int series_folder_open_file(const struct series_folder *folder, const char *name, int flags,
                            struct stk_error *err)
{
    int fd = openat(folder->fd, name, flags | O_CLOEXEC);

    if (fd < 0)
        (void)folder_failed(folder->path, name, "cannot open a file of the series", err);
    return fd;
}

stk_status series_folder_link(const struct series_folder *folder, const char *name,
                              struct stk_error *err)
{
    if (!linkat(folder->fd, name, series_folder_fd(folder), name, 0))
        return STK_OK;
    if (errno == EPERM || errno == EMLINK || errno == ENOSYS || errno == EXDEV)
        errno = EOPNOTSUPP;
    return folder_failed(folder->path, name, "cannot link a file of the series", err);
}

/* For file systems without links. */
static stk_status copy_file(const struct series_folder *folder, const char *name,
                            struct stk_error *err)
{
    char buf[16384];
    int from = openat(folder->fd, name, O_RDONLY | O_CLOEXEC);
    int to = openat(series_folder_fd(folder), name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int number = from < 0 || to < 0 ? errno : 0;

    while (!number) {
        ssize_t got = read(from, buf, sizeof(buf));
        if (got == 0)
            break;
        if (got > 0)
            number = write_all(to, buf, (size_t)got);
        else if (errno != EINTR)
            number = errno;
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    errno = number;
    return number ? folder_failed(folder->path, name, "cannot copy a file of the series", err)
                  : STK_OK;
}

stk_status series_folder_inherit(const struct series_folder *folder, struct stk_error *err)
{
    DIR *list = list_open(folder->fd);
    stk_status status = STK_OK;

    if (!list)
        return folder_failed(folder->path, NULL, "cannot list the folder", err);
    for (struct dirent *entry; !status && (entry = readdir(list));) {
        struct stat found;
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, SERIES_JOURNAL) ||
            !faccessat(series_folder_fd(folder), name, F_OK, AT_SYMLINK_NOFOLLOW))
            continue;
        if (!fstatat(folder->fd, name, &found, AT_SYMLINK_NOFOLLOW) && S_ISDIR(found.st_mode)) {
            fail(err, STK_USAGE, "'%.200s' in the folder is no part of a series", name);
            status = refuse(folder, err, "move it away");
        } else {
            status = series_folder_link(folder, name, err);
            if (status == STK_UNSUPPORTED)
                status = copy_file(folder, name, err);
        }
    }
    closedir(list);
    return status;
}

/* --- the end --------------------------------------------------------------------------------- */

/* Every file of the hidden folder, then the folder itself. */
static stk_status sync_all(const struct series_folder *folder, struct stk_error *err)
{
    int hidden = series_folder_fd(folder);
    DIR *list = list_open(hidden);
    stk_status status = STK_OK;

    if (!list)
        return folder_failed(series_folder_hidden(folder), NULL, "cannot list the folder", err);
    for (struct dirent *entry; !status && (entry = readdir(list));) {
        struct stat found;
        if (fstatat(hidden, entry->d_name, &found, AT_SYMLINK_NOFOLLOW) || !S_ISREG(found.st_mode))
            continue;
        int fd = openat(hidden, entry->d_name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fsync(fd))
            status = folder_failed(series_folder_hidden(folder), entry->d_name,
                                   "cannot write a file to the disk", err);
        if (fd >= 0)
            close(fd);
    }
    closedir(list);
    if (!status && fsync(hidden))
        status = folder_failed(series_folder_hidden(folder), NULL,
                               "cannot write the folder to the disk", err);
    return status;
}

stk_status series_folder_commit(struct series_folder *folder, struct stk_error *err)
{
    stk_status status = sync_all(folder, err);

    if (!status)
        status = staging_become(folder->staging, folder->name, err);
    folder->is_committed = !status;
    /* From here on the new series is in place; that its name is on the disk is all that can fail.
     */
    if (!status && fsync(staging_target_fd(folder->staging)))
        status = folder_failed(folder->parent, NULL, "cannot write the folder to the disk", err);
    return status;
}

int series_folder_is_committed(const struct series_folder *folder)
{
    return folder->is_committed;
}

void series_folder_close(struct series_folder *folder)
{
    if (!folder)
        return;
    if (folder->fd >= 0)
        close(folder->fd);
    staging_close(folder->staging);
    memory_free(folder->path);
    memory_free(folder->parent);
    memory_free(folder);
}
