/* answering.h -- a small HTTP/1.1 server for tests, on 127.0.0.1 and threads of its own: it answers
 * as its script says, and remembers what it was asked.
 * Owns: its threads and sockets.   Threads: any.   Errors: a failed assertion where it cannot
 * start. Not here: TLS, HTTP/2. */
#ifndef TESTS_NET_ANSWERING_H
#define TESTS_NET_ANSWERING_H

#include <stddef.h>
#include <stdint.h>

enum answering_cut {
    CUT_NOT,
    CUT_RESET, /* the connection breaks off after cut_after bytes of the body */
    CUT_CLOSE  /* it is closed there */
};

/* One answer. All zero: 404 without a body for every request. What it points to is the test's and
 * stays until answering_stop. */
struct answering_step {
    const char *path;    /* for requests whose path (and query) begins so; NULL: for all */
    const char *method;  /* "PUT"; NULL: any */
    uint32_t times;      /* how often it is used; 0: always */
    int status;          /* 0: 200, or 206 for a range; without a body 404 */
    const char *headers; /* more lines, each ended by \r\n; or NULL */
    const void *body;
    size_t length;
    int ignores_range; /* sends all, with 200 */
    uint32_t delay_ms; /* before the first byte of the answer */
    uint32_t pause_ms; /* between the headers and the body */
    uint32_t trickle;  /* not 0: so many bytes of the body at a time, ... */
    uint32_t every_ms; /* ... one such piece in this time */
    enum answering_cut cut;
    size_t cut_after;
    int64_t length_lie; /* added to Content-Length */
    int64_t range_lie;  /* added to both ends of Content-Range */
    int no_length;      /* no Content-Length: the body ends where the connection does */
    int closes;         /* closes the connection after it, as "Connection: close" says */
    const char *raw;    /* all that is sent, before the connection is closed */
    int holds;          /* no answer until answering_release or answering_stop */
    /* Not NULL: may change this answer, a copy, before it is given. Runs on a thread of the
     * server's, one at a time. number: of the request, from 0. */
    void (*change)(struct answering_step *step, uint32_t number, const char *head, void *user);
    void *user;
};

struct answering;

struct answering *answering_start(const struct answering_step *steps, uint32_t count);
void answering_stop(struct answering *server); /* NULL is fine */
/* Another script from now on; counts go on. */
void answering_script(struct answering *server, const struct answering_step *steps, uint32_t count);

int answering_port(const struct answering *server);
/* "http://127.0.0.1:PORT" and path, in one of eight buffers that are used in turn. */
const char *answering_url(const struct answering *server, const char *path);

uint32_t answering_requests(struct answering *server);                /* heads that came whole */
uint32_t answering_count(struct answering *server, const char *path); /* whose path begins so */
uint32_t answering_connections(struct answering *server);             /* accepted so far */
/* The head of a request ("GET /a HTTP/1.1\r\n..."), and its body; until answering_stop. */
const char *answering_head(struct answering *server, uint32_t number);
const void *answering_body(struct answering *server, uint32_t number, size_t *length);
/* Not 0: the head has a header of this name and value ("Range", "bytes=0-9"); value NULL: any. */
int answering_had(struct answering *server, uint32_t number, const char *name, const char *value);
/* Waits until so many requests came; fails the test after 30 s. */
void answering_await(struct answering *server, uint32_t count);
void answering_release(struct answering *server); /* those that hold go on, also later ones */

#endif
