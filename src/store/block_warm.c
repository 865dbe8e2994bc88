#include "store/block_warm.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/block_parts.h"
#include "store/remote_parts.h"

#define READ_BLOCKS 4 /* fetched at once */
#define READS 8       /* in flight: all of their blocks find room in the line to be written */
#define PASSES 3      /* what was dropped on the way is asked for again */
#define REAP_NS 50000000

_Static_assert(2 * READ_BLOCKS * READS <= BLOCK_QUEUE_MOST, "nothing is dropped for want of room");

enum pass { PASS_FIRST, PASS_AGAIN, PASS_LOOK };

struct warm_read {
    struct store_read read;
    struct iovec part;
    uint8_t *data;
    struct warm_read *next; /* of the idle ones */
};

struct warming {
    struct store *store;
    struct remote *remote;
    struct store_queue *queue;
    struct place place;
    struct block_warmed *warmed;
    int (*progress)(void *user, const struct block_warmed *warmed);
    void *user;
    struct warm_read reads[READS];
    struct warm_read *idle;
    uint32_t flying;
    uint64_t written_before;
};

/* Not OK: there is no sense in going on. */
static stk_status told(struct warming *warming, struct stk_error *err)
{
    const struct block_tally *tally = &warming->remote->cache->tally;
    warming->warmed->fetched = atomic_load(&tally->written) - warming->written_before;
    if (atomic_load(&tally->no_space)) {
        stk_status status =
            fail(err, STK_IO, "the disk of the cache is full: %llu blocks were kept",
                 (unsigned long long)warming->warmed->fetched);
        fail_remedy(err, "free space, give the cache a smaller size, or put it on another disk");
        return status;
    }
    if (warming->progress && warming->progress(warming->user, warming->warmed))
        return fail(err, STK_CANCELLED, "stopped while filling the cache");
    return STK_OK;
}

/* Takes back reads that are over, and waits for one unless some are. */
static stk_status reap(struct warming *warming, struct stk_error *err)
{
    struct store_read *done[READS];
    uint32_t count = store_reap(warming->queue, done, READS, REAP_NS);
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < count; i++) {
        struct warm_read *read = done[i]->owner;
        if (read->read.status && !status)
            status = store_explain(warming->store, &read->read, err);
        warming->warmed->fetched_bytes += read->read.status ? 0 : read->read.length;
        read->next = warming->idle;
        warming->idle = read;
    }
    warming->flying -= count;
    return status ? status : told(warming, err);
}

static stk_status send_blocks(struct warming *warming, uint64_t first, uint64_t count,
                              struct stk_error *err)
{
    stk_status status = STK_OK;
    struct block_cache *cache = warming->remote->cache;
    while (!status && !block_cache_settle(cache, READ_BLOCKS * READS, REAP_NS))
        status = told(warming, err);
    while (!status && !warming->idle)
        status = reap(warming, err);
    if (status)
        return status;
    struct warm_read *read = warming->idle;
    uint64_t offset = first * BLOCK_SIZE, left = warming->place.size - offset;
    uint64_t length = left < count * BLOCK_SIZE ? left : count * BLOCK_SIZE;
    warming->idle = read->next;
    read->part = (struct iovec){read->data, length};
    read->read = (struct store_read){.object = warming->place.object,
                                     .part_count = 1,
                                     .offset = offset,
                                     .length = length,
                                     .parts = &read->part,
                                     .owner = read};
    struct store_read *submitted = &read->read;
    while (!status && !store_submit(warming->queue, &submitted, 1))
        status = reap(warming, err);
    if (!status)
        warming->flying++;
    return status;
}

/* One object: runs of blocks that are wanted and not there. *sent: how many blocks were asked for.
 */
static stk_status warm_object(struct warming *warming, enum pass pass, uint64_t *sent,
                              struct stk_error *err)
{
    const struct place *place = &warming->place;
    struct block_object object = {.size = place->size, .uri = place->bare};
    uint64_t blocks = (place->size + BLOCK_SIZE - 1) / BLOCK_SIZE, run = 0;
    stk_status status = STK_OK;
    block_object_id(place->bare, place->size, place->version, object.id);
    for (uint64_t number = 0; number <= blocks && !status; number++) {
        enum block_state state = BLOCK_BYPASS;
        if (number < blocks)
            state = block_peek(warming->remote->cache, &object, number);
        warming->warmed->here += pass == PASS_FIRST && state == BLOCK_HERE;
        warming->warmed->left += pass == PASS_LOOK && number < blocks && state != BLOCK_HERE;
        if (pass == PASS_LOOK)
            continue;
        if (run && (state != BLOCK_YOURS || run == READ_BLOCKS)) {
            status = send_blocks(warming, number - run, run, err);
            *sent += run;
            run = 0;
        }
        run += state == BLOCK_YOURS;
    }
    if (pass == PASS_FIRST) {
        warming->warmed->blocks += blocks;
        warming->warmed->seen_bytes += place->size;
        warming->warmed->seen_objects++;
    }
    return status;
}

static stk_status warm_pass(struct warming *warming, enum pass pass, uint64_t *sent,
                            struct stk_error *err)
{
    stk_status status = STK_OK;
    *sent = 0;
    for (uint32_t i = 0; i < warming->remote->table.count && !status; i++) {
        status = place_find(warming->remote, i, &warming->place, err);
        if (!status)
            status = warm_object(warming, pass, sent, err);
        if (!status)
            status = told(warming, err);
    }
    while (!status && warming->flying)
        status = reap(warming, err);
    while (!status && !block_cache_settle(warming->remote->cache, 0, REAP_NS))
        status = told(warming, err);
    return status ? status : told(warming, err);
}

static stk_status warming_init(struct warming *warming, struct stk_error *err)
{
    while (!block_cache_settle(warming->remote->cache, 0, REAP_NS)) /* what opening has fetched */
        ;
    warming->written_before = atomic_load(&warming->remote->cache->tally.written);
    for (uint32_t i = 0; i < READS; i++) {
        warming->reads[i].data = memory_map(READ_BLOCKS * BLOCK_SIZE);
        if (!warming->reads[i].data)
            return fail_memory(err, READ_BLOCKS * BLOCK_SIZE);
        warming->reads[i].next = warming->idle;
        warming->idle = &warming->reads[i];
    }
    for (uint32_t i = 0; i < warming->remote->table.count; i++) {
        struct object object;
        warming->remote->table.get(warming->remote->table.owner, i, &object);
        warming->warmed->bytes += object.size;
    }
    return store_queue_open(warming->store, STORE_QUEUE_PREAD, READS, &warming->queue, err);
}

static void warming_reset(struct warming *warming)
{
    store_queue_close(warming->queue);
    for (uint32_t i = 0; i < READS; i++)
        memory_unmap(warming->reads[i].data, READ_BLOCKS * BLOCK_SIZE);
    place_reset(&warming->place);
}

stk_status block_warm(struct store *store,
                      int (*progress)(void *user, const struct block_warmed *warmed), void *user,
                      struct block_warmed *warmed, struct stk_error *err)
{
    struct warming warming = {.store = store, .warmed = warmed, .progress = progress, .user = user};
    uint64_t sent = 1;
    *warmed = (struct block_warmed){0};
    if (!store->remote)
        return fail(err, STK_USAGE, "the data is on this machine already: no cache is needed");
    stk_status status = remote_of(store, &warming.remote, err);
    if (!status && !warming.remote->cache) {
        status = fail(err, STK_USAGE, "there is no cache to fill");
        fail_remedy(err, "name a folder for it: --cache DIR, or STOKER_CACHE");
    }
    if (!status)
        status = warming_init(&warming, err);
    for (int pass = 0; pass < PASSES && sent && !status; pass++)
        status = warm_pass(&warming, pass ? PASS_AGAIN : PASS_FIRST, &sent, err);
    if (!status)
        status = warm_pass(&warming, PASS_LOOK, &sent, err);
    if (!status && warmed->blocks && warmed->left == warmed->blocks) {
        status = fail(err, STK_IO, "nothing could be written to the cache");
        fail_remedy(err, "check that this user may write to its folder: stoker cache stat");
    }
    warming_reset(&warming);
    return status;
}
