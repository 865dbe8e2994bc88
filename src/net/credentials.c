#include "net/credentials.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/net.h"

#define SECOND_NS 1000000000LL
#define POLL_NS (SECOND_NS / 10)

/* A secret that many may hold. */
struct held {
    struct secret secret; /* first: a secret is its held */
    uint32_t references;  /* lock */
};

struct credentials {
    struct net *net;
    struct credentials_source source;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct held *current;   /* lock; one reference is ours. NULL: nothing found yet */
    int refused;            /* lock: current may not be taken again */
    int finding;            /* lock: a thread looks through the chain */
    int has_thread;         /* lock: thread is to be joined */
    pthread_t thread;       /* lock */
    uint64_t rounds;        /* lock: searches that ended */
    uint64_t marks;         /* lock */
    int64_t not_before_ns;  /* lock: no search in the background before it */
    stk_status status;      /* lock: of the last search */
    struct stk_error error; /* lock: of a last search that failed */
    atomic_int ending;      /* set by free, read by the searching thread's patience */
};

void secret_wipe(void *data, size_t length)
{
    if (data && length)
        explicit_bzero(data, length);
}

int secret_set(char *field, size_t cap, const char *value, size_t length)
{
    field[0] = '\0';
    if (length >= cap || memchr(value, '\0', length))
        return 0;
    memcpy(field, value, length);
    field[length] = '\0';
    return 1;
}

int secret_text_reserve(struct text *text, size_t cap)
{
    text->data = memory_alloc(cap);
    if (!text->data)
        return 0;
    text->cap = cap;
    text->data[0] = '\0';
    return 1;
}

int secret_text_room(struct text *text, size_t more)
{
    struct text larger = {0};
    if (text->failed || more < text->cap - text->len)
        return !text->failed;
    if (!secret_text_reserve(&larger, 2 * text->cap + more + 1)) {
        text->failed = 1;
        return 0;
    }
    text_add(&larger, text->data ? text->data : "", text->len);
    secret_text_free(text);
    *text = larger;
    return 1;
}

void secret_text_free(struct text *text)
{
    secret_wipe(text->data, text->cap);
    text_free(text);
}

/* memory_map: whole pages, so that leaving them out of cores touches nothing else. */
void *secret_pages_new(size_t size)
{
    void *pages = memory_map(size);
    if (pages)
        madvise(pages, size, MADV_DONTDUMP);
    return pages;
}

void secret_pages_free(void *pages, size_t size)
{
    if (!pages)
        return;
    secret_wipe(pages, size);
    memory_unmap(pages, size);
}

struct secret *secret_new(void)
{
    return secret_pages_new(sizeof(struct secret));
}

void secret_free(struct secret *secret)
{
    secret_pages_free(secret, sizeof(*secret));
}

static void held_drop(struct held *held)
{
    if (held && !--held->references)
        secret_pages_free(held, sizeof(*held));
}

stk_status credentials_new(struct credentials **out, struct net *net,
                           const struct credentials_source *source, struct stk_error *err)
{
    struct credentials *credentials = memory_zero(1, sizeof(*credentials));
    pthread_condattr_t monotonic;
    *out = NULL;
    if (!credentials)
        return fail_memory(err, sizeof(*credentials));
    credentials->net = net;
    credentials->source = *source;
    pthread_mutex_init(&credentials->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&credentials->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = credentials;
    return STK_OK;
}

void credentials_free(struct credentials *credentials)
{
    if (!credentials)
        return;
    atomic_store(&credentials->ending, 1);
    if (credentials->has_thread)
        pthread_join(credentials->thread, NULL);
    held_drop(credentials->current);
    if (credentials->source.free)
        credentials->source.free(credentials->source.user);
    pthread_cond_destroy(&credentials->changed);
    pthread_mutex_destroy(&credentials->lock);
    memory_free(credentials);
}

static int is_ending(void *user)
{
    struct credentials *credentials = user;
    return atomic_load(&credentials->ending); /* pairs with credentials_free */
}

/* How long to leave the chain alone after a search: a clock that is wrong, or a chain that keeps
 * giving what is about to end, must not make every request a search. Under the lock. */
static int64_t pause_after(const struct credentials *credentials, stk_status status,
                           const struct held *found)
{
    if (status)
        return 5 * SECOND_NS;
    const struct held *old = credentials->current;
    return old && old->secret.expires_s == found->secret.expires_s ? 30 * SECOND_NS : SECOND_NS;
}

/* Looks through the chain once and takes the outcome over. */
static void find_now(struct credentials *credentials)
{
    struct stk_error error = {0};
    struct held *found = secret_pages_new(sizeof(*found));
    stk_status status = STK_OK;
    if (!found)
        status = fail_memory(&error, sizeof(*found));
    else
        status = credentials->source.find(credentials->source.user, credentials->net,
                                          &found->secret, &error);
    if (found)
        found->references = 1;
    pthread_mutex_lock(&credentials->lock);
    credentials->not_before_ns = clock_now() + pause_after(credentials, status, found);
    credentials->status = status;
    credentials->error = error;
    if (!status) {
        found->secret.mark = ++credentials->marks;
        held_drop(credentials->current);
        credentials->current = found;
        credentials->refused = 0;
        found = NULL;
    }
    held_drop(found);
    credentials->finding = 0;
    credentials->rounds++;
    pthread_cond_broadcast(&credentials->changed);
    pthread_mutex_unlock(&credentials->lock);
}

static void *find_thread(void *user)
{
    struct net_patience patience = {.is_over = is_ending, .user = user};
    net_patience_set(&patience);
    find_now(user);
    net_patience_set(NULL);
    return NULL;
}

/* Under the lock. A thread of our own searches; where there can be none, and the caller may wait,
 * the caller does. */
static void start_finding(struct credentials *credentials, int may_wait)
{
    if (credentials->has_thread) /* it is over: finding is 0 */
        pthread_join(credentials->thread, NULL);
    credentials->has_thread = 0;
    credentials->finding = 1;
    if (!pthread_create(&credentials->thread, NULL, find_thread, credentials)) {
        credentials->has_thread = 1;
        return;
    }
    if (!may_wait) {
        credentials->finding = 0;
        return;
    }
    pthread_mutex_unlock(&credentials->lock);
    find_now(credentials);
    pthread_mutex_lock(&credentials->lock);
}

/* Waits until a search ends. Not 0: the patience of this thread did. Under the lock. */
static int wait_for_round(struct credentials *credentials, uint64_t round)
{
    struct net_patience patience = net_patience();
    while (credentials->rounds == round) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_NS;
        if (until.tv_nsec >= SECOND_NS) {
            until.tv_nsec -= SECOND_NS;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&credentials->changed, &credentials->lock, &until);
        if (credentials->rounds == round && patience.is_over && patience.is_over(patience.user))
            return 1;
    }
    return 0;
}

enum lasting { LASTS, ENDS_SOON, IS_OVER };

/* Under the lock. */
static enum lasting how_long(const struct credentials *credentials)
{
    if (!credentials->current || credentials->refused)
        return IS_OVER;
    int64_t expires_s = credentials->current->secret.expires_s;
    int64_t left_s = expires_s - (int64_t)time(NULL);
    if (!expires_s || left_s > CREDENTIALS_REFRESH_BEFORE_S)
        return LASTS;
    if (clock_now() < credentials->not_before_ns)
        return LASTS; /* found a moment ago: let the site judge */
    return left_s > 0 ? ENDS_SOON : IS_OVER;
}

stk_status credentials_take(struct credentials *credentials, int may_wait,
                            const struct secret **out, struct stk_error *err)
{
    stk_status status = STK_OK;
    *out = NULL;
    pthread_mutex_lock(&credentials->lock);
    enum lasting lasting = how_long(credentials);
    uint64_t round = credentials->rounds;
    if (lasting != LASTS && !credentials->finding)
        start_finding(credentials, may_wait);
    if (lasting == IS_OVER && !may_wait && credentials->rounds == round)
        status = fail(err, STK_BUSY, "credentials are being looked for");
    else if (lasting == IS_OVER && wait_for_round(credentials, round))
        status = fail(err, STK_CANCELLED, "stopped while credentials were being looked for");
    else if (lasting == IS_OVER && credentials->status) {
        status = credentials->status;
        if (err)
            *err = credentials->error;
    }
    if (!status) {
        credentials->current->references++;
        *out = &credentials->current->secret;
    }
    pthread_mutex_unlock(&credentials->lock);
    return status;
}

void credentials_give(struct credentials *credentials, const struct secret *secret)
{
    if (!secret)
        return;
    pthread_mutex_lock(&credentials->lock);
    held_drop((struct held *)(uintptr_t)secret);
    pthread_mutex_unlock(&credentials->lock);
}

void credentials_refused(struct credentials *credentials, uint64_t mark)
{
    pthread_mutex_lock(&credentials->lock);
    if (credentials->current && credentials->current->secret.mark == mark)
        credentials->refused = 1;
    pthread_mutex_unlock(&credentials->lock);
}
