#include "index/spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

#define SPOOL_BUFFER (128u * 1024u)

void spool_init(struct spool *spool, const char *folder)
{
    *spool = (struct spool){.folder = folder, .fd = -1};
}

void spool_reset(struct spool *spool)
{
    if (spool->fd >= 0)
        close(spool->fd);
    memory_free(spool->buf);
    spool_init(spool, spool->folder);
}

/* The file has no name from the start, or loses it at once: a crash leaves nothing behind. */
static stk_status spool_open(struct spool *spool, struct stk_error *err)
{
    spool->fd = open(spool->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (spool->fd >= 0)
        return STK_OK;
    char path[4096];
    int len = snprintf(path, sizeof(path), "%s/.stoker-XXXXXX", spool->folder);
    if (len < 0 || (size_t)len >= sizeof(path))
        return fail(err, STK_LIMIT, "the folder's path is too long");
    spool->fd = mkostemp(path, O_CLOEXEC);
    if (spool->fd < 0) {
        stk_status status = fail_errno(err, errno, "cannot make a temporary file");
        fail_at(err, spool->folder, STK_NOWHERE);
        return status;
    }
    unlink(path);
    return STK_OK;
}

static stk_status spool_flush(struct spool *spool, struct stk_error *err)
{
    spool->failed = 1; /* until it is written */
    if (spool->fd < 0) {
        stk_status status = spool_open(spool, err);
        if (status)
            return status;
    }
    size_t done = 0;
    while (done < spool->used) {
        ssize_t n = write(spool->fd, spool->buf + done, spool->used - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            stk_status status =
                fail_errno(err, n ? errno : ENOSPC, "cannot write a temporary file");
            fail_at(err, spool->folder, STK_NOWHERE);
            return status;
        }
        done += (size_t)n;
    }
    spool->written += spool->used;
    spool->used = 0;
    spool->failed = 0;
    return STK_OK;
}

stk_status spool_add(struct spool *spool, const void *data, size_t len, struct stk_error *err)
{
    if (!spool->buf) {
        spool->buf = memory_alloc(SPOOL_BUFFER);
        if (!spool->buf)
            return fail_memory(err, SPOOL_BUFFER);
    }
    const uint8_t *from = data;
    while (len > 0) {
        if (spool->used == SPOOL_BUFFER) {
            stk_status status = spool_flush(spool, err);
            if (status)
                return status;
        }
        size_t room = SPOOL_BUFFER - spool->used;
        size_t part = len < room ? len : room;
        memcpy(spool->buf + spool->used, from, part);
        spool->used += part;
        from += part;
        len -= part;
    }
    return STK_OK;
}

stk_status spool_read(const struct spool *spool, uint64_t offset, void *to, size_t len,
                      struct stk_error *err)
{
    assert(offset + len <= spool_size(spool));
    uint8_t *out = to;
    while (len > 0 && offset < spool->written) {
        uint64_t left = spool->written - offset;
        ssize_t n = pread(spool->fd, out, len < left ? len : (size_t)left, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail_errno(err, n ? errno : EIO, "cannot read a temporary file back");
        out += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    if (len > 0)
        memcpy(out, spool->buf + (offset - spool->written), len);
    return STK_OK;
}
