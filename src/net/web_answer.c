#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/memory.h"
#include "base/parse.h"
#include "net/web_parts.h"

/* A piece of a header line. */
struct span {
    const char *data;
    size_t length;
};

static int span_is(struct span span, const char *name)
{
    return strlen(name) == span.length && strncasecmp(span.data, name, span.length) == 0;
}

void web_answer_words(struct web_answer *answer, const char *words)
{
    /* What follows a question mark may be a signature. */
    size_t length = strcspn(words, "?");
    if (length >= sizeof answer->words)
        length = sizeof answer->words - 1;
    memcpy(answer->words, words, length);
    answer->words[length] = '\0';
}

/* --- headers */

/* Forgets what an earlier block of headers (100 Continue) told. */
static void forget_headers(struct web_private *transfer)
{
    struct web_answer *answer = &transfer->request->answer;
    answer->status = 0;
    answer->length = answer->object_size = STK_NOWHERE;
    answer->retry_after_ms = -1;
    answer->date_s = 0;
    answer->etag[0] = answer->last_modified[0] = answer->content_type[0] = '\0';
    answer->location[0] = answer->region[0] = answer->error_code[0] = answer->upload[0] = '\0';
    transfer->has_range = transfer->is_encoded = 0;
}

void web_answer_begin(struct web_private *transfer)
{
    struct web_answer *answer = &transfer->request->answer;
    answer->failure = WEB_FINE;
    answer->received = 0;
    answer->words[0] = '\0';
    answer->first_byte_ns = answer->finished_ns = answer->connected_ns = 0;
    answer->connection = 0;
    answer->http2 = 0;
    forget_headers(transfer);
    transfer->stage = STAGE_CONNECTING;
    transfer->place = PLACE_NOWHERE;
    transfer->failure = WEB_FINE;
    transfer->wanted = transfer->moved = transfer->part_filled = 0;
    transfer->part = 0;
    transfer->error[0] = '\0';
}

/* "bytes 0-99/1000", "bytes 0-99/" and a star, "bytes * /1000". */
static void read_range(struct web_private *transfer, struct span value)
{
    const char *at = value.data, *end = at + value.length;
    if (value.length < 6 || strncasecmp(at, "bytes", 5) != 0 || (at[5] != ' ' && at[5] != '='))
        return;
    at += 6;
    while (at < end && *at == ' ')
        at++;
    const char *slash = memchr(at, '/', (size_t)(end - at));
    if (!slash)
        return;
    uint64_t total = STK_NOWHERE;
    if (parse_u64(slash + 1, (size_t)(end - slash - 1), &total))
        transfer->request->answer.object_size = total;
    const char *dash = memchr(at, '-', (size_t)(slash - at));
    if (!dash)
        return;
    transfer->has_range = parse_u64(at, (size_t)(dash - at), &transfer->range_first) &&
                          parse_u64(dash + 1, (size_t)(slash - dash - 1), &transfer->range_last) &&
                          transfer->range_first <= transfer->range_last &&
                          (total == STK_NOWHERE || transfer->range_last < total);
}

/* Seconds, or a date. */
static void read_retry_after(struct web_answer *answer, struct span value, uint64_t unit_ms)
{
    uint64_t number;
    char date[64];
    if (parse_u64(value.data, value.length, &number)) {
        answer->retry_after_ms = (int64_t)((number < 1000000 ? number : 1000000) * unit_ms);
    } else if (unit_ms == 1000 && value.length < sizeof date) {
        memcpy(date, value.data, value.length);
        date[value.length] = '\0';
        time_t when = curl_getdate(date, NULL), now = time(NULL);
        if (when >= 0)
            answer->retry_after_ms = when > now ? (int64_t)(when - now) * 1000 : 0;
    }
}

static void read_date(struct web_answer *answer, struct span value)
{
    char date[64];
    if (answer->status < 400 || value.length >= sizeof date)
        return;
    memcpy(date, value.data, value.length);
    date[value.length] = '\0';
    time_t when = curl_getdate(date, NULL);
    answer->date_s = when > 0 ? (int64_t)when : 0;
}

/* One that does not fit is left out: half a URL or half an ETag is worse than none. */
static void keep(char *to, size_t cap, struct span value)
{
    size_t length = value.length < cap ? value.length : 0;
    memcpy(to, value.data, length);
    to[length] = '\0';
}

#define KEPT(header, field)                                                                        \
    {                                                                                              \
        header, offsetof(struct web_answer, field), sizeof(((struct web_answer *)0)->field)        \
    }
static const struct kept_header {
    const char *name;
    size_t offset, cap;
} kept_headers[] = {
    KEPT("etag", etag),
    KEPT("last-modified", last_modified),
    KEPT("content-type", content_type),
    KEPT("location", location),
    KEPT("x-amz-bucket-region", region),
    KEPT("x-ms-error-code", error_code),
    KEPT("x-amz-error-code", error_code),
};

static void read_field(struct web_private *transfer, struct span name, struct span value)
{
    struct web_answer *answer = &transfer->request->answer;
    const char *want = transfer->request->want_header;
    if (want && span_is(name, want))
        keep(answer->upload, sizeof answer->upload, value);
    for (size_t i = 0; i < sizeof kept_headers / sizeof kept_headers[0]; i++) {
        if (span_is(name, kept_headers[i].name)) {
            keep((char *)answer + kept_headers[i].offset, kept_headers[i].cap, value);
            return;
        }
    }
    if (span_is(name, "content-length"))
        (void)parse_u64(value.data, value.length, &answer->length);
    else if (span_is(name, "content-range"))
        read_range(transfer, value);
    else if (span_is(name, "content-encoding"))
        /* aws-chunked is how an upload was sent: a note, no encoding. */
        transfer->is_encoded =
            !span_is(value, "identity") && !span_is(value, "aws-chunked") && value.length > 0;
    else if (span_is(name, "retry-after"))
        read_retry_after(answer, value, 1000);
    else if (span_is(name, "retry-after-ms") || span_is(name, "x-ms-retry-after-ms") ||
             span_is(name, "x-amz-retry-after"))
        read_retry_after(answer, value, 1);
    else if (span_is(name, "date"))
        read_date(answer, value);
}

/* --- at the end of the headers: is this what was asked for, and where does it go? */

static enum web_failure wrong(struct web_private *transfer, enum web_failure failure,
                              const char *words)
{
    web_answer_words(&transfer->request->answer, words);
    return failure;
}

/* Tags are compared without their W/: a proxy may have weakened one. */
static int same_etag(const char *a, const char *b)
{
    a += strncmp(a, "W/", 2) == 0 ? 2 : 0;
    b += strncmp(b, "W/", 2) == 0 ? 2 : 0;
    return strcmp(a, b) == 0;
}

static enum web_failure check_range(struct web_private *transfer)
{
    const struct web_request *request = transfer->request;
    const struct web_answer *answer = &request->answer;
    if (!web_has_range(request)) {
        if (answer->status == 206)
            return wrong(transfer, WEB_RANGE, "a part came, and all was asked for");
        return WEB_FINE;
    }
    if (answer->status == 200) {
        if (request->range_first == 0 && answer->length == request->range_length)
            return WEB_FINE;
        return wrong(transfer, WEB_RANGE, "a range was asked for, and the server sent all of it");
    }
    if (answer->status != 206 || !transfer->has_range)
        return wrong(transfer, WEB_RANGE, "the answer to a range has no good Content-Range");
    if (transfer->range_first != request->range_first ||
        transfer->range_last - transfer->range_first != request->range_length - 1)
        return wrong(transfer, WEB_RANGE, "the server sent another range than was asked for");
    return WEB_FINE;
}

static uint64_t parts_length(const struct web_request *request)
{
    uint64_t length = 0;
    for (uint32_t i = 0; i < request->part_count; i++)
        length += request->parts[i].iov_len;
    return length;
}

static enum web_failure check_good(struct web_private *transfer)
{
    struct web_request *request = transfer->request;
    struct web_answer *answer = &request->answer;
    if (request->etag && answer->etag[0] && !same_etag(request->etag, answer->etag))
        return wrong(transfer, WEB_CHANGED, "the ETag is not the one that was expected");
    if (transfer->is_encoded)
        return wrong(transfer, WEB_ENCODED, "the answer has a Content-Encoding");
    enum web_failure failure = check_range(transfer);
    if (failure || request->method == WEB_HEAD)
        return failure;
    uint64_t most = STK_NOWHERE;
    if (request->parts) {
        transfer->place = PLACE_PARTS;
        most = transfer->wanted = parts_length(request);
    } else if (request->text) {
        transfer->place = PLACE_TEXT;
        most = request->text_most;
    }
    if (answer->length != STK_NOWHERE && answer->length > most)
        return wrong(transfer, WEB_LENGTH, "Content-Length is more than was asked for");
    if (answer->object_size == STK_NOWHERE && answer->status == 200)
        answer->object_size = answer->length;
    return WEB_FINE;
}

static enum web_failure check_head(struct web_private *transfer)
{
    struct web_answer *answer = &transfer->request->answer;
    transfer->stage = STAGE_BODY;
    if (answer->status >= 200 && answer->status < 300)
        return check_good(transfer);
    transfer->place = PLACE_ERROR;
    return WEB_FINE;
}

static void read_status(struct web_private *transfer, struct span line)
{
    struct web_answer *answer = &transfer->request->answer;
    uint64_t status = 0;
    forget_headers(transfer);
    if (!answer->first_byte_ns)
        answer->first_byte_ns = clock_now();
    const char *space = memchr(line.data, ' ', line.length);
    if (space && line.data + line.length - space >= 4)
        (void)parse_u64(space + 1, 3, &status);
    answer->status = (int)status;
}

size_t web_on_header(char *data, size_t size, size_t count, void *user)
{
    struct web_private *transfer = user;
    struct span line = {data, size * count};
    if (transfer->stage == STAGE_BODY) /* trailers */
        return size * count;
    while (line.length > 0 && strchr("\r\n \t", line.data[line.length - 1]))
        line.length--;
    if (line.length == 0) {
        if (transfer->request->answer.status >= 200)
            transfer->failure = check_head(transfer);
        return transfer->failure ? 0 : size * count;
    }
    const char *colon = memchr(line.data, ':', line.length);
    if (line.length > 5 && strncasecmp(line.data, "HTTP/", 5) == 0) {
        read_status(transfer, line);
    } else if (colon) {
        struct span name = {line.data, (size_t)(colon - line.data)};
        struct span value = {colon + 1, line.length - name.length - 1};
        while (value.length > 0 && (*value.data == ' ' || *value.data == '\t')) {
            value.data++;
            value.length--;
        }
        read_field(transfer, name, value);
    }
    return size * count;
}

/* --- bodies */

static enum web_failure fill_parts(struct web_private *transfer, const char *data, size_t length)
{
    struct web_request *request = transfer->request;
    if (length > transfer->wanted - request->answer.received)
        return wrong(transfer, WEB_LENGTH, "the body is longer than was asked for");
    while (length > 0) {
        struct iovec *part = &request->parts[transfer->part];
        size_t step = part->iov_len - transfer->part_filled;
        step = step < length ? step : length;
        if (part->iov_len >= COPY_LARGE) /* a place in a batch: its reader comes much later */
            copy_past_caches((char *)part->iov_base + transfer->part_filled, data, step);
        else if (step > 0)
            memcpy((char *)part->iov_base + transfer->part_filled, data, step);
        data += step;
        length -= step;
        request->answer.received += step;
        transfer->part_filled += step;
        if (transfer->part_filled == part->iov_len) {
            transfer->part++;
            transfer->part_filled = 0;
        }
    }
    return WEB_FINE;
}

static enum web_failure fill_text(struct web_private *transfer, const char *data, size_t length)
{
    struct web_request *request = transfer->request;
    if (length > request->text_most - request->answer.received)
        return wrong(transfer, WEB_LENGTH, "the body is longer than may be kept");
    text_add(request->text, data, length);
    if (request->text->failed)
        return WEB_MEMORY;
    request->answer.received += length;
    return WEB_FINE;
}

static void fill_error(struct web_private *transfer, const char *data, size_t length)
{
    struct web_answer *answer = &transfer->request->answer;
    size_t room = WEB_ERROR_BYTES - answer->body.len;
    text_add(&answer->body, data, length < room ? length : room);
    answer->received += length;
}

size_t web_on_body(char *data, size_t size, size_t count, void *user)
{
    struct web_private *transfer = user;
    size_t length = size * count;
    transfer->moved += length;
    switch (transfer->place) {
    case PLACE_PARTS:
        transfer->failure = fill_parts(transfer, data, length);
        break;
    case PLACE_TEXT:
        transfer->failure = fill_text(transfer, data, length);
        break;
    case PLACE_ERROR:
        fill_error(transfer, data, length);
        break;
    case PLACE_NOWHERE:
        transfer->request->answer.received += length;
        break;
    }
    return transfer->failure ? 0 : length;
}

/* --- ends */

/* A handshake that the other side or the network broke off is no matter of certificates. */
static enum web_failure tls_failure(const char *words)
{
    static const char *const passing[] = {"SYSCALL", "reset", "timed out", "unexpected eof", NULL};
    for (int i = 0; passing[i]; i++) {
        if (strcasestr(words, passing[i]))
            return WEB_CONNECT;
    }
    return WEB_TLS;
}

static enum web_failure curl_failure(const struct web_private *transfer, CURLcode code)
{
    int is_connecting = transfer->stage == STAGE_CONNECTING;
    switch (code) {
    case CURLE_OK:
        return WEB_FINE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return WEB_RESOLVE;
    case CURLE_COULDNT_CONNECT:
        return WEB_CONNECT;
    case CURLE_OPERATION_TIMEDOUT:
        return is_connecting ? WEB_CONNECT : WEB_LATE;
    case CURLE_SSL_CONNECT_ERROR:
        return tls_failure(transfer->error);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_USE_SSL_FAILED:
        return WEB_TLS;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return is_connecting ? WEB_CONNECT : WEB_RESET;
    case CURLE_OUT_OF_MEMORY:
        return WEB_MEMORY;
    default:
        return WEB_PROTOCOL;
    }
}

enum web_failure web_answer_end(struct web_private *transfer, CURLcode code)
{
    struct web_answer *answer = &transfer->request->answer;
    if (transfer->failure)
        return transfer->failure; /* its words are there */
    if (code != CURLE_OK) {
        web_answer_words(answer, transfer->error[0] ? transfer->error : curl_easy_strerror(code));
        return curl_failure(transfer, code);
    }
    if (answer->status < 100)
        return wrong(transfer, WEB_PROTOCOL, "no status came");
    if (transfer->place == PLACE_PARTS && answer->received < transfer->wanted)
        return wrong(transfer, WEB_RESET, "the body is shorter than was asked for");
    return WEB_FINE;
}
