#include "net/sigv4.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/fail.h"
#include "net/digest.h"

#define MAX_PARAMETERS 24
#define DATE_LENGTH 8 /* of 20130524T000000Z: the day */

void sigv4_date(int64_t now_s, char out[17])
{
    time_t seconds = (time_t)now_s;
    struct tm parts = {0};
    gmtime_r(&seconds, &parts);
    snprintf(out, 17, "%04u%02u%02uT%02u%02u%02uZ", ((unsigned)parts.tm_year + 1900) % 10000,
             ((unsigned)parts.tm_mon + 1) % 100, (unsigned)parts.tm_mday % 100,
             (unsigned)parts.tm_hour % 100, (unsigned)parts.tm_min % 100,
             (unsigned)parts.tm_sec % 100);
}

/* A name=value of a query, escaped as it is. */
struct parameter {
    const char *name, *value;
    size_t name_length, value_length;
};

static int compare_spans(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int is_before(const struct parameter *a, const struct parameter *b)
{
    int order = compare_spans(a->name, a->name_length, b->name, b->name_length);
    if (!order)
        order = compare_spans(a->value, a->value_length, b->value, b->value_length);
    return order < 0;
}

static struct parameter parameter_at(const char *at, size_t length)
{
    const char *equals = memchr(at, '=', length);
    size_t name_length = equals ? (size_t)(equals - at) : length;
    const char *value = equals ? equals + 1 : at + length;
    return (struct parameter){at, value, name_length, (size_t)(at + length - value)};
}

/* The query's parameters in the order of their names. */
static stk_status add_query(struct text *out, const char *query, struct stk_error *err)
{
    struct parameter all[MAX_PARAMETERS];
    size_t count = 0;
    while (*query) {
        size_t length = strcspn(query, "&");
        if (count == MAX_PARAMETERS)
            return fail(err, STK_LIMIT, "a query has more than %d parameters", MAX_PARAMETERS);
        struct parameter next = parameter_at(query, length);
        size_t at = count++;
        for (; at && is_before(&next, &all[at - 1]); at--)
            all[at] = all[at - 1];
        all[at] = next;
        query += length + (query[length] == '&');
    }
    for (size_t i = 0; i < count; i++)
        text_format(out, "%s%.*s=%.*s", i ? "&" : "", (int)all[i].name_length, all[i].name,
                    (int)all[i].value_length, all[i].value);
    return STK_OK;
}

static void add_lower(struct text *out, const char *name)
{
    size_t at = out->len;
    text_add(out, name, strlen(name));
    for (; !out->failed && at < out->len; at++)
        if (out->data[at] >= 'A' && out->data[at] <= 'Z')
            out->data[at] = (char)(out->data[at] + 32);
}

/* The headers and Host, by their names in lower case. */
static void add_headers(struct text *out, struct text *names, const struct sigv4_request *request,
                        const struct web_header *host)
{
    const struct web_header *sorted[WEB_MAX_HEADERS + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i <= request->header_count; i++) {
        const struct web_header *next = i ? &request->headers[i - 1] : host;
        uint32_t at = count++;
        for (; at && strcasecmp(next->name, sorted[at - 1]->name) < 0; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = next;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_lower(out, sorted[i]->name);
        text_format(out, ":%s\n", sorted[i]->value);
        text_add(names, ";", i ? 1 : 0);
        add_lower(names, sorted[i]->name);
    }
}

stk_status sigv4_canonical(const struct sigv4_request *request, const char *payload,
                           struct text *out, struct text *signed_headers, struct stk_error *err)
{
    const char *front = strstr(request->url, "://");
    const char *host = front ? front + 3 : request->url;
    size_t host_length = strcspn(host, "/?");
    const char *path = host + host_length;
    size_t path_length = strcspn(path, "?");
    const char *query = path + path_length;
    struct text host_text = {0};
    text_add(&host_text, host, host_length);
    text_format(out, "%s\n", request->method);
    text_add(out, path_length ? path : "/", path_length ? path_length : 1);
    text_add(out, "\n", 1);
    stk_status status = add_query(out, *query ? query + 1 : query, err);
    text_add(out, "\n", 1);
    if (!status && host_text.data) {
        struct web_header host_header = {"host", host_text.data};
        add_headers(out, signed_headers, request, &host_header);
    }
    text_format(out, "\n%s\n%s", signed_headers->data ? signed_headers->data : "", payload);
    if (!status && (host_text.failed || out->failed || signed_headers->failed))
        status = fail_memory(err, out->len);
    text_free(&host_text);
    return status;
}

static stk_status make_key(const char *secret, const char *date, const struct sigv4 *how,
                           uint8_t out[32])
{
    const char *const steps[] = {how->region, how->service, "aws4_request"};
    char first[1100];
    int length = snprintf(first, sizeof(first), "AWS4%s", secret);
    stk_status status = STK_LIMIT;
    if (length > 0 && (size_t)length < sizeof(first))
        status = digest_hmac_sha256(first, (size_t)length, date, DATE_LENGTH, out);
    for (size_t i = 0; !status && i < sizeof(steps) / sizeof(steps[0]); i++) {
        uint8_t before[32];
        memcpy(before, out, sizeof(before));
        status = digest_hmac_sha256(before, sizeof(before), steps[i], strlen(steps[i]), out);
        secret_wipe(before, sizeof(before));
    }
    secret_wipe(first, sizeof(first));
    return status;
}

/* The key that is kept, or a new one, which is kept from now on. */
static stk_status signing_key(const struct secret *secret, const char *date,
                              const struct sigv4 *how, uint8_t out[32])
{
    struct sigv4_key *kept = secret->mark ? how->kept : NULL;
    if (kept && kept->mark == secret->mark && !strncmp(kept->day, date, DATE_LENGTH) &&
        !strcmp(kept->region, how->region)) {
        memcpy(out, kept->bytes, 32);
        return STK_OK;
    }
    stk_status status = make_key(secret->key, date, how, out);
    if (status || !kept || strlen(how->region) >= sizeof(kept->region))
        return status;
    kept->mark = secret->mark;
    snprintf(kept->day, sizeof(kept->day), "%.*s", DATE_LENGTH, date);
    strcpy(kept->region, how->region);
    memcpy(kept->bytes, out, 32);
    return STK_OK;
}

stk_status sigv4_signature(const struct text *canonical, const struct secret *secret,
                           const struct sigv4 *how, char out[65])
{
    uint8_t hash[32], signing[32];
    char date[17], hex[65], string[512];
    sigv4_date(how->now_s, date);
    stk_status status = digest_sha256(canonical->data, canonical->len, hash);
    if (status)
        return status;
    digest_hex(hash, sizeof(hash), hex);
    int length =
        snprintf(string, sizeof(string), "AWS4-HMAC-SHA256\n%s\n%.*s/%s/%s/aws4_request\n%s", date,
                 DATE_LENGTH, date, how->region, how->service, hex);
    if (length < 0 || (size_t)length >= sizeof(string))
        return STK_LIMIT;
    status = signing_key(secret, date, how, signing);
    if (!status)
        status = digest_hmac_sha256(signing, sizeof(signing), string, (size_t)length, hash);
    if (!status)
        digest_hex(hash, sizeof(hash), out);
    secret_wipe(signing, sizeof(signing));
    return status;
}

static const char *method_name(enum web_method method)
{
    static const char *const names[] = {[WEB_GET] = "GET",
                                        [WEB_HEAD] = "HEAD",
                                        [WEB_PUT] = "PUT",
                                        [WEB_POST] = "POST",
                                        [WEB_DELETE] = "DELETE"};
    return names[method];
}

/* Date and token are headers that are signed, too. */
static stk_status add_own_headers(struct site_made *made, const struct secret *secret,
                                  const struct sigv4 *how, struct stk_error *err)
{
    char date[17];
    struct text *value = site_header(made, "x-amz-date");
    sigv4_date(how->now_s, date);
    if (value)
        text_add(value, date, strlen(date));
    if (value && secret->token[0]) {
        value = site_header(made, "x-amz-security-token");
        if (value)
            text_add(value, secret->token, strlen(secret->token));
    }
    return value ? STK_OK : fail(err, STK_LIMIT, "a request has too many headers");
}

/* At least as long as it gets: it holds the session's token, of which growing would leave copies.
 */
static size_t canonical_size(const struct sigv4_request *request)
{
    size_t size = 512 + 2 * strlen(request->url);
    for (uint32_t i = 0; i < request->header_count; i++)
        size += 2 * strlen(request->headers[i].name) + strlen(request->headers[i].value) + 4;
    return size;
}

stk_status sigv4_sign(struct site_made *made, const struct secret *secret, const struct sigv4 *how,
                      struct stk_error *err)
{
    struct text canonical = {0}, names = {0};
    char signature[65], date[17];
    stk_status status = add_own_headers(made, secret, how, err);
    if (!status)
        status = site_made_finish(made, err);
    if (status)
        return status;
    struct sigv4_request request = {method_name(made->request.method), made->url.data,
                                    made->request.headers, made->request.header_count};
    struct text *value = site_header(made, "Authorization");
    if (!value)
        return fail(err, STK_LIMIT, "a request has too many headers");
    if (!secret_text_room(&canonical, canonical_size(&request)))
        status = fail_memory(err, 0);
    if (!status)
        status = sigv4_canonical(&request, how->payload, &canonical, &names, err);
    if (!status) {
        status = sigv4_signature(&canonical, secret, how, signature);
        if (status)
            fail(err, status, "a request cannot be signed");
    }
    if (!status) {
        sigv4_date(how->now_s, date);
        text_format(value,
                    "AWS4-HMAC-SHA256 Credential=%s/%.*s/%s/%s/aws4_request, SignedHeaders=%s, "
                    "Signature=%s",
                    secret->id, DATE_LENGTH, date, how->region, how->service, names.data,
                    signature);
    }
    secret_text_free(&canonical); /* it holds the token */
    text_free(&names);
    return status ? status : site_made_finish(made, err);
}
