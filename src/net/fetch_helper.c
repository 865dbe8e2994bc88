/* Credentials may have to be waited for, and the web's thread waits for nobody: a thread does it
 * for all fetches of a site that stand still for want of them. It makes a request of its own, which
 * is thrown away; then the credentials are there, and the fetches make theirs at once. */
#include "net/fetch_parts.h"

#include "base/fail.h"
#include "base/memory.h"

#define MOST_MAKINGS 8 /* times that a fetch waits for credentials */

struct fetch_helper {
    struct fetch_helper *next; /* world->lock */
    struct fetch_world *world;
    struct site *site; /* lasts as long as the net */
    pthread_t thread;
    stk_status status; /* its thread's, until helper_done */
    struct stk_error error;
};

static int is_closing(void *user)
{
    const struct fetch_world *world = user;
    return atomic_load_explicit(&world->is_closing, memory_order_relaxed);
}

static void helper_done(void *user);

static void *helper_run(void *user)
{
    struct fetch_helper *helper = user;
    const struct net_patience patience = {.is_over = is_closing, .user = helper->world};
    const struct site_call call = {.verb = SITE_READ, .key = "-"};
    struct site_made *made = memory_zero(1, sizeof *made);
    if (made) {
        made->request.range_first = WEB_NO_RANGE;
        net_patience_set(&patience);
        helper->status = site_make(helper->site, &call, made, &helper->error);
        net_patience_set(NULL);
        site_made_reset(made);
        memory_free(made);
    } else {
        helper->status = fail_memory(&helper->error, sizeof *made);
    }
    web_later(helper->world->web, 0, helper_done, helper);
    return NULL;
}

/* Not 0: it was in the list, and nobody else joins its thread. Closing leaves all in the list. */
static int helper_remove(struct fetch_helper *helper)
{
    struct fetch_world *world = helper->world;
    pthread_mutex_lock(&world->lock);
    struct fetch_helper **at = &world->helpers;
    const int is_ours = !is_closing(world);
    while (is_ours && *at != helper)
        at = &(*at)->next;
    if (is_ours)
        *at = helper->next;
    pthread_mutex_unlock(&world->lock);
    return is_ours;
}

static void helper_done(void *user)
{
    struct fetch_helper *helper = user;
    struct fetch_world *world = helper->world;
    if (!helper_remove(helper))
        return;                         /* helpers_join joins it, helpers_free frees it */
    pthread_join(helper->thread, NULL); /* it has nothing left to do */
    /* Going on with one may end it, but never another. */
    for (struct fetch_private *inside = world->active, *after; inside; inside = after) {
        after = inside->after;
        if (inside->state != FETCH_MAKING || inside->fetch->site != helper->site)
            continue;
        if (helper->status == STK_OK) {
            fetch_make(inside);
            continue;
        }
        inside->cause = helper->error;
        words_object(inside, &inside->cause);
        fetch_end(inside, helper->status);
    }
    memory_free(helper);
}

static struct fetch_helper *helper_new(struct fetch_private *inside)
{
    struct fetch_world *world = inside->world;
    struct fetch_helper *helper = memory_zero(1, sizeof *helper);
    if (!helper) {
        fail_memory(&inside->cause, sizeof *helper);
        return NULL;
    }
    helper->world = world;
    helper->site = inside->fetch->site;
    pthread_mutex_lock(&world->lock);
    const int failed = pthread_create(&helper->thread, NULL, helper_run, helper);
    if (!failed) {
        helper->next = world->helpers;
        world->helpers = helper;
    }
    pthread_mutex_unlock(&world->lock);
    if (failed) {
        memory_free(helper);
        fail_errno(&inside->cause, failed, "starting a thread");
        return NULL;
    }
    return helper;
}

void helper_await(struct fetch_private *inside)
{
    struct fetch_world *world = inside->world;
    inside->state = FETCH_MAKING;
    if (++inside->makings > MOST_MAKINGS) {
        fetch_end(inside, words_say(inside, STK_DENIED, "check the clock of this machine",
                                    "credentials expire as soon as they are there"));
        return;
    }
    pthread_mutex_lock(&world->lock);
    const struct fetch_helper *helper = world->helpers;
    while (helper && helper->site != inside->fetch->site)
        helper = helper->next;
    pthread_mutex_unlock(&world->lock);
    if (helper || helper_new(inside))
        return;
    words_object(inside, &inside->cause);
    fetch_end(inside, inside->cause.status);
}

void helpers_join(struct fetch_world *world)
{
    pthread_mutex_lock(&world->lock);
    atomic_store_explicit(&world->is_closing, 1, memory_order_relaxed);
    struct fetch_helper *helper = world->helpers; /* from here on the list stays as it is */
    pthread_mutex_unlock(&world->lock);
    for (; helper; helper = helper->next)
        pthread_join(helper->thread, NULL);
}

void helpers_free(struct fetch_world *world)
{
    while (world->helpers) {
        struct fetch_helper *helper = world->helpers;
        world->helpers = helper->next;
        memory_free(helper);
    }
}
