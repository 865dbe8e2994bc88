#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fail.h"
#include "net/credentials.h"

#define MOST_BYTES (1 << 20)
#define STEP 65536

static stk_status read_all(struct text *out, int fd, const char *path, struct stk_error *err)
{
    for (;;) {
        if (out->cap - out->len < 2 && !secret_text_room(out, STEP))
            return fail_memory(err, out->cap);
        ssize_t got = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(err, errno, "cannot read %s", path);
        out->len += (size_t)got;
        out->data[out->len] = '\0';
        if (!got)
            return STK_OK;
        if (out->len > MOST_BYTES)
            return fail(err, STK_LIMIT, "%s is larger than 1 MiB", path);
    }
}

stk_status secret_file_read(struct text *out, const char *path, struct stk_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return fail_errno(err, errno, "cannot open %s", path);
    stk_status status = read_all(out, fd, path, err);
    if (status)
        secret_text_free(out);
    close(fd);
    return status;
}
