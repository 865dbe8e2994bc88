#include "net/fetch_world.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "net/fetch_parts.h"

#define TICK_MOST_NS 250000000LL
#define TICK_LEAST_NS 2000000LL
#define TICK_LATE_NS 2000000000LL

stk_status fetch_world_new(struct fetch_world **out, struct net *net, struct stk_error *err)
{
    struct fetch_world *world = memory_zero(1, sizeof *world);
    pthread_condattr_t attributes;
    *out = NULL;
    if (!world)
        return fail_memory(err, sizeof *world);
    world->net = net;
    world->web = net_web(net);
    pthread_mutex_init(&world->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&world->listed, &attributes);
    pthread_condattr_destroy(&attributes);
    world->random_key = random_key((uint64_t)clock_now(), (uint64_t)getpid());
    *out = world;
    return STK_OK;
}

void fetch_world_stop(struct fetch_world *world)
{
    if (world)
        helpers_join(world);
}

void fetch_world_free(struct fetch_world *world)
{
    if (!world)
        return;
    assert(!world->active);
    listings_free(world);
    helpers_free(world);
    while (world->hosts) {
        struct fetch_host *host = world->hosts;
        world->hosts = host->next;
        memory_free(host->name);
        memory_free(host);
    }
    pthread_cond_destroy(&world->listed);
    pthread_mutex_destroy(&world->lock);
    memory_free(world);
}

double world_random(struct fetch_world *world)
{
    return random_unit(world->random_key, world->random_count++);
}

static struct fetch_host *host_new(const char *name)
{
    struct fetch_host *host = memory_zero(1, sizeof *host);
    char *copy = host ? memory_text(name, strlen(name)) : NULL;
    if (!copy) {
        memory_free(host);
        return NULL;
    }
    host->name = copy;
    retry_budget_init(&host->budget, clock_now());
    pace_init(&host->pace);
    return host;
}

struct fetch_host *world_host(struct fetch_world *world, const char *name)
{
    pthread_mutex_lock(&world->lock);
    struct fetch_host *host = world->hosts;
    while (host && strcmp(host->name, name) != 0)
        host = host->next;
    if (!host && (host = host_new(name))) {
        host->next = world->hosts;
        world->hosts = host;
    }
    pthread_mutex_unlock(&world->lock);
    return host;
}

/* Time in which this process was stopped counts for nobody: deadlines move by it. */
int64_t world_now(struct fetch_world *world)
{
    const int64_t stopped = web_stopped_ns(world->web);
    const int64_t gap = stopped - world->stopped_ns;
    world->stopped_ns = stopped;
    if (gap > 0) {
        for (struct fetch_private *inside = world->active; inside; inside = inside->after) {
            inside->deadline_ns += gap;
            inside->hedge_ns += inside->hedge_ns ? gap : 0;
        }
    }
    return clock_now();
}

static void world_tick(void *user)
{
    struct fetch_world *world = user;
    const int64_t now = world_now(world);
    if (!world->tick_ns || now < world->tick_ns)
        return; /* an earlier one came before it and asked for the next */
    const int is_late = now - world->tick_ns > TICK_LATE_NS;
    world->tick_ns = 0;
    if (is_late) { /* we stood still: the web will say how long, and nobody is judged before */
        world_wake(world, now + TICK_LEAST_NS);
        return;
    }
    int64_t next = now + TICK_MOST_NS;
    /* Looking at one may end it, but never another. */
    for (struct fetch_private *inside = world->active, *after; inside; inside = after) {
        after = inside->after;
        fetch_look(inside, now);
    }
    for (struct fetch_private *inside = world->active; inside; inside = inside->after) {
        int64_t due = inside->deadline_ns;
        if (inside->state == FETCH_WAITING && inside->wake_ns < due)
            due = inside->wake_ns;
        if (inside->state == FETCH_RUNNING && inside->hedge_ns && inside->hedge_ns < due)
            due = inside->hedge_ns;
        if (due < next)
            next = due;
    }
    if (world->active)
        world_wake(world, next > now + TICK_LEAST_NS ? next : now + TICK_LEAST_NS);
}

void world_wake(struct fetch_world *world, int64_t when_ns)
{
    if (world->tick_ns && world->tick_ns <= when_ns)
        return;
    world->tick_ns = when_ns;
    web_later(world->web, when_ns, world_tick, world);
}

void world_add(struct fetch_world *world, struct fetch_private *inside)
{
    const int64_t now = world_now(world);
    inside->after = world->active;
    if (world->active)
        world->active->before = inside;
    world->active = inside;
    world_wake(world, now + TICK_MOST_NS);
}

void world_remove(struct fetch_world *world, struct fetch_private *inside)
{
    if (inside->before)
        inside->before->after = inside->after;
    else
        world->active = inside->after;
    if (inside->after)
        inside->after->before = inside->before;
    inside->before = inside->after = NULL;
}

void world_count(struct fetch_world *world, uint64_t *which, uint64_t by)
{
    pthread_mutex_lock(&world->lock);
    *which += by;
    pthread_mutex_unlock(&world->lock);
}

void world_sent(struct fetch_private *inside, int is_hedge)
{
    struct fetch_world *world = inside->world;
    inside->host->in_flight++;
    if (!is_hedge)
        hedge_sent(&inside->host->hedge);
    pthread_mutex_lock(&world->lock);
    world->counts.requests++;
    world->counts.hedges += is_hedge ? 1 : 0;
    pthread_mutex_unlock(&world->lock);
}

void world_learn(struct fetch_private *inside, const struct attempt *attempt, int is_wasted)
{
    struct fetch_world *world = inside->world;
    struct fetch_host *host = inside->host;
    const struct web_answer *answer = &attempt->made.request.answer;
    const int64_t now = world_now(world);
    const int is_good = answer->status >= 200 && answer->status < 300;
    const int64_t first = answer->first_byte_ns ? answer->first_byte_ns - answer->started_ns : 0;
    host->in_flight--;
    if (is_good && first > 0)
        hedge_learn(&host->hedge, first);
    else if (answer->failure == WEB_CANCELLED && answer->started_ns)
        hedge_learn(&host->hedge, now - answer->started_ns); /* it took at least that */
    if (is_good && answer->failure == WEB_FINE && answer->first_byte_ns)
        hedge_learn_body(&host->hedge, answer->received,
                         answer->finished_ns - answer->first_byte_ns);
    pthread_mutex_lock(&world->lock);
    if (is_wasted)
        world->counts.wasted_bytes += answer->received;
    else
        world->counts.bytes += answer->received;
    if (is_good && first > 0)
        pace_learn(&host->pace, &(struct pace_answer){.now_ns = now,
                                                      .first_byte_ns = first,
                                                      .bytes = answer->received,
                                                      .in_flight = host->in_flight});
    pthread_mutex_unlock(&world->lock);
}

void world_throttled(struct fetch_private *inside, int64_t now_ns)
{
    struct fetch_world *world = inside->world;
    pthread_mutex_lock(&world->lock);
    world->counts.throttles++;
    pace_throttled(&inside->host->pace, now_ns);
    pthread_mutex_unlock(&world->lock);
}

void fetch_counts(struct net *net, struct fetch_counts *out)
{
    struct fetch_world *world = net_fetch_world(net);
    pthread_mutex_lock(&world->lock);
    *out = world->counts;
    pthread_mutex_unlock(&world->lock);
}

void fetch_advice(struct site *site, struct fetch_advice *out)
{
    struct fetch_world *world = net_fetch_world(site->net);
    struct fetch_host *host = world_host(world, site->host);
    *out = (struct fetch_advice){.in_flight = PACE_FIRST_IN_FLIGHT, .range = PACE_FIRST_RANGE};
    if (!host)
        return; /* no memory: whoever asks will notice for itself */
    pthread_mutex_lock(&world->lock);
    out->in_flight = pace_in_flight(&host->pace);
    out->range = pace_range(&host->pace);
    pthread_mutex_unlock(&world->lock);
}
