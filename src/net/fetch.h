/* fetch.h -- one answer from a site, whatever it takes: retries within a token budget, backoff,
 * resuming behind the last good byte, a second request for a slow one, fresh credentials, redirects
 * that carry no secret.
 * Owns: nothing of the caller's.   Threads: fetch_start and fetch_cancel from any, neither waits;
 * done() on the web's thread, where it must not wait, and never inside fetch_start.   Errors:
 * status and words in the fetch; the words name the object, the cause and a remedy, and no secret.
 * Not here: HTTP itself (web.h), queues of reads (store/remote_queue.c).
 *
 * What passes (fetch_words.c says what does) is tried again until the deadline, which a stop of the
 * process does not use up. Bytes in place stay there only while an ETag or a date shows that the
 * rest is of the same object; else all is fetched anew, or, where the caller named the ETag or the
 * version, the fetch ends with STK_STALE. */
#ifndef NET_FETCH_H
#define NET_FETCH_H

#include "net/site.h"

/* Zero it, then fill the first part; it is ours from fetch_start to done(). */
struct fetch {
    struct site *site;
    struct site_call call; /* what it points to stays until done() */
    /* READ: bytes [offset, offset + length) into parts, which add up to length. Parts are changed
     * meanwhile; done() finds them as they were. No parts: text takes all of the object, at most
     * text_most bytes, behind what it holds. */
    uint64_t offset, length;
    struct iovec *parts;
    uint32_t part_count;
    struct text *text; /* READ without parts, and the answers of other verbs */
    uint64_t text_most;
    /* READ: If-Match, and compared with each answer; NULL: whatever is there. */
    const char *etag;
    uint64_t version;    /* READ: site_version must be this; 0: any. Checked before done() */
    int64_t deadline_ns; /* 0: net_settings' timeout from now on */
    /* Not 0: a slow range is asked for a second time (hedge.h: few are). The second request has
     * memory of its own, which is copied when it wins and the first one has ended: two requests
     * never write the same bytes. */
    int may_hedge;
    void (*done)(struct fetch *fetch);
    void *owner;

    stk_status status;
    struct stk_error error; /* of a status that is not OK */
    uint64_t object_size;   /* STK_NOWHERE: not told */
    char found_etag[128], last_modified[64], content_type[64];
    char upload[256];          /* BEGIN: its id; PART: its tag */
    struct web_answer *answer; /* the last one, for those who read pages; until done() returns */
    uint32_t tries, hedges;
    int64_t first_byte_ns, took_ns;
    struct fetch_private *inside;
};

void fetch_start(struct fetch *fetch);
/* done() follows soon, with STK_CANCELLED unless over. May race with done(), as long as the struct
 * is there. */
void fetch_cancel(struct fetch *fetch);
/* Starts and waits, as net_patience allows. done is not used. Fills *err. */
STK_CHECK stk_status fetch_now(struct fetch *fetch, struct stk_error *err);

/* What all fetches of a process came to, for stats and `stoker check`. */
struct fetch_counts {
    uint64_t requests, bytes, retries, hedges, hedges_won, throttles, refreshes, wasted_bytes;
};
void fetch_counts(struct net *net, struct fetch_counts *out);

/* How many ranges of a site are worth having in flight, and how long each should be, by what was
 * measured of it: latency (to the first byte) and bandwidth. Moves slowly; bounded. */
struct fetch_advice {
    uint32_t in_flight;
    uint64_t
        range; /* bytes; reads that are longer are cut, shorter neighbours are joined up to it */
};
void fetch_advice(struct site *site, struct fetch_advice *out);

/* The names under a prefix, all pages, sorted bytewise, each once. A site that repeats pages or
 * tokens is STK_CORRUPT; more than `most` names STK_LIMIT. One process lists a prefix once: a
 * second call within 60 s gets the same answer unless anew is not 0. Blocks. */
struct site_listing {
    struct site_page names;
};
STK_CHECK stk_status fetch_list(struct site *site, const char *prefix, uint64_t most, int anew,
                                struct site_listing *out, struct stk_error *err);
void site_listing_reset(struct site_listing *listing);

#endif
