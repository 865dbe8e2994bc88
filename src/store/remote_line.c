#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/remote_parts.h"

#define FLIGHTS_LEAST 4
#define FLIGHTS_MOST 512
#define RANGE_LEAST (UINT64_C(256) << 10)
#define RANGE_ROUND (UINT64_C(64) << 10) /* cuts lie on multiples of it */

/* One fetch of a part of a strip. */
struct flight {
    struct fetch fetch;
    struct flight *next, *before; /* in flying; next alone in idle */
    struct remote *remote;
    struct strip *strip;
    /* under the lock */
    int cancelled, started, landed;
    int held; /* a thread has it in its hands without the lock: it is not used again before that
                 lets go */
    struct iovec parts[STORE_MAX_PARTS];
};

uint32_t parts_cut(const struct iovec *parts, uint32_t count, uint64_t from, uint64_t length,
                   struct iovec *out)
{
    uint32_t made = 0;
    for (uint32_t i = 0; i < count && length; i++) {
        if (from >= parts[i].iov_len) {
            from -= parts[i].iov_len;
            continue;
        }
        uint64_t len = parts[i].iov_len - from;
        len = len < length ? len : length;
        out[made++] = (struct iovec){(char *)parts[i].iov_base + from, len};
        length -= len;
        from = 0;
    }
    assert(length == 0); /* the parts add up */
    return made;
}

/* --- the line --------------------------------------------------------------------------------- */

void line_add(struct remote *remote, struct strip *strip)
{
    strip->next = NULL;
    strip->before = remote->last;
    *(remote->last ? &remote->last->next : &remote->first) = strip;
    remote->last = strip;
    strip->in_line = 1;
}

static void line_remove(struct remote *remote, struct strip *strip)
{
    if (!strip->in_line)
        return;
    *(strip->before ? &strip->before->next : &remote->first) = strip->next;
    *(strip->next ? &strip->next->before : &remote->last) = strip->before;
    strip->in_line = 0;
}

static void strip_settle(struct remote *remote, struct strip *strip)
{
    if (strip->status)
        line_remove(remote, strip);
    if (!strip->in_line && strip->flights == 0)
        strip->over(strip);
}

/* Ends what waits in the line without having been begun. */
static void line_fail(struct remote *remote, const struct stk_error *error)
{
    for (struct strip *strip = remote->first, *next; strip; strip = next) {
        next = strip->next;
        if (strip->flights)
            continue;
        strip->status = error->status;
        remote_note_failure(remote, strip->place->object, strip->offset, strip->length, error);
        strip_settle(remote, strip);
    }
}

/* --- flights ---------------------------------------------------------------------------------- */

static struct flight *flight_take(struct remote *remote)
{
    struct flight *flight = remote->idle;
    if (flight)
        remote->idle = flight->next;
    else
        flight = memory_alloc(sizeof *flight);
    if (!flight)
        return NULL;
    memset(&flight->fetch, 0, sizeof flight->fetch);
    flight->remote = remote;
    flight->cancelled = flight->started = flight->landed = flight->held = 0;
    if (remote->flying_count == 0)
        remote->good_ns = clock_now(); /* from here on it is waited for */
    flight->before = NULL;
    flight->next = remote->flying;
    if (remote->flying)
        remote->flying->before = flight;
    remote->flying = flight;
    remote->flying_count++;
    return flight;
}

static void flight_let_go(struct remote *remote, struct flight *flight)
{
    if (--flight->held || !flight->landed)
        return;
    flight->next = remote->idle;
    remote->idle = flight;
}

static void flight_land(struct remote *remote, struct flight *flight)
{
    *(flight->before ? &flight->before->next : &remote->flying) = flight->next;
    if (flight->next)
        flight->next->before = flight->before;
    remote->flying_count--;
    flight->landed = 1;
    flight->held++;
    flight_let_go(remote, flight);
}

/* A site that answered in another way than the last time, or not at all, is told of in words; that
 * it was not asked to the end is not. */
static void flight_failed(struct remote *remote, struct flight *flight)
{
    const struct fetch *fetch = &flight->fetch;
    struct strip *strip = flight->strip;
    if (!strip->status)
        strip->status = fetch->status;
    if (fetch->status == STK_CANCELLED)
        return;
    remote_note_failure(remote, strip->place->object, fetch->offset, fetch->length, &fetch->error);
    if (fetch->status != STK_IO && fetch->status != STK_LIMIT) /* down, or busy for all that time */
        return;
    int64_t now = clock_now();
    if (now - remote->good_ns < remote->patience_ns)
        return;
    remote->dead_ns = now;
    remote->bad = fetch->error;
    line_fail(remote, &fetch->error);
}

/* On the web's thread. */
static void flight_done(struct fetch *fetch)
{
    struct flight *flight = fetch->owner;
    struct remote *remote = flight->remote;
    struct strip *strip = flight->strip;
    const struct place *place = strip->place;
    if (!fetch->status && !place->etag && fetch->found_etag[0])
        net_etag_learn(remote->net, place->version, fetch->found_etag);
    pthread_mutex_lock(&remote->lock);
    remote->landing++;
    if (fetch->status)
        flight_failed(remote, flight);
    else
        remote->good_ns = clock_now(), remote->dead_ns = 0;
    strip->flights--;
    flight_land(remote, flight);
    strip_settle(remote, strip);
    pthread_mutex_unlock(&remote->lock);
    line_pump(remote);
    pthread_mutex_lock(&remote->lock);
    remote->landing--;
    pthread_cond_broadcast(&remote->quiet);
    pthread_mutex_unlock(&remote->lock);
}

/* How much of a strip the next flight brings: equal shares, and none that is much longer than what
 * is advised. */
static uint64_t strip_share(const struct strip *strip, uint64_t range)
{
    uint64_t left = strip->length - strip->asked;
    range = range < RANGE_LEAST ? RANGE_LEAST : range;
    if (left <= range + range / 2)
        return left;
    uint64_t shares = (left + range - 1) / range;
    uint64_t share = (left / shares + RANGE_ROUND - 1) & ~(RANGE_ROUND - 1);
    return share < left ? share : left;
}

static void flight_aim(struct flight *flight, struct strip *strip, uint64_t length)
{
    struct fetch *fetch = &flight->fetch;
    const struct place *place = strip->place;
    flight->strip = strip;
    fetch->site = place->site;
    fetch->call = (struct site_call){.verb = SITE_READ, .key = place->key};
    fetch->offset = strip->offset + strip->asked;
    fetch->length = length;
    fetch->parts = flight->parts;
    fetch->part_count =
        parts_cut(strip->parts, strip->part_count, strip->asked, length, flight->parts);
    fetch->etag = place->etag;
    fetch->version = place->version;
    fetch->may_hedge = 1;
    fetch->done = flight_done;
    fetch->owner = flight;
    strip->asked += length;
    strip->flights++;
}

/* The next flight of the line, ready to be sent. NULL: there is none, or enough are in the air. */
static struct flight *line_next(struct remote *remote)
{
    struct fetch_advice advice;
    struct flight *flight = NULL;
    while (remote->first && !flight) {
        struct strip *strip = remote->first;
        fetch_advice(strip->place->site, &advice);
        uint32_t most = advice.in_flight < FLIGHTS_LEAST  ? FLIGHTS_LEAST
                        : advice.in_flight > FLIGHTS_MOST ? FLIGHTS_MOST
                                                          : advice.in_flight;
        remote->flying_most = most;
        if (remote->closing || remote->flying_count >= most)
            return NULL;
        flight = flight_take(remote);
        if (!flight && remote->flying_count)
            return NULL; /* tried again when one of those lands */
        if (flight)
            flight_aim(flight, strip, strip_share(strip, advice.range));
        else
            strip->status = STK_MEMORY;
        if (strip->asked == strip->length)
            line_remove(remote, strip);
        if (!flight)
            strip_settle(remote, strip);
    }
    return flight;
}

/* Somebody may have cancelled it before it was even sent. */
static void flight_send(struct remote *remote, struct flight *flight)
{
    fetch_start(&flight->fetch);
    pthread_mutex_lock(&remote->lock);
    flight->started = 1;
    int cancel = flight->cancelled && !flight->landed;
    pthread_mutex_unlock(&remote->lock);
    if (cancel)
        fetch_cancel(&flight->fetch);
    pthread_mutex_lock(&remote->lock);
    flight_let_go(remote, flight);
    pthread_mutex_unlock(&remote->lock);
}

void line_pump(struct remote *remote)
{
    struct flight *flight;
    do {
        pthread_mutex_lock(&remote->lock);
        flight = line_next(remote);
        if (flight)
            flight->held = 1;
        pthread_mutex_unlock(&remote->lock);
        if (flight)
            flight_send(remote, flight);
    } while (flight);
}

/* --- ending ----------------------------------------------------------------------------------- */

typedef int is_mine_fn(const struct strip *strip, void *user);

static struct flight *flight_to_cancel(struct remote *remote, is_mine_fn *is_mine, void *user)
{
    struct flight *flight = remote->flying;
    while (flight && (flight->cancelled || !is_mine(flight->strip, user)))
        flight = flight->next;
    return flight;
}

static int any_flies(struct remote *remote, is_mine_fn *is_mine, void *user)
{
    struct flight *flight = remote->flying;
    while (flight && !is_mine(flight->strip, user))
        flight = flight->next;
    return flight != NULL;
}

void line_cancel(struct remote *remote, is_mine_fn *is_mine, void *user)
{
    struct flight *flight;
    pthread_mutex_lock(&remote->lock);
    for (struct strip *strip = remote->first, *next; strip; strip = next) {
        next = strip->next;
        if (!is_mine(strip, user))
            continue;
        strip->status = strip->status ? strip->status : STK_CANCELLED;
        strip_settle(remote, strip);
    }
    while ((flight = flight_to_cancel(remote, is_mine, user)) != NULL) {
        flight->cancelled = 1;
        if (!flight->started)
            continue; /* whoever starts it sees that */
        flight->held++;
        pthread_mutex_unlock(&remote->lock);
        fetch_cancel(&flight->fetch);
        pthread_mutex_lock(&remote->lock);
        flight_let_go(remote, flight);
    }
    while (any_flies(remote, is_mine, user))
        pthread_cond_wait(&remote->quiet, &remote->lock);
    pthread_mutex_unlock(&remote->lock);
}

void line_free(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    while (remote->landing || remote->flying_count)
        pthread_cond_wait(&remote->quiet, &remote->lock);
    pthread_mutex_unlock(&remote->lock);
    for (struct flight *flight = remote->idle, *next; flight; flight = next) {
        next = flight->next;
        memory_free(flight);
    }
    remote->idle = NULL;
}
