#include "net/net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/parse.h"
#include "net/fetch_world.h"
#include "net/site.h"

enum { ETAG_BLOCK = 64 << 10 };

struct etag_block {
    struct etag_block *next;
    size_t used, cap;
    char text[];
};

struct etag_entry {
    uint64_t version;
    const char *etag; /* NULL: the place is free */
};

struct net {
    pid_t pid;
    uint32_t references; /* process.lock */
    struct web *web;
    struct net_settings settings;
    struct net_places places;
    struct fetch_world *fetch_world;
    pthread_mutex_t etag_lock;
    struct etag_entry *etags;      /* etag_lock: open addressing, a power of two of places */
    uint64_t etag_count, etag_cap; /* etag_lock */
    struct etag_block *blocks;     /* etag_lock */
};

/* The one thing of this library that a process has once: its threads and connections are. */
static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    struct net *net;              /* lock */
    int is_configured;            /* lock */
    struct net_settings settings; /* lock */
} process = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static _Thread_local struct net_patience thread_patience;

/* --- fork: the lock is held while it happens, so that a child finds things whole. */

static void before_fork(void)
{
    pthread_mutex_lock(&process.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&process.lock);
}

/* The threads of the parent's net are not here: a new one is made when somebody wants it. */
static void after_fork_in_child(void)
{
    process.net = NULL;
    pthread_mutex_unlock(&process.lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* --- settings */

void net_configure(const struct net_settings *settings)
{
    pthread_mutex_lock(&process.lock);
    process.is_configured = settings != NULL;
    if (settings)
        process.settings = *settings;
    pthread_mutex_unlock(&process.lock);
}

static stk_status read_environment(struct net_settings *settings, struct stk_error *err)
{
    static const char *const names[] = {"STOKER_CA",      "AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
                                        "CURL_CA_BUNDLE", "SSL_CERT_FILE", NULL};
    if (!settings->ca[0]) {
        const char *ca = NULL;
        for (int i = 0; names[i] && !(ca && ca[0]); i++)
            ca = getenv(names[i]);
        if (ca && strlen(ca) >= sizeof settings->ca)
            return fail(err, STK_USAGE, "the path of the certificates to trust is too long");
        snprintf(settings->ca, sizeof settings->ca, "%s", ca ? ca : "");
    }
    const char *timeout = settings->timeout_s ? NULL : getenv("STOKER_TIMEOUT");
    uint64_t seconds = 60;
    if (timeout && timeout[0] &&
        (!parse_u64(timeout, strlen(timeout), &seconds) || seconds < 1 || seconds > 86400)) {
        fail(err, STK_USAGE, "STOKER_TIMEOUT is \"%.40s\"", timeout);
        fail_remedy(err, "set it to seconds, 1 to 86400, or leave it away for 60");
        return STK_USAGE;
    }
    if (!settings->timeout_s)
        settings->timeout_s = (uint32_t)seconds;
    return STK_OK;
}

const struct net_settings *net_settings(struct net *net)
{
    return &net->settings;
}

/* --- take and give */

static void net_free(struct net *net)
{
    if (!net)
        return;
    /* Who has threads that use the web first; then the web, whose end calls the last done()s; then
     * what those needed. */
    fetch_world_stop(net->fetch_world);
    site_forget(net);
    web_close(net->web);
    fetch_world_free(net->fetch_world);
    while (net->blocks) {
        struct etag_block *block = net->blocks;
        net->blocks = block->next;
        memory_free(block);
    }
    memory_free(net->etags);
    pthread_mutex_destroy(&net->etag_lock);
    pthread_mutex_destroy(&net->places.lock);
    memory_free(net);
}

static stk_status net_new(struct net **out, struct stk_error *err) /* under process.lock */
{
    *out = NULL;
    struct net *net = memory_zero(1, sizeof *net);
    if (!net)
        return fail_memory(err, sizeof *net);
    net->pid = getpid();
    pthread_mutex_init(&net->places.lock, NULL);
    pthread_mutex_init(&net->etag_lock, NULL);
    if (process.is_configured)
        net->settings = process.settings;
    stk_status status = read_environment(&net->settings, err);
    struct web_options options = {.ca = net->settings.ca};
    if (!status)
        status = web_open(&net->web, &options, err);
    if (!status)
        status = fetch_world_new(&net->fetch_world, net, err);
    if (status)
        goto done;
    *out = net;
    net = NULL;
done:
    net_free(net);
    return status;
}

stk_status net_take(struct net **out, struct stk_error *err)
{
    stk_status status = STK_OK;
    *out = NULL;
    pthread_once(&process.once, watch_forks);
    pthread_mutex_lock(&process.lock);
    if (!process.net)
        status = net_new(&process.net, err);
    if (!status) {
        process.net->references++;
        *out = process.net;
    }
    pthread_mutex_unlock(&process.lock);
    return status;
}

void net_give(struct net *net)
{
    if (!net || net->pid != getpid()) /* the parent's */
        return;
    pthread_mutex_lock(&process.lock);
    int is_last = --net->references == 0;
    if (is_last)
        process.net = NULL;
    pthread_mutex_unlock(&process.lock);
    if (is_last)
        net_free(net);
}

struct web *net_web(struct net *net)
{
    return net->web;
}

struct net_places *net_places(struct net *net)
{
    return &net->places;
}

struct fetch_world *net_fetch_world(struct net *net)
{
    return net->fetch_world;
}

/* --- patience */

void net_patience_set(const struct net_patience *patience)
{
    thread_patience = patience ? *patience : (struct net_patience){0};
}

struct net_patience net_patience(void)
{
    return thread_patience;
}

/* --- ETags. Without memory one is not learned: its reads go without If-Match, and are compared
 * by their version all the same. */

static struct etag_entry *etag_place(struct etag_entry *etags, uint64_t cap, uint64_t version)
{
    uint64_t at = (version * UINT64_C(0x9e3779b97f4a7c15)) >> 20;
    for (;; at++) {
        struct etag_entry *entry = &etags[at & (cap - 1)];
        if (!entry->etag || entry->version == version)
            return entry;
    }
}

static int etags_grow(struct net *net)
{
    uint64_t cap = net->etag_cap ? 2 * net->etag_cap : 1024;
    struct etag_entry *etags = memory_zero(cap, sizeof *etags);
    if (!etags)
        return 0;
    for (uint64_t i = 0; i < net->etag_cap; i++) {
        if (net->etags[i].etag)
            *etag_place(etags, cap, net->etags[i].version) = net->etags[i];
    }
    memory_free(net->etags);
    net->etags = etags;
    net->etag_cap = cap;
    return 1;
}

/* Texts are never moved: they are handed out. */
static const char *etag_keep(struct net *net, const char *etag)
{
    size_t length = strlen(etag) + 1;
    struct etag_block *block = net->blocks;
    if (!block || block->cap - block->used < length) {
        size_t cap = length > ETAG_BLOCK ? length : ETAG_BLOCK;
        block = memory_alloc(sizeof *block + cap);
        if (!block)
            return NULL;
        *block = (struct etag_block){.next = net->blocks, .cap = cap};
        net->blocks = block;
    }
    char *kept = memcpy(block->text + block->used, etag, length);
    block->used += length;
    return kept;
}

void net_etag_learn(struct net *net, uint64_t version, const char *etag)
{
    if (!etag || !etag[0])
        return;
    pthread_mutex_lock(&net->etag_lock);
    if (net->etag_count * 2 < net->etag_cap || etags_grow(net)) {
        struct etag_entry *entry = etag_place(net->etags, net->etag_cap, version);
        if (!entry->etag) {
            entry->etag = etag_keep(net, etag);
            entry->version = version;
            net->etag_count += entry->etag != NULL;
        }
    }
    pthread_mutex_unlock(&net->etag_lock);
}

const char *net_etag(struct net *net, uint64_t version)
{
    const char *etag = NULL;
    pthread_mutex_lock(&net->etag_lock);
    if (net->etag_cap)
        etag = etag_place(net->etags, net->etag_cap, version)->etag;
    pthread_mutex_unlock(&net->etag_lock);
    return etag;
}
