#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/web_parts.h"

/* --- one easy handle */

/* A connection is there and the request goes out next: the time for connecting is over, and what
 * follows may stall. */
static int on_connected(void *user, char *remote, char *local, int remote_port, int local_port)
{
    struct web_private *transfer = user;
    (void)remote, (void)local, (void)remote_port;
    transfer->stage = STAGE_ASKED;
    transfer->request->answer.connection = (uint64_t)local_port;
    transfer->window_ns = clock_now();
    transfer->window_moved = 0;
    return CURL_PREREQFUNC_OK;
}

/* Without a file of certificates of the user's libcurl takes the system's. With one, nothing else
 * is trusted: its folder of certificates is set aside, too. */
static CURLcode set_trust(const struct web *web, CURL *easy)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (code || !web->ca)
        return code;
    code = curl_easy_setopt(easy, CURLOPT_CAINFO, web->ca);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, web->ca);
    return code ? code : curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
}

/* The numbers that never change. */
static CURLcode set_numbers(const struct web *web, CURL *easy)
{
    const struct {
        CURLoption option;
        long value;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_BUFFERSIZE, WEB_BUFFER_BYTES},
        {CURLOPT_UPLOAD_BUFFERSIZE, WEB_BUFFER_BYTES},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_HTTP_CONTENT_DECODING, 0},
        {CURLOPT_PATH_AS_IS, 1}, /* a key may hold "//" and ".." */
        {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
        {CURLOPT_TCP_KEEPALIVE, 1},
        {CURLOPT_DNS_SHUFFLE_ADDRESSES, 1}, /* a cloud's name has many; all shall be used */
        {CURLOPT_CONNECTTIMEOUT_MS, (long)web->options.connect_ms},
        {CURLOPT_QUICK_EXIT, 1}, /* a resolver that hangs is not waited for */
        {CURLOPT_NOPROGRESS, 1},
    };
    CURLcode code = CURLE_OK;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && !code; i++)
        code = curl_easy_setopt(easy, numbers[i].option, numbers[i].value);
    return code;
}

static CURLcode set_fixed(struct web_private *transfer)
{
    CURL *easy = transfer->easy;
    CURLcode code = set_numbers(transfer->web, easy);
    code = code ? code : set_trust(transfer->web, easy);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    code = code ? code : curl_easy_setopt(easy, CURLOPT_USERAGENT, "stoker");
    code = code ? code : curl_easy_setopt(easy, CURLOPT_NOPROXY, transfer->web->no_proxy);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, web_on_header);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, web_on_body);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    return code ? code : curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
}

struct web_private *web_private_new(struct web *web)
{
    struct web_private *transfer = memory_zero(1, sizeof *transfer);
    if (!transfer)
        return NULL;
    transfer->web = web;
    transfer->easy = curl_easy_init();
    if (!transfer->easy || set_fixed(transfer)) {
        web_private_free(transfer);
        return NULL;
    }
    return transfer;
}

void web_private_free(struct web_private *transfer)
{
    if (!transfer)
        return;
    curl_easy_cleanup(transfer->easy);
    memory_free(transfer->lines); /* wiped after each request */
    memory_free(transfer);
}

/* --- headers of a request */

/* A line break in a value would be a header of somebody else's. */
static int is_clean(const char *text)
{
    return !text[strcspn(text, "\r\n")];
}

static int has_header(const struct web_request *request, const char *name)
{
    for (uint32_t i = 0; i < request->header_count; i++) {
        if (strcasecmp(request->headers[i].name, name) == 0)
            return 1;
    }
    return 0;
}

/* All lines lie in one buffer that is big enough before the first is written, so that no copy of
 * a secret is left behind by growing. */
static int lines_room(struct web_private *transfer, const struct web_request *request)
{
    size_t needed = 512 + (request->etag ? strlen(request->etag) : 0);
    for (uint32_t i = 0; i < request->header_count; i++)
        needed += strlen(request->headers[i].name) + strlen(request->headers[i].value) + 4;
    if (needed <= transfer->lines_cap)
        return 1;
    size_t cap = needed < 4096 ? 4096 : 2 * needed;
    char *lines = memory_alloc(cap);
    if (!lines)
        return 0;
    memory_free(transfer->lines); /* wiped after the last request */
    transfer->lines = lines;
    transfer->lines_cap = cap;
    return 1;
}

/* An empty value sends "Name:" where that is meant (libcurl wants a semicolon for it). value NULL:
 * turns a header of libcurl's own off. */
static void line_add(struct web_private *transfer, const char *name, const char *value)
{
    char *at = transfer->lines + transfer->lines_used;
    size_t room = transfer->lines_cap - transfer->lines_used;
    int length = !value     ? snprintf(at, room, "%s:", name)
                 : value[0] ? snprintf(at, room, "%s: %s", name, value)
                            : snprintf(at, room, "%s;", name);
    assert(length > 0 && (size_t)length < room);
    transfer->lines_used += (size_t)length + 1;
    struct curl_slist *node = &transfer->list[transfer->list_count++];
    node->data = at;
    node->next = NULL;
    if (transfer->list_count > 1)
        node[-1].next = node;
}

static enum web_failure headers_make(struct web_private *transfer)
{
    const struct web_request *request = transfer->request;
    char range[64];
    transfer->list_count = 0;
    if (!lines_room(transfer, request))
        return WEB_MEMORY;
    for (uint32_t i = 0; i < request->header_count; i++) {
        const struct web_header *header = &request->headers[i];
        if (!is_clean(header->name) || !is_clean(header->value))
            return WEB_PROTOCOL;
        line_add(transfer, header->name, header->value);
    }
    if (web_has_range(request)) {
        snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)request->range_first,
                 (unsigned long long)(request->range_first + request->range_length - 1));
        line_add(transfer, "Range", range);
    }
    /* If-Match compares strongly: a weak tag would never match. It is compared with the answer's.
     */
    if (request->etag && strncmp(request->etag, "W/", 2) != 0) {
        if (!is_clean(request->etag))
            return WEB_PROTOCOL;
        line_add(transfer, "If-Match", request->etag);
    }
    if (!has_header(request, "Accept-Encoding"))
        line_add(transfer, "Accept-Encoding", "identity");
    if (request->method == WEB_PUT || request->method == WEB_POST) {
        line_add(transfer, "Expect", NULL);
        if (!has_header(request, "Content-Type"))
            line_add(transfer, "Content-Type", NULL);
    }
    return WEB_FINE;
}

/* --- begin */

/* A body goes as libcurl's "post fields": from the caller's memory, with no callback, and libcurl
 * can send it again when a kept connection turns out to be dead. */
static CURLcode set_method(CURL *easy, const struct web_request *request)
{
    static const char *const names[] = {
        [WEB_GET] = NULL,  [WEB_HEAD] = NULL,       [WEB_PUT] = "PUT",
        [WEB_POST] = NULL, [WEB_DELETE] = "DELETE",
    };
    int sends = request->method == WEB_PUT || request->method == WEB_POST;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (sends) {
        const void *body = request->send_length ? request->send : "";
        curl_off_t length = (curl_off_t)request->send_length;
        code = code ? code : curl_easy_setopt(easy, CURLOPT_POST, 1L);
        code = code ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
        code = code ? code : curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
    }
    if (request->method == WEB_HEAD)
        code = code ? code : curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return code ? code : curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, names[request->method]);
}

static CURLcode set_request(struct web_private *transfer)
{
    struct web_request *request = transfer->request;
    CURL *easy = transfer->easy;
    const char *proxy = strncasecmp(request->url, "https:", 6) == 0 ? transfer->web->https_proxy
                                                                    : transfer->web->http_proxy;
    long version = request->http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, request->url);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version);
    code = code ? code : curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->list);
    code = code ? code
                : curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request->new_connection ? 1L : 0L);
    return code ? code : set_method(easy, request);
}

static struct web_private *transfer_take(struct web *web)
{
    struct web_private *transfer = web->idle;
    if (!transfer)
        return web_private_new(web);
    web->idle = transfer->next;
    web->idle_count--;
    return transfer;
}

/* Its headers hold secrets: they go when the request is over. */
static void transfer_put(struct web *web, struct web_private *transfer)
{
    if (transfer->lines_used)
        explicit_bzero(transfer->lines, transfer->lines_used);
    transfer->lines_used = 0;
    transfer->request = NULL;
    if (web->idle_count >= WEB_IDLE_KEPT) {
        web_private_free(transfer);
        return;
    }
    transfer->next = web->idle;
    web->idle = transfer;
    web->idle_count++;
}

static void running_add(struct web *web, struct web_private *transfer)
{
    transfer->previous = NULL;
    transfer->next = web->running;
    if (transfer->next)
        transfer->next->previous = transfer;
    web->running = transfer;
    web->running_count++;
}

static void running_remove(struct web *web, struct web_private *transfer)
{
    if (transfer->previous)
        transfer->previous->next = transfer->next;
    else
        web->running = transfer->next;
    if (transfer->next)
        transfer->next->previous = transfer->previous;
    web->running_count--;
}

enum web_failure web_transfer_begin(struct web *web, struct web_request *request)
{
    struct web_private *transfer = transfer_take(web);
    if (!transfer)
        return WEB_MEMORY;
    transfer->request = request;
    transfer->was_stopped = transfer->is_once_again = 0;
    web_answer_begin(transfer);
    enum web_failure failure = headers_make(transfer);
    if (failure == WEB_FINE && set_request(transfer))
        failure = WEB_MEMORY;
    if (failure == WEB_FINE && curl_multi_add_handle(web->multi, transfer->easy))
        failure = WEB_MEMORY;
    if (failure) {
        transfer_put(web, transfer);
        return failure;
    }
    request->inside = transfer;
    request->answer.started_ns = clock_now();
    running_add(web, transfer);
    return WEB_FINE;
}

/* --- end */

static void read_infos(struct web_private *transfer)
{
    struct web_answer *answer = &transfer->request->answer;
    long connects = 0, version = 0;
    curl_off_t took = 0, tls_took = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_NUM_CONNECTS, &connects);
    curl_easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
    answer->http2 = version == CURL_HTTP_VERSION_2_0;
    if (connects > 0) {
        curl_easy_getinfo(transfer->easy, CURLINFO_CONNECT_TIME_T, &took);
        curl_easy_getinfo(transfer->easy, CURLINFO_APPCONNECT_TIME_T, &tls_took);
        answer->connected_ns = (int64_t)(tls_took > took ? tls_took : took) * 1000;
    }
}

void web_transfer_end(struct web_private *transfer, CURLcode code, enum web_failure failure)
{
    struct web *web = transfer->web;
    struct web_request *request = transfer->request;
    if (failure == WEB_FINE)
        failure = web_answer_end(transfer, code);
    read_infos(transfer);
    curl_multi_remove_handle(web->multi, transfer->easy);
    running_remove(web, transfer);
    request->answer.failure = failure;
    request->answer.finished_ns = clock_now();
    request->inside = NULL;
    transfer_put(web, transfer);
}

int web_transfer_again(struct web_private *transfer, CURLcode code)
{
    if (code != CURLE_OPERATION_TIMEDOUT || transfer->stage != STAGE_CONNECTING ||
        !transfer->was_stopped || transfer->is_once_again)
        return 0;
    struct web *web = transfer->web;
    curl_multi_remove_handle(web->multi, transfer->easy);
    transfer->is_once_again = 1;
    web_answer_begin(transfer);
    return curl_multi_add_handle(web->multi, transfer->easy) == CURLM_OK;
}
