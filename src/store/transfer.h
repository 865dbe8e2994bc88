/* transfer.h -- one read on its way: its open file, and how much of it is there.
 * Owns: the file, between begin and end.   Threads: one at a time for one transfer.   Errors: in
 * the read's status.   Not here: when and how the system is asked (pread_queue.c, uring_queue.c).
 */
#ifndef STORE_TRANSFER_H
#define STORE_TRANSFER_H

#include "store/store_parts.h"

struct transfer {
    struct store_read *read;
    struct file_ref file;
    uint64_t done;
    uint32_t part; /* the first that is not full; what is full of it is cut off its iovec */
};

enum transfer_state { TRANSFER_MORE, TRANSFER_OVER };

/* Opens the file. TRANSFER_OVER: read->status says why, or there is nothing to read. */
enum transfer_state transfer_begin(struct transfer *transfer, struct store *store,
                                   struct store_read *read);
/* Takes the system's answer, a count of bytes or minus errno. */
enum transfer_state transfer_step(struct transfer *transfer, struct store *store, int64_t result);
/* Asks once, in this thread, with preadv2's flags: a count of bytes or minus errno. */
int64_t transfer_ask(const struct transfer *transfer, int flags);
/* Gives the file back. */
void transfer_end(struct transfer *transfer, struct store *store);

static inline uint64_t transfer_offset(const struct transfer *transfer)
{
    return transfer->read->offset + transfer->done;
}

#endif
