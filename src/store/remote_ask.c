/* How a read asks for its bytes: by ranges of its own, of stretches that somebody holds, or, with a
 * cache, by blocks. */
#include "base/clock.h"
#include "base/memory.h"
#include "store/remote_items.h"

#define OPEN_MOST 32                    /* blocks that one read waits for at once */
#define FOREIGN_NS INT64_C(10000000000) /* so long is waited for another process, then not */

/* --- straight to the caller's memory ---------------------------------------------------------- */

void direct_over(struct strip *strip)
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

/* --- stretches -------------------------------------------------------------------------------- */

void queue_dip_over(struct dip *dip)
{
    struct remote_queue *queue = dip->item->queue;
    dip->next = queue->dipped;
    queue->dipped = dip;
    pthread_cond_signal(&queue->arrived);
}

const struct remote_queue *item_queue(const struct item *item)
{
    return item->queue;
}

static struct dip *dip_new(struct item *item)
{
    struct remote_queue *queue = item->queue;
    struct dip *dip = queue->spare_dips;
    if (dip)
        queue->spare_dips = dip->next;
    else
        dip = memory_alloc(sizeof *dip);
    if (dip)
        *dip = (struct dip){.item = item};
    return dip;
}

void dip_free(struct dip *dip)
{
    struct remote_queue *queue = dip->item->queue;
    dip->next = queue->spare_dips;
    queue->spare_dips = dip;
}

stk_status item_cover(struct item *item)
{
    struct remote *remote = item->queue->remote;
    const struct store_read *read = item->read;
    uint64_t end = read->offset + read->length, next = end;
    stk_status status = STK_OK;
    for (uint64_t at = read->offset, got; at < end && !status; at += got) {
        struct dip *dip = dip_new(item);
        if (!dip)
            return STK_MEMORY;
        pthread_mutex_lock(&remote->lock);
        got = stretch_dip(remote, dip, read->object, at, end, &next);
        pthread_mutex_unlock(&remote->lock);
        item->open += got != 0;
        if (got)
            continue;
        dip_free(dip);
        got = next - at;
        status = direct_send(item, at, got);
    }
    return status;
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

void wait_free(struct wait *wait)
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

uint32_t wait_parts(const struct wait *wait, uint64_t *within, struct iovec *parts)
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

void item_stall(struct item *item)
{
    if (item->is_stalled)
        return;
    item->is_stalled = 1;
    items_add(&item->queue->stalled, item);
}

/* Blocks that follow one another and are treated alike are fetched together. */
void item_advance(struct item *item)
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

void wait_again(struct wait *wait)
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
