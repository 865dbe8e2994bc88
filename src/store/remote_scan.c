/* A blocking reader over a queue of reads. Reads that follow one another get a window that grows,
 * and the next one is on its way while the first is used. An indexer of large members looks at
 * headers that lie equally far apart: those are asked for ahead, many at once. */
#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/fetch.h"
#include "store/remote.h"

#define NEAR (UINT64_C(256) << 10) /* a gap that is read, not jumped: less than a round trip */
#define AHEAD_FIRST (UINT64_C(64) << 10)
#define AHEAD_MOST (UINT64_C(8) << 20)
#define STRAIGHT (UINT64_C(4) << 20) /* reads from here on need no window */
#define STRIDES 16
#define STRIDE_READ (UINT64_C(64) << 10) /* longer ones are not guessed at */
#define SLICE_NS 100000000

struct window {
    uint64_t offset, length;
    uint8_t *data;
    size_t cap;
    struct store_read read;
    struct iovec part;
    int is_open; /* it is on its way */
};

struct remote_scan {
    struct store *store; /* owned where uri is not NULL */
    char *uri;
    struct object object;
    uint32_t number;
    uint64_t limit; /* nothing behind it is read ahead */
    struct store_queue *queue;
    struct window now, next, guesses[STRIDES];
    uint64_t at;     /* the end of the last read */
    uint64_t ahead;  /* how much the next window is longer than what was asked for */
    uint64_t jumped; /* where the last jump went */
    uint64_t stride; /* between the last two */
    uint32_t regular;
};

/* --- opening ---------------------------------------------------------------------------------- */

static void get_self(const void *owner, uint32_t number, struct object *out)
{
    (void)number;
    *out = ((const struct remote_scan *)owner)->object;
}

static stk_status ask_size(struct remote_scan *scan, struct stk_error *err)
{
    struct net *net = NULL;
    struct site *site = NULL;
    const char *key;
    struct fetch *fetch = memory_zero(1, sizeof *fetch);
    stk_status status = fetch ? net_take(&net, err) : fail_memory(err, sizeof *fetch);
    if (!status)
        status = site_open(&site, net, scan->uri, &key, err);
    if (status)
        goto done;
    fetch->site = site;
    fetch->call = (struct site_call){.verb = SITE_STAT, .key = key};
    status = fetch_now(fetch, err);
    if (status)
        goto done;
    if (fetch->object_size == STK_NOWHERE) {
        status = fail(err, STK_UNSUPPORTED, "the server does not tell how long it is");
        fail_at(err, scan->uri, STK_NOWHERE);
        goto done;
    }
    scan->object.size = fetch->object_size;
    scan->object.version =
        site_version(fetch->found_etag, fetch->object_size, fetch->last_modified);
    if (fetch->found_etag[0])
        net_etag_learn(net, scan->object.version, fetch->found_etag);
    const struct object_table table = {
        .root = "", .count = 1, .owner = scan, .get = get_self}; /* while the net is ours */
    status = store_open(&scan->store, &table, NULL, err);
done:
    site_close(site);
    if (net)
        net_give(net);
    memory_free(fetch);
    return status;
}

static stk_status scan_begin(struct remote_scan *scan, struct stk_error *err)
{
    scan->limit = scan->object.size;
    scan->ahead = AHEAD_FIRST;
    return store_queue_open(scan->store, STORE_QUEUE_PREAD, STRIDES + 4, &scan->queue, err);
}

stk_status remote_scan_open(struct remote_scan **out, const char *uri, uint64_t *size,
                            uint64_t *version, struct stk_error *err)
{
    stk_status status;
    *out = NULL;
    struct remote_scan *scan = memory_zero(1, sizeof *scan);
    if (!scan)
        return fail_memory(err, sizeof *scan);
    scan->uri = memory_text(uri, strlen(uri));
    scan->object.name = scan->uri;
    status = scan->uri ? ask_size(scan, err) : fail_memory(err, strlen(uri));
    if (!status)
        status = scan_begin(scan, err);
    if (status) {
        remote_scan_close(scan);
        return status;
    }
    *size = scan->object.size;
    *version = scan->object.version;
    *out = scan;
    return STK_OK;
}

stk_status remote_scan_of(struct remote_scan **out, struct store *store, uint32_t number,
                          struct stk_error *err)
{
    *out = NULL;
    struct remote_scan *scan = memory_zero(1, sizeof *scan);
    if (!scan)
        return fail_memory(err, sizeof *scan);
    assert(number < store->table.count);
    store->table.get(store->table.owner, number, &scan->object);
    scan->store = store;
    scan->number = number;
    stk_status status = scan_begin(scan, err);
    if (status) {
        remote_scan_close(scan);
        return status;
    }
    *out = scan;
    return STK_OK;
}

void remote_scan_close(struct remote_scan *scan)
{
    if (!scan)
        return;
    store_queue_close(scan->queue);
    if (scan->uri)
        store_close(scan->store);
    memory_free(scan->now.data);
    memory_free(scan->next.data);
    for (int i = 0; i < STRIDES; i++)
        memory_free(scan->guesses[i].data);
    memory_free(scan->uri);
    memory_free(scan);
}

void remote_scan_limit(struct remote_scan *scan, uint64_t end)
{
    scan->limit = end < scan->object.size ? end : scan->object.size;
}

/* --- windows ---------------------------------------------------------------------------------- */

/* Waits until a window is there. Others that come meanwhile are noted, too. */
static stk_status window_wait(struct remote_scan *scan, struct window *window,
                              struct stk_error *err)
{
    struct store_read *back[STRIDES + 4];
    struct net_patience patience = net_patience();
    while (window->is_open) {
        uint32_t got = store_reap(scan->queue, back, STRIDES + 4, SLICE_NS);
        for (uint32_t i = 0; i < got; i++)
            ((struct window *)back[i]->owner)->is_open = 0;
        if (window->is_open && patience.is_over && patience.is_over(patience.user))
            return fail(err, STK_CANCELLED, "stopped on request");
    }
    if (!window->read.status)
        return STK_OK;
    window->length = 0;
    return store_explain(scan->store, &window->read, err);
}

/* Sends for [offset, offset + length) into memory of its own, or to the caller's. */
static stk_status window_ask(struct remote_scan *scan, struct window *window, uint64_t offset,
                             uint64_t length, void *to, struct stk_error *err)
{
    stk_status status = window->is_open ? window_wait(scan, window, NULL) : STK_OK;
    if (status == STK_CANCELLED)
        return fail(err, STK_CANCELLED, "stopped on request");
    window->length = 0;
    if (!to && length > window->cap) {
        memory_free(window->data);
        window->cap = 0;
        window->data = memory_alloc(length);
        if (!window->data)
            return fail_memory(err, length);
        window->cap = length;
    }
    window->offset = offset;
    window->length = length;
    window->part = (struct iovec){to ? to : window->data, length};
    window->read = (struct store_read){.object = scan->number,
                                       .part_count = 1,
                                       .offset = offset,
                                       .length = length,
                                       .parts = &window->part,
                                       .owner = window};
    struct store_read *read = &window->read;
    window->is_open = 1;
    uint32_t taken = store_submit(scan->queue, &read, 1);
    assert(taken == 1); /* a queue has room for each window */
    (void)taken;
    return STK_OK;
}

static int window_has(const struct window *window, uint64_t offset)
{
    return window->length && offset >= window->offset && offset - window->offset < window->length;
}

static struct window *window_find(struct remote_scan *scan, uint64_t offset)
{
    if (window_has(&scan->now, offset))
        return &scan->now;
    if (window_has(&scan->next, offset))
        return &scan->next;
    for (int i = 0; i < STRIDES; i++)
        if (window_has(&scan->guesses[i], offset))
            return &scan->guesses[i];
    return NULL;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- guessing --------------------------------------------------------------------------------- */

/* Headers that lie equally far apart: the next ones are asked for, more each time it was right. */
static stk_status guess(struct remote_scan *scan, uint64_t offset, uint64_t length,
                        struct stk_error *err)
{
    uint64_t stride = offset > scan->jumped ? offset - scan->jumped : 0;
    scan->regular = stride && stride == scan->stride ? scan->regular + 1 : 0;
    scan->stride = stride;
    scan->jumped = offset;
    if (!scan->regular || length > STRIDE_READ)
        return STK_OK;
    uint32_t count = scan->regular < 4 ? 1u << scan->regular : STRIDES - 1; /* not over its own */
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < count && !status; i++) {
        uint64_t at = offset + (i + 1) * stride;
        if (stride > (UINT64_MAX - offset) / (STRIDES + 1) || at >= scan->limit)
            break;
        if (!window_find(scan, at))
            status = window_ask(scan, &scan->guesses[(at / stride) % STRIDES], at,
                                smaller(length, scan->limit - at), NULL, err);
    }
    return status;
}

static int is_near(const struct remote_scan *scan, uint64_t offset)
{
    return offset >= scan->at && offset - scan->at <= NEAR;
}

/* Where a read begins that no window has. */
static stk_status fetch_window(struct remote_scan *scan, uint64_t offset, uint64_t length,
                               struct stk_error *err)
{
    int follows = is_near(scan, offset);
    uint64_t ahead = follows ? scan->ahead : 0;
    uint64_t room = scan->limit > offset + length ? scan->limit - offset - length : 0;
    scan->ahead = follows ? smaller(scan->ahead * 2, AHEAD_MOST) : AHEAD_FIRST;
    return window_ask(scan, &scan->now, offset, length + smaller(ahead, room), NULL, err);
}

/* Once half of a window is used, the one behind it is sent for. That it cannot be is told by
 * whoever reads there. */
static void fetch_next(struct remote_scan *scan)
{
    const struct window *now = &scan->now;
    uint64_t end = now->offset + now->length;
    if (now->length < AHEAD_FIRST || scan->at < now->offset + now->length / 2 || scan->at > end ||
        end >= scan->limit || window_has(&scan->next, end))
        return;
    uint64_t length = smaller(scan->ahead, scan->limit - end);
    scan->ahead = smaller(scan->ahead * 2, AHEAD_MOST);
    if (window_ask(scan, &scan->next, end, length, NULL, NULL))
        scan->next.length = 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

static stk_status read_straight(struct remote_scan *scan, uint64_t offset, void *to,
                                uint64_t length, struct stk_error *err)
{
    struct window straight = {0};
    stk_status status = window_ask(scan, &straight, offset, length, to, err);
    if (!status)
        status = window_wait(scan, &straight, err);
    if (straight.is_open) { /* given up: nothing may come into the caller's memory any more */
        store_queue_close(scan->queue);
        scan->queue = NULL;
    }
    return status;
}

/* The window that has a byte, there and at its place; sent for where none has it. */
static stk_status window_take(struct remote_scan *scan, uint64_t at, uint64_t left,
                              struct window **out, struct stk_error *err)
{
    stk_status status = STK_OK;
    int jumps = !is_near(scan, at);
    struct window *window = window_find(scan, at);
    if (!window) {
        status = fetch_window(scan, at, left, err);
        window = &scan->now;
    }
    if (!status && jumps)
        status = guess(scan, at, left, err);
    if (!status)
        status = window_wait(scan, window, err);
    if (!status && window == &scan->next && !scan->now.is_open) { /* that one is of no use now */
        struct window spare = scan->now;
        scan->now = scan->next;
        scan->next = spare;
        window = &scan->now;
    }
    *out = window;
    return status;
}

stk_status remote_scan_read(struct remote_scan *scan, uint64_t offset, void *to, size_t len,
                            size_t *got, struct stk_error *err)
{
    *got = 0;
    if (offset >= scan->object.size)
        return STK_OK;
    uint64_t wanted = smaller(len, scan->object.size - offset);
    while (*got < wanted) {
        struct window *window;
        stk_status status;
        uint64_t at = offset + *got, left = wanted - *got, count = left;
        if (!scan->queue)
            return fail(err, STK_CANCELLED, "stopped on request");
        if (left >= STRAIGHT && !window_find(scan, at)) {
            status = read_straight(scan, at, (char *)to + *got, left, err);
        } else {
            status = window_take(scan, at, left, &window, err);
            if (!status) {
                uint64_t from = at - window->offset;
                count = smaller(left, window->length - from);
                memcpy((char *)to + *got, window->data + from, count);
            }
        }
        if (status)
            return status;
        *got += (size_t)count;
        scan->at = at + count;
    }
    fetch_next(scan);
    return STK_OK;
}
