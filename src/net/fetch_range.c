/* Which bytes a try asks for. What is in place stays there: the next try asks for what follows,
 * and only of the very object that the bytes in place are of. */
#include "net/fetch_parts.h"

#include <assert.h>
#include <string.h>

/* Ranges this long go over connections of their own: HTTP/2 costs more time a byte, and all of its
 * streams share one window. */
#define HTTP1_BYTES ((uint64_t)256 << 10)

/* If-Match compares strongly: a weak ETag never fits, and is compared here alone. */
static int is_strong(const char *etag)
{
    return etag && *etag && strncmp(etag, "W/", 2) != 0;
}

/* Lets the parts begin at a byte of the fetch. Only the one that is cut is changed, and it is
 * mended before the next cut and at the end: a caller finds its parts as they were. */
void range_seek(struct fetch_private *inside, uint64_t position)
{
    struct fetch *fetch = inside->fetch;
    if (!fetch_is_ranged(fetch))
        return;
    if (inside->part_cut) {
        struct iovec *part = &fetch->parts[inside->part];
        part->iov_base = (char *)part->iov_base - inside->part_cut;
        part->iov_len += inside->part_cut;
    }
    inside->part = 0;
    inside->got = position;
    while (position && position >= fetch->parts[inside->part].iov_len) {
        position -= fetch->parts[inside->part++].iov_len;
        assert(inside->part < fetch->part_count || !position);
    }
    inside->part_cut = (size_t)position;
    if (inside->part_cut) {
        struct iovec *part = &fetch->parts[inside->part];
        part->iov_base = (char *)part->iov_base + inside->part_cut;
        part->iov_len -= inside->part_cut;
    }
}

static void prepare_text(struct fetch_private *inside, struct web_request *request)
{
    struct fetch *fetch = inside->fetch;
    const int is_read = fetch->call.verb == SITE_READ;
    request->text = fetch->text ? fetch->text : &inside->own;
    request->text_most = fetch->text_most ? fetch->text_most : (uint64_t)1 << 20;
    if (is_read && inside->got) {
        request->range_first = inside->got;
        request->range_length = inside->total - inside->got;
        request->text_most -= inside->got;
    }
}

/* Before the request is made, since what is said here may be signed. */
void range_prepare(struct fetch_private *inside, struct attempt *attempt)
{
    struct fetch *fetch = inside->fetch;
    struct web_request *request = &attempt->made.request;
    attempt->inside = inside;
    attempt->first = inside->got;
    attempt->count = STK_NOWHERE;
    request->range_first = WEB_NO_RANGE;
    if (fetch_is_ranged(fetch)) {
        attempt->count = fetch->length - inside->got;
        request->range_first = fetch->offset + inside->got;
        request->range_length = attempt->count;
        request->parts = fetch->parts + inside->part;
        request->part_count = fetch->part_count - inside->part;
    } else {
        prepare_text(inside, request);
    }
    if (fetch->call.verb == SITE_READ) {
        const char *etag = fetch->etag ? fetch->etag : inside->etag;
        request->etag = is_strong(etag) ? etag : NULL;
    }
    const int is_long = attempt->count != STK_NOWHERE && attempt->count >= HTTP1_BYTES;
    request->new_connection = inside->want_new_connection;
    request->http1 = inside->want_http1 || is_long;
}

static void learn_object(struct fetch_private *inside, const struct web_answer *answer)
{
    _Static_assert(sizeof inside->etag == sizeof answer->etag, "ETags are copied whole");
    memcpy(inside->etag, answer->etag, sizeof inside->etag);
    memcpy(inside->last_modified, answer->last_modified, sizeof inside->last_modified);
    inside->object_size = answer->object_size;
}

/* A try was broken off: its bytes stay, if it can be told that the next ones are of the same
 * object. */
void range_keep(struct fetch_private *inside, const struct attempt *attempt)
{
    struct fetch *fetch = inside->fetch;
    const struct web_answer *answer = &attempt->made.request.answer;
    if (fetch->call.verb != SITE_READ) {
        range_restart(inside); /* a piece of a list is of no use */
        return;
    }
    if (!fetch_is_ranged(fetch)) {
        const uint64_t now = fetch->text->len - inside->text_base;
        if (inside->total == STK_NOWHERE && answer->length != STK_NOWHERE)
            inside->total = answer->length;
        if (inside->total == STK_NOWHERE || !is_strong(answer->etag) || now >= inside->total) {
            range_restart(inside);
            return;
        }
        inside->got = now;
        learn_object(inside, answer);
        return;
    }
    if (!answer->received)
        return;
    if (!fetch->etag && !is_strong(answer->etag) && !*answer->last_modified)
        return; /* nothing would show that the rest is of another object */
    assert(answer->received <= attempt->count);
    range_seek(inside, attempt->first + answer->received);
    learn_object(inside, answer);
}

/* Forgets what is in place: all of it is fetched again. */
void range_restart(struct fetch_private *inside)
{
    struct text *text = inside->fetch->text;
    range_seek(inside, 0);
    inside->got = 0;
    inside->total = STK_NOWHERE;
    inside->etag[0] = inside->last_modified[0] = '\0';
    if (text && text->data) {
        text->len = inside->text_base;
        text->data[text->len] = '\0';
    }
}

/* Bytes of the fetch from `first` on, from elsewhere. Nothing is in flight into its parts. */
void range_copy(struct fetch_private *inside, uint64_t first, const char *from, uint64_t length)
{
    const struct fetch *fetch = inside->fetch;
    range_seek(inside, 0);
    uint64_t at = 0;
    for (uint32_t i = 0; i < fetch->part_count && length; at += fetch->parts[i++].iov_len) {
        const struct iovec *part = &fetch->parts[i];
        if (first >= at + part->iov_len)
            continue;
        const size_t skip = (size_t)(first - at);
        const size_t room = part->iov_len - skip;
        const size_t step = length < room ? (size_t)length : room;
        memcpy((char *)part->iov_base + skip, from, step);
        from += step;
        first += step;
        length -= step;
    }
    assert(!length);
}

int range_is_whole(const struct fetch_private *inside)
{
    return fetch_is_ranged(inside->fetch) && inside->got == inside->fetch->length;
}
