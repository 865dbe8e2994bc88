#include "pack/tar_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "pack/write_all.h"

#define BUFFER_BYTES (1u << 20)
#define NAME_BYTES 100
#define PREFIX_BYTES 155
#define SIZE_LIMIT (UINT64_C(1) << 33) /* eleven octal digits */
#define PAX_NAME "././@PaxHeader"

struct tar_writer {
    int fd;
    char *label;
    uint64_t written; /* handed to add, not all of it on disk yet */
    size_t used;
    uint8_t buffer[BUFFER_BYTES];
};

/* POSIX.1-2017, pax, "ustar Interchange Format". */
struct ustar {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100];
    char magic[6], version[2], owner[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct ustar) == TAR_BLOCK, "a header is one block");

static uint64_t padded(uint64_t size)
{
    return (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
}

/* Where a name too long for its place can be cut: prefix '/' name. 0: nowhere. */
static size_t split_at(struct stk_bytes name)
{
    if (name.len > PREFIX_BYTES + 1 + NAME_BYTES)
        return 0;
    for (size_t i = name.len - NAME_BYTES - 1; i <= PREFIX_BYTES && i + 1 < name.len; i++)
        if (i && name.data[i] == '/')
            return i;
    return 0;
}

static int name_fits(struct stk_bytes name)
{
    return name.len <= NAME_BYTES || split_at(name) != 0;
}

static void set_name(struct ustar *header, struct stk_bytes name)
{
    size_t cut = name.len > NAME_BYTES ? split_at(name) : 0;
    size_t from = cut ? cut + 1 : 0;
    size_t len = name.len - from < NAME_BYTES ? name.len - from : NAME_BYTES;

    memcpy(header->name, name.data + from, len);
    memcpy(header->prefix, name.data, cut);
}

static void set_octal(char *to, size_t len, uint64_t value)
{
    for (size_t i = len - 1; i-- > 0; value >>= 3)
        to[i] = (char)('0' + (value & 7));
}

static void make_header(uint8_t block[TAR_BLOCK], struct stk_bytes name, uint64_t size, char type)
{
    struct ustar *header = (struct ustar *)block;
    uint64_t sum = 0;

    memset(block, 0, TAR_BLOCK);
    set_name(header, name);
    set_octal(header->mode, sizeof(header->mode), 0644);
    set_octal(header->uid, sizeof(header->uid), 0);
    set_octal(header->gid, sizeof(header->gid), 0);
    set_octal(header->size, sizeof(header->size), size < SIZE_LIMIT ? size : 0);
    set_octal(header->mtime, sizeof(header->mtime), 0);
    header->type = type;
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
    set_octal(header->major, sizeof(header->major), 0);
    set_octal(header->minor, sizeof(header->minor), 0);
    memset(header->checksum, ' ', sizeof(header->checksum));
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += block[i];
    set_octal(header->checksum, sizeof(header->checksum) - 1, sum);
    header->checksum[6] = 0;
}

void tar_writer_header(uint8_t block[TAR_BLOCK], struct stk_bytes name, uint64_t size)
{
    make_header(block, name, size, '0');
}

/* --- pax ------------------------------------------------------------------------------------- */

/* A record is "LEN KEY=VALUE\n", and LEN counts its own digits. */
static uint64_t record_length(size_t key_len, uint64_t value_len)
{
    uint64_t rest = 1 + key_len + 1 + value_len + 1;
    uint64_t digits = 1;

    for (uint64_t limit = 10; rest + digits >= limit; limit *= 10)
        digits++;
    return rest + digits;
}

struct pax {
    uint64_t path, size; /* length of each record; 0: it is not needed */
    char digits[24];     /* the size in decimal */
};

static struct pax pax_needed(struct stk_bytes name, uint64_t size)
{
    struct pax pax = {0};

    if (!name_fits(name))
        pax.path = record_length(4, name.len);
    if (size >= SIZE_LIMIT) {
        int len = snprintf(pax.digits, sizeof(pax.digits), "%llu", (unsigned long long)size);
        pax.size = record_length(4, (uint64_t)len);
    }
    return pax;
}

uint64_t tar_writer_member_size(struct stk_bytes name, uint64_t size)
{
    struct pax pax = pax_needed(name, size);
    uint64_t records = pax.path + pax.size;

    return (records ? TAR_BLOCK + padded(records) : 0) + TAR_BLOCK + padded(size);
}

/* --- writing --------------------------------------------------------------------------------- */

static stk_status put(struct tar_writer *writer, const void *data, size_t len,
                      struct stk_error *err)
{
    int number = write_all(writer->fd, data, len);

    if (!number)
        return STK_OK;
    stk_status status = fail_errno(err, number, "writing a shard failed");
    fail_at(err, writer->label, writer->written);
    return status;
}

static stk_status add(struct tar_writer *writer, const void *data, size_t len,
                      struct stk_error *err)
{
    stk_status status = STK_OK;

    if (writer->used + len > BUFFER_BYTES) {
        status = put(writer, writer->buffer, writer->used, err);
        writer->used = 0;
    }
    if (!status && len > BUFFER_BYTES) {
        status = put(writer, data, len, err);
    } else if (!status && len) {
        memcpy(writer->buffer + writer->used, data, len);
        writer->used += len;
    }
    writer->written += len;
    return status;
}

static stk_status add_padding(struct tar_writer *writer, struct stk_error *err)
{
    static const uint8_t zeros[TAR_BLOCK];

    return add(writer, zeros, (size_t)(padded(writer->written) - writer->written), err);
}

static stk_status add_record(struct tar_writer *writer, uint64_t len, const char *key,
                             struct stk_bytes value, struct stk_error *err)
{
    char begin[40];
    int begin_len = snprintf(begin, sizeof(begin), "%llu %s=", (unsigned long long)len, key);
    stk_status status = add(writer, begin, (size_t)begin_len, err);

    if (!status)
        status = add(writer, value.data, value.len, err);
    if (!status)
        status = add(writer, "\n", 1, err);
    return status;
}

static stk_status add_pax(struct tar_writer *writer, const struct pax *pax, struct stk_bytes name,
                          struct stk_error *err)
{
    struct stk_bytes pax_name = {(const uint8_t *)PAX_NAME, sizeof(PAX_NAME) - 1};
    struct stk_bytes size = {(const uint8_t *)pax->digits, strlen(pax->digits)};
    uint8_t block[TAR_BLOCK];

    make_header(block, pax_name, pax->path + pax->size, 'x');
    stk_status status = add(writer, block, sizeof(block), err);
    if (!status && pax->path)
        status = add_record(writer, pax->path, "path", name, err);
    if (!status && pax->size)
        status = add_record(writer, pax->size, "size", size, err);
    if (!status)
        status = add_padding(writer, err);
    return status;
}

stk_status tar_writer_open(struct tar_writer **out, int folder_fd, const char *name,
                           const char *label, struct stk_error *err)
{
    struct tar_writer *writer = memory_alloc(sizeof(*writer));
    stk_status status = STK_OK;

    *out = NULL;
    if (!writer)
        return fail_memory(err, sizeof(*writer));
    writer->fd = -1;
    writer->written = 0;
    writer->used = 0;
    writer->label = memory_text(label, strlen(label));
    if (!writer->label) {
        status = fail_memory(err, strlen(label));
        goto done;
    }
    writer->fd = openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (writer->fd < 0) {
        status = fail_errno(err, errno, "cannot make a shard");
        fail_at(err, label, STK_NOWHERE);
        goto done;
    }
    *out = writer;
    writer = NULL;
done:
    tar_writer_close(writer);
    return status;
}

stk_status tar_writer_member(struct tar_writer *writer, struct stk_bytes name,
                             struct stk_bytes head, struct stk_bytes body, struct stk_error *err)
{
    uint64_t size = (uint64_t)head.len + body.len;
    struct pax pax = pax_needed(name, size);
    uint8_t block[TAR_BLOCK];
    stk_status status = STK_OK;

    if (pax.path + pax.size)
        status = add_pax(writer, &pax, name, err);
    make_header(block, name, size, '0');
    if (!status)
        status = add(writer, block, sizeof(block), err);
    if (!status)
        status = add(writer, head.data, head.len, err);
    if (!status)
        status = add(writer, body.data, body.len, err);
    if (!status)
        status = add_padding(writer, err);
    return status;
}

uint64_t tar_writer_size(const struct tar_writer *writer)
{
    return writer->written + TAR_END;
}

stk_status tar_writer_finish(struct tar_writer *writer, struct stk_error *err)
{
    static const uint8_t zeros[TAR_END];
    stk_status status = add(writer, zeros, sizeof(zeros), err);

    if (!status)
        status = put(writer, writer->buffer, writer->used, err);
    /* Some file systems tell only now that the disk is full. */
    if (!status && close(writer->fd)) {
        status = fail_errno(err, errno, "writing a shard failed");
        fail_at(err, writer->label, STK_NOWHERE);
    }
    if (!status)
        writer->fd = -1;
    tar_writer_close(writer);
    return status;
}

void tar_writer_close(struct tar_writer *writer)
{
    if (!writer)
        return;
    if (writer->fd >= 0)
        close(writer->fd);
    memory_free(writer->label);
    memory_free(writer);
}
