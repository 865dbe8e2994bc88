/* web_parts.h -- what the files of the web share: its state, one transfer, the hosts.
 * Owns: see web.h.   Threads: all but what names the lock belongs to the web's thread.
 * Errors: enum web_failure.   Not here: anything for others. */
#ifndef NET_WEB_PARTS_H
#define NET_WEB_PARTS_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "net/web.h"

enum {
    WEB_HOST_BUCKETS = 64,
    WEB_HOSTS_KEPT = 256, /* hosts without a request that are remembered */
    WEB_IDLE_KEPT = 256,  /* easy handles that wait for a request */
    WEB_MADE_HEADERS = 6, /* Range, If-Match and what turns libcurl's own headers off */
    WEB_ERROR_BYTES = 16 << 10,
    WEB_BUFFER_BYTES = 64 << 10 /* larger ones fall out of the caches before they are copied */
};

/* One origin: how many requests are under way there, and who waits for a place. */
struct web_host {
    struct web_host *next;
    struct web_request *first, *last;
    uint32_t running;
    size_t name_length;
    char name[]; /* "https://host:port", as the URLs write it */
};

enum web_stage {
    STAGE_CONNECTING, /* resolving and TLS included */
    STAGE_ASKED,      /* there is a connection, the request goes out, headers come in */
    STAGE_BODY        /* the headers are over and were found good */
};

/* Where the bytes of a body go. */
enum web_place { PLACE_NOWHERE, PLACE_PARTS, PLACE_TEXT, PLACE_ERROR };

/* One transfer: an easy handle with all that it needs, used again for request after request. */
struct web_private {
    CURL *easy;
    struct web *web;
    struct web_request *request;
    struct web_private *next, *previous; /* of web->running, or web->idle (next alone) */
    struct curl_slist list[WEB_MAX_HEADERS + WEB_MADE_HEADERS];
    uint32_t list_count;
    char *lines; /* what list points to; wiped after use */
    size_t lines_used, lines_cap;
    enum web_stage stage;
    enum web_place place;
    enum web_failure failure; /* ours, found in a callback; libcurl's code means nothing then */
    uint64_t wanted;          /* PARTS: bytes that are to come */
    uint32_t part;            /* PARTS: the one that is filled, and how far */
    size_t part_filled;
    uint64_t moved; /* bytes of bodies that came, kept or not */
    /* The window in which a stall is looked for: since when, and what had moved by then. */
    int64_t window_ns;
    uint64_t window_moved;
    int was_stopped;   /* the process was, while this one ran */
    int is_once_again; /* begun anew for that */
    /* of the headers */
    int has_range, is_encoded;
    uint64_t range_first, range_last;
    char error[CURL_ERROR_SIZE];
};

struct web_timer {
    int64_t when_ns;
    uint64_t number; /* those of one moment are called in their order */
    void (*call)(void *user);
    void *user;
};

struct web {
    struct web_options options; /* filled up; ca points to the next */
    char *ca, *http_proxy, *https_proxy, *no_proxy;
    pid_t pid; /* that the thread lives in */
    pthread_t thread;
    int is_started;
    int event, epoll;
    CURLM *multi;
    _Atomic int64_t stopped_ns; /* pairs with itself: only its growth is looked at */

    pthread_mutex_t lock;
    struct web_request *first, *last; /* lock: started, not yet seen by the thread */
    struct web_timer *timers;         /* lock: a heap, the soonest first */
    size_t timer_count, timer_cap;    /* lock */
    uint64_t timer_number;            /* lock */
    int has_cancelled;                /* lock: some request has its flag set */
    int is_woken;                     /* lock: event was written to */
    int is_closing;                   /* lock */

    struct web_private *running, *idle;
    uint32_t running_count, idle_count;
    uint32_t waiting_count; /* in the queues of hosts */
    struct web_host *hosts[WEB_HOST_BUCKETS];
    uint32_t host_count;
    int64_t curl_due_ns;  /* when libcurl wants to be called; INT64_MAX: need not */
    int64_t check_due_ns; /* when a deadline or a stall is to be looked at */
    int is_stopping;      /* is_closing, as the thread saw it */
};

static inline int web_has_range(const struct web_request *request)
{
    return request->range_first != WEB_NO_RANGE && request->range_length > 0 &&
           request->method == WEB_GET;
}

/* --- web_transfer.c */

/* Makes and sets up an easy handle; NULL: no memory. */
struct web_private *web_private_new(struct web *web);
void web_private_free(struct web_private *transfer);
/* Gives a request to libcurl; not FINE: it did not begin, and request->inside is NULL. */
enum web_failure web_transfer_begin(struct web *web, struct web_request *request);
/* Takes it back from libcurl and fills the answer; done() is not called. code: libcurl's, when
 * failure is FINE. */
void web_transfer_end(struct web_private *transfer, CURLcode code, enum web_failure failure);
/* For one that was cut off by a stop of the process before it was sent: 1 when it began anew. */
int web_transfer_again(struct web_private *transfer, CURLcode code);

/* --- web_answer.c */

void web_answer_begin(struct web_private *transfer);
size_t web_on_header(char *data, size_t size, size_t count, void *user);
size_t web_on_body(char *data, size_t size, size_t count, void *user);
/* What an end of libcurl's means; looks whether the body is whole. Fills answer.words. */
enum web_failure web_answer_end(struct web_private *transfer, CURLcode code);
void web_answer_words(struct web_answer *answer, const char *words);

/* --- web_host.c */

/* The host of a URL, made where it is new. Not FINE: *out is NULL and words say why. */
enum web_failure web_host_find(struct web *web, const char *url, struct web_host **out,
                               const char **words);
void web_host_add(struct web *web, struct web_request *request); /* to the end of its queue */
struct web_request *web_host_next(struct web *web, struct web_host *host);
/* Takes out those that are cancelled (all: every one) or late, of all hosts, as a list. The
 * soonest deadline of those that stay lowers *due. */
struct web_request *web_host_sweep(struct web *web, int all, int64_t now, int64_t *due);
/* Forgets a host that has nothing to do, where there are many. */
void web_host_prune(struct web *web, struct web_host *host);
void web_hosts_free(struct web *web);

/* --- web_timer.c; all under web->lock */

int web_timer_add(struct web *web, const struct web_timer *timer); /* 0: no memory */
int web_timer_take(struct web *web, int64_t now, struct web_timer *out);

#endif
