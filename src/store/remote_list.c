/* Which objects URIs mean. Plain ones are asked about many at a time, for a brace list of a
 * thousand must not take a thousand round trips; folders and globs are listed. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/fetch.h"
#include "store/remote.h"
#include "store/remote_glob.h"

#define ASKS_MOST 64        /* at once */
#define LIST_MOST 100000000 /* names under one prefix */
#define SLICE_NS 100000000

/* One URI. */
struct ask {
    struct fetch fetch;
    struct asks *asks;
    uint32_t number;
    int is_busy;
};

/* What was found out of each. */
struct answer {
    struct site *site;
    const char *key; /* into the URI */
    stk_status status;
    int is_folder;
    uint64_t size, version;
};

struct asks {
    const char *const *uris;
    struct answer *answers;
    uint32_t count;
    struct net *net;
    struct ask *slots;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    uint32_t next, flying;
    struct stk_error *failure; /* the first's; NULL: none is wanted */
    uint32_t failed;           /* which; count: none */
};

/* --- asking about many ------------------------------------------------------------------------ */

/* Under the lock. Takes over what an answer says. */
static void ask_over(struct asks *asks, struct ask *ask)
{
    const struct fetch *fetch = &ask->fetch;
    struct answer *answer = &asks->answers[ask->number];
    answer->status = fetch->status;
    ask->is_busy = 0;
    asks->flying--;
    if (fetch->status && fetch->status != STK_NOT_FOUND && ask->number < asks->failed) {
        asks->failed = ask->number;
        if (asks->failure)
            *asks->failure = fetch->error;
    }
    if (fetch->status)
        return;
    answer->size = fetch->object_size;
    answer->is_folder = !strcmp(fetch->upload, "true"); /* a directory of a hierarchical store */
    answer->version = site_version(fetch->found_etag, fetch->object_size, fetch->last_modified);
    if (fetch->object_size == STK_NOWHERE && !answer->is_folder) {
        answer->status = STK_UNSUPPORTED;
        if (ask->number < asks->failed) {
            asks->failed = ask->number;
            fail(asks->failure, STK_UNSUPPORTED, "the server does not tell how long it is");
            fail_at(asks->failure, asks->uris[ask->number], STK_NOWHERE);
        }
    }
    if (fetch->found_etag[0])
        net_etag_learn(asks->net, answer->version, fetch->found_etag);
}

/* On the web's thread. */
static void ask_done(struct fetch *fetch)
{
    struct ask *ask = fetch->owner;
    struct asks *asks = ask->asks;
    pthread_mutex_lock(&asks->lock);
    ask_over(asks, ask);
    pthread_cond_signal(&asks->changed);
    pthread_mutex_unlock(&asks->lock);
}

/* Under the lock: the next URI that is to be asked about, in a slot; NULL: none, or all are busy.
 */
static struct ask *ask_next(struct asks *asks)
{
    uint32_t slot = 0;
    while (asks->next < asks->count && asks->answers[asks->next].is_folder)
        asks->next++;
    while (slot < ASKS_MOST && asks->slots[slot].is_busy)
        slot++;
    if (asks->next == asks->count || slot == ASKS_MOST || asks->failed < asks->count)
        return NULL;
    struct ask *ask = &asks->slots[slot];
    const struct answer *answer = &asks->answers[asks->next];
    memset(ask, 0, sizeof *ask);
    ask->asks = asks;
    ask->number = asks->next++;
    ask->is_busy = 1;
    ask->fetch.site = answer->site;
    ask->fetch.call = (struct site_call){.verb = SITE_STAT, .key = answer->key};
    ask->fetch.done = ask_done;
    ask->fetch.owner = ask;
    asks->flying++;
    return ask;
}

static void ask_cancel(struct asks *asks)
{
    asks->failed = 0; /* nothing more is begun */
    for (uint32_t i = 0; i < ASKS_MOST; i++) {
        int busy = asks->slots[i].is_busy;
        pthread_mutex_unlock(&asks->lock);
        if (busy) /* slots stay until all are over; asking one that is does no harm */
            fetch_cancel(&asks->slots[i].fetch);
        pthread_mutex_lock(&asks->lock);
    }
}

/* Asks about all whose answer does not say that they are folders. */
static stk_status ask_all(struct asks *asks, struct stk_error *err)
{
    int cancelled = 0;
    struct net_patience patience = net_patience();
    pthread_mutex_lock(&asks->lock);
    for (;;) {
        struct ask *ask = ask_next(asks);
        if (ask) {
            pthread_mutex_unlock(&asks->lock);
            fetch_start(&ask->fetch);
            pthread_mutex_lock(&asks->lock);
            continue;
        }
        if (!asks->flying)
            break;
        int64_t until = clock_now() + SLICE_NS;
        condition_wait(&asks->changed, &asks->lock, until);
        if (!cancelled && patience.is_over && patience.is_over(patience.user)) {
            cancelled = 1;
            ask_cancel(asks);
        }
    }
    pthread_mutex_unlock(&asks->lock);
    if (cancelled)
        return fail(err, STK_CANCELLED, "stopped on request");
    return asks->failed < asks->count ? asks->answers[asks->failed].status : STK_OK;
}

/* --- adding ----------------------------------------------------------------------------------- */

/* The folder of an object's URI: what stands before the last slash of its path. */
static size_t folder_length(const char *uri, const char *key)
{
    size_t len = strcspn(key, "?"), folder = 0;
    for (size_t i = 0; i < len; i++)
        folder = key[i] == '/' ? i + 1 : folder;
    return (size_t)(key - uri) + folder;
}

static stk_status add_object(struct list *list, const char *uri, const struct answer *answer,
                             struct stk_error *err)
{
    const char *below;
    size_t len = folder_length(uri, answer->key);
    char *base = memory_text(uri, len > 0 && uri[len - 1] == '/' ? len - 1 : len);
    if (!base)
        return fail_memory(err, len);
    stk_status status = list_base(list, base, &below, err);
    memory_free(base);
    if (!status)
        status = list_put(list, below, uri + len, answer->size, answer->version, err);
    return status;
}

static uint64_t entry_version(struct net *net, const struct site_entry *entry)
{
    uint64_t version = site_version(entry->etag, entry->size, "");
    if (entry->etag[0])
        net_etag_learn(net, version, entry->etag);
    return version;
}

static stk_status cannot_list(const char *uri, struct stk_error *err)
{
    stk_status status =
        fail(err, STK_UNSUPPORTED, "a plain web server cannot be asked what it has");
    fail_at(err, uri, STK_NOWHERE);
    fail_remedy(err, "name the objects: http://host/train-{000..127}.tar");
    return status;
}

static int is_plain_name(const char *name)
{
    size_t len = strlen(name);
    return len > 0 && name[len - 1] != '/' && !remote_glob_hides(name);
}

/* All under a folder; its URI with or without a slash at its end. */
static stk_status add_folder(struct list *list, struct net *net, const char *uri,
                             const struct answer *answer, struct stk_error *err)
{
    struct site_listing listing = {0};
    struct text prefix = {0};
    const char *below;
    size_t uri_len = strlen(uri), key_len = strlen(answer->key);
    uint64_t before = list->count;
    if (!answer->site->can_list)
        return cannot_list(uri, err);
    text_add(&prefix, answer->key, key_len);
    if (key_len && answer->key[key_len - 1] != '/')
        text_add(&prefix, "/", 1);
    while (uri_len > 0 && uri[uri_len - 1] == '/')
        uri_len--;
    char *base = memory_text(uri, uri_len);
    stk_status status = base && !prefix.failed ? STK_OK : fail_memory(err, uri_len + key_len);
    if (!status)
        status =
            fetch_list(answer->site, prefix.len ? prefix.data : "", LIST_MOST, 0, &listing, err);
    if (!status && listing.names.count)
        status = list_base(list, base, &below, err);
    for (uint64_t i = 0; i < listing.names.count && !status; i++) {
        const struct site_entry *entry = &listing.names.entries[i];
        const char *name = entry->key + prefix.len;
        if (!entry->is_folder && !strncmp(entry->key, prefix.len ? prefix.data : "", prefix.len) &&
            is_plain_name(name))
            status = list_put(list, below, name, entry->size, entry_version(net, entry), err);
    }
    if (!status && list->count == before && !listing.names.count) {
        status = fail(err, STK_NOT_FOUND, "there is no such object or folder");
        fail_at(err, uri, STK_NOWHERE);
    }
    site_listing_reset(&listing);
    text_free(&prefix);
    memory_free(base);
    return status;
}

/* One name that a glob matched. *base is the URI of the folder that the last one was in. */
static stk_status add_match(struct list *list, struct text *base, const char **below,
                            const char *site, const struct site_entry *entry, uint64_t version,
                            struct stk_error *err)
{
    size_t folder = folder_length(entry->key, entry->key), site_len = strlen(site);
    size_t len = folder ? folder - 1 : 0;
    int same = *below && base->len == site_len + len && !memcmp(base->data, site, site_len) &&
               !memcmp(base->data + site_len, entry->key, len);
    if (!same) {
        base->len = 0;
        text_add(base, site, site_len);
        text_add(base, entry->key, len);
        if (base->failed)
            return fail_memory(err, site_len + len);
        size_t end = base->len; /* without a key there is a slash at the site's end */
        if (!len && end && base->data[end - 1] == '/')
            base->data[end - 1] = '\0';
        stk_status status = list_base(list, base->data, below, err);
        if (!len && end && site[site_len - 1] == '/')
            base->data[end - 1] = '/';
        if (status)
            return status;
    }
    return list_put(list, *below, entry->key + folder, entry->size, version, err);
}

static stk_status add_glob(struct list *list, struct net *net, const char *uri,
                           const struct answer *answer, enum remote_kind *kind,
                           struct stk_error *err)
{
    struct site_listing listing = {0};
    struct text base = {0};
    const char *below = NULL;
    uint64_t before = list->count;
    char *prefix = memory_text(answer->key, remote_glob_literal(answer->key));
    char *site = memory_text(uri, (size_t)(answer->key - uri));
    stk_status status = prefix && site ? STK_OK : fail_memory(err, strlen(uri));
    if (!status)
        status = fetch_list(answer->site, prefix, LIST_MOST, 0, &listing, err);
    for (uint64_t i = 0; i < listing.names.count && !status; i++) {
        const struct site_entry *entry = &listing.names.entries[i];
        int itself = !strcmp(entry->key, answer->key);
        size_t len = strlen(entry->key);
        if (entry->is_folder || !len || entry->key[len - 1] == '/' ||
            (!itself && !remote_glob_matches(answer->key, entry->key)))
            continue;
        if (itself) { /* what is there wins over its meaning as a pattern */
            *kind = REMOTE_OBJECT;
            list->count = before;
        }
        status = add_match(list, &base, &below, site, entry, entry_version(net, entry), err);
        if (itself)
            break;
    }
    if (!status && list->count == before) {
        status = fail(err, STK_NOT_FOUND, "nothing matches it");
        fail_at(err, uri, STK_NOWHERE);
    }
    site_listing_reset(&listing);
    text_free(&base);
    memory_free(prefix);
    memory_free(site);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------- */

/* What can be seen without asking. A question mark begins the query of a plain web address. */
static stk_status look_at(struct asks *asks, uint32_t i, enum remote_kind *kind,
                          struct stk_error *err)
{
    struct answer *answer = &asks->answers[i];
    const char *uri = asks->uris[i];
    stk_status status = site_open(&answer->site, asks->net, uri, &answer->key, err);
    if (status)
        return status;
    size_t len = strlen(answer->key);
    int lists = answer->site->can_list;
    *kind = REMOTE_OBJECT;
    if (strpbrk(answer->key, lists ? "*?[" : "*["))
        *kind = REMOTE_GLOB;
    else if (!len || answer->key[len - 1] == '/')
        *kind = REMOTE_FOLDER;
    answer->is_folder = *kind != REMOTE_OBJECT; /* it is not asked about */
    return *kind != REMOTE_OBJECT && !lists ? cannot_list(uri, err) : STK_OK;
}

/* An object of no bytes may be what some tools leave where they made a folder. */
static stk_status add_found(struct list *list, struct asks *asks, uint32_t i,
                            enum remote_kind *kind, struct stk_error *err)
{
    const struct answer *answer = &asks->answers[i];
    const char *uri = asks->uris[i];
    if (*kind == REMOTE_GLOB)
        return add_glob(list, asks->net, uri, answer, kind, err);
    if (*kind == REMOTE_OBJECT && !answer->status && !answer->is_folder &&
        (answer->size || !answer->site->can_list))
        return add_object(list, uri, answer, err);
    if (*kind == REMOTE_OBJECT && answer->status && !answer->site->can_list) {
        fail(err, STK_NOT_FOUND, "there is no such object");
        fail_at(err, uri, STK_NOWHERE);
        return STK_NOT_FOUND;
    }
    int is_empty = *kind == REMOTE_OBJECT && !answer->status && !answer->is_folder;
    stk_status status = add_folder(list, asks->net, uri, answer, err);
    if (status == STK_NOT_FOUND && is_empty)
        return add_object(list, uri, answer, err);
    *kind = REMOTE_FOLDER;
    return status;
}

static stk_status asks_run(struct list *list, struct asks *asks, enum remote_kind *kinds,
                           struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < asks->count && !status; i++)
        status = look_at(asks, i, &kinds[i], err);
    if (!status)
        status = ask_all(asks, err);
    for (uint32_t i = 0; i < asks->count && !status; i++)
        status = add_found(list, asks, i, &kinds[i], err);
    return status;
}

stk_status remote_list_add(struct list *list, const char *const *uris, uint32_t count,
                           enum remote_kind *kinds, struct stk_error *err)
{
    struct stk_error failure = {0};
    struct asks asks = {.uris = uris, .count = count, .failed = count, .failure = &failure};
    stk_status status = net_take(&asks.net, err);
    if (status)
        return status;
    pthread_mutex_init(&asks.lock, NULL);
    condition_init(&asks.changed);
    asks.answers = memory_zero(count ? count : 1, sizeof *asks.answers);
    asks.slots = memory_zero(ASKS_MOST, sizeof *asks.slots);
    if (asks.answers && asks.slots)
        status = asks_run(list, &asks, kinds, err);
    else
        status = fail_memory(err, count * sizeof *asks.answers);
    if (status && status == failure.status && asks.failed < count && err)
        *err = failure;
    for (uint32_t i = 0; i < count && asks.answers; i++)
        site_close(asks.answers[i].site);
    memory_free(asks.answers);
    memory_free(asks.slots);
    pthread_cond_destroy(&asks.changed);
    pthread_mutex_destroy(&asks.lock);
    net_give(asks.net);
    return status;
}
