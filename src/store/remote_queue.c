/* Reads of remote objects. What comes lands in the memory of its read, or, with a cache, in the
 * buffer of a block, from where the reaper copies it. All but what is under the lock is the owner
 * thread's. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/remote_blocks.h"
#include "store/remote_parts.h"

#define OPEN_MOST 32   /* blocks that one read waits for at once */
#define ASK_NS 1000000 /* how often it is asked whether another process has fetched a block */
#define FOREIGN_NS INT64_C(10000000000) /* so long is waited for another process, then not */

/* A range that goes past the cache, straight to where it is wanted. */
struct direct {
    struct strip strip;
    struct direct *next;
    struct item *item;
    struct iovec parts[STORE_MAX_PARTS];
};

struct item {
    struct item *next; /* in the list of free, finished or stalled ones */
    struct remote_queue *queue;
    struct store_read *read;
    struct place place;
    struct block_object object;
    uint64_t at, end; /* blocks that were not asked for yet */
    uint32_t open;    /* ranges and blocks that are not there yet */
    stk_status status;
    int is_busy, is_stalled;
};

struct items {
    struct item *first, **last;
};

struct remote_queue {
    struct store_queue base;
    struct remote *remote;
    pthread_cond_t arrived;
    /* under the lock */
    struct direct *landed;
    struct wait *ready, **ready_last;
    int woken;
    /* the owner's */
    struct item *free;
    struct items over, stalled; /* stalled: no buffer was free for them */
    struct wait *here, **here_last, *coming, *spare_waits;
    struct direct *spare_directs;
    int64_t ask_ns;      /* when what is coming, or stalled, is looked at again */
    struct item items[]; /* base.depth */
};

static void items_add(struct items *items, struct item *item)
{
    item->next = NULL;
    *items->last = item;
    items->last = &item->next;
}

static struct item *items_take(struct items *items)
{
    struct item *item = items->first;
    items->first = item->next;
    if (!items->first)
        items->last = &items->first;
    return item;
}

/* --- straight to the caller's memory ---------------------------------------------------------- */

/* Under the lock. */
static void direct_over(struct strip *strip)
{
    struct direct *direct = strip->owner;
    struct remote_queue *queue = direct->item->queue;
    direct->next = queue->landed;
    queue->landed = direct;
    pthread_cond_signal(&queue->arrived);
}

static stk_status direct_send(struct item *item, uint64_t offset, uint64_t length)
{
    struct remote_queue *queue = item->queue;
    struct direct *direct = queue->spare_directs;
    const struct store_read *read = item->read;
    if (direct)
        queue->spare_directs = direct->next;
    else
        direct = memory_alloc(sizeof *direct);
    if (!direct)
        return STK_MEMORY;
    direct->item = item;
    direct->strip = (struct strip){.place = &item->place,
                                   .offset = offset,
                                   .length = length,
                                   .parts = direct->parts,
                                   .over = direct_over,
                                   .owner = direct};
    direct->strip.part_count =
        parts_cut(read->parts, read->part_count, offset - read->offset, length, direct->parts);
    item->open++;
    pthread_mutex_lock(&queue->remote->lock);
    line_add(queue->remote, &direct->strip);
    pthread_mutex_unlock(&queue->remote->lock);
    return STK_OK;
}

/* --- blocks ----------------------------------------------------------------------------------- */

void queue_wait_over(struct wait *wait)
{
    struct remote_queue *queue = wait->item->queue;
    wait->next = NULL;
    *queue->ready_last = wait;
    queue->ready_last = &wait->next;
    pthread_cond_signal(&queue->arrived);
}

const struct remote_queue *wait_queue(const struct wait *wait)
{
    return wait->item->queue;
}

static struct wait *wait_new(struct item *item, uint64_t number)
{
    struct remote_queue *queue = item->queue;
    struct wait *wait = queue->spare_waits;
    if (wait)
        queue->spare_waits = wait->next;
    else
        wait = memory_alloc(sizeof *wait);
    if (!wait)
        return NULL;
    *wait = (struct wait){.item = item, .number = number};
    item->open++;
    return wait;
}

static void wait_free(struct wait *wait)
{
    struct remote_queue *queue = wait->item->queue;
    wait->item->open--;
    wait->next = queue->spare_waits;
    queue->spare_waits = wait;
}

/* What of a block the read wants: *within the block, and where that lies in the read. */
static uint64_t wait_share(const struct wait *wait, uint64_t *within, uint64_t *at)
{
    const struct store_read *read = wait->item->read;
    uint64_t start = wait->number * BLOCK_SIZE, end = read->offset + read->length;
    uint64_t from = read->offset > start ? read->offset : start;
    end = end - start < BLOCK_SIZE ? end : start + BLOCK_SIZE;
    *within = from - start;
    *at = from - read->offset;
    return end - from;
}

static uint32_t wait_parts(const struct wait *wait, uint64_t *within, struct iovec *parts)
{
    const struct store_read *read = wait->item->read;
    uint64_t at, length = wait_share(wait, within, &at);
    return parts_cut(read->parts, read->part_count, at, length, parts);
}

/* YOURS: a buffer for it, and into the run; 0: none is free, and it was given back. */
enum asked { ASKED_WAITS, ASKED_RUN, ASKED_PAST, ASKED_STALLS };

static enum asked ask_fetch(struct wait *wait, struct block_ref *ref, struct run *run)
{
    struct item *item = wait->item;
    struct remote *remote = item->queue->remote;
    enum asked asked = ASKED_RUN;
    int is_stuck = 0;
    pthread_mutex_lock(&remote->lock);
    struct block *block = blocks_room(remote->blocks, &is_stuck);
    if (block && !block_want(block, &item->place, wait->number, ref)) {
        block_hold(block, wait);
        run->blocks[run->count++] = block;
    } else {
        asked = block || is_stuck ? ASKED_PAST : ASKED_STALLS;
    }
    pthread_mutex_unlock(&remote->lock);
    if (asked != ASKED_RUN)
        block_give(ref);
    return asked;
}

/* Asks for one block: of the buffers, then of the cache. Uses the wait up unless it says PAST or
 * STALLS. */
static enum asked ask_block(struct wait *wait, struct run *run)
{
    struct item *item = wait->item;
    struct remote_queue *queue = item->queue;
    struct remote *remote = queue->remote;
    pthread_mutex_lock(&remote->lock);
    struct block *block = blocks_find(remote->blocks, item->place.object, wait->number);
    if (block)
        block_hold(block, wait);
    pthread_mutex_unlock(&remote->lock);
    if (block)
        return ASKED_WAITS;
    struct block_ref ref;
    switch (block_take(remote->cache, &item->object, wait->number, &ref)) {
    case BLOCK_HERE:
        wait->ref = ref;
        wait->next = NULL;
        *queue->here_last = wait;
        queue->here_last = &wait->next;
        return ASKED_WAITS;
    case BLOCK_YOURS:
        return ask_fetch(wait, &ref, run);
    case BLOCK_COMING:
        wait->since_ns = wait->since_ns ? wait->since_ns : clock_now();
        if (clock_now() - wait->since_ns > FOREIGN_NS)
            return ASKED_PAST;
        wait->next = queue->coming;
        queue->coming = wait;
        return ASKED_WAITS;
    case BLOCK_BYPASS:
        break;
    }
    return ASKED_PAST;
}

static void send_run(struct remote *remote, struct run *run)
{
    if (!run->count)
        return;
    pthread_mutex_lock(&remote->lock);
    run_send(remote->blocks, run);
    pthread_mutex_unlock(&remote->lock);
}

/* Reads past the cache what of the blocks [first, end) the read wants. */
static void send_past(struct item *item, uint64_t first, uint64_t end)
{
    struct wait low = {.item = item, .number = first}, high = {.item = item, .number = end - 1};
    uint64_t within, at, high_at;
    if (first == end)
        return;
    wait_share(&low, &within, &at);
    uint64_t length = wait_share(&high, &within, &high_at);
    stk_status status = direct_send(item, item->read->offset + at, high_at + length - at);
    if (status && !item->status)
        item->status = status;
}

static void item_stall(struct item *item)
{
    if (item->is_stalled)
        return;
    item->is_stalled = 1;
    items_add(&item->queue->stalled, item);
}

/* Asks for the blocks of a read, as many as it may wait for at once. Those that follow one another
 * and are treated alike are fetched together. */
static void item_advance(struct item *item)
{
    struct remote *remote = item->queue->remote;
    struct run run = {.count = 0};
    uint64_t past = item->at; /* blocks [past, at) go past the cache */
    enum asked asked = ASKED_WAITS;
    while (!item->status && item->at < item->end && item->open < OPEN_MOST &&
           asked != ASKED_STALLS) {
        struct wait *wait = wait_new(item, item->at);
        asked = wait ? ask_block(wait, &run) : ASKED_PAST;
        if (wait && (asked == ASKED_PAST || asked == ASKED_STALLS))
            wait_free(wait);
        if (asked != ASKED_PAST) {
            send_past(item, past, item->at);
            past = item->at + (asked != ASKED_STALLS);
        }
        if (asked != ASKED_RUN || run.count == RUN_MOST)
            send_run(remote, &run);
        item->at += asked != ASKED_STALLS;
    }
    send_run(remote, &run);
    send_past(item, past, item->at);
    if (asked == ASKED_STALLS)
        item_stall(item);
}

/* One block of a read anew: it was damaged, or another process was to fetch it. */
static void wait_again(struct wait *wait)
{
    struct item *item = wait->item;
    struct run run = {.count = 0};
    uint64_t number = wait->number;
    enum asked asked = ask_block(wait, &run);
    send_run(item->queue->remote, &run);
    if (asked == ASKED_STALLS) { /* it is looked at again as if it were coming */
        wait->next = item->queue->coming;
        item->queue->coming = wait;
    } else if (asked == ASKED_PAST) {
        send_past(item, number, number + 1);
        wait_free(wait);
    }
}

/* --- submitting ------------------------------------------------------------------------------- */

static void item_settle(struct item *item)
{
    struct remote_queue *queue = item->queue;
    if (item->open || !item->is_busy || item->is_stalled)
        return;
    if (!item->status && item->at < item->end)
        return; /* its next blocks are asked for by whoever called */
    item->is_busy = 0;
    item->read->status = item->status;
    items_add(&queue->over, item);
}

static stk_status item_aim(struct item *item)
{
    const struct store_read *read = item->read;
    struct remote *remote = item->queue->remote;
    stk_status status = place_find(remote, read->object, &item->place, NULL);
    if (status)
        return status;
    if (!checked_inside(read->offset, read->length, item->place.size))
        return STK_TRUNCATED;
    if (!read->length)
        return STK_OK;
    if (!remote->cache)
        return direct_send(item, read->offset, read->length);
    item->object = (struct block_object){.size = item->place.size, .uri = item->place.bare};
    block_object_id(item->place.bare, item->place.size, item->place.version, item->object.id);
    item->at = read->offset / BLOCK_SIZE;
    item->end = (read->offset + read->length - 1) / BLOCK_SIZE + 1;
    item_advance(item);
    return item->status;
}

static void item_begin(struct remote_queue *queue, struct store_read *read)
{
    struct item *item = queue->free;
    assert(read->part_count >= 1 && read->part_count <= STORE_MAX_PARTS);
    queue->free = item->next;
    read->status = STK_OK;
    read->error_number = 0;
    item->read = read;
    item->at = item->end = 0;
    item->open = 0;
    item->status = STK_OK;
    item->is_busy = 1;
    item->is_stalled = 0;
    queue->base.in_flight++;
    stk_status status = item_aim(item);
    item->status = item->status ? item->status : status;
    item_settle(item);
}

static uint32_t remote_submit(struct store_queue *base, struct store_read **reads, uint32_t n)
{
    struct remote_queue *queue = (struct remote_queue *)base;
    uint32_t taken = 0;
    for (; taken < n && queue->free; taken++)
        item_begin(queue, reads[taken]);
    line_pump(queue->remote);
    return taken;
}

/* --- reaping ---------------------------------------------------------------------------------- */

static void item_go_on(struct item *item)
{
    if (!item->status && item->at < item->end && !item->is_stalled)
        item_advance(item);
    item_settle(item);
}

static void wait_take(struct wait *wait)
{
    struct item *item = wait->item;
    struct remote *remote = item->queue->remote;
    struct iovec parts[STORE_MAX_PARTS];
    uint64_t within;
    if (wait->status && !item->status)
        item->status = wait->status;
    if (wait->block && !item->status) {
        const uint8_t *from = wait->block->data;
        uint32_t count = wait_parts(wait, &within, parts);
        for (uint32_t i = 0; i < count; i++) {
            memcpy(parts[i].iov_base, from + within, parts[i].iov_len);
            within += parts[i].iov_len;
        }
    }
    block_let_go(remote->blocks, wait);
    wait_free(wait);
    item_go_on(item);
}

static int take_arrivals(struct remote_queue *queue)
{
    pthread_mutex_lock(&queue->remote->lock);
    struct direct *landed = queue->landed;
    struct wait *ready = queue->ready;
    queue->landed = NULL;
    queue->ready = NULL;
    queue->ready_last = &queue->ready;
    pthread_mutex_unlock(&queue->remote->lock);
    int some = landed || ready;
    while (landed) {
        struct direct *direct = landed;
        struct item *item = direct->item;
        landed = direct->next;
        if (direct->strip.status && !item->status)
            item->status = direct->strip.status;
        direct->next = queue->spare_directs;
        queue->spare_directs = direct;
        item->open--;
        item_go_on(item);
    }
    while (ready) {
        struct wait *wait = ready;
        ready = wait->next;
        wait_take(wait);
    }
    return some;
}

/* Copies what is in the cache, until there is one read that is whole. */
static int take_here(struct remote_queue *queue)
{
    struct iovec parts[STORE_MAX_PARTS];
    uint64_t within;
    int some = queue->here != NULL;
    while (queue->here && !queue->over.first) {
        struct wait *wait = queue->here;
        struct item *item = wait->item;
        queue->here = wait->next;
        if (!queue->here)
            queue->here_last = &queue->here;
        uint32_t count = wait_parts(wait, &within, parts);
        if (block_read(&wait->ref, within, parts, count)) {
            wait_again(wait);
            item_settle(item);
            continue;
        }
        block_give(&wait->ref);
        wait_free(wait);
        item_go_on(item);
    }
    return some;
}

/* What another process fetches, and what had no buffer. */
static int ask_again(struct remote_queue *queue)
{
    if (!queue->coming && !queue->stalled.first)
        return 0;
    int64_t now = clock_now();
    if (now < queue->ask_ns)
        return 0;
    queue->ask_ns = now + ASK_NS;
    struct wait *coming = queue->coming;
    queue->coming = NULL;
    while (coming) {
        struct wait *wait = coming;
        coming = wait->next;
        struct item *item = wait->item;
        wait_again(wait);
        item_settle(item);
    }
    struct items again = queue->stalled;
    queue->stalled = (struct items){NULL, &queue->stalled.first};
    while (again.first) {
        struct item *item = again.first;
        again.first = item->next;
        item->is_stalled = 0;
        pthread_mutex_lock(&queue->remote->lock);
        int room = blocks_have_room(queue->remote->blocks);
        pthread_mutex_unlock(&queue->remote->lock);
        if (room || item->status)
            item_go_on(item);
        else
            item_stall(item);
    }
    return 1;
}

/* 0: the time is over, or somebody called. */
static int wait_arrival(struct remote_queue *queue, int64_t deadline)
{
    struct remote *remote = queue->remote;
    int64_t until = deadline;
    if (queue->coming || queue->stalled.first)
        until = until < 0 || queue->ask_ns < until ? queue->ask_ns : until;
    struct timespec limit = {.tv_sec = until / 1000000000, .tv_nsec = until % 1000000000};
    int result = 0;
    pthread_mutex_lock(&remote->lock);
    while (!queue->landed && !queue->ready && !queue->woken && result != ETIMEDOUT)
        result = until < 0 ? pthread_cond_wait(&queue->arrived, &remote->lock)
                           : pthread_cond_timedwait(&queue->arrived, &remote->lock, &limit);
    int go_on = queue->landed || queue->ready || (!queue->woken && until != deadline);
    if (queue->woken && !queue->landed && !queue->ready)
        queue->woken = 0;
    pthread_mutex_unlock(&remote->lock);
    return go_on;
}

static uint32_t give_over(struct remote_queue *queue, struct store_read **reads, uint32_t cap)
{
    uint32_t count = 0;
    while (count < cap && queue->over.first) {
        struct item *item = items_take(&queue->over);
        reads[count++] = item->read;
        item->next = queue->free;
        queue->free = item;
        queue->base.in_flight--;
    }
    return count;
}

static uint32_t remote_reap(struct store_queue *base, struct store_read **reads, uint32_t cap,
                            int64_t wait_ns)
{
    struct remote_queue *queue = (struct remote_queue *)base;
    int64_t deadline = wait_ns; /* less than 0 stands for itself */
    if (wait_ns > 0 && __builtin_add_overflow(clock_now(), wait_ns, &deadline))
        deadline = -1;
    uint32_t count = 0;
    while (count < cap) {
        int some = take_arrivals(queue);
        some |= take_here(queue);
        some |= ask_again(queue);
        if (some && queue->remote->cache)
            line_pump(queue->remote);
        uint32_t got = give_over(queue, reads + count, cap - count);
        count += got;
        if (got && queue->here)
            continue; /* more of it is there already */
        if (count || !base->in_flight || wait_ns == 0)
            break;
        if (!queue->here && !wait_arrival(queue, deadline))
            break;
    }
    return count;
}

static void remote_wake(struct store_queue *base)
{
    struct remote_queue *queue = (struct remote_queue *)base;
    pthread_mutex_lock(&queue->remote->lock);
    queue->woken = 1;
    pthread_cond_signal(&queue->arrived);
    pthread_mutex_unlock(&queue->remote->lock);
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int is_mine(const struct strip *strip, void *user)
{
    const struct direct *direct = strip->owner;
    return strip->over == direct_over && direct->item->queue == user;
}

static void free_waits(struct wait *wait, struct blocks *blocks, int gives)
{
    for (struct wait *next; wait; wait = next) {
        next = wait->next;
        if (blocks)
            block_let_go(blocks, wait);
        if (gives)
            block_give(&wait->ref);
        memory_free(wait);
    }
}

static void free_directs(struct direct *direct)
{
    for (struct direct *next; direct; direct = next) {
        next = direct->next;
        memory_free(direct);
    }
}

static void free_lists(struct remote_queue *queue)
{
    struct blocks *blocks = queue->remote->blocks;
    free_waits(queue->ready, blocks, 0);
    free_waits(queue->here, NULL, 1);
    free_waits(queue->coming, NULL, 0);
    free_waits(queue->spare_waits, NULL, 0);
    free_directs(queue->landed);
    free_directs(queue->spare_directs);
}

/* What flies straight into the reads' memory is cancelled and waited for. Blocks that fly go on:
 * their memory is the store's, and others may want them. */
static void remote_end(struct store_queue *base)
{
    struct remote_queue *queue = (struct remote_queue *)base;
    struct remote *remote = queue->remote;
    line_cancel(remote, is_mine, queue);
    pthread_mutex_lock(&remote->lock);
    if (remote->blocks)
        blocks_forget(remote->blocks, queue, &queue->spare_waits);
    pthread_mutex_unlock(&remote->lock);
    free_lists(queue);
    for (uint32_t i = 0; i < base->depth; i++) {
        if (queue->items[i].is_busy)
            queue->items[i].read->status = STK_CANCELLED;
        place_reset(&queue->items[i].place);
    }
    pthread_cond_destroy(&queue->arrived);
    memory_free(queue);
}

static const struct store_queue_ops remote_ops = {remote_submit, remote_reap, remote_wake,
                                                  remote_end};

stk_status remote_queue_open(struct store *store, uint32_t depth, struct store_queue **out,
                             struct stk_error *err)
{
    struct remote *remote;
    pthread_condattr_t attributes;
    size_t size = sizeof(struct remote_queue) + depth * sizeof(struct item);
    *out = NULL;
    stk_status status = remote_of(store, &remote, err);
    if (status)
        return status;
    struct remote_queue *queue = memory_zero(1, size);
    if (!queue)
        return fail_memory(err, size);
    queue->base = (struct store_queue){.ops = &remote_ops, .store = store, .depth = depth};
    queue->remote = remote;
    queue->ready_last = &queue->ready;
    queue->here_last = &queue->here;
    queue->over.last = &queue->over.first;
    queue->stalled.last = &queue->stalled.first;
    for (uint32_t i = 0; i < depth; i++) {
        queue->items[i].queue = queue;
        queue->items[i].next = i + 1 < depth ? &queue->items[i + 1] : NULL;
    }
    queue->free = queue->items;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->arrived, &attributes);
    pthread_condattr_destroy(&attributes);
    *out = &queue->base;
    return STK_OK;
}
