#include "pack/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "store/upload_place.h"

struct staging {
    char *target;
    struct text path; /* of the hidden folder */
    int target_fd, fd;
    int made_target;
};

static stk_status fail_path(struct stk_error *err, const char *what, const char *path)
{
    stk_status status = fail_errno(err, errno, "%s", what);

    fail_at(err, path, STK_NOWHERE);
    return status;
}

/* mkdir -p. *made: the last part was not there. */
static stk_status make_folders(char *path, int *made, struct stk_error *err)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        int failed = mkdir(path, 0777) && errno != EEXIST;
        *slash = '/';
        if (failed)
            return fail_path(err, "cannot make the folder", path);
    }
    *made = !mkdir(path, 0777);
    if (!*made && errno != EEXIST)
        return fail_path(err, "cannot make the folder", path);
    return STK_OK;
}

/* Removes every file of the folder; there are no folders in it. */
static void empty_folder(int fd)
{
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = copy < 0 ? NULL : fdopendir(copy);

    if (!folder) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));)
        (void)unlinkat(fd, entry->d_name, 0); /* "." and ".." refuse */
    closedir(folder);
}

static stk_status open_folders(struct staging *staging, struct stk_error *err)
{
    struct stat folder;
    stk_status status = make_folders(staging->target, &staging->made_target, err);

    if (status)
        return status;
    staging->target_fd = open(staging->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (staging->target_fd < 0)
        return fail_path(err, "cannot open the folder", staging->target);
    if (mkdir(staging->path.data, 0777) && errno != EEXIST)
        return fail_path(err, "cannot write to the folder", staging->target);
    staging->fd = open(staging->path.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (staging->fd < 0)
        return fail_path(err, "cannot open the folder", staging->path.data);
    /* Whoever had the lock before may have removed the folder that is open here. */
    if (flock(staging->fd, LOCK_EX | LOCK_NB) || fstat(staging->fd, &folder) ||
        folder.st_nlink == 0) {
        close(staging->fd);
        staging->fd = -1; /* it is not ours to empty */
        status = fail(err, STK_BUSY, "another process is writing to this folder");
        fail_at(err, staging->target, STK_NOWHERE);
        fail_remedy(err, "wait for it, or choose another folder");
        return status;
    }
    empty_folder(staging->fd);
    return STK_OK;
}

/* It would become a folder of that odd name. */
static stk_status refuse_uri(const char *uri, struct stk_error *err)
{
    fail(err, STK_UNSUPPORTED, "this is written to a folder of this machine alone");
    fail_at(err, uri, STK_NOWHERE);
    fail_remedy(err, "write it to a folder, then 'stoker pack' can send it there");
    return STK_UNSUPPORTED;
}

stk_status staging_open(struct staging **out, const char *target, const char *name,
                        struct stk_error *err)
{
    struct staging *staging = memory_zero(1, sizeof(*staging));
    size_t len = strlen(target);
    stk_status status;

    *out = NULL;
    if (!staging)
        return fail_memory(err, sizeof(*staging));
    if (upload_place_is(target)) {
        memory_free(staging);
        return refuse_uri(target, err);
    }
    while (len > 1 && target[len - 1] == '/')
        len--;
    staging->target_fd = staging->fd = -1;
    staging->target = memory_text(target, len);
    text_format(&staging->path, "%.*s/.%s.part", (int)len, target, name);
    if (!staging->target || staging->path.failed)
        status = fail_memory(err, len);
    else
        status = open_folders(staging, err);
    if (!status) {
        *out = staging;
        staging = NULL;
    }
    staging_close(staging);
    return status;
}

int staging_fd(const struct staging *staging)
{
    return staging->fd;
}

int staging_target_fd(const struct staging *staging)
{
    return staging->target_fd;
}

const char *staging_target(const struct staging *staging)
{
    return staging->target;
}

const char *staging_path(const struct staging *staging)
{
    return staging->path.data;
}

stk_status staging_publish(struct staging *staging, const char *from, const char *to,
                           struct stk_error *err)
{
    if (renameat(staging->fd, from, staging->target_fd, to)) {
        stk_status status = fail_errno(err, errno, "cannot give a file its name");
        fail_at(err, to, STK_NOWHERE);
        return status;
    }
    return STK_OK;
}

/* --- a whole folder -------------------------------------------------------------------------- */

/* For file systems that cannot exchange two names. A crash between the renames leaves the old
 * folder as .NAME.old: whoever opens the place next puts it back (series_folder.c). */
static int swap_by_renames(struct staging *staging, const char *hidden, const char *name)
{
    char old[NAME_MAX + 1];
    int number = 0, fd = staging->target_fd;

    if ((size_t)snprintf(old, sizeof(old), ".%s.old", name) >= sizeof(old))
        return ENAMETOOLONG;
    if (renameat(fd, name, fd, old))
        return errno;
    if (renameat(fd, hidden, fd, name)) {
        number = errno;
        (void)renameat(fd, old, fd, name);
        return number;
    }
    (void)renameat(fd, old, fd, hidden);
    return 0;
}

static stk_status swap_failed(const struct staging *staging, const char *name, int number,
                              struct stk_error *err)
{
    stk_status status = fail_errno(err, number, "cannot put the folder in place");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", staging->target, name);
    fail_at(err, path, STK_NOWHERE);
    if (number == EXDEV || number == EBUSY)
        fail_remedy(err, "something is mounted there: choose a folder inside it");
    return status;
}

stk_status staging_become(struct staging *staging, const char *name, struct stk_error *err)
{
    const char *hidden = strrchr(staging->path.data, '/') + 1;
    int fd = staging->target_fd, number = 0;
    int old = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (old < 0 && errno != ENOENT)
        return swap_failed(staging, name, errno, err);
    /* Locked before it takes the hidden name: nobody else may open it there. */
    if (old >= 0 && flock(old, LOCK_EX | LOCK_NB))
        number = errno;
    else if (old < 0)
        number = renameat(fd, hidden, fd, name) ? errno : 0;
    else if (renameat2(fd, hidden, fd, name, RENAME_EXCHANGE))
        number = errno;
    if (number && old >= 0 && (number == EINVAL || number == ENOSYS || number == EOPNOTSUPP))
        number = swap_by_renames(staging, hidden, name);
    if (number) {
        if (old >= 0)
            close(old);
        return swap_failed(staging, name, number, err);
    }
    close(staging->fd);
    staging->fd = old; /* -1: there is no hidden folder any more */
    return STK_OK;
}

void staging_close(struct staging *staging)
{
    if (!staging)
        return;
    if (staging->fd >= 0) {
        empty_folder(staging->fd);
        (void)rmdir(staging->path.data);
        close(staging->fd);
    }
    if (staging->target_fd >= 0)
        close(staging->target_fd);
    if (staging->made_target)
        (void)rmdir(staging->target); /* only when it is empty */
    text_free(&staging->path);
    memory_free(staging->target);
    memory_free(staging);
}
