#include "pack/spool_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fail.h"

stk_status spool_folder_open(struct spool_folder *folder, struct stk_error *err)
{
    const char *base = getenv("TMPDIR");

    folder->fd = -1;
    snprintf(folder->path, sizeof(folder->path), "%s/stoker-pack-XXXXXX",
             base && base[0] ? base : "/var/tmp");
    if (mkdtemp(folder->path))
        folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd >= 0)
        return STK_OK;
    stk_status status = fail_errno(err, errno, "cannot make a folder for files on their way");
    fail_at(err, folder->path, STK_NOWHERE);
    fail_remedy(err, "let TMPDIR name a folder that can be written to");
    folder->path[0] = 0;
    return status;
}

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

void spool_folder_close(struct spool_folder *folder)
{
    if (!folder->path[0])
        return;
    empty(folder->fd, 2);
    close(folder->fd);
    (void)rmdir(folder->path);
    folder->path[0] = 0;
}
