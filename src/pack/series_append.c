#include "pack/series_append.h"

#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "format/series_meta.h"
#include "pack/read_all.h"
#include "pack/write_all.h"

/* One file being written: whole blocks at a time. */
struct append_file {
    int fd;
    const char *label;
    uint8_t *buf;    /* [SERIES_BLOCK]: the block at `offset` */
    uint64_t offset; /* a multiple of SERIES_BLOCK */
    size_t clean; /* bytes at its front that are in the file already, and are not written again */
    size_t used;
    uint64_t *hashes; /* of all blocks; NULL: none */
};

/* The hash of the block that the first new row falls into covers the rows before it too. */
static stk_status file_start(struct append_file *file, uint64_t offset, struct stk_error *err)
{
    file->buf = memory_map(SERIES_BLOCK);
    if (!file->buf)
        return fail_memory(err, SERIES_BLOCK);
    file->clean = file->used = (size_t)(offset % SERIES_BLOCK);
    file->offset = offset - file->clean;
    return read_all_at(&(struct read_file){file->fd, file->label}, file->offset, file->buf,
                       file->clean, err);
}

static stk_status file_flush(struct append_file *file, struct stk_error *err)
{
    int number;

    if (!file->used)
        return STK_OK;
    if (file->hashes)
        file->hashes[file->offset / SERIES_BLOCK] =
            hash_bytes(file->buf, file->used, file->offset / SERIES_BLOCK);
    number = write_all_at(file->fd, file->buf + file->clean, file->used - file->clean,
                          file->offset + file->clean);
    if (number) {
        stk_status status = fail_errno(err, number, "writing rows failed");
        fail_at(err, file->label, file->offset);
        return status;
    }
    file->offset += file->used;
    file->clean = file->used = 0;
    return STK_OK;
}

static stk_status file_copy(struct append_file *file, int from, const char *label, uint64_t offset,
                            uint64_t len, struct stk_error *err)
{
    stk_status status = STK_OK;

    while (!status && len) {
        size_t room = SERIES_BLOCK - file->used;
        size_t part = len < room ? (size_t)len : room;
        status = read_all_at(&(struct read_file){from, label}, offset, file->buf + file->used, part,
                             err);
        file->used += part;
        offset += part;
        len -= part;
        if (!status && file->used == SERIES_BLOCK)
            status = file_flush(file, err);
    }
    return status;
}

static stk_status copy_pieces(const struct series_append *append, struct append_file *values,
                              struct append_file *times, struct stk_error *err)
{
    struct stk_progress progress = {.what = "adding", .unit = "rows"};
    struct context_timer timer = {0};
    stk_status status = STK_OK;

    for (uint64_t i = 0; i < append->piece_count; i++)
        progress.total += append->pieces[i].rows;
    for (uint64_t i = 0; !status && i < append->piece_count; i++) {
        const struct append_piece *piece = &append->pieces[i];
        const struct append_source *from = piece->from;
        status = file_copy(values, from->values_fd, from->label, piece->row * append->row_bytes,
                           piece->rows * append->row_bytes, err);
        if (!status && times->fd >= 0)
            status = file_copy(times, from->times_fd, from->label, piece->row * sizeof(int64_t),
                               piece->rows * sizeof(int64_t), err);
        progress.done += piece->rows;
        if (!status && context_progress(append->context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "adding rows was stopped");
    }
    if (!status)
        status = file_flush(values, err);
    if (!status && times->fd >= 0)
        status = file_flush(times, err);
    return status;
}

stk_status series_append_run(const struct series_append *append, struct stk_error *err)
{
    struct append_file values = {
        .fd = append->to.values_fd, .label = append->to.label, .hashes = append->hashes};
    struct append_file times = {.fd = append->to.times_fd, .label = append->to.label};
    stk_status status = file_start(&values, append->first_row * append->row_bytes, err);

    if (!status && times.fd >= 0)
        status = file_start(&times, append->first_row * sizeof(int64_t), err);
    if (!status)
        status = copy_pieces(append, &values, &times, err);
    memory_unmap(values.buf, SERIES_BLOCK);
    memory_unmap(times.buf, SERIES_BLOCK);
    return status;
}
