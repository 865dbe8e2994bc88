/* A fetch is a small machine. fetch_start makes it on the caller's thread (and signs its first
 * request there); all steps behind that run on the web's thread, one at a time, so that the machine
 * needs no lock. fetch_cancel only leaves a word.
 *
 *        fetch_start
 *            |
 *           NEW
 *            |
 *          (make) <------------------------------------+------------------.
 *            |   \                                     |                  |
 *            |    `-- no credentials yet --> MAKING ---' a helper         |
 *            |                                           has them         |
 *            v                      LATER                                 |
 *         RUNNING --------------------------------> WAITING --------------+
 *          | | |                                      the moment came,    |
 *          | | `-- AGAIN (signed anew), REDIRECT        tokens are paid   |
 *          | |      `------------------------------------------------------'
 *          | |
 *          | `-- DONE, FAIL -----------------------------.
 *          |                                             |
 *          `-- cancelled, too late, the hedge won        |
 *                |                                       |
 *            STOPPING -- its request ended ----------> OVER: done()
 *
 * A cancel or a deadline leads from every state to OVER, by way of STOPPING where a request still
 * writes into the caller's memory. A hedge lives beside RUNNING (fetch_hedge.c). */
#include "net/fetch.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "net/fetch_parts.h"

void attempt_reset(struct attempt *attempt)
{
    assert(!attempt->is_running);
    web_answer_free(&attempt->made.request.answer);
    site_made_reset(&attempt->made);
    memset(attempt, 0, sizeof *attempt);
}

static void fetch_hold(struct fetch_private *inside)
{
    atomic_fetch_add_explicit(&inside->references, 1, memory_order_relaxed);
}

void fetch_release(struct fetch_private *inside)
{
    /* Pairs with the other threads' releases: the last one sees all they wrote. */
    if (atomic_fetch_sub_explicit(&inside->references, 1, memory_order_acq_rel) != 1)
        return;
    hedge_free(inside);
    attempt_reset(&inside->first);
    text_free(&inside->own);
    redirect_free(&inside->redirect);
    memory_free(inside);
}

/* The fetch is over: nothing of it is touched behind done(). */
static void fetch_tell(struct fetch_private *inside, struct attempt *attempt)
{
    struct fetch *fetch = inside->fetch;
    const struct web_answer *answer = &attempt->made.request.answer;
    _Static_assert(sizeof fetch->found_etag == sizeof answer->etag, "copied whole");
    _Static_assert(sizeof fetch->last_modified == sizeof answer->last_modified, "copied whole");
    _Static_assert(sizeof fetch->content_type == sizeof answer->content_type, "copied whole");
    memcpy(fetch->found_etag, answer->etag, sizeof fetch->found_etag);
    memcpy(fetch->last_modified, answer->last_modified, sizeof fetch->last_modified);
    memcpy(fetch->content_type, answer->content_type, sizeof fetch->content_type);
    fetch->took_ns = clock_now() - inside->started_ns;
    if (answer->first_byte_ns)
        fetch->first_byte_ns = answer->first_byte_ns - answer->started_ns;
    const int is_object = fetch->call.verb == SITE_READ || fetch->call.verb == SITE_STAT;
    if (fetch->status != STK_OK || !is_object)
        return;
    fetch->object_size = judge_size(answer);
    if (fetch->object_size == STK_NOWHERE && fetch->text)
        fetch->object_size = fetch->text->len - inside->text_base;
    if (!fetch->etag && *answer->etag)
        net_etag_learn(inside->world->net,
                       site_version(answer->etag, fetch->object_size, answer->last_modified),
                       answer->etag);
}

void fetch_end(struct fetch_private *inside, stk_status status)
{
    struct fetch *fetch = inside->fetch;
    struct fetch_world *world = inside->world;
    struct attempt *attempt = &inside->first;
    assert(!attempt->is_running && inside->state != FETCH_OVER);
    if (inside->hedge && inside->hedge->is_whole)
        attempt = &inside->hedge->attempt; /* its answer is the one that counts */
    else
        hedge_drop(inside);
    range_seek(inside, 0); /* mends the parts */
    inside->state = FETCH_OVER;
    world_remove(world, inside);
    fetch->status = status;
    if (status) {
        fetch->error = inside->cause;
        fetch->error.status = status;
        words_tries(inside, &fetch->error);
    } else if (inside->host) {
        retry_earn(&inside->host->budget, inside->paid > 0 ? inside->paid : 1);
    }
    fetch_tell(inside, attempt);
    fetch->answer = &attempt->made.request.answer;
    pthread_mutex_lock(&world->lock); /* fetch_cancel of another thread finds it, or does not */
    fetch->inside = NULL;
    pthread_mutex_unlock(&world->lock);
    inside->fetch = NULL;
    fetch->done(fetch);
    if (inside->hedge && inside->hedge->is_whole)
        hedge_free(inside); /* here, since the last release may be another thread's */
    fetch_release(inside);
}

void fetch_stop(struct fetch_private *inside, stk_status status)
{
    if (inside->state == FETCH_STOPPING || inside->state == FETCH_OVER)
        return;
    hedge_drop(inside);
    if (!inside->first.is_running) {
        fetch_end(inside, status);
        return;
    }
    inside->state = FETCH_STOPPING;
    inside->status = status;
    web_cancel(inside->world->web, &inside->first.made.request);
}

static void fetch_send(struct fetch_private *inside)
{
    struct fetch_host *host = inside->host;
    struct fetch *fetch = inside->fetch;
    struct web_request *request = &inside->first.made.request;
    const int64_t now = world_now(inside->world);
    const int is_range = fetch_is_ranged(fetch);
    inside->state = FETCH_RUNNING;
    inside->first.is_running = 1;
    inside->hedge_ns = fetch->may_hedge && is_range ? now + hedge_wait(&host->hedge) : 0;
    if (inside->hedge_ns)
        world_wake(inside->world, inside->hedge_ns);
    world_sent(inside, 0);
    request->done = attempt_done;
    request->owner = &inside->first;
    web_start(inside->world->web, request);
}

void fetch_make(struct fetch_private *inside)
{
    struct fetch *fetch = inside->fetch;
    attempt_reset(&inside->first);
    text_free(&inside->own);
    redirect_free(&inside->redirect); /* each try begins where the site is, not where it led */
    inside->redirects = 0;
    inside->is_foreign = 0;
    range_prepare(inside, &inside->first);
    const stk_status status =
        site_make_now(fetch->site, &fetch->call, &inside->first.made, &inside->cause);
    if (status == STK_BUSY) {
        helper_await(inside);
    } else if (status) {
        if (!*inside->cause.object)
            words_object(inside, &inside->cause);
        fetch_end(inside, status);
    } else {
        fetch->tries++;
        fetch_send(inside);
    }
}

/* The same request once more, elsewhere. To another origin no header of ours goes along: they may
 * be secrets, or signed. */
static void fetch_redirect(struct fetch_private *inside)
{
    struct web_request *request = &inside->first.made.request;
    web_answer_free(&request->answer);
    request->url = inside->redirect.data;
    if (inside->is_foreign)
        request->header_count = 0;
    fetch_send(inside);
}

void fetch_later(struct fetch_private *inside)
{
    struct fetch_world *world = inside->world;
    const struct verdict *verdict = &inside->verdict;
    const int64_t now = world_now(world);
    inside->fruitless++;
    if (verdict->tries_most && ++inside->few >= verdict->tries_most) {
        fetch_end(inside, verdict->status);
        return;
    }
    if (verdict->is_throttle)
        world_throttled(inside, now);
    const struct retry_cause cause = {.tries = inside->fruitless,
                                      .is_throttle = verdict->is_throttle,
                                      .retry_after_ms = verdict->retry_after_ms,
                                      .random = world_random(world)};
    const int64_t wait = retry_wait(&cause);
    /* Past it already: world_tick knows whether it was the process that stood still. */
    if (now < inside->deadline_ns && now + wait >= inside->deadline_ns) {
        fetch_end(inside, verdict->status);
        return;
    }
    inside->unpaid = verdict->is_throttle ? RETRY_COST_THROTTLED : RETRY_COST;
    inside->wake_ns = now + wait;
    inside->state = FETCH_WAITING;
    world_wake(world, inside->wake_ns);
}

/* The wait is over. A host whose budget is spent is left alone for a while more. */
static void fetch_retry(struct fetch_private *inside, int64_t now_ns)
{
    struct fetch_world *world = inside->world;
    if (!retry_pay(&inside->host->budget, now_ns, inside->unpaid)) {
        inside->wake_ns = now_ns + (int64_t)((0.5 + world_random(world)) * RETRY_BASE_THROTTLED_NS);
        world_wake(world, inside->wake_ns);
        return;
    }
    inside->paid = inside->unpaid;
    world_count(world, &world->counts.retries, 1);
    fetch_make(inside);
}

static void first_done(struct fetch_private *inside)
{
    if (inside->state == FETCH_STOPPING) {
        if (inside->hedge && inside->hedge->is_whole)
            hedge_done(inside);
        else
            fetch_end(inside, inside->status);
        return;
    }
    inside->verdict = fetch_judge(inside, &inside->first);
    switch (inside->verdict.kind) {
    case VERDICT_DONE:
        fetch_end(inside, STK_OK);
        break;
    case VERDICT_FAIL:
        fetch_end(inside, inside->verdict.status);
        break;
    case VERDICT_AGAIN:
        hedge_drop(inside);
        fetch_make(inside);
        break;
    case VERDICT_REDIRECT:
        hedge_drop(inside);
        fetch_redirect(inside);
        break;
    case VERDICT_LATER:
        if (!inside->hedge || inside->hedge->is_dropped)
            fetch_later(inside);
        break; /* else it is up to the hedge: hedge_done */
    }
}

void attempt_done(struct web_request *request)
{
    struct attempt *attempt = request->owner;
    struct fetch_private *inside = attempt->inside;
    const int is_hedge = attempt != &inside->first;
    attempt->is_running = 0;
    world_learn(inside, attempt, is_hedge && inside->hedge->is_dropped);
    if (is_hedge) {
        hedge_done(inside);
        fetch_release(inside);
    } else {
        first_done(inside);
    }
}

static void fetch_late(struct fetch_private *inside)
{
    if (!inside->cause.status)
        words_say(inside, STK_IO, "`stoker check URI` tries each step; STOKER_TIMEOUT is the limit",
                  "%s: no answer within %.1f s", inside->fetch->site->host,
                  (double)(clock_now() - inside->started_ns) * 1e-9);
    fetch_stop(inside, inside->cause.status);
}

void fetch_look(struct fetch_private *inside, int64_t now_ns)
{
    if (inside->state == FETCH_STOPPING)
        return;
    if (now_ns >= inside->deadline_ns)
        fetch_late(inside);
    else if (inside->state == FETCH_WAITING && now_ns >= inside->wake_ns)
        fetch_retry(inside, now_ns);
    else if (inside->state == FETCH_RUNNING && inside->hedge_ns && now_ns >= inside->hedge_ns)
        hedge_look(inside, now_ns);
}

static void say_cancelled(struct fetch_private *inside)
{
    words_say(inside, STK_CANCELLED, "", "stopped on request");
    fetch_stop(inside, STK_CANCELLED);
}

static void fetch_begin(void *user)
{
    struct fetch_private *inside = user;
    struct fetch_world *world = inside->world;
    world_add(world, inside);
    if (atomic_load_explicit(&inside->cancelled, memory_order_relaxed)) {
        say_cancelled(inside);
    } else if (inside->status || range_is_whole(inside)) {
        fetch_end(inside, inside->status);
    } else if (inside->is_made) {
        inside->fetch->tries++;
        fetch_send(inside);
    } else {
        helper_await(inside);
    }
}

static void fetch_cancelled(void *user)
{
    struct fetch_private *inside = user;
    /* Before fetch_begin there is only the flag, which that one looks at. */
    if (inside->fetch && inside->state != FETCH_NEW && inside->state != FETCH_STOPPING)
        say_cancelled(inside);
    fetch_release(inside);
}

void fetch_cancel(struct fetch *fetch)
{
    struct fetch_world *world = net_fetch_world(fetch->site->net);
    pthread_mutex_lock(&world->lock);
    struct fetch_private *inside = fetch->inside;
    if (inside)
        fetch_hold(inside);
    pthread_mutex_unlock(&world->lock);
    if (!inside || atomic_exchange_explicit(&inside->cancelled, 1, memory_order_relaxed)) {
        if (inside)
            fetch_release(inside);
        return;
    }
    web_later(world->web, 0, fetch_cancelled, inside);
}

static void fetch_without_memory(void *user)
{
    struct fetch *fetch = user;
    fetch->status = fail_memory(&fetch->error, sizeof(struct fetch_private));
    fetch->done(fetch);
}

static void fetch_clear(struct fetch *fetch)
{
    fetch->status = STK_OK;
    memset(&fetch->error, 0, sizeof fetch->error);
    fetch->object_size = STK_NOWHERE;
    fetch->found_etag[0] = fetch->last_modified[0] = fetch->content_type[0] = '\0';
    fetch->upload[0] = '\0';
    fetch->answer = NULL;
    fetch->tries = fetch->hedges = 0;
    fetch->first_byte_ns = fetch->took_ns = 0;
    fetch->inside = NULL;
}

/* The first request is made on the caller's thread: signing costs some time, and callers are many
 * where the web's thread is one. */
static void fetch_first(struct fetch_private *inside)
{
    struct fetch *fetch = inside->fetch;
    range_prepare(inside, &inside->first);
    if (range_is_whole(inside))
        return; /* of length 0 */
    const stk_status status =
        site_make_now(fetch->site, &fetch->call, &inside->first.made, &inside->cause);
    inside->is_made = !status;
    if (status && status != STK_BUSY) {
        inside->status = status;
        if (!*inside->cause.object)
            words_object(inside, &inside->cause);
    } else if (status) {
        inside->cause = (struct stk_error){0};
    }
}

void fetch_start(struct fetch *fetch)
{
    struct net *net = fetch->site->net;
    struct fetch_world *world = net_fetch_world(net);
    struct fetch_private *inside = memory_zero(1, sizeof *inside);
    struct fetch_host *host = inside ? world_host(world, fetch->site->host) : NULL;
    assert(!fetch_is_ranged(fetch) || fetch->parts || !fetch->length);
    fetch_clear(fetch);
    if (!host) {
        memory_free(inside);
        web_later(world->web, 0, fetch_without_memory, fetch);
        return;
    }
    atomic_init(&inside->references, 1);
    inside->fetch = fetch;
    inside->world = world;
    inside->host = host;
    inside->started_ns = clock_now();
    inside->deadline_ns = fetch->deadline_ns;
    if (!inside->deadline_ns)
        inside->deadline_ns = inside->started_ns + net_settings(net)->timeout_s * 1000000000LL;
    inside->total = inside->object_size = STK_NOWHERE;
    inside->text_base = fetch->text ? fetch->text->len : 0;
    fetch->inside = inside;
    fetch_first(inside);
    web_later(world->web, 0, fetch_begin, inside);
}
