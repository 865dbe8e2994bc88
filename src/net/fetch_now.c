#include "net/fetch.h"

#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "net/fetch_parts.h"

#define ASK_NS 100000000LL /* how often patience is asked for */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t ready; /* of lock */
    int is_done;
    struct web_answer *answer; /* where to put it; or NULL */
};

/* The answer moves to the waiter: what it points to must outlive this call. */
static void waiter_done(struct fetch *fetch)
{
    struct waiter *waiter = fetch->owner;
    pthread_mutex_lock(&waiter->lock);
    if (waiter->answer && fetch->answer) {
        *waiter->answer = *fetch->answer;
        fetch->answer->body = (struct text){0};
    }
    fetch->answer = NULL;
    waiter->is_done = 1;
    pthread_cond_signal(&waiter->ready);
    pthread_mutex_unlock(&waiter->lock);
}

static void waiter_sleep(struct waiter *waiter, int64_t when_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(when_ns / 1000000000),
                                   .tv_nsec = (long)(when_ns % 1000000000)};
    pthread_cond_timedwait(&waiter->ready, &waiter->lock, &until);
}

/* Waits for the end, which is near once it was cancelled. */
static void waiter_wait(struct waiter *waiter, struct fetch *fetch)
{
    const struct net_patience patience = net_patience();
    int is_over = 0;
    pthread_mutex_lock(&waiter->lock);
    while (!waiter->is_done) {
        if (!patience.is_over || is_over) {
            pthread_cond_wait(&waiter->ready, &waiter->lock);
            continue;
        }
        pthread_mutex_unlock(&waiter->lock);
        is_over = patience.is_over(patience.user);
        if (is_over)
            fetch_cancel(fetch);
        pthread_mutex_lock(&waiter->lock);
        if (!is_over && !waiter->is_done)
            waiter_sleep(waiter, clock_now() + ASK_NS);
    }
    pthread_mutex_unlock(&waiter->lock);
}

stk_status fetch_wait(struct fetch *fetch, struct web_answer *answer, struct stk_error *err)
{
    struct waiter waiter = {.answer = answer};
    void (*const done)(struct fetch *) = fetch->done;
    void *const owner = fetch->owner;
    pthread_condattr_t attributes;
    pthread_mutex_init(&waiter.lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter.ready, &attributes);
    pthread_condattr_destroy(&attributes);
    if (answer)
        *answer = (struct web_answer){0};
    fetch->done = waiter_done;
    fetch->owner = &waiter;
    fetch_start(fetch);
    waiter_wait(&waiter, fetch);
    pthread_cond_destroy(&waiter.ready);
    pthread_mutex_destroy(&waiter.lock);
    fetch->done = done;
    fetch->owner = owner;
    if (fetch->status && err)
        *err = fetch->error;
    return fetch->status;
}

stk_status fetch_now(struct fetch *fetch, struct stk_error *err)
{
    return fetch_wait(fetch, NULL, err);
}
