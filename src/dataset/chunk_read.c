#include "dataset/chunk_read.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/transpose.h"
#include "dataset/dataset_state.h"
#include "filter/filter.h"
#include "store/remote_settings.h"
#include "store/scan.h"

#define CHUNK_PIECE ((size_t)1 << 20)
#define CHUNK_WASTE ((size_t)1 << 16)

/* One chunk on its way through its filter. */
struct flow {
    struct scan *scan;
    struct filter *filter;
    struct chunk chunk;
    uint8_t *in, *waste; /* what was read; where unwanted output goes */
    uint64_t fetched;    /* encoded bytes read so far */
    size_t used, filled; /* of in */
    int ended;
    uint32_t check; /* FILTER_DEFLATE: of what was decoded so far */
    const _Atomic int *cancel;
};

/* On the network: through the store, which knows the object and may have a part of it here. */
static stk_status open_object(struct flow *flow, const struct dataset_source *source,
                              const struct index_object *object, struct stk_error *err)
{
    if (!source->remote)
        return scan_open(&flow->scan, source->root, object->name, err);
    stk_status status = scan_open_object(&flow->scan, source->store, flow->chunk.object, err);
    if (!status)
        scan_limit(flow->scan, flow->chunk.offset + flow->chunk.length);
    return status;
}

static stk_status flow_open(struct flow *flow, const struct stk_dataset *dataset, uint32_t number,
                            struct stk_error *err)
{
    const struct index *index = dataset->source->index;
    struct index_object object;
    stk_status status = index_chunk(index, number, &flow->chunk, err);
    if (!status)
        status = index_object(index, flow->chunk.object, &object, err);
    if (!status)
        status = open_object(flow, dataset->source, &object, err);
    if (!status && scan_version(flow->scan) != object.version) {
        status = fail(err, STK_STALE, "the object changed since it was indexed");
        fail_at(err, scan_name(flow->scan), flow->chunk.offset);
        fail_remedy(err, "open the dataset again");
    }
    return status;
}

static stk_status flow_open_filter(struct flow *flow, struct stk_error *err)
{
    flow->in = memory_alloc(CHUNK_PIECE);
    flow->waste = memory_alloc(CHUNK_WASTE);
    if (!flow->in || !flow->waste)
        return fail_memory(err, CHUNK_PIECE);
    return filter_open(&flow->filter, flow->chunk.filter, err);
}

static void flow_close(struct flow *flow)
{
    filter_close(flow->filter);
    scan_close(flow->scan);
    memory_free(flow->in);
    memory_free(flow->waste);
}

/* Asked while the network is waited for. */
static int flow_is_over(void *user)
{
    return atomic_load_explicit((const _Atomic int *)user, memory_order_relaxed);
}

/* As scan_read_all, but given up when the chunk is no longer wanted. */
static stk_status flow_read(const struct flow *flow, uint64_t offset, void *to, size_t len,
                            struct stk_error *err)
{
    if (!flow->cancel)
        return scan_read_all(flow->scan, offset, to, len, err);
    struct remote_patience patience = {flow_is_over, (void *)(uintptr_t)flow->cancel};
    struct remote_patience before = remote_patience_set(patience);
    stk_status status = scan_read_all(flow->scan, offset, to, len, err);
    remote_patience_set(before);
    return status;
}

static stk_status flow_fetch(struct flow *flow, struct stk_error *err)
{
    uint64_t left = flow->chunk.length - flow->fetched;
    size_t want = left < CHUNK_PIECE ? (size_t)left : CHUNK_PIECE;
    if (flow->cancel && atomic_load_explicit(flow->cancel, memory_order_relaxed))
        return fail(err, STK_CANCELLED, "stopped on request");
    stk_status status = flow_read(flow, flow->chunk.offset + flow->fetched, flow->in, want, err);
    flow->used = 0;
    flow->filled = status ? 0 : want;
    flow->fetched += flow->filled;
    return status;
}

/* Decodes until len bytes are made or the stream is over; *made says how many. */
static stk_status flow_decode(struct flow *flow, uint8_t *to, size_t len, size_t *made,
                              struct stk_error *err)
{
    stk_status status = STK_OK;
    *made = 0;
    while (*made < len && !flow->ended && !status) {
        if (flow->used == flow->filled && flow->fetched < flow->chunk.length)
            status = flow_fetch(flow, err);
        if (status)
            break;
        struct stk_bytes in = {flow->in, flow->filled};
        size_t before = *made;
        int last = flow->fetched == flow->chunk.length;
        status =
            filter_step(flow->filter, &in, &flow->used, to, len, made, last, &flow->ended, err);
        if (status)
            fail_at(err, scan_name(flow->scan), flow->chunk.offset);
        if (flow->chunk.filter == FILTER_DEFLATE)
            flow->check = filter_crc32(flow->check, to + before, *made - before);
    }
    return status;
}

static stk_status flow_wrong_size(const struct flow *flow, struct stk_error *err)
{
    stk_status status =
        fail(err, STK_CORRUPT, "the chunk does not decode to the %llu bytes indexed",
             (unsigned long long)flow->chunk.decoded);
    fail_at(err, scan_name(flow->scan), flow->chunk.offset);
    return status;
}

static stk_status flow_skip(struct flow *flow, uint64_t len, struct stk_error *err)
{
    stk_status status = STK_OK;
    while (len && !status) {
        size_t made, want = len < CHUNK_WASTE ? (size_t)len : CHUNK_WASTE;
        status = flow_decode(flow, flow->waste, want, &made, err);
        if (!status && made < want)
            status = flow_wrong_size(flow, err);
        len -= made;
    }
    return status;
}

/* A zip keeps the sum of a member beside it; the other streams end with theirs. */
static stk_status flow_wrong_sum(const struct flow *flow, struct stk_error *err)
{
    stk_status status = fail(err, STK_CORRUPT, "the data has a wrong checksum (CRC-32)");
    fail_at(err, scan_name(flow->scan), flow->chunk.offset);
    fail_remedy(err, "fetch or write the file again");
    return status;
}

/* The stream must be over now: checksums at its end are looked at only then. */
static stk_status flow_end(struct flow *flow, struct stk_error *err)
{
    size_t made = 0;
    stk_status status = flow->ended ? STK_OK : flow_decode(flow, flow->waste, 1, &made, err);
    if (!status && (made || !flow->ended))
        status = flow_wrong_size(flow, err);
    if (!status && flow->chunk.filter == FILTER_DEFLATE && flow->check != flow->chunk.check)
        status = flow_wrong_sum(flow, err);
    return status;
}

static stk_status flow_stream(struct flow *flow, uint64_t offset, uint64_t len, uint8_t *to,
                              struct stk_error *err)
{
    size_t made = 0;
    stk_status status = flow_open_filter(flow, err);
    if (!status)
        status = flow_skip(flow, offset, err);
    if (!status)
        status = flow_decode(flow, to, len, &made, err);
    if (!status && made < len)
        status = flow_wrong_size(flow, err);
    if (!status && offset + len == flow->chunk.decoded)
        status = flow_end(flow, err);
    return status;
}

/* Elements move as a whole, so the array is read beside its place first. */
static stk_status flow_fortran(struct flow *flow, uint8_t *to, struct stk_error *err)
{
    uint64_t size = stk_tensor_size(&flow->chunk.shape);
    if (size != flow->chunk.decoded || size != flow->chunk.length)
        return flow_wrong_size(flow, err);
    if (!size)
        return STK_OK;
    uint8_t *read = memory_map(size);
    if (!read)
        return fail_memory(err, size);
    stk_status status = flow_read(flow, flow->chunk.offset, read, size, err);
    if (!status)
        transpose_fortran(to, read, &flow->chunk.shape);
    memory_unmap(read, size);
    return status;
}

static stk_status flow_fortran_part(struct flow *flow, uint64_t offset, uint64_t len, uint8_t *to,
                                    struct stk_error *err)
{
    if (len == flow->chunk.decoded)
        return flow_fortran(flow, to, err);
    uint8_t *whole = memory_map(flow->chunk.decoded);
    if (!whole)
        return fail_memory(err, flow->chunk.decoded);
    stk_status status = flow_fortran(flow, whole, err);
    if (!status)
        memcpy(to, whole + offset, len);
    memory_unmap(whole, flow->chunk.decoded);
    return status;
}

static stk_status flow_run(struct flow *flow, const struct stk_dataset *dataset, uint32_t number,
                           uint64_t offset, uint64_t len, uint8_t *to, struct stk_error *err)
{
    stk_status status = flow_open(flow, dataset, number, err);
    if (!status && len == UINT64_MAX) /* all of it */
        len = flow->chunk.decoded;
    if (!status && !checked_inside(offset, len, flow->chunk.decoded))
        status = fail(err, STK_CORRUPT, "a value lies outside its chunk");
    if (status)
        return status;
    switch (flow->chunk.filter) {
    case FILTER_NONE:
        return scan_read_all(flow->scan, flow->chunk.offset + offset, to, len, err);
    case FILTER_FORTRAN:
        return flow_fortran_part(flow, offset, len, to, err);
    default:
        return flow_stream(flow, offset, len, to, err);
    }
}

stk_status chunk_read(const struct stk_dataset *dataset, uint32_t chunk, uint8_t *to,
                      const _Atomic int *cancel, struct stk_error *err)
{
    struct flow flow = {.cancel = cancel};
    stk_status status = flow_run(&flow, dataset, chunk, 0, UINT64_MAX, to, err);
    flow_close(&flow);
    return status;
}

stk_status chunk_read_part(const struct stk_dataset *dataset, uint32_t chunk, uint64_t offset,
                           uint64_t len, uint8_t *to, struct stk_error *err)
{
    struct flow flow = {0};
    stk_status status = flow_run(&flow, dataset, chunk, offset, len, to, err);
    flow_close(&flow);
    return status;
}
