#include "pack/spool_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define PREFIX "stoker-pack-"
#define LEVELS 2 /* of folders below */
#define TRIES 10

/* below: how many levels of folders may lie in it. */
static void empty(int folder_fd, int below)
{
    int copy = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);

    if (!list) {
        if (copy >= 0)
            close(copy);
        return;
    }
    for (struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] == '.' &&
            (!entry->d_name[1] || (entry->d_name[1] == '.' && !entry->d_name[2])))
            continue;
        if (!unlinkat(folder_fd, entry->d_name, 0) || !below)
            continue;
        int inner =
            openat(folder_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            continue;
        empty(inner, below - 1);
        close(inner);
        (void)unlinkat(folder_fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(list);
}

/* Removes folders of this user's whose lock nobody has: their processes were killed. */
static void sweep(const char *base)
{
    DIR *list = opendir(base);

    if (!list)
        return;
    for (struct dirent *entry; (entry = readdir(list));) {
        struct stat found;
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)))
            continue;
        int fd =
            openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (!fstat(fd, &found) && found.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB)) {
            empty(fd, LEVELS);
            (void)unlinkat(dirfd(list), entry->d_name, AT_REMOVEDIR);
        }
        close(fd);
    }
    closedir(list);
}

/* Not 0: it is there, and locked where there are locks. A sweep may have come before the lock. */
static int make(struct spool_folder *folder, const char *base)
{
    struct stat at_path, open_one;

    snprintf(folder->path, sizeof(folder->path), "%s/" PREFIX "XXXXXX", base);
    folder->fd = -1;
    if (mkdtemp(folder->path))
        folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return 0;
    (void)flock(folder->fd, LOCK_EX);
    if (!stat(folder->path, &at_path) && !fstat(folder->fd, &open_one) &&
        at_path.st_ino == open_one.st_ino)
        return 1;
    close(folder->fd);
    folder->fd = -1;
    errno = EAGAIN;
    return 0;
}

stk_status spool_folder_open(struct spool_folder *folder, struct stk_error *err)
{
    const char *base = getenv("TMPDIR");

    base = base && base[0] ? base : "/var/tmp";
    sweep(base);
    for (int tries = 0; tries < TRIES; tries++) {
        if (make(folder, base))
            return STK_OK;
        if (errno != EAGAIN)
            break;
    }
    stk_status status = fail_errno(err, errno, "cannot make a folder for files on their way");
    fail_at(err, folder->path, STK_NOWHERE);
    fail_remedy(err, "let TMPDIR name a folder that can be written to");
    folder->path[0] = 0;
    return status;
}

void spool_folder_close(struct spool_folder *folder)
{
    if (!folder->path[0])
        return;
    empty(folder->fd, LEVELS);
    close(folder->fd);
    (void)rmdir(folder->path);
    folder->path[0] = 0;
}
