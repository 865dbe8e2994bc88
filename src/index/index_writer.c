#include "index/index_writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"

#define SWEEP_AGE 3600 /* seconds; nobody writes an index for longer without touching the file */

/* --- temporary names: .NAME.HOST-PID-XXXXXX --------------------------------------------------- */

static uint32_t host_number(void)
{
    char name[256] = "";
    gethostname(name, sizeof(name) - 1);
    return (uint32_t)hash_bytes(name, strlen(name), 0);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int is_left_behind(int folder, const char *name, const char *tail)
{
    unsigned host;
    int pid, end = 0;
    struct stat info;
    if (sscanf(tail, "%8x-%d-%n", &host, &pid, &end) != 2 || strlen(tail + end) != 6)
        return 0;
    if (fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) || !S_ISREG(info.st_mode))
        return 0;
    if (time(NULL) - info.st_mtime > SWEEP_AGE)
        return 1;
    return host == host_number() && pid > 0 && kill(pid, 0) && errno == ESRCH;
}

void index_writer_sweep(const char *path, const char *folder)
{
    const char *base = base_name(path);
    size_t len = strlen(base);
    DIR *dir = opendir(folder);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (name[0] != '.' || strncmp(name + 1, base, len) || name[1 + len] != '.')
            continue;
        if (is_left_behind(dirfd(dir), name, name + len + 2))
            unlinkat(dirfd(dir), name, 0);
    }
    closedir(dir);
}

stk_status index_writer_open(struct index_writer *writer, const char *path, const char *folder,
                             struct stk_error *err)
{
    *writer = (struct index_writer){.path = path, .folder = folder, .fd = -1};
    spool_init(&writer->checks, folder);
    struct text name = {0};
    text_format(&name, "%s/.%s.%08x-%d-XXXXXX", folder, base_name(path), host_number(),
                (int)getpid());
    writer->block = memory_alloc(INDEX_BLOCK);
    if (name.failed || !writer->block) {
        text_free(&name);
        return fail_memory(err, INDEX_BLOCK);
    }
    writer->fd = mkostemp(name.data, O_CLOEXEC);
    if (writer->fd < 0) {
        stk_status status = fail_errno(err, errno, "cannot write the index");
        fail_at(err, path, STK_NOWHERE);
        text_free(&name);
        return status;
    }
    writer->temporary = name.data;
    memcpy(writer->header.magic, INDEX_MAGIC, sizeof(writer->header.magic));
    writer->header.version = INDEX_VERSION;
    writer->offset = sizeof(writer->header);
    return STK_OK;
}

void index_writer_close(struct index_writer *writer)
{
    if (writer->fd >= 0)
        close(writer->fd);
    if (writer->temporary) {
        unlink(writer->temporary);
        memory_free(writer->temporary);
    }
    memory_free(writer->block);
    spool_reset(&writer->checks);
    *writer = (struct index_writer){.fd = -1};
}

/* --- sections -------------------------------------------------------------------------------- */

static stk_status write_at(struct index_writer *writer, const void *data, size_t len,
                           uint64_t offset, struct stk_error *err)
{
    const uint8_t *from = data;
    while (len > 0) {
        ssize_t n = pwrite(writer->fd, from, len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            stk_status status = fail_errno(err, n ? errno : ENOSPC, "cannot write the index");
            fail_at(err, writer->path, offset);
            return status;
        }
        from += n;
        offset += (uint64_t)n;
        len -= (size_t)n;
    }
    return STK_OK;
}

static stk_status writer_flush(struct index_writer *writer, struct stk_error *err)
{
    uint64_t check = spool_size(&writer->checks) / sizeof(check);
    uint64_t hash = hash_bytes(writer->block, writer->used, check);
    stk_status status = spool_add(&writer->checks, &hash, sizeof(hash), err);
    if (!status)
        status = write_at(writer, writer->block, writer->used, writer->offset, err);
    writer->offset += writer->used;
    writer->used = 0;
    return status;
}

void index_writer_begin(struct index_writer *writer, enum index_section_number number)
{
    struct index_section *section = &writer->header.sections[number];
    writer->offset = (writer->offset + INDEX_ALIGN - 1) / INDEX_ALIGN * INDEX_ALIGN;
    section->offset = writer->offset;
    section->first_check = spool_size(&writer->checks) / sizeof(uint64_t);
}

stk_status index_writer_add(struct index_writer *writer, const void *data, size_t len,
                            struct stk_error *err)
{
    const uint8_t *from = data;
    stk_status status = STK_OK;
    while (len > 0 && !status) {
        size_t room = INDEX_BLOCK - writer->used;
        size_t part = len < room ? len : room;
        memcpy(writer->block + writer->used, from, part);
        writer->used += part;
        from += part;
        len -= part;
        if (writer->used == INDEX_BLOCK)
            status = writer_flush(writer, err);
    }
    return status;
}

stk_status index_writer_end(struct index_writer *writer, enum index_section_number number,
                            struct stk_error *err)
{
    struct index_section *section = &writer->header.sections[number];
    stk_status status = writer->used ? writer_flush(writer, err) : STK_OK;
    section->length = writer->offset - section->offset;
    return status;
}

stk_status index_writer_spool(struct index_writer *writer, enum index_section_number number,
                              const struct spool *spool, struct stk_error *err)
{
    uint8_t part[4096];
    uint64_t size = spool_size(spool);
    stk_status status = STK_OK;
    index_writer_begin(writer, number);
    for (uint64_t at = 0; !status && at < size; at += sizeof(part)) {
        size_t len = size - at < sizeof(part) ? (size_t)(size - at) : sizeof(part);
        status = spool_read(spool, at, part, len, err);
        if (!status)
            status = index_writer_add(writer, part, len, err);
    }
    return status ? status : index_writer_end(writer, number, err);
}

/* --- the end --------------------------------------------------------------------------------- */

/* CHECKS has no checksums of its own: a wrong one shows in the block that it speaks of. */
static stk_status writer_checks(struct index_writer *writer, struct stk_error *err)
{
    struct index_section *section = &writer->header.sections[INDEX_CHECKS];
    uint64_t size = spool_size(&writer->checks);
    section->offset = (writer->offset + INDEX_ALIGN - 1) / INDEX_ALIGN * INDEX_ALIGN;
    section->length = size;
    stk_status status = STK_OK;
    for (uint64_t at = 0; !status && at < size; at += INDEX_BLOCK) {
        size_t len = size - at < INDEX_BLOCK ? (size_t)(size - at) : INDEX_BLOCK;
        status = spool_read(&writer->checks, at, writer->block, len, err);
        if (!status)
            status = write_at(writer, writer->block, len, section->offset + at, err);
    }
    writer->header.file_size = section->offset + size;
    return status;
}

static stk_status writer_sync(struct index_writer *writer, int fd, struct stk_error *err)
{
    if (!fsync(fd) || errno == EINVAL) /* some file systems have no sync for folders */
        return STK_OK;
    stk_status status = fail_errno(err, errno, "cannot sync the index");
    fail_at(err, writer->path, STK_NOWHERE);
    return status;
}

static stk_status writer_rename(struct index_writer *writer, struct stk_error *err)
{
    if (fchmod(writer->fd, 0644) || rename(writer->temporary, writer->path)) {
        stk_status status = fail_errno(err, errno, "cannot put the index in its place");
        fail_at(err, writer->path, STK_NOWHERE);
        return status;
    }
    memory_free(writer->temporary);
    writer->temporary = NULL;
    int folder = open(writer->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return STK_OK; /* a folder that may be written but not read: the index is there all the same
                        */
    stk_status status = writer_sync(writer, folder, err);
    close(folder);
    return status;
}

stk_status index_writer_commit(struct index_writer *writer, struct stk_error *err)
{
    struct index_header *header = &writer->header;
    stk_status status = writer_checks(writer, err);
    header->checksum = 0;
    header->checksum = hash_bytes(header, sizeof(*header), 0);
    if (!status)
        status = write_at(writer, header, sizeof(*header), 0, err);
    if (!status && ftruncate(writer->fd, (off_t)header->file_size))
        status = fail_errno(err, errno, "cannot write the index");
    if (!status)
        status = writer_sync(writer, writer->fd, err);
    return status ? status : writer_rename(writer, err);
}
