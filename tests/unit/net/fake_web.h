/* fake_web.h -- a web without a network and a clock without time: requests are answered by a
 * script, and time passes only when nothing is left to do before it. Stands in for web.c, net.c,
 * site.c and base/clock.c, so that a fetch can be tested to the nanosecond.
 * Owns: its events.   Threads: the test's own is the web's; others may call web_later.   Errors: a
 * failed assertion.   Not here: any test. */
#ifndef TESTS_NET_FAKE_WEB_H
#define TESTS_NET_FAKE_WEB_H

#include "base/testing.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "net/fetch_parts.h"

#define MS 1000000LL
#define SECOND 1000000000LL
#define OBJECT_SIZE 1000000

/* What one request is answered with. */
struct reply {
    int status; /* 0: 206 or 200, as was asked for */
    enum web_failure failure;
    int64_t after_ms; /* the end comes so much later */
    int64_t first_ms; /* the first byte comes so much later */
    uint64_t early;   /* bytes that come with it */
    uint64_t bytes;   /* of a failure: good bytes before it */
    const char *etag; /* NULL: "v1" */
    const char *modified;
    const char *location, *body, *type;
    int64_t retry_after_s; /* 0: not told */
    int never;             /* no end, until it is cancelled */
};

struct sent { /* what a request was like */
    char url[256];
    uint64_t first, length;
    char etag[64];
    uint32_t headers;
    int new_connection;
    int64_t at_ns;
};

#define EVENTS 4096
#define SENT 8192
struct event {
    int64_t when_ns;
    uint64_t order;
    void (*call)(void *user);
    void *user;
    struct web_request *request; /* its end */
    struct reply reply;
    int is_early; /* not its end, but its first bytes */
};

struct web {
    pthread_t thread;
    pthread_mutex_t lock; /* of events, of time, and of what helpers say */
    int64_t now_ns, stopped_ns;
    struct event events[EVENTS];
    uint32_t event_count;
    uint64_t order;
    const struct reply *script; /* the last one is repeated */
    uint32_t script_count, script_at;
    struct reply (*answer)(uint32_t number); /* instead of a script */
    struct sent sent[SENT];
    uint32_t sent_count;
    /* The site. */
    int busy;        /* makes say STK_BUSY until a helper has made one; 2: for ever */
    int helper_out;  /* such a helper is at work: time stands still */
    int helper_slow; /* it does not come to an end while this is set, and time goes on */
    uint32_t helpers, refused;
    stk_status helper_status;
    uint64_t mark;
    uint32_t regions, clocks; /* errors yet that are told to be of the region, of the clock */
    uint32_t learned;
};
static struct web web;

struct net {
    struct fetch_world *world;
    struct net_settings settings;
    struct net_places places;
};
static struct net net;
static struct site site;
static _Thread_local struct net_patience patience;

int64_t clock_now(void)
{
    pthread_mutex_lock(&web.lock);
    const int64_t now = web.now_ns;
    pthread_mutex_unlock(&web.lock);
    return now;
}

int64_t clock_coarse(void)
{
    return clock_now();
}

/* net.h */
struct web *net_web(struct net *of)
{
    (void)of;
    return &web;
}

const struct net_settings *net_settings(struct net *of)
{
    return &of->settings;
}

struct fetch_world *net_fetch_world(struct net *of)
{
    return of->world;
}

struct net_places *net_places(struct net *of)
{
    return &of->places;
}

void net_patience_set(const struct net_patience *to)
{
    patience = to ? *to : (struct net_patience){0};
}

struct net_patience net_patience(void)
{
    return patience;
}

void net_etag_learn(struct net *of, uint64_t version, const char *etag)
{
    (void)of, (void)version, (void)etag;
    web.learned++;
}

/* web.h */
static void event_add(const struct event *event)
{
    pthread_mutex_lock(&web.lock);
    assert_true(web.event_count < EVENTS);
    web.events[web.event_count] = *event;
    web.events[web.event_count++].order = web.order++;
    pthread_mutex_unlock(&web.lock);
}

void web_later(struct web *of, int64_t when_ns, void (*call)(void *user), void *user)
{
    event_add(&(struct event){.when_ns = when_ns, .call = call, .user = user});
    pthread_mutex_lock(&of->lock);
    if (!pthread_equal(pthread_self(), of->thread))
        of->helper_out = 0;
    pthread_mutex_unlock(&of->lock);
}

int64_t web_stopped_ns(struct web *of)
{
    return of->stopped_ns;
}

void web_answer_free(struct web_answer *answer)
{
    text_free(&answer->body);
}

const char *web_failure_words(enum web_failure failure)
{
    (void)failure;
    return "";
}

TESTING uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset * 2654435761u >> 7);
}

/* Puts bytes of the object into a request's place, `from` .. `to` counted from its range. */
TESTING void deliver(struct web_request *request, uint64_t from, uint64_t to)
{
    const uint64_t first = request->range_length ? request->range_first : 0;
    uint64_t at = 0;
    for (uint32_t i = 0; i < request->part_count; i++) {
        uint8_t *place = request->parts[i].iov_base;
        for (size_t k = 0; k < request->parts[i].iov_len; k++, at++) {
            if (at >= from && at < to)
                place[k] = byte_at(first + at);
        }
    }
    for (at = from; request->text && at < to; at++) {
        const char byte = (char)byte_at(first + at);
        text_add(request->text, &byte, 1);
    }
    request->answer.received = to;
}

static uint64_t body_length(const struct web_request *request)
{
    if (!request->range_length)
        return request->method == WEB_HEAD ? 0 : OBJECT_SIZE;
    return request->range_length;
}

static void answer_begin(struct web_request *request, const struct reply *reply)
{
    struct web_answer *answer = &request->answer;
    answer->status = reply->status ? reply->status
                     : reply->failure == WEB_RESOLVE || reply->failure == WEB_CONNECT ? 0
                     : request->range_length                                          ? 206
                                                                                      : 200;
    answer->first_byte_ns = web.now_ns;
    answer->object_size = request->range_length ? OBJECT_SIZE : STK_NOWHERE;
    answer->length = OBJECT_SIZE;
    answer->retry_after_ms = reply->retry_after_s ? reply->retry_after_s * 1000 : -1;
    snprintf(answer->etag, sizeof answer->etag, "%s", reply->etag ? reply->etag : "\"v1\"");
    snprintf(answer->last_modified, sizeof answer->last_modified, "%s",
             reply->modified ? reply->modified : "");
    snprintf(answer->content_type, sizeof answer->content_type, "%s",
             reply->type ? reply->type : "");
    snprintf(answer->location, sizeof answer->location, "%s",
             reply->location ? reply->location : "");
}

static void answer_end(struct web_request *request, const struct reply *reply)
{
    struct web_answer *answer = &request->answer;
    const int64_t first = answer->first_byte_ns;
    answer_begin(request, reply);
    answer->first_byte_ns = first ? first : web.now_ns;
    answer->failure = reply->failure;
    answer->finished_ns = web.now_ns;
    const int is_good = answer->status >= 200 && answer->status < 300;
    if (is_good && request->etag && strcmp(request->etag, answer->etag) != 0)
        answer->failure = WEB_CHANGED;
    else if (is_good && reply->body && request->text)
        text_add(request->text, reply->body, strlen(reply->body));
    else if (is_good && reply->failure == WEB_FINE)
        deliver(request, answer->received, body_length(request));
    else if (is_good && reply->bytes)
        deliver(request, answer->received, reply->bytes);
    else if (!is_good && reply->body)
        text_add(&answer->body, reply->body, strlen(reply->body));
    if (reply->body)
        answer->length = strlen(reply->body);
    request->done(request);
}

void web_start(struct web *of, struct web_request *request)
{
    assert_true(of->sent_count < SENT);
    request->answer = (struct web_answer){
        .length = STK_NOWHERE, .object_size = STK_NOWHERE, .retry_after_ms = -1};
    struct sent *sent = &of->sent[of->sent_count];
    const struct reply reply =
        of->answer
            ? of->answer(of->sent_count)
            : of->script[of->script_at < of->script_count ? of->script_at : of->script_count - 1];
    of->script_at++;
    of->sent_count++;
    snprintf(sent->url, sizeof sent->url, "%s", request->url);
    snprintf(sent->etag, sizeof sent->etag, "%s", request->etag ? request->etag : "");
    sent->first = request->range_length ? request->range_first : 0;
    sent->length = request->range_length;
    sent->headers = request->header_count;
    sent->new_connection = request->new_connection;
    sent->at_ns = of->now_ns;
    request->answer.started_ns = of->now_ns;
    if (reply.first_ms)
        event_add(&(struct event){.when_ns = of->now_ns + reply.first_ms * MS,
                                  .request = request,
                                  .reply = reply,
                                  .is_early = 1});
    if (!reply.never)
        event_add(&(struct event){
            .when_ns = of->now_ns + reply.after_ms * MS + MS, .request = request, .reply = reply});
}

void web_cancel(struct web *of, struct web_request *request)
{
    for (uint32_t i = 0; i < of->event_count;) {
        if (of->events[i].request == request)
            of->events[i] = of->events[--of->event_count];
        else
            i++;
    }
    event_add(
        &(struct event){.when_ns = of->now_ns,
                        .request = request,
                        .reply = {.failure = WEB_CANCELLED,
                                  .status = request->answer.status ? request->answer.status : 0}});
}

/* The next event, or 0: there is none. Time stands still while a helper is out. */
static int event_next(struct event *out, int may_wait)
{
    pthread_mutex_lock(&web.lock);
    uint32_t best = 0;
    for (uint32_t i = 1; i < web.event_count; i++) {
        const struct event *a = &web.events[i], *b = &web.events[best];
        if (a->when_ns < b->when_ns || (a->when_ns == b->when_ns && a->order < b->order))
            best = i;
    }
    int found = web.event_count > 0;
    if (found && web.events[best].when_ns > web.now_ns &&
        ((web.helper_out && !web.helper_slow) || !may_wait))
        found = 0;
    if (found) {
        *out = web.events[best];
        web.events[best] = web.events[--web.event_count];
        if (out->when_ns > web.now_ns)
            web.now_ns = out->when_ns;
    }
    pthread_mutex_unlock(&web.lock);
    return found;
}

static void event_run(const struct event *event)
{
    if (event->call) {
        event->call(event->user);
    } else if (event->is_early) {
        answer_begin(event->request, &event->reply);
        deliver(event->request, 0, event->reply.early);
    } else {
        answer_end(event->request, &event->reply);
    }
}

/* Lets everything happen until *count fetches are over, or nothing is left. */
TESTING void run_until(const uint32_t *over, uint32_t count)
{
    struct event event;
    for (int idle = 0; *over < count && idle < 5000;) {
        if (event_next(&event, 1)) {
            event_run(&event);
            idle = 0;
        } else {
            idle++;
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    assert_true(*over >= count);
}

/* Lets everything happen that is due within so much time. */
TESTING void run_for(int64_t ns)
{
    struct event event;
    const int64_t end = web.now_ns + ns;
    web_later(&web, end, NULL, NULL);
    for (;;) {
        if (!event_next(&event, 1))
            continue; /* a helper is out */
        if (!event.call && !event.request)
            break;
        event_run(&event);
    }
    assert_true(web.now_ns >= end);
}

/* site.h */
static stk_status made(struct site_made *out, const struct site_call *call)
{
    text_format(&out->url, "https://host/%s", call->key);
    if (call->token)
        text_format(&out->url, "?%s", call->token);
    out->request.method = call->verb == SITE_STAT ? WEB_HEAD : WEB_GET;
    out->request.url = out->url.data;
    out->request.headers[0] = (struct web_header){"Authorization", "very-secret"};
    out->request.header_count = 1;
    out->mark = web.mark;
    snprintf(out->where, sizeof out->where, "the environment");
    return out->url.failed ? STK_MEMORY : STK_OK;
}

stk_status site_make(struct site *of, const struct site_call *call, struct site_made *out,
                     struct stk_error *err)
{
    (void)of;
    pthread_mutex_lock(&web.lock);
    while (web.helper_slow) {
        pthread_mutex_unlock(&web.lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&web.lock);
    }
    web.helpers++;
    const stk_status status = web.helper_status;
    web.busy = web.busy > 1 ? web.busy : 0;
    pthread_mutex_unlock(&web.lock);
    if (status)
        return fail(err, status, "no credentials were found in the environment");
    return made(out, call);
}

stk_status site_make_now(struct site *of, const struct site_call *call, struct site_made *out,
                         struct stk_error *err)
{
    (void)of, (void)err;
    pthread_mutex_lock(&web.lock);
    const int is_busy = web.busy;
    web.helper_out = web.helper_out || is_busy;
    pthread_mutex_unlock(&web.lock);
    return is_busy ? STK_BUSY : made(out, call);
}

void site_made_reset(struct site_made *of)
{
    text_free(&of->url);
}

void site_refused(struct site *of, uint64_t mark)
{
    (void)of;
    assert_int_equal(mark, web.mark);
    web.refused++;
    web.mark++;
}

uint64_t site_version(const char *etag, uint64_t size, const char *modified)
{
    (void)size;
    return *etag ? hash_bytes(etag, strlen(etag), 1) : hash_bytes(modified, strlen(modified), 2);
}

void site_read_trouble(struct site *of, const struct site_call *call,
                       const struct web_answer *answer, struct site_trouble *trouble)
{
    (void)of, (void)call;
    *trouble = (struct site_trouble){.status = words_of_status(answer->status)->status};
    trouble->is_credentials = answer->status == 401 || answer->status == 403;
    trouble->is_throttle = answer->status == 429 || answer->status == 503;
    trouble->is_passing = words_of_status(answer->status)->tries_most == 0;
    snprintf(trouble->code, sizeof trouble->code, "%d", answer->status);
    if (answer->body.len) {
        snprintf(trouble->code, sizeof trouble->code, "SlowDown");
        snprintf(trouble->words, sizeof trouble->words, "please wait");
    }
    if (web.clocks) {
        trouble->is_clock = 1;
        web.clocks--;
    }
    if (answer->status == 301 && web.regions) {
        snprintf(trouble->region, sizeof trouble->region, "eu-central-1");
        web.regions--;
    }
}

stk_status site_page_add(struct site_page *page, const struct site_entry *entry,
                         struct stk_error *err)
{
    (void)err;
    if (page->count == page->cap) {
        page->cap = page->cap ? 2 * page->cap : 16;
        page->entries = memory_grow(page->entries, page->cap * sizeof *page->entries);
    }
    const char *old = page->names.data;
    struct site_entry *to = &page->entries[page->count];
    *to = *entry;
    const size_t at = page->names.len;
    text_add(&page->names, entry->key, strlen(entry->key) + 1);
    text_add(&page->names, "", 1);
    for (uint64_t i = 0; i < page->count && old != page->names.data; i++) {
        page->entries[i].key = page->names.data + (page->entries[i].key - old);
        page->entries[i].etag = page->names.data + (page->entries[i].etag - old);
    }
    to->key = page->names.data + at;
    to->etag = to->key + strlen(entry->key) + 1;
    page->count++;
    return STK_OK;
}

void site_page_reset(struct site_page *page)
{
    memory_free(page->entries);
    memory_free(page->token);
    text_free(&page->names);
    *page = (struct site_page){0};
}

/* A read of the object, and what is to be found. */
struct reading {
    struct fetch fetch;
    uint8_t bytes[8192];
    struct iovec parts[3];
    struct text text;
    uint32_t *over;
};

static void reading_done(struct fetch *fetch)
{
    struct reading *reading = fetch->owner;
    assert_null(fetch->inside);
    ++*reading->over;
}

/* A range of `length` bytes (8192 at most) in three parts. */
TESTING void reading_begin(struct reading *reading, uint64_t offset, uint64_t length,
                           uint32_t *over)
{
    memset(reading->bytes, 0xee, sizeof reading->bytes);
    const size_t a = length / 3, b = length / 4;
    reading->parts[0] = (struct iovec){reading->bytes, a};
    reading->parts[1] = (struct iovec){reading->bytes + a, b};
    reading->parts[2] = (struct iovec){reading->bytes + a + b, length - a - b};
    reading->over = over;
    reading->fetch.site = &site;
    reading->fetch.call = (struct site_call){.verb = SITE_READ, .key = "folder/object"};
    reading->fetch.offset = offset;
    reading->fetch.length = length;
    reading->fetch.parts = reading->parts;
    reading->fetch.part_count = 3;
    reading->fetch.done = reading_done;
    reading->fetch.owner = reading;
}

TESTING void reading_check(const struct reading *reading)
{
    const size_t length = reading->fetch.length;
    assert_int_equal(reading->fetch.status, STK_OK);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(reading->bytes[i], byte_at(reading->fetch.offset + i));
    for (size_t i = length; i < sizeof reading->bytes; i++)
        assert_int_equal(reading->bytes[i], 0xee);
    assert_ptr_equal(reading->parts[0].iov_base, reading->bytes);
    assert_int_equal(reading->parts[0].iov_len, length / 3);
    assert_ptr_equal(reading->parts[1].iov_base, reading->bytes + length / 3);
    assert_int_equal(reading->parts[1].iov_len, length / 4);
}

static const struct site_ops plain_ops;

TESTING int fake_open(void **state)
{
    (void)state;
    memset(&web, 0, sizeof web);
    pthread_mutex_init(&web.lock, NULL);
    web.thread = pthread_self();
    web.now_ns = 1000 * SECOND;
    web.mark = 1;
    net.settings.timeout_s = 60;
    site = (struct site){
        .ops = &plain_ops, .net = &net, .uri = (char *)"s3://bucket", .host = (char *)"host:443"};
    assert_int_equal(fetch_world_new(&net.world, &net, NULL), STK_OK);
    net.world->random_key = 7;
    return 0;
}

TESTING int fake_close(void **state)
{
    (void)state;
    struct event event;
    fetch_world_stop(net.world);
    web.helper_out = 0;
    while (event_next(&event, 1))
        event_run(&event);
    assert_null(net.world->active);
    assert_int_equal(net.world->hedge_bytes, 0);
    fetch_world_free(net.world);
    net.world = NULL;
    pthread_mutex_destroy(&web.lock);
    return 0;
}

#define SCRIPT(...)                                                                                \
    do {                                                                                           \
        static const struct reply replies[] = {__VA_ARGS__};                                       \
        web.script = replies;                                                                      \
        web.script_count = sizeof replies / sizeof replies[0];                                     \
        web.script_at = 0;                                                                         \
    } while (0)

#endif
