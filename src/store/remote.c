#include "store/remote.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "store/file_open.h"
#include "store/remote_blocks.h"
#include "store/remote_parts.h"

#define SLICE_NS 100000000 /* how often a blocking read asks whether it is still wanted */
#define FRESH_NS INT64_C(10000000000) /* what failed so lately is not tried again by itself */
#define DEAD_NS INT64_C(5000000000)

int remote_is(const struct object_table *table)
{
    struct object object = {.name = ""};
    if (table->root && table->root[0])
        return site_is_remote(table->root);
    if (table->count && table->get)
        table->get(table->owner, 0, &object);
    return object.name && site_is_remote(object.name);
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Tells the cache what there is to be read, or that it is not any more. */
static void expect_all(struct remote *remote,
                       void (*tell)(struct block_cache *cache, const char *uri, uint64_t size))
{
    char buf[FILE_PATH_CAP];
    for (uint32_t i = 0; i < remote->table.count; i++) {
        struct object object;
        remote->table.get(remote->table.owner, i, &object);
        tell(remote->cache, file_path(remote->table.root, object.name, buf), object.size);
    }
}

static stk_status open_parts(struct remote *remote, const struct store_options *options,
                             struct stk_error *err)
{
    stk_status status = net_take(&remote->net, err);
    if (status)
        return status;
    /* A little less than one range may take: its failure is the first to be seen. */
    remote->patience_ns = (int64_t)net_settings(remote->net)->timeout_s * 900000000;
    if (!options || !options->cache)
        return STK_OK;
    remote->cache_size = options->cache_size;
    remote->cache_folder = memory_text(options->cache, strlen(options->cache));
    if (!remote->cache_folder)
        return fail_memory(err, strlen(options->cache));
    status = block_cache_open(&remote->cache, options->cache, options->cache_size, err);
    if (!status)
        status = blocks_new(&remote->blocks, remote, err);
    if (!status)
        expect_all(remote, block_cache_expect);
    return status;
}

stk_status remote_open(struct remote **out, const struct object_table *table,
                       const struct store_options *options, struct stk_error *err)
{
    *out = NULL;
    struct remote *remote = memory_zero(1, sizeof *remote);
    if (!remote)
        return fail_memory(err, sizeof *remote);
    remote->table = *table;
    remote->pid = getpid();
    pthread_mutex_init(&remote->lock, NULL);
    condition_init(&remote->quiet);
    stk_status status = open_parts(remote, options, err);
    if (status) {
        remote_close(remote);
        return status;
    }
    *out = remote;
    return STK_OK;
}

static int is_any(const struct strip *strip, void *user)
{
    (void)strip, (void)user;
    return 1;
}

void remote_close(struct remote *remote)
{
    if (!remote)
        return;
    if (remote->pid != getpid())
        return; /* in a child of fork() its threads do not exist: nothing of it can be undone */
    pthread_mutex_lock(&remote->lock);
    remote->closing = 1;
    pthread_mutex_unlock(&remote->lock);
    line_cancel(remote, is_any, NULL);
    line_free(remote);
    if (remote->blocks) /* the last that was opened: all is expected */
        expect_all(remote, block_cache_expect_no_more);
    blocks_free(remote->blocks);
    block_cache_close(remote->cache);
    for (uint32_t i = 0; i < remote->site_count; i++) {
        memory_free(remote->sites[i].prefix);
        site_close(remote->sites[i].site);
    }
    memory_free(remote->sites);
    assert(remote->stretch_count == 0); /* let go of before */
    memory_free(remote->stretches);
    memory_free(remote->cache_folder);
    if (remote->net)
        net_give(remote->net);
    pthread_cond_destroy(&remote->quiet);
    pthread_mutex_destroy(&remote->lock);
    memory_free(remote);
}

stk_status remote_of(struct store *store, struct remote **out, struct stk_error *err)
{
    pid_t pid = getpid();
    *out = store->remote;
    if (store->remote->pid == pid)
        return STK_OK;
    struct remote *child = atomic_load(&store->child);
    if (child && child->pid == pid) {
        *out = child;
        return STK_OK;
    }
    const struct store_options options = {store->remote->cache_folder, store->remote->cache_size};
    stk_status status = remote_open(out, &store->table, &options, err);
    if (status || atomic_compare_exchange_strong(&store->child, &child, *out))
        return status;
    remote_close(*out); /* another thread was first */
    *out = child;
    return STK_OK;
}

enum store_flow remote_flow(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    enum store_flow flow = !remote->flying_count ? STORE_STILL
                           : remote->first || remote->flying_count >= remote->flying_most
                               ? STORE_FULL
                               : STORE_THIN;
    pthread_mutex_unlock(&remote->lock);
    return flow;
}

int remote_has_cache(const struct remote *remote)
{
    return remote->cache != NULL;
}

uint64_t remote_buffers(struct store *store, uint64_t most)
{
    struct remote *remote;
    if (remote_of(store, &remote, NULL) || !remote->blocks)
        return 0;
    return blocks_limit(remote->blocks, most);
}

/* --- where an object lies --------------------------------------------------------------------- */

static struct site *known_site(struct remote *remote, const char *uri, const char **key)
{
    struct site *site = NULL;
    if (strchr(uri, '?'))
        return NULL; /* what comes behind may be of weight */
    pthread_mutex_lock(&remote->lock);
    for (uint32_t i = 0; i < remote->site_count && !site; i++)
        if (!strncmp(uri, remote->sites[i].prefix, remote->sites[i].len)) {
            site = remote->sites[i].site;
            *key = uri + remote->sites[i].len;
        }
    pthread_mutex_unlock(&remote->lock);
    return site;
}

/* The remote keeps every site that it met. */
static stk_status keep_site(struct remote *remote, struct site *site, const char *uri,
                            const char *key)
{
    size_t len = (size_t)(key - uri);
    stk_status status = STK_OK;
    char *prefix = memory_text(uri, len);
    pthread_mutex_lock(&remote->lock);
    struct known_site *grown = NULL;
    if (prefix)
        grown = memory_grow(remote->sites, (remote->site_count + 1) * sizeof *grown);
    if (grown) {
        remote->sites = grown;
        remote->sites[remote->site_count++] = (struct known_site){prefix, len, site};
    } else {
        status = STK_MEMORY;
    }
    pthread_mutex_unlock(&remote->lock);
    if (status)
        memory_free(prefix);
    return status;
}

static stk_status find_site(struct remote *remote, struct place *place, struct stk_error *err)
{
    place->site = known_site(remote, place->uri, &place->key);
    if (place->site)
        return STK_OK;
    stk_status status = site_open(&place->site, remote->net, place->uri, &place->key, err);
    if (status)
        return status;
    status = keep_site(remote, place->site, place->uri, place->key);
    if (status) {
        site_close(place->site);
        place->site = NULL;
        return fail_memory(err, strlen(place->uri));
    }
    return STK_OK;
}

static stk_status place_room(struct place *place, size_t size)
{
    if (size <= place->cap)
        return STK_OK;
    char *grown = memory_grow(place->uri, size + 64);
    if (!grown)
        return STK_MEMORY;
    place->uri = grown;
    place->cap = size + 64;
    return STK_OK;
}

/* uri, and behind it what the cache may know of it. */
static stk_status place_name(struct place *place, const char *uri)
{
    size_t len = strlen(uri), bare = strcspn(uri, "?");
    if (place_room(place, 2 * len + 32))
        return STK_MEMORY;
    memcpy(place->uri, uri, len + 1);
    place->bare = place->uri;
    place->used = len + 1;
    if (bare == len)
        return STK_OK;
    char *to = place->uri + place->used;
    uint64_t hash = hash_bytes(uri + bare, len - bare, 0);
    place->used +=
        (size_t)snprintf(to, place->cap - place->used, "%.*s?%016" PRIx64, (int)bare, uri, hash) +
        1;
    place->bare = to;
    return STK_OK;
}

stk_status place_find(struct remote *remote, uint32_t number, struct place *place,
                      struct stk_error *err)
{
    char buf[FILE_PATH_CAP];
    struct object object = {.name = ""};
    if (number < remote->table.count)
        remote->table.get(remote->table.owner, number, &object);
    const char *uri = file_path(remote->table.root, object.name, buf);
    if (!site_is_remote(uri))
        return fail(err, STK_NOT_FOUND, "there is no object %" PRIu32, number);
    if (place_name(place, uri))
        return fail_memory(err, strlen(uri));
    place->object = number;
    place->size = object.size;
    place->version = object.version;
    place->etag = object.version ? net_etag(remote->net, object.version) : NULL;
    return find_site(remote, place, err);
}

stk_status place_copy(struct place *to, const struct place *from)
{
    if (place_room(to, from->used))
        return STK_MEMORY;
    char *uri = to->uri;
    size_t cap = to->cap;
    memcpy(uri, from->uri, from->used);
    *to = *from;
    to->uri = uri;
    to->cap = cap;
    to->key = uri + (from->key - from->uri);
    to->bare = uri + (from->bare - from->uri);
    return STK_OK;
}

void place_reset(struct place *place)
{
    memory_free(place->uri);
    *place = (struct place){0};
}

/* --- words ------------------------------------------------------------------------------------ */

void remote_note_failure(struct remote *remote, uint32_t object, uint64_t offset, uint64_t length,
                         const struct stk_error *error)
{
    remote->failures[remote->failure_count++ % REMOTE_FAILURES] =
        (struct remote_failure){object, offset, length, clock_now(), 0, *error};
}

/* Under the lock: the last failure that has to do with a range. */
static struct remote_failure *failure_of(struct remote *remote, const struct store_read *read)
{
    uint64_t most =
        remote->failure_count < REMOTE_FAILURES ? remote->failure_count : (uint64_t)REMOTE_FAILURES;
    for (uint64_t i = 0; i < most; i++) {
        struct remote_failure *failure =
            &remote->failures[(remote->failure_count - 1 - i) % REMOTE_FAILURES];
        if (failure->object == read->object && failure->offset < read->offset + read->length &&
            read->offset < failure->offset + failure->length)
            return failure;
    }
    return NULL;
}

int remote_words(struct remote *remote, const struct store_read *read, struct stk_error *out)
{
    pthread_mutex_lock(&remote->lock);
    const struct remote_failure *failure = failure_of(remote, read);
    if (failure)
        *out = failure->error;
    pthread_mutex_unlock(&remote->lock);
    return failure != NULL;
}

int remote_spares(struct remote *remote, const struct store_read *read, struct stk_error *out)
{
    pthread_mutex_lock(&remote->lock);
    struct remote_failure *failure = failure_of(remote, read);
    int spares = failure && !failure->is_spent && clock_now() - failure->when_ns < FRESH_NS;
    if (spares) {
        *out = failure->error;
        failure->is_spent = 1;
    }
    pthread_mutex_unlock(&remote->lock);
    return spares;
}

int remote_is_dead(struct remote *remote, struct stk_error *out)
{
    pthread_mutex_lock(&remote->lock);
    int dead = remote->dead_ns && clock_now() - remote->dead_ns < DEAD_NS;
    if (dead)
        *out = remote->bad;
    pthread_mutex_unlock(&remote->lock);
    return dead;
}

stk_status remote_explain(const struct store *store, const struct store_read *read,
                          struct stk_error *err)
{
    struct remote *remote = atomic_load(&((struct store *)store)->child);
    struct stk_error words;
    if (!remote || store->remote->pid == getpid())
        remote = store->remote;
    if (!remote_words(remote, read, &words) || words.status != read->status)
        return STK_OK;
    *err = words;
    if (!err->object[0]) {
        struct object object = {.name = ""};
        char buf[FILE_PATH_CAP];
        if (read->object < store->table.count)
            store->table.get(store->table.owner, read->object, &object);
        fail_at(err, file_path(store->table.root, object.name, buf), read->offset);
    }
    return read->status;
}

/* --- reading one range ------------------------------------------------------------------------ */

static int is_given_up(void)
{
    struct net_patience patience = net_patience();
    return patience.is_over && patience.is_over(patience.user);
}

stk_status remote_read_now(struct store *store, struct store_read *read)
{
    struct remote *remote;
    struct store_queue *queue = NULL;
    struct store_read *back;
    struct stk_error words;
    read->error_number = 0;
    read->status = remote_of(store, &remote, NULL);
    if (read->status)
        return read->status;
    if (remote_spares(remote, read, &words))
        return read->status = words.status;
    if (remote_is_dead(remote, &words)) {
        pthread_mutex_lock(&remote->lock);
        remote_note_failure(remote, read->object, read->offset, read->length, &words);
        pthread_mutex_unlock(&remote->lock);
        return read->status = words.status;
    }
    read->status = remote_queue_open(store, 1, &queue, NULL);
    if (read->status)
        return read->status;
    uint32_t got = store_submit(queue, &read, 1);
    assert(got == 1); /* it is empty */
    for (got = 0; !got && !is_given_up();)
        got = store_reap(queue, &back, 1, SLICE_NS);
    store_queue_close(queue);
    if (read->status)
        remote_spares(remote, read, &words); /* the next one tries again */
    return read->status;
}

stk_status remote_get(const char *uri, uint64_t most, struct text *out, struct stk_error *err)
{
    struct net *net = NULL;
    struct site *site = NULL;
    const char *key;
    stk_status status = net_take(&net, err);
    if (status)
        return status;
    status = site_open(&site, net, uri, &key, err);
    if (!status) {
        struct fetch *fetch = memory_zero(1, sizeof *fetch);
        if (fetch) {
            fetch->site = site;
            fetch->call = (struct site_call){.verb = SITE_READ, .key = key};
            fetch->text = out;
            fetch->text_most = most;
            status = fetch_now(fetch, err);
        } else {
            status = fail_memory(err, sizeof *fetch);
        }
        memory_free(fetch);
    }
    site_close(site);
    net_give(net);
    return status;
}
