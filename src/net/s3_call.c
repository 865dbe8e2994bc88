#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/aws_config.h"
#include "net/digest.h"
#include "net/escape.h"
#include "net/s3_place.h"
#include "net/sigv4.h"
#include "net/xml.h"

struct s3_place *s3_place_new(void)
{
    struct s3_place *place = memory_zero(1, sizeof(*place));
    if (!place)
        return NULL;
    place->key = secret_pages_new(sizeof(*place->key));
    if (!place->key) {
        memory_free(place);
        return NULL;
    }
    pthread_mutex_init(&place->lock, NULL);
    return place;
}

void s3_close(struct site *site)
{
    struct s3_place *place = site->kind;
    if (!place)
        return;
    pthread_mutex_destroy(&place->lock);
    secret_pages_free(place->key, sizeof(*place->key));
    memory_free(place);
    site->kind = NULL;
}

void s3_add_origin(struct text *url, const struct s3_place *place, const char *region)
{
    char aws[128];
    const char *origin = place->origin;
    if (!*origin) {
        snprintf(aws, sizeof(aws), "https://%s.%s.%s", place->service, region,
                 aws_region_suffix(region));
        origin = aws;
    }
    if (place->path_style) {
        text_format(url, "%s%s/", origin, place->base);
        escape_add(url, place->bucket, strlen(place->bucket), 0);
        return;
    }
    size_t scheme = (size_t)(strstr(origin, "://") + 3 - origin);
    text_add(url, origin, scheme);
    text_format(url, "%s.%s%s", place->bucket, origin + scheme, place->base);
}

/* Adds "?name=value" or "&name=value", the value escaped. */
static void add_parameter(struct text *url, const char *name, const char *value)
{
    text_format(url, "%c%s=", strchr(url->data ? url->data : "", '?') ? '&' : '?', name);
    escape_add(url, value, strlen(value), 0);
}

static void add_number(struct text *url, const char *name, uint32_t number)
{
    char digits[16];
    snprintf(digits, sizeof(digits), "%u", number);
    add_parameter(url, name, digits);
}

static void add_list(struct text *url, const struct site_call *call)
{
    text_add(url, "/", 1);
    add_parameter(url, "list-type", "2");
    add_parameter(url, "encoding-type", "url");
    if (call->page)
        add_number(url, "max-keys", call->page);
    if (call->key && *call->key)
        add_parameter(url, "prefix", call->key);
    if (call->delimiter)
        add_parameter(url, "delimiter", call->delimiter);
    if (call->token)
        add_parameter(url, "continuation-token", call->token);
}

/* Which uploads of a key were broken off. */
static void add_uploads(struct text *url, const struct site_call *call)
{
    text_add(url, "/", 1);
    add_parameter(url, "uploads", "");
    add_parameter(url, "encoding-type", "url");
    add_parameter(url, "prefix", call->key);
}

static void add_key(struct text *url, const struct site_call *call)
{
    text_add(url, "/", 1);
    escape_add(url, call->key, strlen(call->key), 1);
    if (call->verb == SITE_BEGIN)
        add_parameter(url, "uploads", "");
    if (call->verb == SITE_PART)
        add_number(url, "partNumber", call->number);
    if (call->upload && call->verb != SITE_BEGIN && call->verb != SITE_READ)
        add_parameter(url, "uploadId", call->upload);
    if (call->verb == SITE_PARTS && call->token)
        add_parameter(url, "part-number-marker", call->token);
}

static void add_finish(struct text *body, const struct site_call *call)
{
    text_format(body, "<CompleteMultipartUpload>");
    for (uint32_t i = 0; i < call->number; i++) {
        text_format(body, "<Part><PartNumber>%u</PartNumber><ETag>", i + 1);
        xml_add(body, call->tags[i], strlen(call->tags[i]));
        text_format(body, "</ETag></Part>");
    }
    text_format(body, "</CompleteMultipartUpload>");
}

static enum web_method method_of(enum site_verb verb)
{
    static const enum web_method methods[] = {
        [SITE_READ] = WEB_GET,     [SITE_STAT] = WEB_HEAD,    [SITE_LIST] = WEB_GET,
        [SITE_PUT] = WEB_PUT,      [SITE_BEGIN] = WEB_POST,   [SITE_PART] = WEB_PUT,
        [SITE_FINISH] = WEB_POST,  [SITE_ABORT] = WEB_DELETE, [SITE_PARTS] = WEB_GET,
        [SITE_DELETE] = WEB_DELETE};
    return methods[verb];
}

static void add_header(struct site_made *made, const char *name, const char *value)
{
    struct text *to = site_header(made, name);
    if (to)
        text_add(to, value, strlen(value));
}

/* What the signature says of the body: a hash, but over TLS, which guards it, none. */
static stk_status payload_of(const struct web_request *request, int is_tls, char out[65],
                             struct stk_error *err)
{
    uint8_t hash[32];
    if (is_tls && request->send_length) {
        strcpy(out, SIGV4_UNSIGNED);
        return STK_OK;
    }
    stk_status status =
        digest_sha256(request->send ? request->send : "", (size_t)request->send_length, hash);
    if (status)
        return fail(err, status, "a request cannot be signed");
    digest_hex(hash, sizeof(hash), out);
    return STK_OK;
}

/* What of a place may change while a request is made. */
struct moment {
    char region[32];
    int64_t ahead_s;
    struct sigv4_key key;
};

static void moment_take(struct moment *moment, struct s3_place *place)
{
    pthread_mutex_lock(&place->lock);
    memcpy(moment->region, place->region, sizeof(moment->region));
    moment->ahead_s = place->ahead_s;
    moment->key = *place->key;
    pthread_mutex_unlock(&place->lock);
}

/* Gives the key back to the place, since it may be a new one. */
static void moment_end(struct moment *moment, struct s3_place *place)
{
    pthread_mutex_lock(&place->lock);
    *place->key = moment->key;
    pthread_mutex_unlock(&place->lock);
    secret_wipe(&moment->key, sizeof(moment->key));
}

static stk_status sign(struct site_made *made, struct moment *moment, const struct secret *secret,
                       struct stk_error *err)
{
    char payload[65];
    if (secret->kind == SECRET_BEARER) {
        struct text *value = site_header(made, "Authorization");
        if (!value)
            return fail(err, STK_LIMIT, "a request has too many headers");
        text_format(value, "Bearer %s", secret->token);
        return site_made_finish(made, err);
    }
    stk_status status =
        payload_of(&made->request, !strncmp(made->url.data, "https:", 6), payload, err);
    if (status)
        return status;
    add_header(made, "x-amz-content-sha256", payload);
    struct sigv4 how = {moment->region, "s3", payload, (int64_t)time(NULL) + moment->ahead_s,
                        &moment->key};
    return sigv4_sign(made, secret, &how, err);
}

/* Google says it in a way of its own, and takes no x-goog- beside the x-amz- of a signature. */
static void add_only_new(const struct s3_place *place, const struct secret *secret,
                         struct site_made *made)
{
    if (!place->is_google)
        add_header(made, "If-None-Match", "*");
    else if (secret && secret->kind == SECRET_AWS)
        add_header(made, "x-amz-if-generation-match", "0");
    else
        add_header(made, "x-goog-if-generation-match", "0");
}

/* The store compares what comes with it, and buckets with object lock take nothing without. All who
 * speak S3 know this one, for whole objects and for parts; x-amz-checksum- has to be said when an
 * upload begins, too, and not all do. A system that refuses MD5 sends none. */
static void add_hash(struct site_made *made, const struct site_call *call)
{
    uint8_t md5[16];
    if (digest_md5(call->send, (size_t)call->send_length, md5))
        return;
    struct text *to = site_header(made, "Content-MD5");
    if (to)
        digest_base64(to, md5, sizeof(md5));
}

static void write_call(const struct s3_place *place, const struct site_call *call,
                       const struct secret *secret, struct site_made *made)
{
    struct web_request *request = &made->request;
    request->method = method_of(call->verb);
    if (call->verb == SITE_LIST)
        add_list(&made->url, call);
    else if (call->verb == SITE_PARTS && !call->upload)
        add_uploads(&made->url, call);
    else
        add_key(&made->url, call);
    if (call->verb == SITE_FINISH)
        add_finish(&made->body, call);
    if (call->verb == SITE_PUT || call->verb == SITE_PART) {
        request->send = call->send;
        request->send_length = call->send_length;
        add_hash(made, call);
    }
    if (call->verb == SITE_PUT || call->verb == SITE_BEGIN)
        add_header(made, "Content-Type", "application/octet-stream");
    if (call->verb == SITE_FINISH)
        add_header(made, "Content-Type", "application/xml");
    if (call->only_new && (call->verb == SITE_PUT || call->verb == SITE_FINISH))
        add_only_new(place, secret, made);
    if (place->requester_pays)
        add_header(made, "x-amz-request-payer", "requester");
}

stk_status s3_make(struct site *site, const struct site_call *call, const struct secret *secret,
                   struct site_made *made, struct stk_error *err)
{
    struct s3_place *place = site->kind;
    struct moment moment;
    moment_take(&moment, place);
    s3_add_origin(&made->url, place, moment.region);
    write_call(place, call, secret, made);
    stk_status status = site_made_finish(made, err);
    if (!status && secret)
        status = sign(made, &moment, secret, err);
    moment_end(&moment, place);
    return status;
}
