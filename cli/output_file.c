#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exit_status.h"
#include "message.h"

#define LINKS 40 /* as many as the kernel follows */

/* --- where a path leads ------------------------------------------------------------------------
 */

/* The folder of a path; what is left of the path is its last name. */
static const char *split(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        snprintf(folder, PATH_MAX, ".");
    else
        snprintf(folder, PATH_MAX, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    return slash ? slash + 1 : path;
}

/* The descriptor that a name stands for in the list of those which this process has open. */
static int descriptor_of(const char *folder, const char *name)
{
    char real[PATH_MAX], open_ones[PATH_MAX], *end;

    if (!realpath(folder, real) || !realpath("/proc/self/fd", open_ones) || strcmp(real, open_ones))
        return -1;
    long number = strtol(name, &end, 10);
    return end != name && !*end && number >= 0 && number <= INT_MAX ? (int)number : -1;
}

/* Follows links to what need not be there yet. 0, or an errno. *descriptor: the open one that path
 * names, or -1. To open that anew would be to write over what is in it. */
static int follow(const char *path, char target[PATH_MAX], int *descriptor)
{
    char folder[PATH_MAX], link[PATH_MAX];

    *descriptor = -1;
    if (snprintf(target, PATH_MAX, "%s", path) >= PATH_MAX)
        return ENAMETOOLONG;
    for (int i = 0; i < LINKS; i++) {
        const char *name = split(target, folder);
        *descriptor = descriptor_of(folder, name);
        ssize_t len = *descriptor < 0 ? readlink(target, link, sizeof(link) - 1) : -1;
        if (len < 0)
            return 0;
        link[len] = '\0';
        len = link[0] == '/' ? snprintf(target, PATH_MAX, "%s", link)
                             : snprintf(target, PATH_MAX, "%s/%s", folder, link);
        if (len >= PATH_MAX)
            return ENAMETOOLONG;
    }
    return ELOOP;
}

/* A pipe or a device (/dev/null): a file must not take its name. */
static int is_special(const char *target)
{
    struct stat found;

    return !stat(target, &found) && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

int output_file_is_stream(const char *path)
{
    char target[PATH_MAX];
    int descriptor;

    return !follow(path, target, &descriptor) && (descriptor >= 0 || is_special(target));
}

/* --- writing -----------------------------------------------------------------------------------
 */

static FILE *open_again(int descriptor)
{
    int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;

    if (fd >= 0 && !stream)
        close(fd);
    return stream;
}

int output_file_begin(struct output_file *file, const char *path)
{
    int descriptor;

    file->path = path;
    file->stream = NULL;
    int number = follow(path, file->target, &descriptor);
    if (number)
        return message_failed("cannot write %s: %s", path, strerror(number));
    file->in_place = descriptor >= 0 || is_special(file->target);
    snprintf(file->temporary, sizeof(file->temporary), "%s.%ld.tmp", file->target, (long)getpid());
    if (descriptor >= 0)
        file->stream = open_again(descriptor);
    else
        file->stream = file->in_place ? fopen(file->target, "we") : fopen(file->temporary, "wxe");
    return file->stream ? 0 : message_failed("cannot write %s: %s", path, strerror(errno));
}

int output_file_commit(struct output_file *file)
{
    int failed = fflush(file->stream) || ferror(file->stream) ||
                 (!file->in_place && fsync(fileno(file->stream)));
    int number = errno;

    if (fclose(file->stream) && !failed) {
        failed = 1;
        number = errno;
    }
    if (!failed && !file->in_place && rename(file->temporary, file->target)) {
        failed = 1;
        number = errno;
    }
    if (!failed)
        return 0;
    if (!file->in_place)
        (void)unlink(file->temporary);
    return message_failed("cannot write %s: %s", file->path, strerror(number));
}

void output_file_abandon(struct output_file *file)
{
    (void)fclose(file->stream);
    if (!file->in_place)
        (void)unlink(file->temporary);
}

/* --- before there is anything to write ---------------------------------------------------------
 */

/* 0, or an errno. */
static int try_descriptor(int descriptor)
{
    int flags = fcntl(descriptor, F_GETFL);

    if (flags < 0)
        return errno;
    return (flags & O_ACCMODE) == O_RDONLY ? EACCES : 0;
}

/* The same for a path, in which all links were followed. *is_file: there is a plain file. */
static int try_path(const char *target, int *is_file)
{
    struct stat found;
    int fd = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    *is_file = 0;
    if (fd >= 0) {
        close(fd);
        (void)unlink(target);
        return 0;
    }
    /* A pipe that is opened and closed again ends its reader. */
    if (errno == EEXIST && !stat(target, &found) && S_ISFIFO(found.st_mode) &&
        !access(target, W_OK))
        return 0;
    if (errno == EEXIST)
        fd = open(target, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno;
    *is_file = !fstat(fd, &found) && S_ISREG(found.st_mode);
    close(fd);
    return 0;
}

int output_file_check(const char *path)
{
    struct output_file file;
    int descriptor, is_file = 0;

    int number = follow(path, file.target, &descriptor);
    if (!number)
        number = descriptor >= 0 ? try_descriptor(descriptor) : try_path(file.target, &is_file);
    if (number)
        return message_failed("cannot write %s: %s", path, strerror(number));
    /* A new file takes its place in the end: there must be room for one beside it. */
    if (is_file && output_file_begin(&file, path))
        return EXIT_FAILED;
    if (is_file)
        output_file_abandon(&file);
    return 0;
}
