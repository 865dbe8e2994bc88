/* Reads of remote objects. What comes lands in the memory of its read; or in a stretch that
 * somebody holds, or, with a cache, in the buffer of a block, from where the reaper copies it. All
 * but what is under the lock is the owner thread's. */
#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/site.h"
#include "store/remote_items.h"

#define ASK_NS 1000000 /* how often it is asked whether another process has fetched a block */

static struct item *items_take(struct items *items)
{
    struct item *item = items->first;
    items->first = item->next;
    if (!items->first)
        items->last = &items->first;
    return item;
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
    /* What cannot be told from what was there before is never kept. */
    if (!remote->cache || !site_version_tells(item->place.version, item->place.size))
        return item_cover(item);
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

static void dip_take(struct dip *dip)
{
    struct item *item = dip->item;
    const struct store_read *read = item->read;
    struct remote *remote = item->queue->remote;
    struct iovec parts[STORE_MAX_PARTS];
    if (dip->status && !item->status)
        item->status = dip->status;
    if (!item->status) {
        const uint8_t *from = dip_data(dip);
        uint32_t count = parts_cut(read->parts, read->part_count, dip->offset - read->offset,
                                   dip->length, parts);
        for (uint32_t i = 0; i < count; i++) {
            memcpy(parts[i].iov_base, from, parts[i].iov_len);
            from += parts[i].iov_len;
        }
    }
    pthread_mutex_lock(&remote->lock);
    dip_end(dip);
    pthread_mutex_unlock(&remote->lock);
    dip_free(dip);
    item->open--;
    item_go_on(item);
}

static int take_arrivals(struct remote_queue *queue)
{
    pthread_mutex_lock(&queue->remote->lock);
    struct direct *landed = queue->landed;
    struct dip *dipped = queue->dipped;
    struct wait *ready = queue->ready;
    queue->landed = NULL;
    queue->dipped = NULL;
    queue->ready = NULL;
    queue->ready_last = &queue->ready;
    pthread_mutex_unlock(&queue->remote->lock);
    int some = landed || dipped || ready;
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
    while (dipped) {
        struct dip *dip = dipped;
        dipped = dip->next;
        dip_take(dip);
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

static int has_arrivals(const struct remote_queue *queue)
{
    return queue->landed || queue->dipped || queue->ready;
}

/* 0: the time is over, or somebody called. */
static int wait_arrival(struct remote_queue *queue, int64_t deadline)
{
    struct remote *remote = queue->remote;
    int64_t until = deadline;
    if (queue->coming || queue->stalled.first)
        until = until < 0 || queue->ask_ns < until ? queue->ask_ns : until;
    int in_time = 1;
    pthread_mutex_lock(&remote->lock);
    while (!has_arrivals(queue) && !queue->woken && in_time)
        in_time = until < 0 ? !pthread_cond_wait(&queue->arrived, &remote->lock)
                            : condition_wait(&queue->arrived, &remote->lock, until);
    int go_on = has_arrivals(queue) || (!queue->woken && until != deadline);
    if (queue->woken && !has_arrivals(queue))
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

/* dips: taken out of their stretches' lists. */
static void free_dips(struct remote_queue *queue, struct dip *dips)
{
    for (struct dip *dip = dips, *next; dip; dip = next) {
        next = dip->next;
        pthread_mutex_lock(&queue->remote->lock);
        dip_end(dip);
        pthread_mutex_unlock(&queue->remote->lock);
        memory_free(dip);
    }
    for (struct dip *dip = queue->spare_dips, *next; dip; dip = next) {
        next = dip->next;
        memory_free(dip);
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
    stretches_forget(remote, queue, &queue->dipped);
    pthread_mutex_unlock(&remote->lock);
    free_dips(queue, queue->dipped);
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
    condition_init(&queue->arrived);
    *out = &queue->base;
    return STK_OK;
}
