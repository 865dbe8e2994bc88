/* sigv4.h -- signs requests as AWS, and all who speak S3, want it: Signature Version 4.
 * Owns: nothing.   Threads: any.   Errors: STK_MEMORY, STK_LIMIT.   Not here: what is asked for
 * (s3_call.c, aws_sts.c), whose key it is (aws_chain.h). */
#ifndef NET_SIGV4_H
#define NET_SIGV4_H

#include "net/site.h"

#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"

/* The key of one day, region and service, which four hashes make from a secret: kept, it saves most
 * of what signing costs. All zero: none. It is a secret. */
struct sigv4_key {
    uint64_t mark; /* of the secret; 0: none */
    char day[9], region[32];
    uint8_t bytes[32];
};

struct sigv4 {
    const char *region, *service;
    const char *payload;    /* SHA-256 of the body in hex, or SIGV4_UNSIGNED */
    int64_t now_s;          /* seconds since 1970, by the server's clock */
    struct sigv4_key *kept; /* used where it fits, else set; of this service alone. NULL: none */
};

/* Adds x-amz-date, x-amz-security-token and Authorization to a request whose method, url text and
 * other headers are written; all headers are signed, and Host. The URL's path and the parameters of
 * its query are escaped already (escape.h); their order does not matter. */
STK_CHECK stk_status sigv4_sign(struct site_made *made, const struct secret *secret,
                                const struct sigv4 *how, struct stk_error *err);

/* The steps, for tests. canonical: see AWS's documentation. */
struct sigv4_request {
    const char *method, *url;
    const struct web_header *headers;
    uint32_t header_count;
};
STK_CHECK stk_status sigv4_canonical(const struct sigv4_request *request, const char *payload,
                                     struct text *out, struct text *signed_headers,
                                     struct stk_error *err);
STK_CHECK stk_status sigv4_signature(const struct text *canonical, const struct secret *secret,
                                     const struct sigv4 *how, char out[65]);
/* "20130524T000000Z" */
void sigv4_date(int64_t now_s, char out[17]);

#endif
