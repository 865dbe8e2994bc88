/* web.h -- HTTP: many requests at once on one thread of its own (libcurl's multi interface).
 * Owns: connections and the thread.   Threads: web_start and web_cancel from any; done() runs on
 * the web's thread and must not wait.   Errors: in the request's answer; nothing is tried twice
 * here. Not here: retries and hedging (fetch.h), whose credentials (site.h). */
#ifndef NET_WEB_H
#define NET_WEB_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "stoker/error.h"

#include "base/text.h"

struct web;

struct web_options {
    const char *ca;       /* a file of certificates to trust instead of the system's; or NULL */
    uint32_t connect_ms;  /* least time to connect in, TLS included; 0: 10,000 */
    uint32_t stall_ms;    /* a body that brings no WEB_STALL_BYTES in it is slow; 0: 20,000 */
    uint32_t connections; /* at most so many to one host; 0: 64 */
};
#define WEB_STALL_BYTES 1024

enum web_method { WEB_GET, WEB_HEAD, WEB_PUT, WEB_POST, WEB_DELETE };

/* Why there is no whole answer. */
enum web_failure {
    WEB_FINE,     /* there is one; its status may still be an error's */
    WEB_RESOLVE,  /* the host's name is not known */
    WEB_CONNECT,  /* refused, unreachable, or no answer to connecting in time */
    WEB_TLS,      /* its certificate is not trusted, expired, of another name; or no TLS at all */
    WEB_RESET,    /* closed or broken off before the body was whole */
    WEB_SLOW,     /* stalled */
    WEB_LATE,     /* the deadline passed */
    WEB_LENGTH,   /* the body is longer than was asked for, or than may be kept */
    WEB_RANGE,    /* a range was asked for, and the answer is of another one, or of the whole */
    WEB_CHANGED,  /* the answer's ETag is not the one that was expected */
    WEB_ENCODED,  /* the answer has a Content-Encoding that was not asked for */
    WEB_REDIRECT, /* too many, or to where must not be gone */
    WEB_PROTOCOL, /* not HTTP */
    WEB_CANCELLED,
    WEB_MEMORY,
    WEB_FAILURES
};

/* What came back. A header that does not fit is left out, "" ; no header of the request is ever in
 * them. */
struct web_answer {
    enum web_failure failure;
    int status;             /* HTTP's; 0: none came */
    uint64_t received;      /* bytes of the body in their place, from its start, without a hole */
    uint64_t length;        /* Content-Length; STK_NOWHERE: not told */
    uint64_t object_size;   /* the total of Content-Range; STK_NOWHERE: not told */
    int64_t retry_after_ms; /* -1: not told */
    int64_t date_s;         /* Date of an answer whose status is an error's; 0: not told */
    char etag[128], last_modified[64], content_type[64], location[4096];
    char region[32];     /* x-amz-bucket-region */
    char error_code[64]; /* x-ms-error-code, x-amz-error-code */
    char upload[256];    /* the header that request->want_header names */
    char words[160];     /* libcurl's, of a failure */
    struct text body;    /* of an answer whose status is an error's: its first 16 KiB; see below */
    int64_t started_ns, first_byte_ns, finished_ns; /* of base/clock.h; 0: did not happen */
    int64_t connected_ns; /* time spent connecting, TLS included; 0: a connection was used again */
    uint64_t connection;  /* which one, for those who want another; 0: none */
    int http2;
};

struct web_header {
    const char *name, *value;
};
#define WEB_MAX_HEADERS 24

#define WEB_NO_RANGE UINT64_MAX

/* Zero it, then fill the first part. It, and all that it points to, is the web's from web_start
 * until done(). */
struct web_request {
    enum web_method method;
    const char *url; /* absolute, escaped, with its query; user:password@ is refused */
    struct web_header headers[WEB_MAX_HEADERS]; /* Range and If-Match are made from what follows */
    uint32_t header_count;
    const void *send; /* a body of send_length bytes (PUT, POST) */
    uint64_t send_length;
    /* A range: 206 and its Content-Range must fit, else WEB_RANGE and no byte is kept. A 200 is
     * taken where the range is the whole object, from its start. WEB_NO_RANGE, or a length of 0:
     * none. */
    uint64_t range_first, range_length;
    const char *etag; /* sent as If-Match and compared with the answer's; NULL: none */
    /* Where a good answer's body goes: into parts, which it must fill exactly; else into text, at
     * most text_most bytes; else it is read and thrown away. */
    struct iovec *parts;
    uint32_t part_count;
    struct text *text;
    uint64_t text_most;
    const char *want_header; /* one more header that is wanted, as answer.upload; or NULL */
    int64_t deadline_ns;     /* of base/clock.h; 0: none */
    int new_connection;      /* not 0: one that no other request has used (a hedge, a retry) */
    int http1;               /* not 0: HTTP/2 is not offered */
    void (*done)(struct web_request *request);
    void *owner;

    struct web_answer answer;   /* web_answer_free when done */
    struct web_private *inside; /* this and what follows: the web's own */
    struct web_host *host;
    struct web_request *next;
    _Atomic int cancelled; /* pairs with itself */
};

/* Starts the thread. */
STK_CHECK stk_status web_open(struct web **out, const struct web_options *options,
                              struct stk_error *err);
/* Cancels what is in flight; on return every done() was called. NULL is fine. */
void web_close(struct web *web);

/* From any thread, done() included. What cannot even begin is told by done(), too. */
void web_start(struct web *web, struct web_request *request);
/* How long this process was stopped (SIGSTOP, a frozen machine) since web_open, ns. Deadlines of
 * requests that run are moved by it as it grows; whoever keeps deadlines of his own does the same.
 * Any thread. */
int64_t web_stopped_ns(struct web *web);
/* Starts it and waits until it is over; done is not used. Never on the web's thread. */
void web_wait(struct web *web, struct web_request *request);
/* done() is called soon, with WEB_CANCELLED unless it is over. Asking after done() is a fault. */
void web_cancel(struct web *web, struct web_request *request);
/* Runs call(user) on the web's thread at or after a moment (base/clock.h). From any thread. Those
 * that are left when the web closes are called then. */
void web_later(struct web *web, int64_t when_ns, void (*call)(void *user), void *user);

void web_answer_free(struct web_answer *answer);
const char *web_failure_words(enum web_failure failure);

/* Redirects are not followed here: fetch.h decides, since headers may not go along. */

#endif
