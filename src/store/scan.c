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
#include "net/site.h"
#include "store/file_open.h"
#include "store/remote.h"

struct scan {
    int fd; /* -1: it is remote */
    struct remote_scan *remote;
    struct file_facts facts;
    char name[]; /* the whole path */
};

uint64_t scan_file_version(uint64_t size, int64_t mtime_sec, int64_t mtime_nsec, uint64_t inode)
{
    uint64_t words[4] = {htole64(size), htole64((uint64_t)mtime_sec), htole64((uint64_t)mtime_nsec),
                         htole64(inode)};
    return hash_bytes(words, sizeof words, 0);
}

static stk_status open_file(struct scan *scan, struct stk_error *err)
{
    scan->fd = file_open(AT_FDCWD, scan->name, &scan->facts);
    if (scan->fd >= 0)
        return STK_OK;
    int number = -scan->fd;
    scan->fd = -1;
    stk_status status = number == EINVAL
                            ? fail(err, STK_UNSUPPORTED, "it is neither a file nor a folder")
                            : fail_errno(err, number, "cannot open it");
    fail_at(err, scan->name, STK_NOWHERE);
    return status;
}

static struct scan *scan_new(const char *path)
{
    size_t len = strlen(path);
    struct scan *scan = memory_alloc(sizeof *scan + len + 1);
    if (!scan)
        return NULL;
    *scan = (struct scan){.fd = -1};
    memcpy(scan->name, path, len + 1);
    return scan;
}

stk_status scan_open(struct scan **out, const char *root, const char *name, struct stk_error *err)
{
    char buf[FILE_PATH_CAP];
    const char *path = file_path(root, name, buf);
    stk_status status;
    *out = NULL;
    struct scan *scan = scan_new(path);
    if (!scan)
        return fail_memory(err, sizeof *scan + strlen(path));
    if (site_is_remote(path))
        status =
            remote_scan_open(&scan->remote, path, &scan->facts.size, &scan->facts.version, err);
    else
        status = open_file(scan, err);
    if (status) {
        scan_close(scan);
        return status;
    }
    *out = scan;
    return STK_OK;
}

stk_status scan_open_object(struct scan **out, struct store *store, uint32_t number,
                            struct stk_error *err)
{
    char buf[FILE_PATH_CAP];
    struct object object = {.name = ""};
    *out = NULL;
    store->table.get(store->table.owner, number, &object);
    if (!store->remote)
        return scan_open(out, store->table.root, object.name, err);
    const char *path = file_path(store->table.root, object.name, buf);
    struct scan *scan = scan_new(path);
    if (!scan)
        return fail_memory(err, sizeof *scan + strlen(path));
    scan->facts = (struct file_facts){.size = object.size, .version = object.version, .linked = 1};
    stk_status status = remote_scan_of(&scan->remote, store, number, err);
    if (status) {
        scan_close(scan);
        return status;
    }
    *out = scan;
    return STK_OK;
}

void scan_limit(struct scan *scan, uint64_t end)
{
    if (scan->remote)
        remote_scan_limit(scan->remote, end);
}

void scan_close(struct scan *scan)
{
    if (!scan)
        return;
    remote_scan_close(scan->remote);
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
    if (scan->remote)
        return remote_scan_read(scan->remote, offset, to, len, got, err);
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
