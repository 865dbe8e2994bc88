/* fetch_parts.h -- what the files of a fetch know of one another, and nobody else.
 * Owns: see fetch.h.   Threads: a fetch belongs to the web's thread from fetch_begin on; what
 * others touch says so.   Errors: see fetch.h.   Not here: any contract for callers. */
#ifndef NET_FETCH_PARTS_H
#define NET_FETCH_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/fetch.h"
#include "net/fetch_pace.h"
#include "net/fetch_world.h"
#include "net/hedge.h"
#include "net/retry.h"

/* See the drawing in fetch.c. */
enum fetch_state {
    FETCH_NEW,      /* on its way to the web's thread */
    FETCH_MAKING,   /* its request cannot be signed: credentials are awaited */
    FETCH_RUNNING,  /* a request is under way, or its hedge, or both */
    FETCH_WAITING,  /* until wake_ns */
    FETCH_STOPPING, /* the outcome is known, but its request may still write: that one's end is
                       awaited */
    FETCH_OVER
};

/* What is to be done after a try. */
enum verdict_kind {
    VERDICT_DONE,
    VERDICT_FAIL,
    VERDICT_LATER,   /* once more after a wait, against tokens */
    VERDICT_AGAIN,   /* once more at once: it is signed anew */
    VERDICT_REDIRECT /* once more at once, elsewhere */
};
struct verdict {
    enum verdict_kind kind;
    stk_status status;
    int is_throttle;
    int64_t retry_after_ms; /* -1: not told */
    uint32_t tries_most;    /* so many tries with this kind of cause; 0: until the deadline */
};

/* One request. */
struct attempt {
    struct site_made made; /* made.request is what the web has */
    struct fetch_private *inside;
    int is_running;
    uint64_t first; /* where its range begins, counted from the fetch's */
    uint64_t count; /* how many bytes are asked for; STK_NOWHERE: all there are */
};

/* A second request, into memory of its own: two requests never write the same bytes. The first one
 * goes on meanwhile. When the hedge is whole first, the first one is cancelled, and only when that
 * one's end was told are the hedge's bytes copied. */
struct fetch_hedge {
    struct attempt attempt;
    uint64_t bytes; /* of its buffer */
    struct iovec place;
    char etag[128]; /* what its request expects */
    int is_whole;   /* it won: its bytes are to be copied */
    int is_dropped; /* nobody wants it any more */
};

struct fetch_private {
    struct fetch *fetch; /* NULL: over; a hedge that lost is still to end */
    struct fetch_world *world;
    struct fetch_host *host;
    struct fetch_private *before, *after; /* in the world's list */
    atomic_uint references;               /* the fetch, a hedge, each call that web_later holds */
    atomic_int cancelled;                 /* any thread sets it; the web's thread looks */

    enum fetch_state state;
    struct attempt first;
    struct fetch_hedge *hedge;
    int is_made;            /* first.made is ready to be sent */
    stk_status status;      /* of FETCH_NEW, FETCH_STOPPING: the outcome */
    struct stk_error cause; /* of the last try that failed */

    int64_t started_ns, deadline_ns;
    int64_t wake_ns;  /* FETCH_WAITING */
    int64_t hedge_ns; /* FETCH_RUNNING: when to look whether it is slow; 0: never */
    uint64_t got;     /* bytes in their place */
    uint32_t part;    /* the part that the next byte goes to */
    size_t part_cut;  /* that part begins so much later until range_seek mends it */
    uint64_t total;   /* READ into text: the object's size once it was told; else STK_NOWHERE */
    size_t text_base; /* what text held before */
    struct text own;  /* the answer's body where the caller gave no text */

    /* What the bytes in place are of: a second answer must be of the same. */
    char etag[128], last_modified[64];
    uint64_t object_size;

    struct verdict verdict; /* of the first request, while its hedge is still out */
    double unpaid, paid;    /* tokens that the next try costs, that the last retry cost */
    uint32_t redirects, regions, clocks, refreshes, restarts, makings;
    uint32_t few;       /* tries that ended with a cause which is not tried for ever */
    uint32_t fruitless; /* tries one after the other that brought no byte */
    int is_foreign;     /* a redirect led to another origin: no secret goes there */
    struct text redirect;
    int want_new_connection, want_http1;
};

/* One host, as sites name it. In the list for good once it is there. */
struct fetch_host {
    struct fetch_host *next;
    char *name;
    /* The web's thread alone. */
    struct retry_budget budget;
    struct hedge hedge;
    uint32_t in_flight;
    int has_answered;
    struct pace pace; /* world->lock */
};

struct fetch_helper; /* fetch_helper.c */
struct listing;      /* fetch_list.c */

struct fetch_world {
    struct net *net;
    struct web *web;
    pthread_mutex_t lock;
    struct fetch_host *hosts;     /* lock; only ever grows */
    struct fetch_counts counts;   /* lock */
    struct listing *listings;     /* lock */
    struct fetch_helper *helpers; /* lock */
    pthread_cond_t listed;        /* of lock: a listing was finished */
    /* The web's thread alone. */
    struct fetch_private *active;
    int64_t stopped_ns; /* of web_stopped_ns: what deadlines were moved by */
    int64_t tick_ns;    /* the earliest call of world_tick that is due; 0: none */
    uint64_t random_key, random_count;
    uint64_t hedge_bytes;  /* in buffers of hedges */
    atomic_int is_closing; /* set with the lock held; helpers look without it */
};

/* A range into parts; else a whole object into text, or another verb's answer. */
static inline int fetch_is_ranged(const struct fetch *fetch)
{
    return fetch->call.verb == SITE_READ && (fetch->parts || !fetch->text);
}

/* fetch.c: steps of the machine; all on the web's thread. */
void fetch_make(struct fetch_private *inside);                    /* MAKING, WAITING -> RUNNING */
void fetch_later(struct fetch_private *inside);                   /* by its verdict -> WAITING */
void fetch_stop(struct fetch_private *inside, stk_status status); /* any -> STOPPING or OVER */
void fetch_end(struct fetch_private *inside, stk_status status);  /* any -> OVER */
void fetch_look(struct fetch_private *inside, int64_t now_ns);    /* has its moment come? */
void fetch_release(struct fetch_private *inside);
void attempt_reset(struct attempt *attempt);
void attempt_done(struct web_request *request);

/* fetch_range.c: which bytes a try asks for, and what came of it. */
void range_prepare(struct fetch_private *inside, struct attempt *attempt);
void range_keep(struct fetch_private *inside, const struct attempt *attempt);
void range_seek(struct fetch_private *inside, uint64_t position);
void range_restart(struct fetch_private *inside);
void range_copy(struct fetch_private *inside, uint64_t first, const char *from, uint64_t length);
int range_is_whole(const struct fetch_private *inside);

/* fetch_judge.c */
struct verdict fetch_judge(struct fetch_private *inside, struct attempt *attempt);
int judge_is_of_object(const struct fetch_private *inside, const struct web_answer *answer);
uint64_t judge_size(const struct web_answer *answer); /* the object's; STK_NOWHERE: not told */

/* fetch_hedge.c */
void hedge_look(struct fetch_private *inside, int64_t now_ns);
void hedge_done(struct fetch_private *inside);
void hedge_drop(struct fetch_private *inside); /* cancels it, and lets it end alone */
void hedge_free(struct fetch_private *inside);

/* fetch_helper.c: waits for credentials on a thread of its own; ends with fetch_make. */
void helper_await(struct fetch_private *inside);
void helpers_join(struct fetch_world *world);
void helpers_free(struct fetch_world *world);

/* fetch_list.c */
void listings_free(struct fetch_world *world);

/* fetch_now.c: as fetch_now, and the answer is the caller's, to web_answer_free. */
STK_CHECK stk_status fetch_wait(struct fetch *fetch, struct web_answer *answer,
                                struct stk_error *err);

/* fetch_world.c */
int64_t world_now(struct fetch_world *world); /* the web's thread: also reckons with gaps */
double world_random(struct fetch_world *world);
struct fetch_host *world_host(struct fetch_world *world, const char *name); /* NULL: no memory */
void world_add(struct fetch_world *world, struct fetch_private *inside);
void world_remove(struct fetch_world *world, struct fetch_private *inside);
void world_wake(struct fetch_world *world, int64_t when_ns); /* fetch_look for all, then */
void world_sent(struct fetch_private *inside, int is_hedge);
void world_learn(struct fetch_private *inside, const struct attempt *attempt, int is_wasted);
void world_throttled(struct fetch_private *inside, int64_t now_ns);
void world_count(struct fetch_world *world, uint64_t *which, uint64_t by); /* one of its counts */

/* fetch_words.c */
struct fetch_words {
    stk_status status;
    uint32_t tries_most; /* 0: until the deadline; 1: never again */
    const char *what, *remedy;
};
const struct fetch_words *words_of_failure(enum web_failure failure);
const struct fetch_words *words_of_status(int status);
/* Fill inside->cause; all return its status. */
stk_status words_failure(struct fetch_private *inside, const struct web_answer *answer);
stk_status words_trouble(struct fetch_private *inside, int status,
                         const struct site_trouble *trouble);
stk_status words_refused(struct fetch_private *inside, int status,
                         const struct site_trouble *trouble);
stk_status words_say(struct fetch_private *inside, stk_status status, const char *remedy,
                     const char *format, ...) STK_PRINTF(4, 5);
void words_object(struct fetch_private *inside, struct stk_error *err); /* adds where it was */
void words_tries(struct fetch_private *inside, struct stk_error *err);  /* and how often */

/* fetch_redirect.c: URLs, and where a redirect may lead. */
enum redirect_kind { REDIRECT_SAME, REDIRECT_FOREIGN, REDIRECT_DOWN, REDIRECT_BAD };
enum redirect_kind redirect_resolve(const char *base, const char *location, struct text *out);
void redirect_free(struct text *url);

#endif
