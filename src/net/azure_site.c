/* Azure Storage's Blob service as a kind of site. ADLS Gen2 accounts answer there too. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/azure_answer.h"
#include "net/azure_credentials.h"
#include "net/azure_place.h"
#include "net/azure_sign.h"
#include "net/digest.h"
#include "net/escape.h"
#include "net/site.h"
#include "net/xml.h"

#define API_VERSION "2021-12-02"
#define PAGE_MOST 5000
#define CLOCK_WRONG_S (10 * 60)
/* A directory of a hierarchical namespace looks like an empty blob but for this. */
#define FOLDER_HEADER "x-ms-meta-hdi_isfolder"

static stk_status azure_open(struct site *site, const char *uri, size_t *site_length,
                             struct stk_error *err)
{
    struct azure_place *place;
    stk_status status = azure_place_new(&place, uri, site_length, err);

    if (status)
        return status;
    site->kind = place;
    site->can_list = site->can_put = 1;
    site->host = memory_text(place->host, strlen(place->host));
    site->uri = memory_text(uri, *site_length);
    if (!site->host || !site->uri)
        return fail_memory(err, *site_length);
    return azure_share_credentials(site, place->account, err);
}

static void azure_close(struct site *site)
{
    azure_place_free(site->kind);
    site->kind = NULL;
}

/* --- a call on its way ----------------------------------------------------------------------- */

/* The URL and what is signed of it grow together: the one escaped, the other not. */
struct writing {
    const struct azure_place *place;
    struct site_made *made;
    struct text resource;
    int has_query;
};

static void add_query(struct writing *writing, const char *name, const char *value)
{
    text_format(&writing->made->url, "%c%s=", writing->has_query ? '&' : '?', name);
    escape_add(&writing->made->url, value, strlen(value), 0);
    text_format(&writing->resource, "\n%s:%s", name, value);
    writing->has_query = 1;
}

static void add_header(struct writing *writing, const char *name, const char *value)
{
    struct text *text = site_header(writing->made, name);

    if (text)
        text_format(text, "%s", value);
    else
        writing->resource.failed = 1;
}

/* key NULL: the container itself. */
static void add_path(struct writing *writing, const char *key)
{
    const struct azure_place *place = writing->place;
    struct text *url = &writing->made->url;

    text_format(url, "%s/", place->endpoint);
    escape_add(url, place->container, strlen(place->container), 0);
    if (key) {
        text_format(url, "/");
        escape_add(url, key, strlen(key), 1);
    }
    if (url->failed)
        return;
    /* As it is sent, so escaped; behind the host, so with the endpoint's own path. */
    size_t from = (size_t)(place->path - place->endpoint);
    text_format(&writing->resource, "/%s%s", place->account, url->data + from);
}

/* The parts of the query go in the order of their names: so they are signed. */
static void add_list_query(struct writing *writing, const struct site_call *call)
{
    uint32_t page = call->page && call->page < PAGE_MOST ? call->page : PAGE_MOST;
    char number[16];

    snprintf(number, sizeof(number), "%" PRIu32, page);
    add_query(writing, "comp", "list");
    if (call->delimiter)
        add_query(writing, "delimiter", call->delimiter);
    add_query(writing, "include", "metadata"); /* folders are told by it */
    if (call->token)
        add_query(writing, "marker", call->token);
    add_query(writing, "maxresults", number);
    if (call->key && call->key[0])
        add_query(writing, "prefix", call->key);
    add_query(writing, "restype", "container");
}

static stk_status hash_of(const void *data, uint64_t length, uint8_t md5[16], struct stk_error *err)
{
    return digest_md5(data, (size_t)length, md5) ? fail_memory(err, length) : STK_OK;
}

/* The service compares what came with the hash. */
static void add_hash(struct writing *writing, const uint8_t md5[16])
{
    struct text *text = site_header(writing->made, "content-md5");

    if (text)
        digest_base64(text, md5, 16);
    else
        writing->resource.failed = 1;
}

static void set_send(struct writing *writing, const struct site_call *call)
{
    writing->made->request.send = call->send;
    writing->made->request.send_length = call->send_length;
    add_header(writing, "content-type", "application/octet-stream");
}

static stk_status write_put(struct writing *writing, const struct site_call *call,
                            struct stk_error *err)
{
    uint8_t md5[16];
    stk_status status = hash_of(call->send, call->send_length, md5, err);

    if (status)
        return status;
    set_send(writing, call);
    add_header(writing, "x-ms-blob-type", "BlockBlob");
    add_hash(writing, md5);
    return STK_OK;
}

static stk_status write_part(struct writing *writing, const struct site_call *call,
                             struct stk_error *err)
{
    struct text id = {0};
    uint8_t md5[16];
    char hex[33];
    stk_status status = hash_of(call->send, call->send_length, md5, err);

    if (status)
        return status;
    digest_hex(md5, sizeof(md5), hex);
    azure_block_id(&id, call->number, hex);
    if (id.failed)
        return fail_memory(err, id.len);
    add_query(writing, "blockid", id.data);
    add_query(writing, "comp", "block");
    set_send(writing, call);
    add_hash(writing, md5);
    text_free(&id);
    return STK_OK;
}

/* tags are MD5s in quotes. */
static stk_status write_finish(struct writing *writing, const struct site_call *call,
                               struct stk_error *err)
{
    struct text *body = &writing->made->body;
    uint8_t md5[16];

    add_query(writing, "comp", "blocklist");
    add_header(writing, "content-type", "application/xml");
    add_header(writing, "x-ms-blob-content-type", "application/octet-stream");
    text_format(body, "<?xml version=\"1.0\" encoding=\"utf-8\"?><BlockList>");
    for (uint32_t i = 0; i < call->number; i++) {
        const char *tag = call->tags[i];
        if (tag[0] == '"')
            tag++;
        text_format(body, "<Latest>");
        azure_block_id(body, i + 1, tag);
        text_format(body, "</Latest>");
    }
    text_format(body, "</BlockList>");
    if (body->failed)
        return fail_memory(err, body->len);
    writing->made->request.send = body->data;
    writing->made->request.send_length = body->len;
    stk_status status = hash_of(body->data, body->len, md5, err);
    if (!status)
        add_hash(writing, md5);
    return status;
}

/* One header more that an answer may tell. */
static const char *wanted_header(enum site_verb verb)
{
    if (verb == SITE_STAT)
        return FOLDER_HEADER;
    return verb == SITE_PART ? "content-md5" : NULL;
}

static stk_status write_call(struct writing *writing, const struct site_call *call,
                             struct stk_error *err)
{
    struct web_request *request = &writing->made->request;

    add_path(writing, call->verb == SITE_LIST ? NULL : call->key);
    request->want_header = wanted_header(call->verb);
    switch (call->verb) {
    case SITE_READ:
        request->method = WEB_GET;
        return STK_OK;
    case SITE_STAT:
        request->method = WEB_HEAD;
        return STK_OK;
    case SITE_DELETE:
        request->method = WEB_DELETE;
        return STK_OK;
    case SITE_LIST:
        request->method = WEB_GET;
        add_list_query(writing, call);
        return STK_OK;
    case SITE_PARTS:
        if (call->is_prefix)
            break;
        request->method = WEB_GET;
        add_query(writing, "blocklisttype", "uncommitted");
        add_query(writing, "comp", "blocklist");
        return STK_OK;
    case SITE_PUT:
        request->method = WEB_PUT;
        return write_put(writing, call, err);
    case SITE_PART:
        request->method = WEB_PUT;
        return write_part(writing, call, err);
    case SITE_FINISH:
        request->method = WEB_PUT;
        return write_finish(writing, call, err);
    case SITE_BEGIN:
    case SITE_ABORT:
        break;
    }
    /* Blocks need no beginning, and go by themselves when they are not used. */
    return fail(err, STK_UNSUPPORTED, "Azure Storage has no call that begins or ends an upload");
}

/* --- signing --------------------------------------------------------------------------------- */

static const char *method_name(enum web_method method)
{
    static const char *const names[] = {
        [WEB_GET] = "GET",   [WEB_HEAD] = "HEAD",     [WEB_PUT] = "PUT",
        [WEB_POST] = "POST", [WEB_DELETE] = "DELETE",
    };

    return names[method];
}

static stk_status sign_with_key(struct writing *writing, const struct secret *secret,
                                struct stk_error *err)
{
    struct web_request *request = &writing->made->request;
    struct web_header headers[WEB_MAX_HEADERS];
    const struct azure_to_sign to_sign = {
        .method = method_name(request->method),
        .headers = headers,
        .header_count = request->header_count,
        .send_length = request->send_length,
        .range_first = request->range_first,
        .range_length = request->range_first == WEB_NO_RANGE ? 0 : request->range_length,
        .etag = request->etag,
        .resource = writing->resource.data,
    };

    for (uint32_t i = 0; i < request->header_count; i++)
        headers[i] = (struct web_header){.name = request->headers[i].name,
                                         .value = writing->made->values[i].data};
    struct text *authorization = site_header(writing->made, "authorization");
    if (!authorization)
        return fail_memory(err, 0);
    return azure_sign(authorization, &to_sign, secret, err);
}

static stk_status sign_with_token(struct writing *writing, const struct secret *secret,
                                  struct stk_error *err)
{
    if (!writing->place->is_private) {
        fail(err, STK_DENIED, "a token is not sent over http to %s", writing->place->host);
        fail_remedy(err, "use an https endpoint");
        return STK_DENIED;
    }
    struct text *authorization = site_header(writing->made, "authorization");
    if (!authorization)
        return fail_memory(err, 0);
    text_format(authorization, "Bearer %s", secret->token);
    return STK_OK;
}

/* Whoever gets a token or a shared access signature can use it himself; a key never leaves. */
static stk_status check_host(const struct azure_place *place, const struct secret *secret,
                             struct stk_error *err)
{
    if (place->is_known || !secret || (secret->kind != SECRET_SAS && secret->kind != SECRET_BEARER))
        return STK_OK;
    fail(err, STK_DENIED, "%s is no host of Azure Storage: no token is sent there", place->host);
    fail_remedy(err, "if it is one of yours, name it: AZURE_STORAGE_SERVICE_ENDPOINT=https://HOST");
    return STK_DENIED;
}

static stk_status sign(struct writing *writing, const struct secret *secret, struct stk_error *err)
{
    stk_status status = check_host(writing->place, secret, err);

    if (status)
        return status;
    switch (secret ? secret->kind : SECRET_NONE) {
    case SECRET_SHARED_KEY:
        return sign_with_key(writing, secret, err);
    case SECRET_SAS:
        text_format(&writing->made->url, "%c%s", writing->has_query ? '&' : '?', secret->token);
        return STK_OK;
    case SECRET_BEARER:
        return sign_with_token(writing, secret, err);
    default: /* none, or none of Azure's */
        break;
    }
    return STK_OK;
}

static stk_status azure_make(struct site *site, const struct site_call *call,
                             const struct secret *secret, struct site_made *made,
                             struct stk_error *err)
{
    struct azure_place *place = site->kind;
    struct writing writing = {.place = place, .made = made};
    char date[AZURE_DATE_CAP];
    stk_status status = write_call(&writing, call, err);

    if (status)
        goto done;
    azure_date((int64_t)time(NULL) + atomic_load(&place->clock_behind_s), date);
    add_header(&writing, "x-ms-date", date);
    add_header(&writing, "x-ms-version", API_VERSION);
    if (call->only_new && (call->verb == SITE_PUT || call->verb == SITE_FINISH))
        add_header(&writing, "if-none-match", "*");
    if (writing.resource.failed || made->url.failed)
        status = fail_memory(err, made->url.len);
    if (!status)
        status = sign(&writing, secret, err);
    if (!status)
        status = site_made_finish(made, err);
done:
    text_free(&writing.resource);
    return status;
}

/* --- answers --------------------------------------------------------------------------------- */

static stk_status azure_read_page(struct site *site, const struct site_call *call,
                                  const struct web_answer *answer, const char *body, size_t length,
                                  struct site_page *page, struct stk_error *err)
{
    (void)site;
    (void)answer;
    if (call->verb == SITE_PARTS)
        return azure_read_blocks(body, length, page, err);
    return azure_read_blobs(body, length, page, err);
}

/* A signature must be dated within 15 minutes of the service's clock: its Date is taken over. */
static void azure_trouble(struct site *site, const struct web_answer *answer,
                          struct site_trouble *trouble)
{
    struct azure_place *place = site->kind;
    int64_t now = (int64_t)time(NULL);
    int64_t behind = answer->date_s ? answer->date_s - now : 0;
    int64_t more = behind - atomic_load(&place->clock_behind_s);

    azure_read_trouble(answer, trouble);
    if (!trouble->is_credentials || !answer->date_s ||
        (more < CLOCK_WRONG_S && more > -CLOCK_WRONG_S))
        return;
    trouble->is_clock = 1;
    atomic_store(&place->clock_behind_s, behind);
}

/* A block's tag is the MD5 of its bytes: its id is made of it. Emulators do not tell it. */
static void azure_read_upload(struct site *site, const struct site_call *call,
                              const struct web_answer *answer, const char *body, size_t length,
                              char upload[256], struct site_trouble *trouble)
{
    uint8_t md5[16];
    size_t got;
    char hex[33];

    (void)site;
    (void)body;
    (void)length;
    if (call->verb != SITE_PART)
        return;
    if ((digest_base64_decode(answer->upload, strlen(answer->upload), md5, sizeof(md5), &got) ||
         got != sizeof(md5)) &&
        hash_of(call->send, call->send_length, md5, NULL)) {
        trouble->status = STK_MEMORY;
        return;
    }
    digest_hex(md5, sizeof(md5), hex);
    snprintf(upload, 256, "\"%s\"", hex);
}

static const char *const schemes[] = {"az", "abfss", "abfs", "wasbs", "wasb", NULL};

const struct site_ops azure_site = {
    .schemes = schemes,
    .open = azure_open,
    .close = azure_close,
    .make = azure_make,
    .read_page = azure_read_page,
    .read_trouble = azure_trouble,
    .read_upload = azure_read_upload,
};
