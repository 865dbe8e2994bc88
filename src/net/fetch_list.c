/* All names under a prefix. A process lists a prefix once: whoever asks while that is under way
 * waits for it, and whoever asks within a minute gets the same. */
#include "net/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/fetch_parts.h"

#define KEEP_NS 60000000000LL
#define KEEP_BYTES ((uint64_t)256 << 20) /* of one listing; a longer one is not kept */
#define PAGE_MOST_BYTES ((uint64_t)32 << 20)
#define MOST_EMPTY 1000 /* pages in a row that bring no name */
#define ASK_NS 100000000LL

/* One prefix that is being listed, or was. Guarded by world->lock but for what its one lister
 * builds before it is ready. */
struct listing {
    struct listing *next;
    struct site *site;
    char *prefix;
    int is_listed; /* it is in the world's list */
    int is_ready;
    int64_t listed_ns;
    struct site_page names;
};

static void listing_free(struct listing *listing)
{
    if (!listing)
        return;
    site_page_reset(&listing->names);
    memory_free(listing->prefix);
    memory_free(listing);
}

void listings_free(struct fetch_world *world)
{
    while (world->listings) {
        struct listing *listing = world->listings;
        world->listings = listing->next;
        listing_free(listing);
    }
}

void site_listing_reset(struct site_listing *listing)
{
    site_page_reset(&listing->names);
}

/* By key; of two that are equal the one that was listed later comes first, since it is newer. */
static int compare_entries(const void *left, const void *right)
{
    const struct site_entry *a = left, *b = right;
    const int order = strcmp(a->key, b->key);
    return order ? order : (a->key < b->key) - (a->key > b->key);
}

static void names_sort(struct site_page *names)
{
    uint64_t kept = 0;
    int is_sorted = 1;
    for (uint64_t i = 1; i < names->count && is_sorted; i++)
        is_sorted = strcmp(names->entries[i - 1].key, names->entries[i].key) < 0;
    if (is_sorted)
        return;
    qsort(names->entries, (size_t)names->count, sizeof *names->entries, compare_entries);
    for (uint64_t i = 0; i < names->count; i++) {
        if (!kept || strcmp(names->entries[kept - 1].key, names->entries[i].key) != 0)
            names->entries[kept++] = names->entries[i];
    }
    names->count = kept;
}

static stk_status fail_too_many(uint64_t most, struct stk_error *err)
{
    fail(err, STK_LIMIT, "there are more than %llu names", (unsigned long long)most);
    fail_remedy(err, "name a narrower prefix or a glob");
    return STK_LIMIT;
}

/* What was seen of a list, to tell one that never ends. */
struct walk {
    struct site *site;
    struct site_call call;
    uint64_t most;
    uint64_t *seen; /* hashes of tokens and of pages */
    uint64_t seen_count, seen_cap;
    uint32_t empty;
    char *token;
};

/* STK_CORRUPT: this was seen before. */
static stk_status walk_meet(struct walk *walk, uint64_t hash, const char *what,
                            struct stk_error *err)
{
    for (uint64_t i = 0; i < walk->seen_count; i++) {
        if (walk->seen[i] == hash)
            return fail(err, STK_CORRUPT, "the list does not end: the site sent the same %s twice",
                        what);
    }
    if (walk->seen_count == walk->seen_cap) {
        const uint64_t cap = walk->seen_cap ? 2 * walk->seen_cap : 64;
        uint64_t *seen = memory_grow(walk->seen, (size_t)cap * sizeof *seen);
        if (!seen)
            return fail_memory(err, cap * sizeof *seen);
        walk->seen = seen;
        walk->seen_cap = cap;
    }
    walk->seen[walk->seen_count++] = hash;
    return STK_OK;
}

/* Looks at what a page brought: the names from `before` on, and the token of the next. */
static stk_status walk_look(struct walk *walk, const struct site_page *names, uint64_t before,
                            struct stk_error *err)
{
    uint64_t hash = 1;
    stk_status status = STK_OK;
    for (uint64_t i = before; i < names->count; i++)
        hash = hash_bytes(names->entries[i].key, strlen(names->entries[i].key), hash);
    walk->empty = names->count > before ? 0 : walk->empty + 1;
    if (names->count > before)
        status = walk_meet(walk, hash, "page", err);
    if (!status && names->token)
        status = walk_meet(walk, hash_bytes(names->token, strlen(names->token), 2), "token", err);
    if (!status && walk->empty > MOST_EMPTY)
        status =
            fail(err, STK_CORRUPT, "the list does not end: %d pages without a name", MOST_EMPTY);
    if (!status && names->count > walk->most)
        status = fail_too_many(walk->most, err);
    return status;
}

/* One page; *is_last when no other follows. */
static stk_status walk_page(struct walk *walk, struct site_page *names, int *is_last,
                            struct stk_error *err)
{
    struct text body = {0};
    struct web_answer answer;
    struct fetch fetch = {
        .site = walk->site, .call = walk->call, .text = &body, .text_most = PAGE_MOST_BYTES};
    const uint64_t before = names->count;
    stk_status status = fetch_wait(&fetch, &answer, err);
    if (!status)
        status = walk->site->ops->read_page(walk->site, &walk->call, &answer,
                                            body.data ? body.data : "", body.len, names, err);
    if (!status)
        status = walk_look(walk, names, before, err);
    memory_free(walk->token);
    walk->token = names->token;
    walk->call.token = walk->token;
    names->token = NULL;
    *is_last = !walk->token;
    web_answer_free(&answer);
    text_free(&body);
    return status;
}

static stk_status walk_all(struct site *site, const char *prefix, uint64_t most,
                           struct site_page *names, struct stk_error *err)
{
    struct walk walk = {.site = site, .call = {.verb = SITE_LIST, .key = prefix}, .most = most};
    struct stk_error own = {0};
    stk_status status = STK_OK;
    for (int is_last = 0; !status && !is_last;)
        status = walk_page(&walk, names, &is_last, &own);
    if (!status)
        names_sort(names);
    if (status && !*own.object) {
        struct text object = {0};
        text_format(&object, "%s/%s", site->uri, prefix);
        fail_at(&own, object.data ? object.data : site->uri, STK_NOWHERE);
        text_free(&object);
    }
    if (status && err)
        *err = own;
    memory_free(walk.seen);
    memory_free(walk.token);
    return status;
}

/* A copy for a caller. */
static stk_status names_copy(const struct site_page *from, struct site_page *to,
                             struct stk_error *err)
{
    const char *base = from->names.data;
    *to = (struct site_page){0};
    if (!from->count)
        return STK_OK;
    to->entries = memory_alloc((size_t)from->count * sizeof *to->entries);
    text_add(&to->names, base, from->names.len);
    if (!to->entries || to->names.failed) {
        site_page_reset(to);
        return fail_memory(err, from->names.len);
    }
    to->count = to->cap = from->count;
    memcpy(to->entries, from->entries, (size_t)from->count * sizeof *to->entries);
    for (uint64_t i = 0; i < to->count; i++) {
        to->entries[i].key = to->names.data + (from->entries[i].key - base);
        to->entries[i].etag = to->names.data + (from->entries[i].etag - base);
    }
    return STK_OK;
}

/* All under world->lock. Drops what is too old, and all of this prefix where it is listed anew. */
static struct listing *listing_find(struct fetch_world *world, const struct site *site,
                                    const char *prefix, int anew)
{
    const int64_t now = clock_now();
    struct listing *found = NULL;
    for (struct listing **at = &world->listings, *listing; (listing = *at);) {
        const int is_it = listing->site == site && strcmp(listing->prefix, prefix) == 0;
        const int is_old = now - listing->listed_ns > KEEP_NS || (is_it && anew);
        if (listing->is_ready && is_old) {
            *at = listing->next;
            listing_free(listing);
            continue;
        }
        if (is_it)
            found = listing;
        at = &listing->next;
    }
    return found;
}

static struct listing *listing_new(struct site *site, const char *prefix)
{
    struct listing *listing = memory_zero(1, sizeof *listing);
    char *copy = listing ? memory_text(prefix, strlen(prefix)) : NULL;
    if (!copy) {
        memory_free(listing);
        return NULL;
    }
    listing->site = site;
    listing->prefix = copy;
    return listing;
}

/* Waits, under world->lock, while another thread lists the same. STK_CANCELLED: patience ended. */
static stk_status listing_await(struct fetch_world *world, struct stk_error *err)
{
    const struct net_patience patience = net_patience();
    const int64_t when = clock_now() + ASK_NS;
    const struct timespec until = {.tv_sec = (time_t)(when / 1000000000),
                                   .tv_nsec = (long)(when % 1000000000)};
    pthread_cond_timedwait(&world->listed, &world->lock, &until);
    if (!patience.is_over)
        return STK_OK;
    pthread_mutex_unlock(&world->lock); /* whose code that is, and what it locks, is not known */
    const int is_over = patience.is_over(patience.user);
    pthread_mutex_lock(&world->lock);
    return is_over ? fail(err, STK_CANCELLED, "stopped on request") : STK_OK;
}

/* The list is made: it is kept, unless it failed or is too long. */
static void listing_settle(struct fetch_world *world, struct listing *listing, stk_status status)
{
    const uint64_t bytes =
        listing->names.names.len + listing->names.count * sizeof *listing->names.entries;
    pthread_mutex_lock(&world->lock);
    listing->is_ready = 1;
    listing->listed_ns = clock_now();
    if (status || bytes > KEEP_BYTES) {
        struct listing **at = &world->listings;
        while (*at != listing)
            at = &(*at)->next;
        *at = listing->next;
        listing_free(listing);
    }
    pthread_cond_broadcast(&world->listed);
    pthread_mutex_unlock(&world->lock);
}

/* Copies a listing that is ready, or puts the wanted one into the list: then it is this thread's
 * to fill. */
static stk_status listing_take(struct fetch_world *world, struct listing *wanted, int anew,
                               struct site_listing *out, struct stk_error *err)
{
    stk_status status = STK_OK;
    struct listing *found;
    pthread_mutex_lock(&world->lock);
    while ((found = listing_find(world, wanted->site, wanted->prefix, anew)) && !found->is_ready &&
           !status) {
        status = listing_await(world, err);
        anew = 0; /* what was listed meanwhile is new */
    }
    if (!status && found) {
        status = names_copy(&found->names, &out->names, err);
    } else if (!status) {
        wanted->is_listed = 1;
        wanted->next = world->listings;
        world->listings = wanted;
    }
    pthread_mutex_unlock(&world->lock);
    return status;
}

stk_status fetch_list(struct site *site, const char *prefix, uint64_t most, int anew,
                      struct site_listing *out, struct stk_error *err)
{
    struct fetch_world *world = net_fetch_world(site->net);
    struct listing *wanted = listing_new(site, prefix);
    *out = (struct site_listing){0};
    if (!wanted)
        return fail_memory(err, sizeof *wanted);
    stk_status status = listing_take(world, wanted, anew, out, err);
    if (!wanted->is_listed) {
        listing_free(wanted);
    } else {
        status = walk_all(site, prefix, most, &wanted->names, err);
        if (!status)
            status = names_copy(&wanted->names, &out->names, err);
        listing_settle(world, wanted, status);
    }
    if (!status && out->names.count > most) {
        site_listing_reset(out);
        status = fail_too_many(most, err);
    }
    return status;
}
