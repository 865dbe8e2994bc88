#include "output_file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "message.h"

int output_file_begin(struct output_file *file, const char *path)
{
    int len =
        snprintf(file->temporary, sizeof(file->temporary), "%s.%ld.tmp", path, (long)getpid());

    file->path = path;
    file->stream = NULL;
    if (len >= (int)sizeof(file->temporary))
        return message_failed("the path is too long: %s", path);
    file->stream = fopen(file->temporary, "wxe");
    if (!file->stream)
        return message_failed("cannot write %s: %s", path, strerror(errno));
    return 0;
}

int output_file_commit(struct output_file *file)
{
    int failed = fflush(file->stream) || ferror(file->stream) || fsync(fileno(file->stream));
    int number = errno;

    if (fclose(file->stream) && !failed) {
        failed = 1;
        number = errno;
    }
    if (!failed && rename(file->temporary, file->path)) {
        failed = 1;
        number = errno;
    }
    if (!failed)
        return 0;
    (void)unlink(file->temporary);
    return message_failed("cannot write %s: %s", file->path, strerror(number));
}
