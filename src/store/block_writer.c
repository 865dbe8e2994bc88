/* The thread that writes blocks to the disk, and looks after the folder in between. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "store/block_parts.h"

#define SECOND INT64_C(1000000000)
#define LOOK_NS SECOND           /* how often the folder is looked at */
#define DRAIN_NS (SECOND / 2)    /* what closing may take */
#define FULL_NS (5 * SECOND)     /* before a full disk is tried again */
#define BUSY_NS SECOND           /* before a full cache is, of which nothing can go */
#define REFUSED_NS (60 * SECOND) /* before a folder that may not be written is */

/* ---- pendings ------------------------------------------------------------------------------ */

static struct block_pending *take_free(struct block_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    struct block_pending *pending = writer->free;
    int make = !pending && writer->made < BLOCK_QUEUE_MOST;
    if (pending)
        writer->free = pending->next;
    writer->made += (uint32_t)make;
    pthread_mutex_unlock(&writer->lock);
    if (!make)
        return pending;
    pending = memory_zero(1, sizeof *pending);
    if (pending)
        pending->data = memory_map(BLOCK_SIZE);
    if (pending && pending->data)
        return pending;
    memory_free(pending);
    pthread_mutex_lock(&writer->lock);
    writer->made--;
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

static void put_free(struct block_writer *writer, struct block_pending *pending)
{
    memory_free((char *)pending->object.uri);
    pending->object.uri = NULL;
    pthread_mutex_lock(&writer->lock);
    pending->next = writer->free;
    writer->free = pending;
    pthread_mutex_unlock(&writer->lock);
}

struct block_pending *block_pending_new(struct block_cache *cache,
                                        const struct block_object *object,
                                        const struct block_key *key, const void *data,
                                        uint32_t length)
{
    struct block_pending *pending = take_free(&cache->writer);
    if (!pending)
        return NULL;
    pending->key = *key;
    pending->object = *object;
    pending->object.uri = object->uri ? memory_text(object->uri, strlen(object->uri)) : NULL;
    pending->length = length;
    pending->next = NULL;
    memcpy(pending->data, data, length);
    atomic_store(&pending->refs, 1);
    return pending;
}

void block_pending_give(struct block_cache *cache, struct block_pending *pending)
{
    if (atomic_fetch_sub(&pending->refs, 1) == 1)
        put_free(&cache->writer, pending);
}

/* ---- the queue ----------------------------------------------------------------------------- */

void block_writer_init(struct block_writer *writer)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->work, &monotonic);
    pthread_cond_init(&writer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    writer->last = &writer->first;
    writer->out = (struct segment_writer){.fd = -1, .direct_fd = -1};
}

int block_writer_is_full(struct block_cache *cache)
{
    struct block_writer *writer = &cache->writer;
    pthread_mutex_lock(&writer->lock);
    int full = !writer->free && writer->made == BLOCK_QUEUE_MOST;
    pthread_mutex_unlock(&writer->lock);
    return full;
}

void block_writer_queue(struct block_cache *cache, struct block_pending *pending)
{
    struct block_writer *writer = &cache->writer;
    pthread_mutex_lock(&writer->lock);
    *writer->last = pending;
    writer->last = &pending->next;
    writer->waiting++;
    pthread_cond_signal(&writer->work);
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

void block_writer_tell(struct block_cache *cache)
{
    pthread_mutex_lock(&cache->writer.lock);
    pthread_cond_broadcast(&cache->writer.changed);
    pthread_mutex_unlock(&cache->writer.lock);
}

static struct timespec time_in(int64_t ns)
{
    int64_t then = clock_now() + ns;
    return (struct timespec){.tv_sec = then / SECOND, .tv_nsec = then % SECOND};
}

int block_cache_settle(struct block_cache *cache, uint32_t most, int64_t wait_ns)
{
    struct block_writer *writer = &cache->writer;
    struct timespec until = time_in(wait_ns);
    int late = 0;
    pthread_mutex_lock(&writer->lock);
    while (writer->waiting > most && !late)
        late = pthread_cond_timedwait(&writer->changed, &writer->lock, &until) == ETIMEDOUT;
    int settled = writer->waiting <= most;
    pthread_mutex_unlock(&writer->lock);
    return settled;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void leave_segment(struct block_cache *cache, int sealed)
{
    struct block_writer *writer = &cache->writer;
    if (!writer->segment)
        return;
    if (sealed)
        segment_writer_seal(&writer->out);
    else
        segment_writer_close(&writer->out);
    block_folder_written(&cache->folder, writer->segment, sealed);
    writer->segment = NULL;
}

/* One try in the segment at hand, and one in another when that is full or gone. */
static int write_block(struct block_cache *cache, struct block_pending *pending,
                       struct segment_block *block)
{
    struct block_writer *writer = &cache->writer;
    struct segment_added added;
    int result = -ENFILE;
    for (int i = 0; i < 3 && result == -ENFILE; i++) {
        if (writer->segment && !block_folder_has(&cache->folder, writer->segment))
            leave_segment(cache, 0);
        writer->out.fault = &cache->fault;
        result = 0;
        if (!writer->segment)
            result = block_folder_writer(&cache->folder, &writer->out, &writer->segment);
        if (!result)
            result = segment_writer_add(&writer->out, &pending->object, pending->key.number,
                                        pending->data, pending->length, &added);
        if (result == -ENFILE)
            leave_segment(cache, 1);
    }
    if (result)
        return result;
    writer->segment->scanned = added.entry + 1;
    *block =
        (struct segment_block){writer->segment, added.entry, pending->length, added.offset, -1};
    return 0;
}

static void note_failure(struct block_cache *cache, int result)
{
    int64_t wait = BUSY_NS;
    if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG) {
        atomic_store(&cache->tally.no_space, 1);
        wait = FULL_NS;
    } else if (result == -EACCES || result == -EPERM || result == -EROFS) {
        wait = REFUSED_NS;
    }
    atomic_store(&cache->shut_until, clock_coarse() + wait);
    atomic_fetch_add(&cache->tally.dropped, 1);
}

/* The node says PENDING until here: now it is in the segment, or nowhere. */
static void settle_node(struct block_cache *cache, const struct block_key *key,
                        const struct segment_block *block)
{
    struct block_stripe *stripe = block_index_stripe(&cache->index, key);
    pthread_mutex_lock(&stripe->lock);
    struct block_node *node = stripe_find(stripe, key);
    if (node && node->state == NODE_PENDING && block) {
        node->state = NODE_HERE;
        node->entry = block->entry;
        node->length = block->length;
        node->page = (uint32_t)(block->offset / SEGMENT_PAGE);
        node->at.segment = block->segment;
    } else if (node && node->state == NODE_PENDING) {
        stripe_remove(stripe, key);
    }
    pthread_mutex_unlock(&stripe->lock);
}

static void finish_one(struct block_cache *cache, struct block_pending *pending, int write)
{
    struct block_writer *writer = &cache->writer;
    struct segment_block block;
    int result = write ? write_block(cache, pending, &block) : -ECANCELED;
    settle_node(cache, &pending->key, result ? NULL : &block);
    if (result)
        note_failure(cache, result);
    else
        atomic_fetch_add(&cache->tally.written, 1);
    block_unclaim(&cache->folder, pending->key.hash);
    block_pending_give(cache, pending);
    pthread_mutex_lock(&writer->lock);
    writer->waiting--;
    pthread_cond_broadcast(&writer->changed);
    pthread_mutex_unlock(&writer->lock);
}

/* ---- the thread ---------------------------------------------------------------------------- */

/* The next one, or NULL: it is time to look at the folder, or to stop. */
static struct block_pending *next_pending(struct block_writer *writer, int *stop)
{
    struct timespec until = time_in(LOOK_NS);
    int late = 0;
    pthread_mutex_lock(&writer->lock);
    while (!writer->first && !writer->stop && !late)
        late = pthread_cond_timedwait(&writer->work, &writer->lock, &until) == ETIMEDOUT;
    struct block_pending *pending = writer->first;
    if (pending)
        writer->first = pending->next;
    if (!writer->first)
        writer->last = &writer->first;
    *stop = writer->stop;
    pthread_mutex_unlock(&writer->lock);
    return pending;
}

static void *writer_run(void *user)
{
    struct block_cache *cache = user;
    int64_t looked = clock_coarse(), drained = 0;
    int stop = 0;
    for (;;) {
        struct block_pending *pending = next_pending(&cache->writer, &stop);
        if (stop && !drained)
            drained = clock_coarse() + DRAIN_NS;
        if (pending)
            finish_one(cache, pending, !stop || clock_coarse() < drained);
        else if (stop)
            break;
        if (clock_coarse() - looked < LOOK_NS)
            continue;
        block_folder_look(&cache->folder);
        block_folder_touch(&cache->folder);
        looked = clock_coarse();
    }
    leave_segment(cache, 0);
    return NULL;
}

/* Signals are for the program's own threads, but for faults, which the guard needs; and a file that
 * grows past ulimit -f is an error here, not the end. */
int block_writer_start(struct block_cache *cache)
{
    struct block_writer *writer = &cache->writer;
    sigset_t all, before;
    pthread_mutex_lock(&writer->lock);
    if (!writer->started) {
        sigfillset(&all);
        sigdelset(&all, SIGBUS);
        sigdelset(&all, SIGSEGV);
        sigdelset(&all, SIGFPE);
        sigdelset(&all, SIGILL);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        writer->started = pthread_create(&writer->thread, NULL, writer_run, cache) == 0 ? 1 : -1;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    int started = writer->started;
    pthread_mutex_unlock(&writer->lock);
    return started > 0;
}

void block_writer_stop(struct block_cache *cache)
{
    struct block_writer *writer = &cache->writer;
    pthread_mutex_lock(&writer->lock);
    writer->stop = 1;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    if (writer->started > 0)
        pthread_join(writer->thread, NULL);
    for (struct block_pending *pending = writer->free, *next; pending; pending = next) {
        next = pending->next;
        memory_unmap(pending->data, BLOCK_SIZE);
        memory_free(pending);
    }
    pthread_cond_destroy(&writer->work);
    pthread_cond_destroy(&writer->changed);
    pthread_mutex_destroy(&writer->lock);
}
