#include "store/block_cache.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/block_parts.h"
#include "store/guard.h"

#define RESERVE_SHARE 32 /* a part of the cache that data is not planned into: heads, round-up */
#define CELL_BLOCKS 32   /* of a cell, some of which are kept: see block_lot */
#define THEIRS_POLL_NS 5000000
#define COLD_TAKES 64 /* that have the disk read ahead, after one that met it */
#define COLD_NS 20000 /* a copy that takes no longer has met no disk */

/* What a ref holds, in inside[0]. */
enum ref_kind { REF_NONE, REF_SEGMENT, REF_PENDING, REF_CLAIM };

/* One cache a process and folder: two would not see each other's claims. */
static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct block_cache *first; /* lock */
    uint32_t forks;            /* between this process and the first one; changed by fork alone */
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

/* ---- fork: the lock is held while it happens, so that a child finds things whole ------------ */

static void before_fork(void)
{
    pthread_mutex_lock(&registry.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&registry.lock);
}

/* The parent's caches are of no use here. Their claims must not outlive the parent, so the child
 * lets go of the descriptor that they hang on. */
static void after_fork_in_child(void)
{
    for (struct block_cache *cache = registry.first; cache; cache = cache->next)
        block_folder_let_go(&cache->folder);
    registry.first = NULL;
    registry.forks++;
    pthread_mutex_unlock(&registry.lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* A child of fork has neither the threads nor the claims of a cache that its parent opened. */
static int is_ours(const struct block_cache *cache)
{
    return cache->forks == registry.forks;
}

/* ---- opening ------------------------------------------------------------------------------- */

static struct block_cache *find_open(const char *folder)
{
    char path[PATH_MAX];
    struct stat found;
    int len = snprintf(path, sizeof path, "%s/%s", folder, BLOCK_FOLDER_NAME);
    if (len < 0 || (size_t)len >= sizeof path || stat(path, &found) != 0)
        return NULL;
    for (struct block_cache *cache = registry.first; cache; cache = cache->next) {
        if (cache->device == found.st_dev && cache->inode == found.st_ino)
            return cache;
    }
    return NULL;
}

static void cache_free(struct block_cache *cache)
{
    block_writer_stop(cache);
    block_folder_close(&cache->folder);
    block_index_reset(&cache->index);
    census_reset(&cache->expected);
    census_reset(&cache->met);
    memory_free(cache);
}

static stk_status cache_new(struct block_cache **out, const char *folder, uint64_t size,
                            const struct block_fault *fault, struct stk_error *err)
{
    struct stat found;
    stk_status status = guard_install(err);
    if (status)
        return status;
    struct block_cache *cache = memory_zero(1, sizeof *cache);
    if (!cache)
        return fail_memory(err, sizeof *cache);
    cache->references = 1;
    cache->forks = registry.forks;
    cache->theirs_ns = BLOCK_THEIRS_NS;
    if (fault)
        cache->fault = *fault;
    cache->folder.fd = cache->folder.claims_fd = -1;
    cache->folder.fault = &cache->fault;
    cache->folder.index = &cache->index;
    census_init(&cache->expected);
    census_init(&cache->met);
    block_index_init(&cache->index);
    block_writer_init(&cache->writer);
    status = block_folder_open(&cache->folder, folder, size, 1, err);
    if (!status && fstat(cache->folder.fd, &found) != 0)
        status = fail_errno(err, errno, "cannot open the cache's folder");
    if (status) {
        cache_free(cache);
        return status;
    }
    cache->device = found.st_dev;
    cache->inode = found.st_ino;
    *out = cache;
    return STK_OK;
}

stk_status block_cache_open_with(struct block_cache **out, const char *folder, uint64_t size,
                                 const struct block_fault *fault, struct stk_error *err)
{
    *out = NULL;
    if (size && size < BLOCK_CACHE_LEAST) {
        stk_status status =
            fail(err, STK_USAGE, "a cache of %llu bytes is too small", (unsigned long long)size);
        fail_remedy(err, "give it at least 2MiB; a tenth of the data is of some use");
        return status;
    }
    pthread_once(&registry.once, watch_forks);
    pthread_mutex_lock(&registry.lock);
    stk_status status = STK_OK;
    struct block_cache *cache = find_open(folder);
    if (cache) {
        cache->references++;
        if (size)
            block_folder_set_limit(&cache->folder, size);
    } else {
        status = cache_new(&cache, folder, size, fault, err);
        if (!status) {
            cache->next = registry.first;
            registry.first = cache;
        }
    }
    *out = cache;
    pthread_mutex_unlock(&registry.lock);
    return status;
}

stk_status block_cache_open(struct block_cache **out, const char *folder, uint64_t size,
                            struct stk_error *err)
{
    return block_cache_open_with(out, folder, size, NULL, err);
}

void block_cache_close(struct block_cache *cache)
{
    if (!cache || !is_ours(cache))
        return;
    pthread_mutex_lock(&registry.lock);
    int last = --cache->references == 0;
    if (last) {
        struct block_cache **link = &registry.first;
        while (*link != cache)
            link = &(*link)->next;
        *link = cache->next;
    }
    pthread_mutex_unlock(&registry.lock);
    if (last)
        cache_free(cache);
}

void block_object_id(const char *uri, uint64_t size, uint64_t version, uint8_t out[16])
{
    struct hash128 hash;
    hash128_init(&hash, SEGMENT_LAYOUT);
    hash128_add(&hash, uri, strlen(uri));
    hash128_add_number(&hash, size);
    hash128_add_number(&hash, version);
    hash128_out(&hash, out);
}

/* ---- which blocks are kept ----------------------------------------------------------------- */

void block_cache_expect(struct block_cache *cache, const char *uri, uint64_t size)
{
    census_change(&cache->expected, hash_bytes(uri, strlen(uri), size), size, 1);
}

void block_cache_expect_no_more(struct block_cache *cache, const char *uri, uint64_t size)
{
    census_change(&cache->expected, hash_bytes(uri, strlen(uri), size), size, 0);
}

/* In [0, 1), and as many blocks of an object below any share of that as the share says, up to one:
 * chosen by chance alone, too many would be chosen half of the time. The object is cut into cells
 * of some MiB, in which the lots rise: what is kept and what is not lie in runs, and the latter is
 * then fetched in ranges that are not cut into pieces. Each cell's lots begin elsewhere, by
 * multiples of the golden ratio from a start that is the object's own. */
static double block_lot(const struct block_object *object, uint64_t number)
{
    uint64_t start, golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t blocks = (object->size + BLOCK_SIZE - 1) / BLOCK_SIZE; /* at most 2^32 */
    uint64_t cells = (blocks + CELL_BLOCKS / 2) / CELL_BLOCKS;
    cells = cells ? cells : 1;
    uint64_t cell = number * cells / blocks;
    uint64_t first = (cell * blocks + cells - 1) / cells;
    uint64_t end = ((cell + 1) * blocks + cells - 1) / cells;
    memcpy(&start, object->id, sizeof start);
    double shift = (double)((start + cell * golden) >> 11) * 0x1p-53;
    return ((double)(number - first) + shift) / (double)(end - first);
}

/* The same blocks for every process, epoch and order: those whose lot is below the part of the data
 * that fits. Then nothing that is of use is ever evicted for something else that is of as much use,
 * which is what makes a cache that is too small useless. */
static int is_admitted(struct block_cache *cache, const struct block_object *object,
                       uint64_t number)
{
    uint64_t data = atomic_load_explicit(&cache->expected.bytes, memory_order_relaxed), mark;
    if (!data) {
        memcpy(&mark, object->id, sizeof mark);
        census_change(&cache->met, mark, object->size, 1);
        data = atomic_load_explicit(&cache->met.bytes, memory_order_relaxed);
    }
    uint64_t limit = atomic_load_explicit(&cache->folder.limit, memory_order_relaxed);
    uint64_t spare = limit / RESERVE_SHARE + block_folder_segment_size(limit);
    uint64_t usable = limit > 2 * spare ? limit - spare : limit / 2;
    return data <= usable || block_lot(object, number) < (double)usable / (double)data;
}

static int can_store(struct block_cache *cache, const struct block_object *object,
                     const struct block_key *key)
{
    return is_admitted(cache, object, key->number) &&
           clock_coarse() >= atomic_load_explicit(&cache->shut_until, memory_order_relaxed) &&
           !block_writer_is_full(cache) && block_writer_start(cache);
}

/* ---- taking -------------------------------------------------------------------------------- */

static uint64_t block_length(const struct block_object *object, uint64_t number)
{
    uint64_t start;
    if (!checked_mul(number, BLOCK_SIZE, &start) || start >= object->size)
        return 0;
    return object->size - start < BLOCK_SIZE ? object->size - start : BLOCK_SIZE;
}

/* The stripe's lock is held, and the node says HERE. */
static void pin_segment(struct block_node *node, struct block_ref *ref)
{
    struct timespec now;
    struct segment *segment = node->at.segment;
    atomic_fetch_add_explicit(&segment->refs, 1, memory_order_relaxed);
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    atomic_store_explicit(&segment->used, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec,
                          memory_order_relaxed);
    ref->entry = segment;
    ref->inside[0] = REF_SEGMENT;
    ref->inside[1] = (uint64_t)node->entry << 32 | node->length;
    ref->inside[2] = node->page * SEGMENT_PAGE;
    ref->inside[3] = UINT64_MAX; /* no descriptor */
}

/* What this process knows of the block. THEIRS and what is unknown: -1. */
static int take_known(struct block_cache *cache, const struct block_key *key, struct block_ref *ref)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    int state = -1;
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (node && node->state == NODE_HERE) {
        pin_segment(node, ref);
        state = BLOCK_HERE;
    } else if (node && node->state == NODE_PENDING) {
        atomic_fetch_add(&node->at.pending->refs, 1);
        ref->entry = node->at.pending;
        ref->inside[0] = REF_PENDING;
        state = BLOCK_HERE;
    } else if (node && node->state == NODE_OURS) {
        state = BLOCK_COMING;
    }
    pthread_mutex_unlock(&stripe->lock);
    return state;
}

/* Keeps the other threads of this process away. 0: one of them was quicker. -1: no memory.
 * *since: when another process was first seen to fetch it; 0: never. */
static int reserve(struct block_cache *cache, const struct block_key *key, int64_t *since)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    int free = !node || node->state == NODE_THEIRS;
    *since = node && free ? node->at.since : 0;
    if (!node)
        node = stripe_add(stripe, key);
    if (free && node) {
        node->state = NODE_OURS;
        node->at.segment = NULL;
    }
    pthread_mutex_unlock(&stripe->lock);
    return node ? free : -1;
}

/* Another process has the claim. One that does not move on is not waited for without end. */
static enum block_state leave_to_them(struct block_cache *cache, const struct block_key *key,
                                      int64_t since)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    int64_t now = clock_coarse();
    if (!since || now - since > 4 * cache->theirs_ns)
        since = now;
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (node && node->state == NODE_OURS) {
        node->state = NODE_THEIRS;
        node->at.since = since;
    }
    pthread_mutex_unlock(&stripe->lock);
    block_folder_look(&cache->folder);
    return now - since > cache->theirs_ns ? BLOCK_BYPASS : BLOCK_COMING;
}

/* The claim is ours; but the block may have come while we reached for it. */
static enum block_state take_claimed(struct block_cache *cache, const struct block_key *key,
                                     struct block_ref *ref)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    block_folder_look(&cache->folder);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    assert(node && node->state == NODE_OURS);
    int found = node->at.segment != NULL;
    if (found) {
        node->state = NODE_HERE;
        pin_segment(node, ref);
    }
    pthread_mutex_unlock(&stripe->lock);
    if (found) {
        block_unclaim(&cache->folder, key->hash);
        block_writer_tell(cache);
        return BLOCK_HERE;
    }
    ref->inside[0] = REF_CLAIM;
    return BLOCK_YOURS;
}

static enum block_state take_unknown(struct block_cache *cache, const struct block_object *object,
                                     const struct block_key *key, struct block_ref *ref)
{
    int64_t since;
    if (!can_store(cache, object, key))
        return BLOCK_BYPASS;
    int reserved = reserve(cache, key, &since);
    if (reserved <= 0) /* ask again: then it is known what it is */
        return reserved ? BLOCK_BYPASS : BLOCK_COMING;
    if (!block_claim(&cache->folder, key->hash))
        return leave_to_them(cache, key, since);
    return take_claimed(cache, key, ref);
}

/* A fault brings little of a block from the disk, and the next one waits again. So the whole of it
 * is asked for where it is likely not in memory: when this process first takes it, and for a while
 * after a read that was as slow as a disk. */
static void read_ahead(struct block_cache *cache, const struct block_ref *ref)
{
    struct segment *segment = ref->entry;
    uint32_t entry = (uint32_t)(ref->inside[1] >> 32), length = (uint32_t)ref->inside[1];
    int first = !atomic_load_explicit(&segment->checked[entry], memory_order_relaxed);
    if (!first && atomic_load_explicit(&cache->cold, memory_order_relaxed) <= 0)
        return;
    if (!first)
        atomic_fetch_sub_explicit(&cache->cold, 1, memory_order_relaxed);
    madvise((void *)(segment->map + ref->inside[2]), length, MADV_WILLNEED); /* only a hint */
}

/* A read that took long may have met the disk, or a busy machine: the process's faults tell which.
 * Asked only then: the question is a system call. */
static void note_speed(struct block_cache *cache, int64_t took, const struct iovec *parts,
                       uint32_t part_count)
{
    struct rusage usage;
    uint64_t length = COLD_NS;
    for (uint32_t i = 0; i < part_count; i++)
        length += parts[i].iov_len;
    if (took <= 0 || (uint64_t)took <= length || getrusage(RUSAGE_SELF, &usage))
        return; /* 1 GB/s and more */
    if (atomic_exchange_explicit(&cache->faults, usage.ru_majflt, memory_order_relaxed) !=
        usage.ru_majflt)
        atomic_store_explicit(&cache->cold, COLD_TAKES, memory_order_relaxed);
}

/* A segment without a map is read through a descriptor that lives as long as the ref. */
static enum block_state open_pinned(struct block_cache *cache, struct block_ref *ref)
{
    struct segment *segment = ref->entry;
    if (ref->inside[0] != REF_SEGMENT)
        return BLOCK_HERE;
    if (segment->map) {
        read_ahead(cache, ref);
        return BLOCK_HERE;
    }
    int fd = segment_fd(segment, cache->folder.fd);
    if (fd >= 0) {
        ref->inside[3] = (uint64_t)fd;
        return BLOCK_HERE;
    }
    block_give(ref);
    return BLOCK_BYPASS;
}

/* Who only ever hits needs the thread too: it tells the others what is in use here, and lets go of
 * what they took away. */
static void note_hit(struct block_cache *cache)
{
    atomic_fetch_add_explicit(&cache->tally.hits, 1, memory_order_relaxed);
    if (!atomic_load_explicit(&cache->writer.started, memory_order_relaxed))
        block_writer_start(cache);
}

enum block_state block_take(struct block_cache *cache, const struct block_object *object,
                            uint64_t number, struct block_ref *out)
{
    struct block_key key = block_key(object->id, number);
    int state = BLOCK_BYPASS;
    *out = (struct block_ref){.cache = cache, .object = *object, .number = number};
    if (number <= UINT32_MAX && block_length(object, number) && is_ours(cache)) {
        state = take_known(cache, &key, out);
        if (state < 0)
            state = take_unknown(cache, object, &key, out);
    }
    if (state == BLOCK_HERE)
        state = open_pinned(cache, out);
    if (state == BLOCK_HERE)
        note_hit(cache);
    else if (state != BLOCK_COMING)
        atomic_fetch_add_explicit(&cache->tally.misses, 1, memory_order_relaxed);
    if (state == BLOCK_BYPASS)
        atomic_fetch_add_explicit(&cache->tally.bypassed, 1, memory_order_relaxed);
    return (enum block_state)state;
}

enum block_state block_peek(struct block_cache *cache, const struct block_object *object,
                            uint64_t number)
{
    struct block_key key = block_key(object->id, number);
    struct block_stripe *stripe = block_index_stripe(&cache->index, &key);
    if (number > UINT32_MAX || !block_length(object, number) || !is_ours(cache))
        return BLOCK_BYPASS;
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, &key);
    int here = node && (node->state == NODE_HERE || node->state == NODE_PENDING);
    pthread_mutex_unlock(&stripe->lock);
    if (here)
        return BLOCK_HERE;
    return is_admitted(cache, object, number) ? BLOCK_YOURS : BLOCK_BYPASS;
}

/* ---- using --------------------------------------------------------------------------------- */

static struct segment_block block_of(const struct block_ref *ref)
{
    return (struct segment_block){.segment = ref->entry,
                                  .entry = (uint32_t)(ref->inside[1] >> 32),
                                  .length = (uint32_t)ref->inside[1],
                                  .offset = ref->inside[2],
                                  .fd = ref->inside[3] == UINT64_MAX ? -1 : (int)ref->inside[3]};
}

static int read_pending(const struct block_pending *pending, uint64_t offset,
                        const struct iovec *parts, uint32_t part_count)
{
    uint64_t length = 0;
    for (uint32_t i = 0; i < part_count; i++)
        length += parts[i].iov_len;
    if (!checked_inside(offset, length, pending->length))
        return -EBADMSG;
    segment_scatter(parts, part_count, 0, pending->data + offset, length);
    return 0;
}

int block_read(struct block_ref *ref, uint64_t offset, const struct iovec *parts,
               uint32_t part_count)
{
    struct block_cache *cache = ref->cache;
    if (ref->inside[0] == REF_PENDING)
        return read_pending(ref->entry, offset, parts, part_count);
    assert(ref->inside[0] == REF_SEGMENT);
    struct segment_block block = block_of(ref);
    int64_t begun = clock_now();
    if (block.length == block_length(&ref->object, ref->number) &&
        !segment_read(&block, &ref->object, ref->number, offset, parts, part_count)) {
        note_speed(cache, clock_now() - begun, parts, part_count);
        return 0;
    }
    struct block_key key = block_key(ref->object.id, ref->number);
    block_index_forget(&cache->index, &key, &block);
    segment_mark_dead(block.segment, cache->folder.fd, block.entry);
    atomic_fetch_add(&cache->tally.damaged, 1);
    block_give(ref);
    return -1;
}

static void drop_claim(struct block_cache *cache, const struct block_key *key)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (node && node->state == NODE_OURS && node->at.segment)
        node->state = NODE_HERE; /* another process has brought it meanwhile */
    else if (node && node->state == NODE_OURS)
        stripe_remove(stripe, key);
    pthread_mutex_unlock(&stripe->lock);
    block_unclaim(&cache->folder, key->hash);
    block_writer_tell(cache);
}

void block_give(struct block_ref *ref)
{
    struct block_cache *cache = ref->cache;
    enum ref_kind kind = is_ours(cache) ? (enum ref_kind)ref->inside[0] : REF_NONE;
    if (kind == REF_SEGMENT) {
        struct segment *segment = ref->entry;
        if (ref->inside[3] != UINT64_MAX)
            close((int)ref->inside[3]);
        /* pairs with the acquire in free_gone */
        atomic_fetch_sub_explicit(&segment->refs, 1, memory_order_release);
    } else if (kind == REF_PENDING) {
        block_pending_give(cache, ref->entry);
    } else if (kind == REF_CLAIM) {
        struct block_key key = block_key(ref->object.id, ref->number);
        drop_claim(cache, &key);
    }
    ref->entry = NULL;
    ref->inside[0] = REF_NONE;
}

void block_put(struct block_ref *ref, const void *data, uint64_t length)
{
    struct block_cache *cache = ref->cache;
    struct block_key key = block_key(ref->object.id, ref->number);
    assert(ref->inside[0] == REF_CLAIM);
    struct block_pending *pending = NULL;
    if (is_ours(cache) && length == block_length(&ref->object, ref->number))
        pending = block_pending_new(cache, &ref->object, &key, data, (uint32_t)length);
    if (!pending) {
        atomic_fetch_add(&cache->tally.dropped, 1);
        block_give(ref);
        return;
    }
    struct block_stripe *stripe = block_index_stripe(&cache->index, &key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, &key);
    assert(node && node->state == NODE_OURS);
    node->state = NODE_PENDING;
    node->at.pending = pending;
    pthread_mutex_unlock(&stripe->lock);
    ref->inside[0] = REF_NONE; /* the claim is the writer's now */
    block_writer_queue(cache, pending);
}

/* ---- waiting and counting ------------------------------------------------------------------ */

/* How long a wait for it may be; 0: it is not coming. */
static int64_t worth_waiting(struct block_cache *cache, const struct block_key *key, int64_t wait)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (!node || (node->state != NODE_OURS && node->state != NODE_THEIRS))
        wait = 0;
    else if (node->state == NODE_THEIRS && wait > THEIRS_POLL_NS)
        wait = THEIRS_POLL_NS; /* nobody tells us */
    pthread_mutex_unlock(&stripe->lock);
    return wait;
}

void block_wait(struct block_cache *cache, const struct block_object *object, uint64_t number,
                int64_t wait_ns)
{
    struct block_key key = block_key(object->id, number);
    struct block_writer *writer = &cache->writer;
    pthread_mutex_lock(&writer->lock);
    wait_ns = worth_waiting(cache, &key, wait_ns);
    if (wait_ns > 0) {
        int64_t then = clock_now() + wait_ns;
        struct timespec until = {.tv_sec = then / 1000000000, .tv_nsec = then % 1000000000};
        pthread_cond_timedwait(&writer->changed, &writer->lock, &until);
    }
    pthread_mutex_unlock(&writer->lock);
}

void block_cache_counts(struct block_cache *cache, struct block_counts *out)
{
    struct block_tally *tally = &cache->tally;
    *out = (struct block_counts){
        .hits = atomic_load(&tally->hits),
        .misses = atomic_load(&tally->misses),
        .bypassed = atomic_load(&tally->bypassed),
        .written = atomic_load(&tally->written),
        .dropped = atomic_load(&tally->dropped),
        .damaged = atomic_load(&tally->damaged),
        .evicted = atomic_load(&cache->folder.evicted),
        .bytes = block_folder_measure(&cache->folder),
        .limit = atomic_load(&cache->folder.limit),
        .no_space = atomic_load(&tally->no_space),
    };
}

int block_cache_counts_of(const char *folder, struct block_counts *out)
{
    *out = (struct block_counts){0};
    pthread_mutex_lock(&registry.lock);
    struct block_cache *cache = find_open(folder);
    if (cache)
        block_cache_counts(cache, out);
    pthread_mutex_unlock(&registry.lock);
    return cache != NULL;
}
