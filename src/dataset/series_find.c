#include "dataset/series_find.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/series_meta.h"

#define FIND_BYTES 4096 /* of metadata.json: what it is of stands at its beginning */

static int is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static int is_file(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISREG(info.st_mode);
}

static int says_series(const char *path)
{
    char bytes[FIND_BYTES];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    return got > 0 && memmem(bytes, (size_t)got, "\"stoker series\"", 15);
}

/* folder is not ended by NUL. */
static int holds_series(const char *folder, size_t len)
{
    char path[PATH_MAX + 64]; /* longer ones no call would take */
    if (len > PATH_MAX)
        return 0;
    snprintf(path, sizeof path, "%.*s/%s", (int)len, folder, SERIES_ARRAY);
    if (is_file(path))
        return 1;
    snprintf(path, sizeof path, "%.*s/%s", (int)len, folder, SERIES_METADATA);
    return is_file(path) && says_series(path);
}

size_t series_find_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (is_folder(path))
        return strlen(path);
    if (!slash || strcmp(slash + 1, SERIES_METADATA))
        return 0;
    return slash == path ? 1 : (size_t)(slash - path);
}

size_t series_find(const char *path)
{
    size_t len = series_find_folder(path);
    return len && holds_series(path, len) ? len : 0;
}
