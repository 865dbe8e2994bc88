#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/transfer.h"

#define LARGEST_READ ((size_t)1 << 30) /* a submission's length has 32 bits */

/* What a completion belongs to, where it is not an item. */
static const char wake_tag, cancel_tag;

struct item {
    struct transfer transfer;
    struct item *next; /* in the list of free ones, or of finished ones */
    int in_kernel;
};

struct uring_queue {
    struct store_queue base;
    struct io_uring ring;
    int event;         /* wake writes to it */
    int armed;         /* a poll of event is in the kernel */
    _Atomic int woken; /* set by wake before it writes, taken by reap */
    uint32_t in_kernel;
    struct item *free, *over; /* over: finished, waiting for reap; order does not matter */
    struct item items[];      /* base.depth */
};

/* The ring has an entry for each item and two more, and every item has at most one in it. When the
 * kernel took none of the last ones (it is short of memory), it is asked again. */
static struct io_uring_sqe *next_entry(struct uring_queue *queue)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&queue->ring);
    if (!entry) {
        io_uring_submit(&queue->ring);
        entry = io_uring_get_sqe(&queue->ring);
    }
    return entry;
}

static void item_over(struct uring_queue *queue, struct item *item)
{
    transfer_end(&item->transfer, queue->base.store);
    item->next = queue->over;
    queue->over = item;
}

/* In this thread: for when the ring has no room, or the kernel would not wait for the disk. */
static void read_here(struct uring_queue *queue, struct item *item)
{
    struct store *store = queue->base.store;
    while (transfer_step(&item->transfer, store, transfer_ask(&item->transfer, 0)) != TRANSFER_OVER)
        ;
    item_over(queue, item);
}

static void item_ask(struct uring_queue *queue, struct item *item)
{
    const struct transfer *transfer = &item->transfer;
    const struct store_read *read = transfer->read;
    const struct iovec *parts = read->parts + transfer->part;
    uint32_t count = read->part_count - transfer->part;
    struct io_uring_sqe *entry = next_entry(queue);
    if (!entry) {
        read_here(queue, item);
        return;
    }
    if (count == 1) {
        size_t len = parts[0].iov_len < LARGEST_READ ? parts[0].iov_len : LARGEST_READ;
        io_uring_prep_read(entry, transfer->file.fd, parts[0].iov_base, (unsigned)len,
                           transfer_offset(transfer));
    } else {
        io_uring_prep_readv(entry, transfer->file.fd, parts, count, transfer_offset(transfer));
    }
    io_uring_sqe_set_data(entry, item);
    item->in_kernel = 1;
    queue->in_kernel++;
}

static uint32_t uring_submit(struct store_queue *base, struct store_read **reads, uint32_t n)
{
    struct uring_queue *queue = (struct uring_queue *)base;
    uint32_t taken = 0;
    for (; taken < n && queue->free; taken++) {
        struct item *item = queue->free;
        queue->free = item->next;
        base->in_flight++;
        if (transfer_begin(&item->transfer, base->store, reads[taken]) == TRANSFER_OVER)
            item_over(queue, item);
        else
            item_ask(queue, item);
    }
    io_uring_submit(&queue->ring); /* what the kernel does not take now it takes before a wait */
    return taken;
}

static void take_wake(struct uring_queue *queue)
{
    eventfd_t count;
    eventfd_read(queue->event, &count); /* does not block; only empties it */
    queue->armed = 0;
}

static void take_result(struct uring_queue *queue, struct item *item, int result)
{
    item->in_kernel = 0;
    queue->in_kernel--;
    if (result == -EAGAIN)
        read_here(queue, item);
    else if (transfer_step(&item->transfer, queue->base.store, result) == TRANSFER_OVER)
        item_over(queue, item);
    else
        item_ask(queue, item);
}

/* Takes all completions that are there; the rest of short reads is asked for. */
static void take_completions(struct uring_queue *queue)
{
    struct io_uring_cqe *completion;
    while (io_uring_peek_cqe(&queue->ring, &completion) == 0) {
        void *tag = io_uring_cqe_get_data(completion);
        int result = completion->res;
        io_uring_cqe_seen(&queue->ring, completion);
        if (tag == &wake_tag)
            take_wake(queue);
        else if (tag != &cancel_tag)
            take_result(queue, tag, result);
    }
    if (io_uring_sq_ready(&queue->ring))
        io_uring_submit(&queue->ring);
}

static void arm_wake(struct uring_queue *queue)
{
    struct io_uring_sqe *entry = queue->armed ? NULL : next_entry(queue);
    if (!entry)
        return;
    io_uring_prep_poll_add(entry, queue->event, POLLIN);
    io_uring_sqe_set_data(entry, (void *)&wake_tag);
    queue->armed = 1;
}

/* Waits for one completion until deadline (< 0: for ever). 0: the time is over. */
static int wait_completion(struct uring_queue *queue, int64_t deadline)
{
    struct io_uring_cqe *completion;
    int result;
    io_uring_submit(&queue->ring);
    if (deadline < 0) {
        result = io_uring_wait_cqe(&queue->ring, &completion);
    } else {
        int64_t left = deadline - clock_now();
        if (left <= 0)
            return 0;
        struct __kernel_timespec limit = {.tv_sec = left / 1000000000,
                                          .tv_nsec = left % 1000000000};
        result = io_uring_wait_cqe_timeout(&queue->ring, &completion, &limit);
    }
    return result == 0 || result == -EINTR || result == -EAGAIN || result == -EBUSY;
}

static uint32_t give_finished(struct uring_queue *queue, struct store_read **reads, uint32_t cap)
{
    uint32_t count = 0;
    while (count < cap && queue->over) {
        struct item *item = queue->over;
        queue->over = item->next;
        reads[count++] = item->transfer.read;
        item->next = queue->free;
        queue->free = item;
        queue->base.in_flight--;
    }
    return count;
}

static uint32_t uring_reap(struct store_queue *base, struct store_read **reads, uint32_t cap,
                           int64_t wait_ns)
{
    struct uring_queue *queue = (struct uring_queue *)base;
    int64_t deadline = wait_ns; /* 0 and less stand for themselves */
    if (wait_ns > 0 && __builtin_add_overflow(clock_now(), wait_ns, &deadline))
        deadline = -1;
    take_completions(queue);
    while (!queue->over && base->in_flight && wait_ns != 0 && cap) {
        if (atomic_exchange(&queue->woken, 0))
            break;
        arm_wake(queue);
        if (!wait_completion(queue, deadline))
            break;
        take_completions(queue);
    }
    return give_finished(queue, reads, cap);
}

static void uring_wake(struct store_queue *base)
{
    struct uring_queue *queue = (struct uring_queue *)base;
    atomic_store(&queue->woken, 1);
    eventfd_write(queue->event, 1); /* fails only when the count is full: it is readable then */
}

/* Every read must be back before its memory is the caller's again: those that run are waited for.
 */
static void cancel_all(struct uring_queue *queue)
{
    for (uint32_t i = 0; i < queue->base.depth; i++) {
        struct io_uring_sqe *entry = queue->items[i].in_kernel ? next_entry(queue) : NULL;
        if (!entry)
            continue;
        io_uring_prep_cancel(entry, &queue->items[i], 0);
        io_uring_sqe_set_data(entry, (void *)&cancel_tag);
    }
    io_uring_submit(&queue->ring);
    while (queue->in_kernel) {
        struct io_uring_cqe *completion;
        if (io_uring_peek_cqe(&queue->ring, &completion) != 0) {
            io_uring_submit_and_wait(&queue->ring, 1);
            continue;
        }
        struct item *item = io_uring_cqe_get_data(completion);
        int result = completion->res;
        io_uring_cqe_seen(&queue->ring, completion);
        if ((void *)item == &wake_tag || (void *)item == &cancel_tag)
            continue;
        item->in_kernel = 0;
        queue->in_kernel--;
        if (transfer_step(&item->transfer, queue->base.store, result) == TRANSFER_MORE)
            item->transfer.read->status = STK_CANCELLED;
        transfer_end(&item->transfer, queue->base.store);
    }
}

static void uring_close(struct store_queue *base)
{
    struct uring_queue *queue = (struct uring_queue *)base;
    cancel_all(queue);
    io_uring_queue_exit(&queue->ring);
    close(queue->event);
    memory_free(queue);
}

static const struct store_queue_ops uring_ops = {uring_submit, uring_reap, uring_wake, uring_close};

static stk_status uring_refused(int number, struct stk_error *err)
{
    fail_errno(err, number, "io_uring cannot be used");
    if (number == EMFILE || number == ENFILE)
        return STK_RESOURCE;
    fail_remedy(err,
                "use pread: the kernel is too old, forbids io_uring, or locks too little memory");
    if (err)
        err->status = STK_UNSUPPORTED;
    return STK_UNSUPPORTED;
}

/* 0 or errno. A kernel that knows no IORING_OP_READ (before 5.6) is of no use. */
static int ring_init(struct io_uring *ring, uint32_t entries)
{
    int result = io_uring_queue_init(entries, ring, IORING_SETUP_COOP_TASKRUN);
    if (result == -EINVAL) /* before 5.19 */
        result = io_uring_queue_init(entries, ring, 0);
    if (result < 0)
        return -result;
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    int known = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    io_uring_free_probe(probe);
    if (!known)
        io_uring_queue_exit(ring);
    return known ? 0 : ENOSYS;
}

stk_status uring_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                            struct stk_error *err)
{
    size_t size = sizeof(struct uring_queue) + depth * sizeof(struct item);
    *out = NULL;
    struct uring_queue *queue = memory_zero(1, size);
    if (!queue)
        return fail_memory(err, size);
    queue->base = (struct store_queue){.ops = &uring_ops, .store = store, .depth = depth};
    for (uint32_t i = 0; i < depth; i++)
        queue->items[i].next = i + 1 < depth ? &queue->items[i + 1] : NULL;
    queue->free = queue->items;
    queue->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int number = queue->event < 0 ? errno : ring_init(&queue->ring, depth + 2);
    if (number) {
        if (queue->event >= 0)
            close(queue->event);
        memory_free(queue);
        return uring_refused(number, err);
    }
    *out = &queue->base;
    return STK_OK;
}
