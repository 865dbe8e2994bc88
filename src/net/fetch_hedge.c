/* The second request for a slow one: when it begins, and what becomes of it. See struct
 * fetch_hedge for why the two never write the same memory. */
#include "net/fetch_parts.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

#define HEDGES_MOST_BYTES ((uint64_t)64 << 20) /* in buffers of all hedges of a process */

void hedge_free(struct fetch_private *inside)
{
    struct fetch_hedge *hedge = inside->hedge;
    if (!hedge)
        return;
    attempt_reset(&hedge->attempt);
    inside->world->hedge_bytes -= hedge->bytes;
    memory_free(hedge->place.iov_base);
    memory_free(hedge);
    inside->hedge = NULL;
}

void hedge_drop(struct fetch_private *inside)
{
    struct fetch_hedge *hedge = inside->hedge;
    if (!hedge || hedge->is_dropped)
        return;
    hedge->is_dropped = 1;
    if (hedge->attempt.is_running)
        web_cancel(inside->world->web, &hedge->attempt.made.request);
    else
        hedge_free(inside);
}

/* From where on a second request is of use: behind what came, where an ETag makes sure that it is
 * of the same object; else all that the first one asked for. */
static uint64_t hedge_first_byte(const struct fetch_private *inside)
{
    const struct web_request *request = &inside->first.made.request;
    const struct web_answer *answer = &request->answer;
    const int is_good = answer->status >= 200 && answer->status < 300;
    return request->etag && is_good ? inside->first.first + answer->received : inside->first.first;
}

static int hedge_reserve(struct fetch_private *inside, uint64_t bytes)
{
    struct fetch_world *world = inside->world;
    if (bytes == 0 || bytes > HEDGES_MOST_BYTES - world->hedge_bytes)
        return 0;
    struct fetch_hedge *hedge = memory_zero(1, sizeof *hedge);
    void *place = hedge ? memory_alloc((size_t)bytes) : NULL;
    if (!place) {
        memory_free(hedge);
        return 0;
    }
    hedge->bytes = bytes;
    hedge->place = (struct iovec){.iov_base = place, .iov_len = (size_t)bytes};
    world->hedge_bytes += bytes;
    inside->hedge = hedge;
    return 1;
}

static void hedge_begin(struct fetch_private *inside)
{
    struct fetch *fetch = inside->fetch;
    const uint64_t first = hedge_first_byte(inside);
    if (!hedge_reserve(inside, fetch->length - first))
        return;
    struct fetch_hedge *hedge = inside->hedge;
    struct attempt *attempt = &hedge->attempt;
    struct web_request *request = &attempt->made.request;
    attempt->inside = inside;
    attempt->first = first;
    attempt->count = hedge->bytes;
    request->range_first = fetch->offset + first;
    request->range_length = hedge->bytes;
    request->parts = &hedge->place;
    request->part_count = 1;
    /* The first request's text outlives neither it nor the fetch; a hedge may outlive both. */
    if (inside->first.made.request.etag) {
        strncpy(hedge->etag, inside->first.made.request.etag, sizeof hedge->etag - 1);
        request->etag = hedge->etag;
    }
    if (site_make_now(fetch->site, &fetch->call, &attempt->made, NULL)) {
        hedge_free(inside);
        return;
    }
    request->new_connection = 1; /* the old one may be what is slow */
    request->http1 = inside->first.made.request.http1;
    request->done = attempt_done;
    request->owner = attempt;
    attempt->is_running = 1;
    fetch->hedges++;
    hedge_took(&inside->host->hedge);
    world_sent(inside, 1);
    atomic_fetch_add_explicit(&inside->references, 1, memory_order_relaxed);
    web_start(inside->world->web, request);
}

void hedge_look(struct fetch_private *inside, int64_t now_ns)
{
    const struct web_answer *answer = &inside->first.made.request.answer;
    const struct hedge *known = &inside->host->hedge;
    inside->hedge_ns = 0;
    if (inside->hedge || !inside->first.is_running || inside->redirect.len || !hedge_may(known))
        return;
    const int64_t due = answer->started_ns ? answer->started_ns + hedge_wait(known) : 0;
    if (now_ns < due || !due) { /* it waited for a connection: that is not its host's fault */
        inside->hedge_ns = due ? due : now_ns + hedge_wait(known);
        return;
    }
    const uint64_t left = inside->first.count - answer->received;
    const int64_t took = answer->first_byte_ns ? now_ns - answer->first_byte_ns : 0;
    if (answer->received && !hedge_is_slow(known, answer->received, left, took)) {
        inside->hedge_ns = now_ns + hedge_wait(known); /* it flows; let us see how long */
        return;
    }
    hedge_begin(inside);
}

static int hedge_is_good(const struct fetch_private *inside)
{
    const struct attempt *attempt = &inside->hedge->attempt;
    const struct web_answer *answer = &attempt->made.request.answer;
    if (answer->failure != WEB_FINE || answer->status < 200 || answer->status > 299)
        return 0;
    return answer->received == attempt->count && judge_is_of_object(inside, answer);
}

static void hedge_finish(struct fetch_private *inside)
{
    struct fetch_hedge *hedge = inside->hedge;
    struct fetch_world *world = inside->world;
    range_copy(inside, hedge->attempt.first, hedge->place.iov_base, hedge->bytes);
    world_count(world, &world->counts.hedges_won, 1);
    fetch_end(inside, STK_OK);
}

/* Called when the hedge ended, and again when it had won and the first request's end came, too. */
void hedge_done(struct fetch_private *inside)
{
    struct fetch_hedge *hedge = inside->hedge;
    if (hedge->is_whole) {
        hedge_finish(inside);
        return;
    }
    const int is_wanted = inside->fetch && !hedge->is_dropped && inside->state == FETCH_RUNNING;
    const int is_alone = !inside->first.is_running;
    /* What lies before it must be in place: what the first one had brought when it began. */
    const int fits = !is_alone || hedge->attempt.first <= inside->got;
    if (is_wanted && fits && hedge_is_good(inside)) {
        hedge->is_whole = 1;
        if (is_alone) {
            hedge_finish(inside);
            return;
        }
        inside->state = FETCH_STOPPING;
        web_cancel(inside->world->web, &inside->first.made.request);
        return;
    }
    hedge_free(inside);
    if (is_wanted && is_alone)
        fetch_later(inside);
}
