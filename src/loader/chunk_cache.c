#include "loader/chunk_cache.h"

#include <assert.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/chunk_read.h"

enum entry_state { ENTRY_EMPTY, ENTRY_WANTED, ENTRY_DECODING, ENTRY_READY, ENTRY_FAILED };

#define IDLE_NONE UINT32_MAX

struct entry {
    uint8_t *data;
    uint64_t size;
    uint32_t holders;
    uint32_t older, newer; /* neighbours among the idle ones; IDLE_NONE at the ends */
    enum entry_state state;
    stk_status status;       /* written by the one that decodes it */
    struct stk_error *error; /* the words of a failure; NULL when there was no memory for them */
};

struct chunk_cache {
    struct stk_dataset *dataset; /* the loader's reference */
    struct budget *budget;
    uint32_t count;
    uint32_t oldest, newest; /* idle: decoded, held by nobody; the oldest makes room first */
    uint64_t decoded;
    struct entry *entries;
    uint32_t *queue; /* a ring of chunks to decode: at most one place a chunk */
    uint32_t queue_first, queue_count;
};

stk_status chunk_cache_new(struct chunk_cache **out, struct stk_dataset *dataset,
                           struct budget *budget, struct stk_error *err)
{
    uint32_t count = index_chunk_count(dataset_index(dataset));
    struct chunk_cache *cache = memory_zero(1, sizeof *cache);
    *out = NULL;
    if (!cache)
        return fail_memory(err, sizeof *cache);
    cache->dataset = dataset;
    cache->budget = budget;
    cache->count = count;
    cache->oldest = cache->newest = IDLE_NONE;
    cache->entries = memory_zero(count, sizeof *cache->entries);
    cache->queue = memory_zero(count, sizeof *cache->queue);
    stk_status status = STK_OK;
    if (!cache->entries || !cache->queue)
        status = fail_memory(err, count * sizeof *cache->entries);
    for (uint32_t i = 0; !status && i < count; i++) {
        struct chunk chunk;
        status = index_chunk(dataset_index(dataset), i, &chunk, err);
        if (!status)
            cache->entries[i].size = chunk.decoded;
    }
    if (status)
        goto done;
    *out = cache;
    cache = NULL;
done:
    chunk_cache_free(cache);
    return status;
}

static void entry_drop(struct chunk_cache *cache, struct entry *entry)
{
    if (entry->data) {
        memory_unmap(entry->data, entry->size);
        budget_give(cache->budget, entry->size);
    }
    memory_free(entry->error);
    entry->data = NULL;
    entry->error = NULL;
    entry->state = ENTRY_EMPTY;
}

void chunk_cache_free(struct chunk_cache *cache)
{
    if (!cache)
        return;
    for (uint32_t i = 0; cache->entries && i < cache->count; i++)
        entry_drop(cache, &cache->entries[i]);
    memory_free(cache->entries);
    memory_free(cache->queue);
    memory_free(cache);
}

static void idle_add(struct chunk_cache *cache, uint32_t chunk)
{
    struct entry *entry = &cache->entries[chunk];
    entry->older = cache->newest;
    entry->newer = IDLE_NONE;
    if (cache->newest == IDLE_NONE)
        cache->oldest = chunk;
    else
        cache->entries[cache->newest].newer = chunk;
    cache->newest = chunk;
}

static void idle_remove(struct chunk_cache *cache, uint32_t chunk)
{
    struct entry *entry = &cache->entries[chunk];
    if (entry->older == IDLE_NONE)
        cache->oldest = entry->newer;
    else
        cache->entries[entry->older].newer = entry->newer;
    if (entry->newer == IDLE_NONE)
        cache->newest = entry->older;
    else
        cache->entries[entry->newer].older = entry->older;
}

int chunk_cache_evict(struct chunk_cache *cache)
{
    uint32_t oldest = cache->oldest;
    if (oldest == IDLE_NONE)
        return 0;
    idle_remove(cache, oldest);
    entry_drop(cache, &cache->entries[oldest]);
    return 1;
}

static int entry_reserve(struct chunk_cache *cache, struct entry *entry, enum chunk_urgency urgency)
{
    int fits = budget_try(cache->budget, entry->size);
    while (!fits && chunk_cache_evict(cache))
        fits = budget_try(cache->budget, entry->size);
    if (!fits) {
        if (urgency == CHUNK_IF_IT_FITS)
            return 0;
        budget_force(cache->budget, entry->size);
    }
    entry->data = memory_map(entry->size);
    if (!entry->data)
        budget_give(cache->budget, entry->size);
    return entry->data != NULL;
}

int chunk_cache_hold(struct chunk_cache *cache, uint32_t chunk, enum chunk_urgency urgency)
{
    struct entry *entry = &cache->entries[chunk];
    if (entry->state == ENTRY_EMPTY) {
        if (!entry_reserve(cache, entry, urgency)) {
            if (urgency == CHUNK_IF_IT_FITS)
                return 0;
            entry->state = ENTRY_FAILED; /* no memory at all: its samples are bad, nothing hangs */
        } else {
            entry->state = ENTRY_WANTED;
            cache->queue[(cache->queue_first + cache->queue_count++) % cache->count] = chunk;
        }
    }
    if (entry->holders++ == 0 && entry->state == ENTRY_READY)
        idle_remove(cache, chunk);
    return 1;
}

/* Nobody waits for it any more: it leaves the queue unread. */
static void queue_remove(struct chunk_cache *cache, uint32_t chunk)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cache->queue_count; i++) {
        uint32_t other = cache->queue[(cache->queue_first + i) % cache->count];
        if (other != chunk)
            cache->queue[(cache->queue_first + kept++) % cache->count] = other;
    }
    cache->queue_count = kept;
}

void chunk_cache_release(struct chunk_cache *cache, uint32_t chunk)
{
    struct entry *entry = &cache->entries[chunk];
    assert(entry->holders > 0);
    if (--entry->holders > 0)
        return;
    if (entry->state == ENTRY_READY)
        idle_add(cache, chunk);
    if (entry->state == ENTRY_WANTED)
        queue_remove(cache, chunk);
    if (entry->state == ENTRY_WANTED || entry->state == ENTRY_FAILED)
        entry_drop(cache, entry); /* the next one who wants it tries again */
}

int chunk_cache_ready(const struct chunk_cache *cache, uint32_t chunk)
{
    return cache->entries[chunk].state >= ENTRY_READY;
}

int chunk_cache_next(struct chunk_cache *cache, uint32_t *chunk)
{
    if (cache->queue_count == 0)
        return 0;
    *chunk = cache->queue[cache->queue_first];
    cache->queue_first = (cache->queue_first + 1) % cache->count;
    cache->queue_count--;
    cache->entries[*chunk].state = ENTRY_DECODING;
    return 1;
}

void chunk_cache_decode(struct chunk_cache *cache, uint32_t chunk, const _Atomic int *cancel)
{
    struct entry *entry = &cache->entries[chunk];
    struct stk_error error;
    entry->status = chunk_read(cache->dataset, chunk, entry->data, cancel, &error);
    if (entry->status)
        entry->error = memory_alloc(sizeof error);
    if (entry->error)
        *entry->error = error;
}

void chunk_cache_done(struct chunk_cache *cache, uint32_t chunk)
{
    struct entry *entry = &cache->entries[chunk];
    entry->state = entry->status ? ENTRY_FAILED : ENTRY_READY;
    cache->decoded++;
    if (entry->holders == 0 && entry->status)
        entry_drop(cache, entry);
    else if (entry->holders == 0)
        idle_add(cache, chunk);
}

stk_status chunk_cache_error(const struct chunk_cache *cache, uint32_t chunk, struct stk_error *err)
{
    const struct entry *entry = &cache->entries[chunk];
    if (!entry->error)
        return fail_memory(err, entry->size);
    *err = *entry->error;
    return entry->status;
}

const uint8_t *chunk_cache_data(const struct chunk_cache *cache, uint32_t chunk)
{
    const struct entry *entry = &cache->entries[chunk];
    return entry->state == ENTRY_READY ? entry->data : NULL;
}

uint64_t chunk_cache_decoded(const struct chunk_cache *cache)
{
    return cache ? cache->decoded : 0;
}
