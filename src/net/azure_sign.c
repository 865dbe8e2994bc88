#include "net/azure_sign.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "net/digest.h"

static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void azure_date(int64_t seconds, char out[AZURE_DATE_CAP])
{
    time_t moment = (time_t)seconds;
    struct tm parts;

    out[0] = 0;
    if (gmtime_r(&moment, &parts))
        snprintf(out, AZURE_DATE_CAP, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[parts.tm_wday],
                 parts.tm_mday, months[parts.tm_mon], (parts.tm_year + 1900) % 10000, parts.tm_hour,
                 parts.tm_min, parts.tm_sec);
}

static const char *header_value(const struct azure_to_sign *request, const char *name)
{
    for (uint32_t i = 0; i < request->header_count; i++)
        if (!strcmp(request->headers[i].name, name))
            return request->headers[i].value;
    return "";
}

/* All x-ms-*, sorted by name. There are few: each pass takes the next one. */
static void add_canonical_headers(struct text *to, const struct azure_to_sign *request)
{
    const struct web_header *last = NULL;

    for (;;) {
        const struct web_header *next = NULL;
        for (uint32_t i = 0; i < request->header_count; i++) {
            const struct web_header *header = &request->headers[i];
            if (strncmp(header->name, "x-ms-", 5) ||
                (last && strcmp(header->name, last->name) <= 0))
                continue;
            if (!next || strcmp(header->name, next->name) < 0)
                next = header;
        }
        if (!next)
            return;
        text_format(to, "%s:%s\n", next->name, next->value);
        last = next;
    }
}

void azure_string_to_sign(struct text *to, const struct azure_to_sign *request)
{
    /* Content-Encoding, Content-Language, Content-Length: empty where it is 0. */
    text_format(to, "%s\n\n\n", request->method);
    if (request->send_length)
        text_format(to, "%" PRIu64, request->send_length);
    /* Date is empty: x-ms-date says it. Then If-Modified-Since. */
    text_format(to, "\n%s\n%s\n\n\n", header_value(request, "content-md5"),
                header_value(request, "content-type"));
    /* If-Match, If-None-Match, If-Unmodified-Since. */
    text_format(to, "%s\n%s\n\n", request->etag ? request->etag : "",
                header_value(request, "if-none-match"));
    if (request->range_length)
        text_format(to, "bytes=%" PRIu64 "-%" PRIu64, request->range_first,
                    request->range_first + request->range_length - 1);
    text_format(to, "\n");
    add_canonical_headers(to, request);
    text_format(to, "%s", request->resource);
}

stk_status azure_sign(struct text *to, const struct azure_to_sign *request,
                      const struct secret *secret, struct stk_error *err)
{
    struct text string = {0};
    uint8_t key[sizeof(secret->key)], signature[32];
    size_t key_length;
    stk_status status = STK_OK;

    if (digest_base64_decode(secret->key, strlen(secret->key), key, sizeof(key), &key_length)) {
        fail(err, STK_USAGE, "the key of storage account %s is not base64", secret->id);
        fail_remedy(err, "look at %s", secret->where);
        return STK_USAGE;
    }
    azure_string_to_sign(&string, request);
    if (string.failed || digest_hmac_sha256(key, key_length, string.data, string.len, signature)) {
        status = fail_memory(err, string.len);
    } else {
        text_format(to, "SharedKey %s:", secret->id);
        digest_base64(to, signature, sizeof(signature));
    }
    secret_wipe(key, sizeof(key));
    text_free(&string);
    return status;
}
