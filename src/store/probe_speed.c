#include "store/probe_speed.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define SPEED_LEAST (UINT64_C(64) << 10)
#define SPEED_MOST (UINT64_C(4) << 20)
#define SPEED_FIRST (UINT64_C(512) << 10)
#define SPEED_ROOM (UINT64_C(64) << 20) /* bytes of all reads in flight */
#define SPEED_SHARE 0.1                 /* seconds that one read should take */
#define SPEED_PATIENCE 10               /* times `seconds` until it is given up */

/* Where fetches that are over wait for the thread that started them. */
struct landing {
    pthread_mutex_t lock;
    pthread_cond_t landed;
    struct flight *over; /* under lock */
};

struct flight {
    struct fetch fetch;
    struct landing *landing;
    struct flight *next;
    struct iovec part;
    struct site_page *page;
    uint8_t *memory;
    int is_flying;
};

static void landing_open(struct landing *landing)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    *landing = (struct landing){0};
    pthread_mutex_init(&landing->lock, NULL);
    pthread_cond_init(&landing->landed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void landing_close(struct landing *landing)
{
    pthread_cond_destroy(&landing->landed);
    pthread_mutex_destroy(&landing->lock);
}

/* On the web's thread. A page is read here, while its answer is still there. */
static void land(struct fetch *fetch)
{
    struct flight *flight = fetch->owner;
    struct landing *landing = flight->landing;
    if (!fetch->status && flight->page) {
        const struct text *text = fetch->text;
        fetch->status = fetch->site->ops->read_page(fetch->site, &fetch->call, fetch->answer,
                                                    text->data ? text->data : "", text->len,
                                                    flight->page, &fetch->error);
    }
    pthread_mutex_lock(&landing->lock);
    flight->next = landing->over;
    landing->over = flight;
    pthread_cond_signal(&landing->landed);
    pthread_mutex_unlock(&landing->lock);
}

/* The next that is over; NULL: none was within a tenth of a second. */
static struct flight *landing_next(struct landing *landing)
{
    int64_t until_ns = clock_now() + 100000000;
    struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    int late = 0;
    pthread_mutex_lock(&landing->lock);
    while (!landing->over && !late)
        late = pthread_cond_timedwait(&landing->landed, &landing->lock, &until) != 0;
    struct flight *flight = landing->over;
    if (flight)
        landing->over = flight->next;
    pthread_mutex_unlock(&landing->lock);
    if (flight)
        flight->is_flying = 0;
    return flight;
}

static void flight_start(struct flight *flight, struct landing *landing)
{
    flight->landing = landing;
    flight->fetch.owner = flight;
    flight->fetch.done = land;
    flight->is_flying = 1;
    fetch_start(&flight->fetch);
}

static int is_over(void)
{
    struct net_patience patience = net_patience();
    return patience.is_over && patience.is_over(patience.user);
}

stk_status probe_fetch(struct fetch *fetch, struct site_page *page, struct stk_error *err)
{
    struct landing landing;
    struct flight flight = {.fetch = *fetch, .page = page};
    int cancelled = 0;
    landing_open(&landing);
    flight_start(&flight, &landing);
    while (!landing_next(&landing))
        if (!cancelled && is_over()) {
            cancelled = 1;
            fetch_cancel(&flight.fetch);
        }
    landing_close(&landing);
    flight.fetch.answer = NULL;
    *fetch = flight.fetch;
    if (fetch->status && err)
        *err = fetch->error;
    return fetch->status;
}

/* ---- many at a time ------------------------------------------------------------------------ */

struct rush {
    const struct probe_load *load;
    struct landing landing;
    struct flight *flights;
    uint64_t range; /* bytes of one read */
    uint64_t next;  /* which read comes next */
};

static uint64_t rush_range(const struct probe_load *load)
{
    uint64_t room = SPEED_ROOM / load->at_once, range = SPEED_FIRST;
    if (load->expected > 0) {
        double wanted = load->expected / load->at_once * SPEED_SHARE;
        range = wanted > (double)SPEED_MOST ? SPEED_MOST : (uint64_t)wanted;
    }
    if (range < SPEED_LEAST)
        range = SPEED_LEAST;
    return range < room ? range : room;
}

/* Reads go round the objects, and through each of them from its beginning. */
static void rush_start(struct rush *rush, struct flight *flight)
{
    const struct probe_load *load = rush->load;
    uint64_t number = rush->next++;
    const struct probe_object *object = &load->objects[number % load->object_count];
    uint64_t ranges = (object->size + rush->range - 1) / rush->range;
    uint64_t offset = number / load->object_count % ranges * rush->range;
    uint64_t left = object->size - offset;
    uint8_t *memory = flight->memory;
    *flight = (struct flight){.memory = memory};
    flight->part = (struct iovec){memory, left < rush->range ? left : rush->range};
    flight->fetch = (struct fetch){
        .site = load->site,
        .call = {.verb = SITE_READ, .key = object->key},
        .offset = offset,
        .length = flight->part.iov_len,
        .parts = &flight->part,
        .part_count = 1,
    };
    flight_start(flight, &rush->landing);
}

/* Cancels what flies and waits for it. */
static void rush_end(struct rush *rush)
{
    uint32_t flying = 0;
    for (uint32_t i = 0; i < rush->load->at_once; i++)
        if (rush->flights[i].is_flying) {
            fetch_cancel(&rush->flights[i].fetch);
            flying++;
        }
    while (flying)
        flying -= landing_next(&rush->landing) != NULL;
}

/* Until the time is over and something came, or until it is hopeless. */
static stk_status rush_run(struct rush *rush, double *bytes_per_s, struct stk_error *err)
{
    const struct probe_load *load = rush->load;
    int64_t begun = clock_now(), last = begun;
    uint64_t bytes = 0;
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < load->at_once; i++)
        rush_start(rush, &rush->flights[i]);
    for (;;) {
        struct flight *flight = landing_next(&rush->landing);
        double took = (double)(clock_now() - begun) * 1e-9;
        if (is_over())
            status = fail(err, STK_CANCELLED, "stopped on request");
        if (!status && flight && flight->fetch.status) {
            status = flight->fetch.status;
            if (err)
                *err = flight->fetch.error;
        }
        if (!status && flight) {
            bytes += flight->fetch.length;
            last = clock_now();
        }
        int over = took > load->seconds && bytes;
        if (status || over || took > load->seconds * SPEED_PATIENCE)
            break;
        if (flight)
            rush_start(rush, flight);
    }
    rush_end(rush);
    *bytes_per_s = last > begun ? (double)bytes * 1e9 / (double)(last - begun) : 0;
    return status;
}

stk_status probe_speed(const struct probe_load *load, double *bytes_per_s, struct stk_error *err)
{
    struct rush rush = {.load = load, .range = rush_range(load)};
    stk_status status = STK_OK;
    *bytes_per_s = 0;
    rush.flights = memory_zero(load->at_once, sizeof *rush.flights);
    if (!rush.flights)
        return fail_memory(err, load->at_once * sizeof *rush.flights);
    landing_open(&rush.landing);
    for (uint32_t i = 0; i < load->at_once && !status; i++) {
        rush.flights[i].memory = memory_alloc(rush.range);
        if (!rush.flights[i].memory)
            status = fail_memory(err, rush.range);
    }
    if (!status)
        status = rush_run(&rush, bytes_per_s, err);
    for (uint32_t i = 0; i < load->at_once; i++)
        memory_free(rush.flights[i].memory);
    landing_close(&rush.landing);
    memory_free(rush.flights);
    return status;
}
