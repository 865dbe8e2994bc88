/* azure_sign.h -- Azure Storage's Shared Key signature (the Blob service's, versions from
 * 2015-02-21 on).
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE for a key that is not base64; STK_MEMORY.
 * Not here: which key (azure_credentials.h), the request (azure_site.c). */
#ifndef NET_AZURE_SIGN_H
#define NET_AZURE_SIGN_H

#include <stdint.h>

#include "base/text.h"
#include "net/credentials.h"
#include "net/web.h"

struct azure_to_sign {
    const char *method;
    /* Names in lower case. Content-MD5, Content-Type, If-None-Match and all x-ms-* are signed. */
    const struct web_header *headers;
    uint32_t header_count;
    uint64_t send_length;
    uint64_t range_first, range_length; /* length 0: no range */
    const char *etag;                   /* If-Match; NULL: none */
    /* "/ACCOUNT/PATH" as in the URL, the account again where the endpoint's path has it, and
     * "\nname:value" for each part of the query, sorted by name, decoded. */
    const char *resource;
};

void azure_string_to_sign(struct text *to, const struct azure_to_sign *request);
/* Adds "SharedKey ACCOUNT:SIGNATURE". secret: SECRET_SHARED_KEY. */
STK_CHECK stk_status azure_sign(struct text *to, const struct azure_to_sign *request,
                                const struct secret *secret, struct stk_error *err);
/* "Sun, 15 Nov 2026 21:00:00 GMT", whatever the locale. */
#define AZURE_DATE_CAP 32
void azure_date(int64_t seconds, char out[AZURE_DATE_CAP]);

#endif
