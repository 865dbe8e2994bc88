#include "format/tar_source.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

/* How much to read. Headers that lie close together make a run: it is read in blocks that grow,
 * bodies and all. A body larger than FAR_AWAY is jumped over and begins a new run, whose first read
 * is as long as the last run was: one header, or a header with its pax records, or with a label and
 * the next header behind it. So a large member costs one small read, which is all that it can cost.
 */
#define BLOCK_READ (256u * 1024u)
#define FIRST_READ (16u * 1024u)
#define FAR_AWAY (64u * 1024u)

stk_status tar_source_open(struct tar_source *source, struct shard *shard, struct stk_error *err)
{
    const struct format_input *input = shard->input;
    *source = (struct tar_source){.shard = shard};
    stk_status status = scan_open(&source->scan, input->root, shard->object->name, err);
    if (status)
        return status;
    source->size = scan_size(source->scan);
    if (source->size != shard->object->size ||
        scan_version(source->scan) != shard->object->version) {
        fail(err, STK_STALE, "the shard changed while it was indexed");
        fail_at(err, scan_name(source->scan), STK_NOWHERE);
        return STK_STALE;
    }
    source->window = memory_alloc(BLOCK_READ);
    if (!source->window)
        return fail_memory(err, BLOCK_READ);
    source->window_cap = BLOCK_READ;
    source->want = FIRST_READ / 4;
    const uint8_t *head = NULL;
    size_t got = 0;
    status = tar_source_peek(source, 0, TAR_SOURCE_HEAD, &head, &got, err);
    if (status)
        return status;
    source->kind = filter_sniff(&(struct stk_bytes){head, got});
    if (source->kind == FILTER_NONE)
        return STK_OK;
    source->window_len = 0; /* what was read is encoded: begin anew, through the filter */
    source->size = UINT64_MAX;
    source->encoded = memory_alloc(BLOCK_READ);
    if (!source->encoded)
        return fail_memory(err, BLOCK_READ);
    return filter_open(&source->filter, source->kind, err);
}

void tar_source_close(struct tar_source *source)
{
    filter_close(source->filter);
    scan_close(source->scan);
    memory_free(source->window);
    memory_free(source->encoded);
    *source = (struct tar_source){.shard = NULL};
}

static stk_status source_room(struct tar_source *source, size_t len, struct stk_error *err)
{
    if (len <= source->window_cap)
        return STK_OK;
    uint8_t *grown = memory_grow(source->window, len);
    if (!grown)
        return fail_memory(err, len);
    source->window = grown;
    source->window_cap = len;
    return STK_OK;
}

/* The object is shorter than it was when it was opened. */
static stk_status source_shrank(struct tar_source *source, uint64_t offset, struct stk_error *err)
{
    fail(err, STK_STALE, "the shard became shorter while it was indexed");
    fail_at(err, scan_name(source->scan), offset);
    return STK_STALE;
}

static stk_status plain_fill(struct tar_source *source, uint64_t offset, size_t len,
                             struct stk_error *err)
{
    if (offset > source->seen && offset - source->seen > FAR_AWAY) {
        uint64_t run = source->seen - source->run;
        source->want = run < FAR_AWAY ? (size_t)run : FAR_AWAY;
        source->run = offset;
    } else {
        source->want = source->want * 4 < BLOCK_READ ? source->want * 4 : BLOCK_READ;
    }
    size_t want = source->want > len ? source->want : len;
    stk_status status = source_room(source, want, err);
    if (!status)
        status = shard_tick(source->shard, offset - source->base, err);
    if (status)
        return status;
    source->base = offset;
    source->window_len = 0;
    if (want > source->size - offset)
        want = (size_t)(source->size - offset);
    status = scan_read(source->scan, offset, source->window, want, &source->window_len, err);
    if (!status && source->window_len < want)
        status = source_shrank(source, offset + source->window_len, err);
    return status;
}

static stk_status decoded_read(struct tar_source *source, struct stk_error *err)
{
    if (source->encoded_used < source->encoded_len)
        return STK_OK;
    source->encoded_used = 0;
    stk_status status = scan_read(source->scan, source->encoded_at, source->encoded, BLOCK_READ,
                                  &source->encoded_len, err);
    source->encoded_at += source->encoded_len;
    if (!status && source->encoded_len == 0 && source->encoded_at < scan_size(source->scan))
        status = source_shrank(source, source->encoded_at, err);
    return status ? status : shard_tick(source->shard, source->encoded_len, err);
}

/* Lets go of what lies before offset, then decodes until the window is full or the stream is over.
 */
static stk_status decoded_fill(struct tar_source *source, uint64_t offset, struct stk_error *err)
{
    uint64_t drop = offset - source->base;
    if (drop > source->window_len)
        drop = source->window_len;
    source->window_len -= drop;
    source->base += drop;
    memmove(source->window, source->window + drop, source->window_len);
    stk_status status = decoded_read(source, err);
    if (status)
        return status;
    uint64_t total = scan_size(source->scan);
    int ended = 0, last = source->encoded_at == total;
    struct stk_bytes in = {source->encoded, source->encoded_len};
    status = filter_step(source->filter, &in, &source->encoded_used, source->window,
                         source->window_cap, &source->window_len, last, &ended, err);
    if (!status)
        status = filter_check_size(total, source->base + source->window_len,
                                   source->shard->input->chunk_limit, err);
    if (status)
        fail_at(err, scan_name(source->scan), source->encoded_at);
    if (ended)
        source->size = source->base + source->window_len;
    return status;
}

static stk_status decoded_peek(struct tar_source *source, uint64_t offset, size_t len,
                               struct stk_error *err)
{
    stk_status status = source_room(source, len, err);
    while (!status && source->size == UINT64_MAX &&
           source->base + source->window_len < offset + len)
        status = decoded_fill(source, offset, err);
    return status;
}

stk_status tar_source_peek(struct tar_source *source, uint64_t offset, size_t len,
                           const uint8_t **out, size_t *got, struct stk_error *err)
{
    stk_status status = STK_OK;
    *out = NULL;
    *got = 0;
    if (offset < source->base || offset - source->base > source->window_len ||
        len > source->window_len - (offset - source->base)) {
        if (source->filter)
            status = decoded_peek(source, offset, len, err);
        else if (offset < source->size)
            status = plain_fill(source, offset, len, err);
        if (status)
            return status;
        if (offset > source->size) {
            fail(err, STK_TRUNCATED, "the shard ends inside a member");
            fail_at(err, scan_name(source->scan), source->size);
            return STK_TRUNCATED;
        }
    }
    source->seen = offset + len;
    if (offset == source->size)
        return STK_OK;
    size_t there = source->window_len - (size_t)(offset - source->base);
    *out = source->window + (offset - source->base);
    *got = there < len ? there : len;
    return STK_OK;
}
