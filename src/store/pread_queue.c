#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/transfer.h"

enum item_state { ITEM_WAITING, ITEM_OPEN, ITEM_OVER };

struct item {
    struct transfer transfer;
    enum item_state state;
};

/* Reads happen in reap, in the caller's thread and in order: for bytes that are in the page cache
 * no hand-over to another thread can be faster. Where they are not, the kernel is told of all that
 * is queued before the first read waits, so that a disk sees many requests at once. */
struct pread_queue {
    struct store_queue base;
    uint32_t head;
    int nowait;          /* preadv2 knows RWF_NOWAIT here */
    _Atomic int woken;   /* set by wake, taken by reap */
    struct item items[]; /* a ring of base.depth */
};

static struct item *ring_item(struct pread_queue *queue, uint32_t i)
{
    return &queue->items[(queue->head + i) % queue->base.depth];
}

static uint32_t pread_submit(struct store_queue *base, struct store_read **reads, uint32_t n)
{
    struct pread_queue *queue = (struct pread_queue *)base;
    uint32_t taken = 0;
    for (; taken < n && base->in_flight < base->depth; taken++) {
        struct item *item = ring_item(queue, base->in_flight++);
        *item = (struct item){.transfer = {.read = reads[taken]}};
    }
    return taken;
}

static void item_open(struct pread_queue *queue, struct item *item)
{
    if (item->state != ITEM_WAITING)
        return;
    enum transfer_state state =
        transfer_begin(&item->transfer, queue->base.store, item->transfer.read);
    item->state = state == TRANSFER_OVER ? ITEM_OVER : ITEM_OPEN;
}

/* Tells the kernel of every range that is still to be read. Asking for what it knows already is
 * cheap beside the wait for the disk that follows. */
static void advise_all(struct pread_queue *queue)
{
    for (uint32_t i = 0; i < queue->base.in_flight; i++) {
        struct item *item = ring_item(queue, i);
        if (item->state != ITEM_WAITING && i > 0)
            continue; /* told of before */
        item_open(queue, item);
        const struct transfer *transfer = &item->transfer;
        if (item->state == ITEM_OPEN)
            posix_fadvise(transfer->file.fd, (off_t)transfer_offset(transfer),
                          (off_t)(transfer->read->length - transfer->done), POSIX_FADV_WILLNEED);
    }
}

/* Reads without waiting. 0: it would have to wait. */
static int read_ready(struct pread_queue *queue, struct item *item)
{
    while (item->state != ITEM_OVER && queue->nowait) {
        int64_t result = transfer_ask(&item->transfer, RWF_NOWAIT);
        if (result == -EAGAIN)
            return 0;
        if (result == -EOPNOTSUPP || result == -ENOSYS || result == -EINVAL)
            queue->nowait = 0; /* this kernel or file system cannot: plain reads from now on */
        else if (transfer_step(&item->transfer, queue->base.store, result) == TRANSFER_OVER)
            item->state = ITEM_OVER;
    }
    return item->state == ITEM_OVER;
}

static void read_waiting(struct pread_queue *queue, struct item *item)
{
    while (item->state != ITEM_OVER) {
        int64_t result = transfer_ask(&item->transfer, 0);
        if (transfer_step(&item->transfer, queue->base.store, result) == TRANSFER_OVER)
            item->state = ITEM_OVER;
    }
}

/* 1: the oldest read is over. 0: it would have to wait, and may not. */
static int finish_oldest(struct pread_queue *queue, int may_wait)
{
    struct item *item = ring_item(queue, 0);
    item_open(queue, item);
    if (read_ready(queue, item))
        return 1;
    if (queue->nowait) {
        advise_all(queue);
        if (!may_wait)
            return 0;
    }
    read_waiting(queue, item);
    return 1;
}

static uint32_t pread_reap(struct store_queue *base, struct store_read **reads, uint32_t cap,
                           int64_t wait_ns)
{
    struct pread_queue *queue = (struct pread_queue *)base;
    uint32_t count = 0;
    while (count < cap && base->in_flight && !atomic_exchange(&queue->woken, 0)) {
        /* What is there goes to the caller at once; the disk works on meanwhile. */
        if (!finish_oldest(queue, count == 0 && wait_ns != 0))
            break;
        struct item *item = ring_item(queue, 0);
        transfer_end(&item->transfer, base->store);
        reads[count++] = item->transfer.read;
        queue->head = (queue->head + 1) % base->depth;
        base->in_flight--;
    }
    return count;
}

static void pread_wake(struct store_queue *base)
{
    atomic_store(&((struct pread_queue *)base)->woken, 1);
}

static void pread_close(struct store_queue *base)
{
    struct pread_queue *queue = (struct pread_queue *)base;
    for (uint32_t i = 0; i < base->in_flight; i++) {
        struct item *item = ring_item(queue, i);
        transfer_end(&item->transfer, base->store);
        if (item->state != ITEM_OVER)
            item->transfer.read->status = STK_CANCELLED;
    }
    memory_free(queue);
}

static const struct store_queue_ops pread_ops = {pread_submit, pread_reap, pread_wake, pread_close};

stk_status pread_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                            struct stk_error *err)
{
    size_t size = sizeof(struct pread_queue) + depth * sizeof(struct item);
    struct pread_queue *queue = memory_zero(1, size);
    if (!queue)
        return fail_memory(err, size);
    queue->base = (struct store_queue){.ops = &pread_ops, .store = store, .depth = depth};
    queue->nowait = 1;
    *out = &queue->base;
    return STK_OK;
}
