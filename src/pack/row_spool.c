#include "pack/row_spool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "format/series_meta.h"
#include "pack/write_all.h"

/* Whole hash blocks, so that a full buffer is hashed while it is still in the cache. */
#define VALUES_BUFFER ((size_t)SERIES_BLOCK)
#define SIDE_BUFFER ((size_t)SERIES_BLOCK) /* of times and of entities */
#define NAME_CAP 64
#define ENTITIES_NAME ".entities"

/* One file on its way: bytes behind the other. */
struct spool_file {
    int fd;           /* -1: there is none */
    size_t unit;      /* bytes a row */
    size_t used, cap; /* of buf */
    uint8_t *buf;
    uint64_t written; /* where the bytes of buf go */
    char name[NAME_CAP];
};

struct row_spool {
    int folder_fd;
    char *label;
    enum stk_dtype dtype;
    uint32_t columns;
    int is_final, keep;
    uint64_t rows;
    struct spool_file values, times, entities;
    uint64_t *hashes;
    uint64_t hash_count, hash_cap;
};

static stk_status spool_failed(const struct row_spool *spool, const struct spool_file *file,
                               int number, const char *what, struct stk_error *err)
{
    char path[512];
    stk_status status = fail_errno(err, number, "%s", what);

    snprintf(path, sizeof(path), "%s/%s", spool->label, file->name);
    fail_at(err, path, file->written);
    return status;
}

/* --- open and free --------------------------------------------------------------------------- */

/* O_EXCL: a name that is taken may be a link to an array that is in use. */
static stk_status file_open(struct row_spool *spool, struct spool_file *file, const char *name,
                            struct stk_error *err)
{
    assert(strlen(name) < NAME_CAP);
    snprintf(file->name, sizeof(file->name), "%s", name);
    file->buf = memory_map(file->cap);
    if (!file->buf)
        return fail_memory(err, file->cap);
    file->fd = openat(spool->folder_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file->fd < 0)
        return spool_failed(spool, file, errno, "cannot make a file for rows", err);
    return STK_OK;
}

static void file_reset(struct row_spool *spool, struct spool_file *file, int keep)
{
    if (file->fd >= 0) {
        if (!keep)
            (void)unlinkat(spool->folder_fd, file->name, 0);
        close(file->fd);
    }
    memory_unmap(file->buf, file->cap);
    file->buf = NULL;
    file->fd = -1;
}

stk_status row_spool_open(struct row_spool **out, const struct row_spool_options *options,
                          struct stk_error *err)
{
    struct row_spool *spool = memory_zero(1, sizeof(*spool));
    stk_status status = STK_OK;

    *out = NULL;
    if (!spool)
        return fail_memory(err, sizeof(*spool));
    spool->folder_fd = options->folder_fd;
    spool->dtype = options->dtype;
    spool->columns = options->columns;
    spool->is_final = options->is_final;
    spool->values = (struct spool_file){
        .fd = -1, .unit = options->columns * stk_dtype_size(options->dtype), .cap = VALUES_BUFFER};
    spool->times = (struct spool_file){.fd = -1, .unit = sizeof(int64_t), .cap = SIDE_BUFFER};
    spool->entities = (struct spool_file){.fd = -1, .unit = sizeof(uint32_t), .cap = SIDE_BUFFER};
    spool->label = memory_text(options->label, strlen(options->label));
    if (!spool->label)
        status = fail_memory(err, strlen(options->label));
    if (!status)
        status = file_open(spool, &spool->values, options->values_name, err);
    if (!status && options->has_times)
        status = file_open(spool, &spool->times, options->times_name, err);
    if (!status && options->has_entities) {
        char name[NAME_CAP];
        snprintf(name, sizeof(name), "%.40s" ENTITIES_NAME, options->values_name);
        status = file_open(spool, &spool->entities, name, err);
    }
    if (!status) {
        *out = spool;
        spool = NULL;
    }
    row_spool_free(spool);
    return status;
}

void row_spool_free(struct row_spool *spool)
{
    if (!spool)
        return;
    file_reset(spool, &spool->values, spool->keep);
    file_reset(spool, &spool->times, spool->keep);
    file_reset(spool, &spool->entities, 0);
    memory_free(spool->hashes);
    memory_free(spool->label);
    memory_free(spool);
}

void row_spool_keep(struct row_spool *spool)
{
    spool->keep = 1;
}

static stk_status file_rename(struct row_spool *spool, struct spool_file *file, const char *name,
                              struct stk_error *err)
{
    if (!name || file->fd < 0 || strcmp(name, file->name) == 0)
        return STK_OK;
    assert(strlen(name) < NAME_CAP);
    if (renameat(spool->folder_fd, file->name, spool->folder_fd, name))
        return spool_failed(spool, file, errno, "cannot rename a file of rows", err);
    snprintf(file->name, sizeof(file->name), "%s", name);
    return STK_OK;
}

stk_status row_spool_rename(struct row_spool *spool, const char *values_name,
                            const char *times_name, struct stk_error *err)
{
    stk_status status = file_rename(spool, &spool->values, values_name, err);

    return status ? status : file_rename(spool, &spool->times, times_name, err);
}

/* --- appending ------------------------------------------------------------------------------- */

static stk_status hash_add(struct row_spool *spool, uint64_t number, const void *data, size_t len,
                           struct stk_error *err)
{
    if (number >= spool->hash_cap) {
        uint64_t cap = spool->hash_cap ? 2 * spool->hash_cap : 256;
        uint64_t *grown = memory_grow(spool->hashes, cap * sizeof(*grown));
        if (!grown)
            return fail_memory(err, cap * sizeof(*grown));
        spool->hashes = grown;
        spool->hash_cap = cap;
    }
    spool->hashes[number] = hash_bytes(data, len, number);
    spool->hash_count = number + 1;
    return STK_OK;
}

/* Bytes that begin at a block's bound. */
static stk_status hash_blocks(struct row_spool *spool, const uint8_t *data, size_t len,
                              struct stk_error *err)
{
    uint64_t number = spool->values.written / SERIES_BLOCK;
    stk_status status = STK_OK;

    for (size_t at = 0; !status && at < len; at += SERIES_BLOCK, number++) {
        size_t part = len - at < SERIES_BLOCK ? len - at : SERIES_BLOCK;
        status = hash_add(spool, number, data + at, part, err);
    }
    return status;
}

static stk_status file_write(struct row_spool *spool, struct spool_file *file, const void *data,
                             size_t len, struct stk_error *err)
{
    int is_values = file == &spool->values;
    int number;

    if (is_values && spool->is_final) {
        stk_status status = hash_blocks(spool, data, len, err);
        if (status)
            return status;
    }
    number = write_all_at(file->fd, data, len, file->written);
    if (number)
        return spool_failed(spool, file, number, "writing rows failed", err);
    /* Only a hint: where the file system has no such call, fsync does all of it. */
    if (is_values && spool->is_final)
        (void)sync_file_range(file->fd, (off_t)file->written, (off_t)len, SYNC_FILE_RANGE_WRITE);
    return STK_OK;
}

/* Writes what the buffer holds. The part behind the last whole hash block stays in it as well, so
 * that a later append hashes that block from its beginning. */
static stk_status file_flush(struct row_spool *spool, struct spool_file *file,
                             struct stk_error *err)
{
    size_t whole = file->used / SERIES_BLOCK * SERIES_BLOCK;
    stk_status status;

    if (!file->used)
        return STK_OK;
    status = file_write(spool, file, file->buf, file->used, err);
    if (status)
        return status;
    file->written += whole;
    file->used -= whole;
    memmove(file->buf, file->buf + whole, file->used);
    return STK_OK;
}

static stk_status file_add(struct row_spool *spool, struct spool_file *file, const void *data,
                           size_t len, struct stk_error *err)
{
    const uint8_t *from = data;
    stk_status status = STK_OK;

    if (file->fd < 0)
        return STK_OK;
    while (!status && len) {
        size_t room = file->cap - file->used;
        size_t part = len < room ? len : room;
        if (!file->used && len >= file->cap) { /* straight from the caller's memory */
            part = len / file->cap * file->cap;
            status = file_write(spool, file, from, part, err);
            file->written += status ? 0 : part;
        } else {
            memcpy(file->buf + file->used, from, part);
            file->used += part;
            if (file->used == file->cap)
                status = file_flush(spool, file, err);
        }
        from += part;
        len -= part;
    }
    return status;
}

stk_status row_spool_append(struct row_spool *spool, const struct row_block *block,
                            struct stk_error *err)
{
    stk_status status;

    status = file_add(spool, &spool->values, block->values, block->rows * spool->values.unit, err);
    if (!status)
        status = file_add(spool, &spool->times, block->times, block->rows * sizeof(int64_t), err);
    if (!status)
        status =
            file_add(spool, &spool->entities, block->entities, block->rows * sizeof(uint32_t), err);
    if (!status)
        spool->rows += block->rows;
    return status;
}

stk_status row_spool_flush(struct row_spool *spool, struct stk_error *err)
{
    stk_status status = file_flush(spool, &spool->values, err);

    if (!status && spool->times.fd >= 0)
        status = file_flush(spool, &spool->times, err);
    if (!status && spool->entities.fd >= 0)
        status = file_flush(spool, &spool->entities, err);
    return status;
}

/* --- reading --------------------------------------------------------------------------------- */

static stk_status file_read(const struct row_spool *spool, const struct spool_file *file,
                            uint64_t first, uint64_t rows, void *to, struct stk_error *err)
{
    uint64_t offset, len;
    uint8_t *at = to;

    assert(file->fd >= 0);
    if (!checked_mul(first, file->unit, &offset) || !checked_mul(rows, file->unit, &len))
        return fail(err, STK_LIMIT, "a row of the spool lies past 2^64 bytes");
    while (len) {
        ssize_t got = pread(file->fd, at, len, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return spool_failed(spool, file, got ? errno : EIO, "reading rows back failed", err);
        at += got;
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
    return STK_OK;
}

stk_status row_spool_read(const struct row_spool *spool, uint64_t first,
                          const struct row_block *block, struct stk_error *err)
{
    stk_status status = STK_OK;

    assert(checked_inside(first, block->rows, spool->rows));
    if (block->values)
        status = file_read(spool, &spool->values, first, block->rows, block->values, err);
    if (!status && block->times)
        status = file_read(spool, &spool->times, first, block->rows, block->times, err);
    if (!status && block->entities)
        status = file_read(spool, &spool->entities, first, block->rows, block->entities, err);
    return status;
}

uint64_t row_spool_rows(const struct row_spool *spool)
{
    return spool->rows;
}

uint64_t row_spool_row_bytes(const struct row_spool *spool)
{
    return spool->values.unit;
}

enum stk_dtype row_spool_dtype(const struct row_spool *spool)
{
    return spool->dtype;
}

uint32_t row_spool_columns(const struct row_spool *spool)
{
    return spool->columns;
}

int row_spool_has_entities(const struct row_spool *spool)
{
    return spool->entities.fd >= 0;
}

const uint64_t *row_spool_hashes(const struct row_spool *spool, uint64_t *count)
{
    *count = spool->hash_count;
    return spool->is_final ? spool->hashes : NULL;
}

int row_spool_values_fd(const struct row_spool *spool)
{
    return spool->values.fd;
}

int row_spool_times_fd(const struct row_spool *spool)
{
    return spool->times.fd;
}
