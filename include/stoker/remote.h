/* remote.h -- data on the network: limits of a process, one small object, and a look at one
 * place.
 * Owns: nothing.   Threads: configure before anything remote is opened, on one; else any.
 * Errors: status, words in nullable *err that hold no secret.   Not here: opening (dataset.h), the
 * cache's folder (cache.h). */
#ifndef STOKER_REMOTE_H
#define STOKER_REMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/bytes.h"
#include "stoker/check.h"

struct stk_remote_options {
    const char *ca;     /* a file of certificates to trust instead of the system's; NULL: what
                           STOKER_CA, AWS_CA_BUNDLE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE
                           or SSL_CERT_FILE say */
    uint32_t timeout_s; /* how long one read, list or look may take with all its retries; 0: what
                           STOKER_TIMEOUT says, else 60 */
};
STK_API STK_CHECK stk_status stk_remote_configure(const struct stk_remote_options *options,
                                                  struct stk_error *err);

/* Not 0: a URI of a store on the network (http, https, s3, gs, az, abfss). */
STK_API int stk_is_remote(const char *source);

/* Reads a whole object of at most `most` bytes, and hands it to take, where it lives until take
 * returns. STK_LIMIT: it is larger. */
STK_API STK_CHECK stk_status stk_remote_get(struct stk_context *context, const char *uri,
                                            uint64_t most,
                                            void (*take)(void *user, struct stk_bytes bytes),
                                            void *user, struct stk_error *err);

/* Objects that URIs name, to be read in any order. */
struct stk_remote_files;
struct stk_remote_file {
    const char *uri;
    uint64_t size;
    size_t folder; /* so much of the URI names the folder that it was found in; 0: it was named */
};

/* Finds out what the URIs mean: objects, folders, globs, braces. context must outlive the files. */
STK_API STK_CHECK stk_status stk_remote_files_open(struct stk_remote_files **out,
                                                   struct stk_context *context,
                                                   const char *const *uris, uint32_t count,
                                                   struct stk_error *err);
/* Calls each for all of them, in order: the first is number 0. The URI lives until it returns. */
STK_API void stk_remote_files_each(const struct stk_remote_files *files,
                                   void (*each)(void *user, const struct stk_remote_file *file),
                                   void *user);
/* Reads [offset, offset + length) of a file, by parts at once where it is long. Any number of
 * threads. STK_STALE: it is not the object any more that was found. */
STK_API STK_CHECK stk_status stk_remote_files_read(struct stk_remote_files *files, uint32_t number,
                                                   uint64_t offset, uint64_t length, void *to,
                                                   struct stk_error *err);
/* Reads end with STK_CANCELLED, those that wait and those to come. Any thread. */
STK_API void stk_remote_files_stop(struct stk_remote_files *files);
STK_API void stk_remote_files_close(struct stk_remote_files *files); /* NULL is fine */

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
