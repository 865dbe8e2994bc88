#include "store/remote_blocks.h"

#include "base/fail.h"
#include "base/memory.h"

#define BLOCKS_LEAST 8

stk_status blocks_new(struct blocks **out, struct remote *remote, struct stk_error *err)
{
    *out = memory_zero(1, sizeof **out);
    if (!*out)
        return fail_memory(err, sizeof **out);
    (*out)->remote = remote;
    (*out)->limit = BLOCKS_MOST;
    return STK_OK;
}

static void block_free(struct block *block)
{
    if (block->has_ref)
        block_give(&block->ref);
    memory_unmap(block->data, BLOCK_SIZE);
    place_reset(&block->place);
    memory_free(block);
}

void blocks_free(struct blocks *blocks)
{
    for (uint32_t i = 0; blocks && i < blocks->count; i++)
        block_free(blocks->all[i]);
    memory_free(blocks);
}

uint64_t blocks_limit(struct blocks *blocks, uint64_t bytes)
{
    uint64_t limit = bytes / BLOCK_SIZE;
    limit = limit < BLOCKS_LEAST ? BLOCKS_LEAST : limit > BLOCKS_MOST ? BLOCKS_MOST : limit;
    pthread_mutex_lock(&blocks->remote->lock);
    blocks->limit = (uint32_t)limit;
    pthread_mutex_unlock(&blocks->remote->lock);
    return limit * BLOCK_SIZE;
}

/* --- finding ---------------------------------------------------------------------------------- */

struct block *blocks_find(struct blocks *blocks, uint32_t object, uint64_t number)
{
    for (uint32_t i = 0; i < blocks->count; i++) {
        struct block *block = blocks->all[i];
        if (block->state != BLOCK_EMPTY && block->number == number && block->object == object) {
            block->used = ++blocks->clock;
            return block;
        }
    }
    return NULL;
}

static struct block *block_new(struct blocks *blocks)
{
    struct block *block = memory_zero(1, sizeof *block);
    if (block)
        block->data = memory_map(BLOCK_SIZE);
    if (!block || !block->data) {
        memory_free(block);
        return NULL;
    }
    block->home = blocks;
    blocks->all[blocks->count++] = block;
    return block;
}

/* An empty one, else the full one that was not used for longest. */
static struct block *block_unused(struct blocks *blocks)
{
    struct block *oldest = NULL;
    for (uint32_t i = 0; i < blocks->count; i++) {
        struct block *block = blocks->all[i];
        if (block->state == BLOCK_WANTED || block->users)
            continue;
        if (block->state == BLOCK_EMPTY)
            return block;
        if (!oldest || block->used < oldest->used)
            oldest = block;
    }
    return oldest;
}

int blocks_have_room(struct blocks *blocks)
{
    return blocks->count < blocks->limit || block_unused(blocks) != NULL || blocks->wanted == 0;
}

struct block *blocks_room(struct blocks *blocks, int *is_stuck)
{
    struct block *block = blocks->count < blocks->limit ? block_new(blocks) : NULL;
    if (!block)
        block = block_unused(blocks);
    if (block)
        block->state = BLOCK_EMPTY;
    *is_stuck = !block && blocks->wanted == 0;
    return block;
}

/* --- fetching --------------------------------------------------------------------------------- */

stk_status block_want(struct block *block, const struct place *place, uint64_t number,
                      const struct block_ref *ref)
{
    if (place_copy(&block->place, place))
        return STK_MEMORY;
    uint64_t left = place->size - number * BLOCK_SIZE;
    block->object = place->object;
    block->number = number;
    block->length = left < BLOCK_SIZE ? left : BLOCK_SIZE;
    block->state = BLOCK_WANTED;
    block->used = ++block->home->clock;
    block->ref = *ref;
    block->ref.object.uri = block->place.bare; /* the item that asked may be gone before it */
    block->has_ref = 1;
    block->waits = NULL;
    block->run_count = 0;
    block->home->wanted++;
    return STK_OK;
}

void block_hold(struct block *block, struct wait *wait)
{
    wait->block = block;
    wait->puts = 0;
    wait->status = STK_OK;
    block->users++;
    if (block->state == BLOCK_FULL) {
        queue_wait_over(wait);
        return;
    }
    wait->next = block->waits;
    block->waits = wait;
}

static void block_came(struct block *block)
{
    int puts = block->has_ref;
    block->state = BLOCK_FULL;
    for (struct wait *wait = block->waits, *next; wait; wait = next) {
        next = wait->next;
        wait->puts = puts;
        puts = 0;
        queue_wait_over(wait);
    }
    if (puts) { /* whoever wanted it is gone */
        block_give(&block->ref);
        block->has_ref = 0;
    }
    block->waits = NULL;
}

static void block_failed(struct block *block, stk_status status)
{
    block->state = BLOCK_EMPTY;
    for (struct wait *wait = block->waits, *next; wait; wait = next) {
        next = wait->next;
        wait->block = NULL;
        wait->status = status;
        block->users--;
        queue_wait_over(wait);
    }
    block->waits = NULL;
    if (block->has_ref)
        block_give(&block->ref);
    block->has_ref = 0;
}

static void run_over(struct strip *strip)
{
    struct block *first = strip->owner, *run[RUN_MOST];
    uint32_t count = first->run_count;
    for (uint32_t i = 0; i < count; i++)
        run[i] = first->run[i]; /* the first may be used anew as soon as it is settled */
    for (uint32_t i = 0; i < count; i++) {
        first->home->wanted--;
        if (strip->status)
            block_failed(run[i], strip->status);
        else
            block_came(run[i]);
    }
}

static void run_append(struct block *first, struct block *block)
{
    first->run[first->run_count] = block;
    first->parts[first->run_count] = (struct iovec){block->data, block->length};
    first->run_count++;
    first->strip.part_count = first->run_count;
    first->strip.length += block->length;
}

/* The last strip of the line, where the block goes on behind it, and nothing of it was sent. */
static struct block *run_before(struct blocks *blocks, const struct block *block)
{
    struct fetch_advice advice;
    const struct strip *last = blocks->remote->last;
    if (!last || last->over != run_over || last->asked)
        return NULL;
    struct block *first = last->owner;
    if (first->object != block->object || first->run_count == RUN_MOST ||
        first->number + first->run_count != block->number)
        return NULL;
    fetch_advice(block->place.site, &advice);
    return last->length + block->length <= advice.range ? first : NULL;
}

void run_send(struct blocks *blocks, struct run *run)
{
    struct block *first = run->count ? run_before(blocks, run->blocks[0]) : NULL;
    for (uint32_t i = 0; i < run->count; i++) {
        struct block *block = run->blocks[i];
        if (!first || first->run_count == RUN_MOST) {
            first = block;
            first->strip = (struct strip){.place = &first->place,
                                          .offset = first->number * BLOCK_SIZE,
                                          .parts = first->parts,
                                          .over = run_over,
                                          .owner = first};
            first->run_count = 0;
            line_add(blocks->remote, &first->strip);
        }
        run_append(first, block);
    }
    run->count = 0;
}

/* --- letting go ------------------------------------------------------------------------------- */

void blocks_forget(struct blocks *blocks, const struct remote_queue *queue, struct wait **to)
{
    for (uint32_t i = 0; i < blocks->count; i++) {
        struct block *block = blocks->all[i];
        for (struct wait **at = &block->waits; *at;) {
            struct wait *wait = *at;
            if (wait_queue(wait) != queue) {
                at = &wait->next;
                continue;
            }
            *at = wait->next;
            wait->next = *to;
            *to = wait;
            block->users--;
        }
    }
}

void block_let_go(struct blocks *blocks, struct wait *wait)
{
    struct block *block = wait->block;
    if (!block)
        return;
    if (wait->puts) /* it is held until below */
        block_put(&block->ref, block->data, block->length);
    pthread_mutex_lock(&blocks->remote->lock);
    if (wait->puts)
        block->has_ref = 0;
    block->users--;
    pthread_mutex_unlock(&blocks->remote->lock);
    wait->block = NULL;
    wait->puts = 0;
}
