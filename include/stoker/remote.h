/* remote.h -- data on the network: limits of a process, and a look at one place.
 * Owns: nothing.   Threads: configure before anything remote is opened, on one; else any.
 * Errors: status, words in nullable *err that hold no secret.   Not here: opening (dataset.h), the
 * cache's folder (cache.h). */
#ifndef STOKER_REMOTE_H
#define STOKER_REMOTE_H

#include <stdint.h>

#include "stoker/check.h"

struct stk_remote_options {
    const char *ca;     /* a file of certificates to trust instead of the system's; NULL: what
                           STOKER_CA, CURL_CA_BUNDLE or SSL_CERT_FILE say */
    uint32_t timeout_s; /* how long one read, list or look may take with all its retries; 0: what
                           STOKER_TIMEOUT says, else 60 */
};
STK_API STK_CHECK stk_status stk_remote_configure(const struct stk_remote_options *options,
                                                  struct stk_error *err);

/* Not 0: a URI of a store on the network (http, https, s3, gs, az, abfss). */
STK_API int stk_is_remote(const char *source);

/* One step of a look at a place: "resolve", "connect", "tls", "auth", "list", "range", "latency",
 * "speed" (once for each number of requests at a time). */
struct stk_probe_row {
    const char *step;
    enum stk_check_state state; /* ABSENT: does not apply here; WARN: this is what is wrong */
    const char *value;          /* "10.0.0.7, 2 addresses" */
    const char *remedy;         /* "" when there is nothing to do */
    double seconds;             /* what it took; 0: not measured */
    uint32_t at_once;           /* speed: requests at a time */
    double bytes_per_s;         /* speed */
};

struct stk_probe_options {
    uint32_t most_at_once; /* speed: from 1 on, doubled up to this; 0: 64 */
    double seconds;        /* speed: of each; 0: 0.5 */
};

/* Looks at the place of a URI step by step and calls row for each; ends at the first step without
 * which the next ones are pointless. STK_OK when all that was needed works; else the error of the
 * step that does not, which its row tells too. What row is given lives until it returns. */
STK_API STK_CHECK stk_status stk_remote_probe(
    struct stk_context *context, const char *uri, const struct stk_probe_options *options,
    void (*row)(void *user, const struct stk_probe_row *row), void *user, struct stk_error *err);

#endif
