#include "index/index_heads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/text.h"
#include "index/index_view.h"

#define HEAD_SIZE sizeof(struct index_file_head)

int index_heads_fit(const struct index_header *header)
{
    if (!header->heads_count)
        return 1;
    return header->heads_count <= header->field_count && header->heads_offset % INDEX_ALIGN == 0 &&
           header->heads_offset >= sizeof(*header) &&
           checked_inside(header->heads_offset, header->heads_count * HEAD_SIZE, header->file_size);
}

/* Checked at each use: they are few, and asked for once a field. */
static const struct index_file_head *good_heads(const struct index *index)
{
    const struct index_header *header = &index->header;
    if (!header->heads_count)
        return NULL;
    const void *heads = index->map + header->heads_offset;
    uint64_t hash = hash_bytes(heads, header->heads_count * HEAD_SIZE, 0);
    return hash == header->heads_hash ? heads : NULL;
}

const struct index_file_head *index_head(const struct index *index, uint32_t field)
{
    const struct index_file_head *heads = good_heads(index);
    for (uint64_t i = 0; heads && i < index->header.heads_count; i++)
        if (heads[i].field == field)
            return &heads[i];
    return NULL;
}

uint64_t index_head_count(const struct index *index)
{
    return good_heads(index) ? index->header.heads_count : 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_all(int fd, const void *data, uint64_t len)
{
    const uint8_t *from = data;
    while (len > 0) {
        ssize_t n = write(fd, from, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n ? errno : ENOSPC;
            return -1;
        }
        from += n;
        len -= (uint64_t)n;
    }
    return 0;
}

/* The header as it will be; *end: where the index itself ends. */
static struct index_header new_header(const struct index *index,
                                      const struct index_file_head *heads, uint64_t count,
                                      uint64_t *end)
{
    struct index_header header = index->header;
    const struct index_section *checks = &header.sections[INDEX_CHECKS];
    *end = checks->offset + checks->length;
    header.heads_offset = count ? (*end + INDEX_ALIGN - 1) / INDEX_ALIGN * INDEX_ALIGN : 0;
    header.heads_count = count;
    header.heads_hash = count ? hash_bytes(heads, count * HEAD_SIZE, 0) : 0;
    header.file_size = count ? header.heads_offset + count * HEAD_SIZE : *end;
    header.checksum = 0;
    header.checksum = hash_bytes(&header, sizeof(header), 0);
    return header;
}

static int write_file(int fd, const struct index *index, const struct index_file_head *heads,
                      uint64_t count)
{
    static const uint8_t zeros[INDEX_ALIGN];
    uint64_t end;
    struct index_header header = new_header(index, heads, count, &end);
    uint64_t gap = count ? header.heads_offset - end : 0;
    return write_all(fd, &header, sizeof(header)) ||
           write_all(fd, index->map + sizeof(header), end - sizeof(header)) ||
           write_all(fd, zeros, gap) || write_all(fd, heads, count * HEAD_SIZE) || fsync(fd) ||
           fchmod(fd, 0644);
}

/* The temporary name is of the kind that index_writer_sweep clears away once it is old. */
stk_status index_heads_write(const struct index *index, const struct index_file_head *heads,
                             uint64_t count, struct stk_error *err)
{
    const char *slash = strrchr(index->path, '/');
    const char *base = slash ? slash + 1 : index->path;
    struct text name = {0};
    text_format(&name, "%.*s.%s.00000000-%d-XXXXXX", (int)(base - index->path), index->path, base,
                (int)getpid());
    if (name.failed) {
        text_free(&name);
        return fail_memory(err, 0);
    }
    stk_status status = STK_OK;
    int fd = mkostemp(name.data, O_CLOEXEC);
    int failed = fd < 0 || write_file(fd, index, heads, count) || rename(name.data, index->path);
    if (failed) {
        status = fail_errno(err, errno, "cannot write the index");
        fail_at(err, index->path, STK_NOWHERE);
    }
    if (fd >= 0)
        close(fd);
    if (failed && fd >= 0)
        unlink(name.data);
    text_free(&name);
    return status;
}
