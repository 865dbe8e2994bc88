#include "store/transfer.h"

#include <assert.h>
#include <errno.h>

#include "base/checked.h"
#include "base/fail.h"

static enum transfer_state over(struct transfer *transfer, stk_status status, int error_number)
{
    transfer->read->status = status;
    transfer->read->error_number = error_number;
    return TRANSFER_OVER;
}

enum transfer_state transfer_begin(struct transfer *transfer, struct store *store,
                                   struct store_read *read)
{
    int error_number;
    assert(read->part_count >= 1 && read->part_count <= STORE_MAX_PARTS);
    *transfer = (struct transfer){.read = read};
    stk_status status = file_cache_take(store->files, read->object, &transfer->file, &error_number);
    if (status)
        return over(transfer, status, error_number);
    if (!checked_inside(read->offset, read->length, transfer->file.size))
        return over(transfer, STK_TRUNCATED, 0);
    over(transfer, STK_OK, 0);
    return read->length ? TRANSFER_MORE : TRANSFER_OVER;
}

/* Cuts count bytes off the front of the parts. */
static void advance(struct transfer *transfer, uint64_t count)
{
    struct store_read *read = transfer->read;
    transfer->done += count;
    while (count && transfer->part < read->part_count) {
        struct iovec *part = &read->parts[transfer->part];
        if (count < part->iov_len) {
            part->iov_base = (char *)part->iov_base + count;
            part->iov_len -= count;
            return;
        }
        count -= part->iov_len;
        transfer->part++;
    }
    assert(count == 0); /* the parts add up to the length */
}

enum transfer_state transfer_step(struct transfer *transfer, struct store *store, int64_t result)
{
    struct store_read *read = transfer->read;
    if (store->fault.call)
        result = store->fault.call(store->fault.user, STORE_CALL_READ, result);
    if (result == -EINTR)
        return TRANSFER_MORE;
    if (result < 0)
        return over(transfer, fail_errno(NULL, (int)-result, "reading failed"), (int)-result);
    if (result == 0) { /* the file is shorter than when it was opened, or the kernel lies */
        stk_status status = file_cache_check(store->files, read->object, &transfer->file);
        return over(transfer, status ? status : STK_TRUNCATED, 0);
    }
    advance(transfer, (uint64_t)result);
    return transfer->done < read->length ? TRANSFER_MORE : TRANSFER_OVER;
}

int64_t transfer_ask(const struct transfer *transfer, int flags)
{
    const struct store_read *read = transfer->read;
    ssize_t count =
        preadv2(transfer->file.fd, read->parts + transfer->part,
                (int)(read->part_count - transfer->part), (off_t)transfer_offset(transfer), flags);
    return count < 0 ? -(int64_t)errno : count;
}

void transfer_end(struct transfer *transfer, struct store *store)
{
    file_cache_give(store->files, &transfer->file);
}
