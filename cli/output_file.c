#include "output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

/* A pipe or a device (/dev/null) is written to as it is: a file must not take its name. */
static int is_special(const char *path)
{
    struct stat found;

    return !stat(path, &found) && !S_ISREG(found.st_mode) && !S_ISDIR(found.st_mode);
}

int output_file_begin(struct output_file *file, const char *path)
{
    int len =
        snprintf(file->temporary, sizeof(file->temporary), "%s.%ld.tmp", path, (long)getpid());

    file->path = path;
    file->stream = NULL;
    file->in_place = is_special(path);
    if (file->in_place) {
        file->stream = fopen(path, "we");
        return file->stream ? 0 : message_failed("cannot write %s: %s", path, strerror(errno));
    }
    if (len >= (int)sizeof(file->temporary))
        return message_failed("the path is too long: %s", path);
    file->stream = fopen(file->temporary, "wxe");
    if (!file->stream)
        return message_failed("cannot write %s: %s", path, strerror(errno));
    return 0;
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
    if (!failed && !file->in_place && rename(file->temporary, file->path)) {
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
