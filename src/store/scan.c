#include "store/scan.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/file_open.h"

struct scan {
    int fd;
    struct file_facts facts;
    char name[]; /* the whole path */
};

uint64_t scan_file_version(uint64_t size, int64_t mtime_sec, int64_t mtime_nsec, uint64_t inode)
{
    uint64_t words[4] = {htole64(size), htole64((uint64_t)mtime_sec), htole64((uint64_t)mtime_nsec),
                         htole64(inode)};
    return hash_bytes(words, sizeof words, 0);
}

stk_status scan_open(struct scan **out, const char *root, const char *name, struct stk_error *err)
{
    char buf[FILE_PATH_CAP];
    const char *path = file_path(root, name, buf);
    size_t len = strlen(path);
    *out = NULL;
    struct scan *scan = memory_alloc(sizeof *scan + len + 1);
    if (!scan)
        return fail_memory(err, sizeof *scan + len + 1);
    memcpy(scan->name, path, len + 1);
    scan->fd = file_open(AT_FDCWD, path, &scan->facts);
    if (scan->fd < 0) {
        int number = -scan->fd;
        stk_status status = number == EINVAL
                                ? fail(err, STK_UNSUPPORTED, "it is neither a file nor a folder")
                                : fail_errno(err, number, "cannot open it");
        fail_at(err, path, STK_NOWHERE);
        scan_close(scan);
        return status;
    }
    *out = scan;
    return STK_OK;
}

void scan_close(struct scan *scan)
{
    if (!scan)
        return;
    if (scan->fd >= 0)
        close(scan->fd);
    memory_free(scan);
}

uint64_t scan_size(const struct scan *scan)
{
    return scan->facts.size;
}

uint64_t scan_version(const struct scan *scan)
{
    return scan->facts.version;
}

const char *scan_name(const struct scan *scan)
{
    return scan->name;
}

stk_status scan_read(struct scan *scan, uint64_t offset, void *to, size_t len, size_t *got,
                     struct stk_error *err)
{
    *got = 0;
    while (*got < len) {
        uint64_t at;
        if (__builtin_add_overflow(offset, *got, &at) || at > INT64_MAX)
            return STK_OK; /* no file reaches that far */
        ssize_t count = pread(scan->fd, (char *)to + *got, len - *got, (off_t)at);
        if (count == 0)
            return STK_OK;
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            stk_status status = fail_errno(err, errno, "reading failed");
            fail_at(err, scan->name, at);
            return status;
        }
        *got += (size_t)count;
    }
    return STK_OK;
}

stk_status scan_read_all(struct scan *scan, uint64_t offset, void *to, size_t len,
                         struct stk_error *err)
{
    size_t got;
    stk_status status = scan_read(scan, offset, to, len, &got, err);
    if (status || got == len)
        return status;
    fail(err, STK_TRUNCATED, "it ends %zu bytes too early", len - got);
    fail_at(err, scan->name, offset);
    return STK_TRUNCATED;
}
