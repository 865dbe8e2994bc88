#include "store/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/scan.h"

void file_facts_of(const struct stat *found, struct file_facts *facts)
{
    facts->size = (uint64_t)found->st_size;
    facts->version = scan_file_version(facts->size, found->st_mtim.tv_sec, found->st_mtim.tv_nsec,
                                       found->st_ino);
    facts->linked = found->st_nlink > 0;
}

int file_facts(int fd, struct file_facts *facts)
{
    struct stat found;
    if (fstat(fd, &found) != 0)
        return -errno;
    if (!S_ISREG(found.st_mode))
        return S_ISDIR(found.st_mode) ? -EISDIR : -EINVAL;
    file_facts_of(&found, facts);
    return 0;
}

int file_open(int folder, const char *name, struct file_facts *facts)
{
    int fd;
    do /* O_NONBLOCK: opening a pipe would wait for its writer */
        fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return errno == ENXIO ? -EINVAL : -errno;
    int result = file_facts(fd, facts);
    /* With O_NONBLOCK kept, io_uring would answer EAGAIN where it should wait for the disk. */
    if (result == 0 && fcntl(fd, F_SETFL, 0) != 0)
        result = -errno;
    if (result < 0) {
        close(fd);
        return result;
    }
    return fd;
}

int file_is_uri(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return len > 0 && !strncmp(name + len, "://", 3);
}

const char *file_path(const char *root, const char *name, char buf[FILE_PATH_CAP])
{
    if (!root || !root[0] || file_is_uri(name) || (name[0] == '/' && !file_is_uri(root)))
        return name;
    int len = snprintf(buf, FILE_PATH_CAP, "%s/%s", root, name);
    return len < 0 || len >= FILE_PATH_CAP ? name : buf;
}
