#include "store/store.h"

#include <assert.h>
#include <inttypes.h>

#include "base/fail.h"
#include "base/memory.h"
#include "store/file_open.h"
#include "store/remote.h"
#include "store/transfer.h"

stk_status store_open(struct store **out, const struct object_table *table,
                      const struct store_options *options, struct stk_error *err)
{
    stk_status status;
    *out = NULL;
    struct store *store = memory_zero(1, sizeof *store);
    if (!store)
        return fail_memory(err, sizeof *store);
    store->table = *table;
    if (remote_is(table))
        status = remote_open(&store->remote, table, options, err);
    else
        status = file_cache_new(&store->files, &store->table, 0, &store->fault, err);
    if (!status && !store->remote)
        status = file_map_new(&store->maps, &store->table, store->files, err);
    if (status) {
        store_close(store);
        return status;
    }
    *out = store;
    return STK_OK;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    remote_close(atomic_load(&store->child));
    remote_close(store->remote);
    file_map_free(store->maps);
    file_cache_free(store->files);
    memory_free(store);
}

stk_status store_queue_open(struct store *store, enum store_queue_kind kind, uint32_t depth,
                            struct store_queue **out, struct stk_error *err)
{
    *out = NULL;
    if (depth == 0 || depth > STORE_MAX_DEPTH)
        return fail(err, STK_USAGE, "a queue holds 1 to %d reads, not %" PRIu32, STORE_MAX_DEPTH,
                    depth);
    if (store->remote)
        return remote_queue_open(store, depth, out, err);
    return kind == STORE_QUEUE_URING ? uring_queue_open(store, depth, out, err)
                                     : pread_queue_open(store, depth, out, err);
}

uint32_t store_submit(struct store_queue *queue, struct store_read **reads, uint32_t n)
{
    return queue->ops->submit(queue, reads, n);
}

uint32_t store_reap(struct store_queue *queue, struct store_read **reads, uint32_t cap,
                    int64_t wait_ns)
{
    return queue->ops->reap(queue, reads, cap, wait_ns);
}

void store_wake(struct store_queue *queue)
{
    queue->ops->wake(queue);
}

uint32_t store_in_flight(const struct store_queue *queue)
{
    return queue->in_flight;
}

void store_queue_close(struct store_queue *queue)
{
    if (queue)
        queue->ops->close(queue);
}

stk_status store_read_now(struct store *store, struct store_read *read)
{
    struct transfer transfer;
    if (store->remote)
        return remote_read_now(store, read);
    enum transfer_state state = transfer_begin(&transfer, store, read);
    while (state == TRANSFER_MORE)
        state = transfer_step(&transfer, store, transfer_ask(&transfer, 0));
    transfer_end(&transfer, store);
    return read->status;
}

const uint8_t *store_map(struct store *store, uint32_t object)
{
    return store->remote ? NULL : file_map_get(store->maps, object);
}

int store_is_remote(const struct store *store)
{
    return store->remote != NULL;
}

enum store_flow store_flow(const struct store *store)
{
    return store->remote ? remote_flow(store->remote) : STORE_STILL;
}

int store_has_cache(const struct store *store)
{
    return store->remote && remote_has_cache(store->remote);
}

uint64_t store_buffers(struct store *store, uint64_t most)
{
    return store->remote ? remote_buffers(store, most) : 0;
}

struct store_stretch *store_hold(struct store *store, uint32_t object, uint64_t offset,
                                 uint64_t length)
{
    return store->remote ? remote_stretch_hold(store, object, offset, length) : NULL;
}

void store_let_go(struct store_stretch *stretch)
{
    if (stretch)
        remote_stretch_let_go(stretch);
}

int store_has_failed(const struct store *store, const struct store_read *range)
{
    struct stk_error words;
    return store->remote && remote_explain(store, range, &words);
}

static void explain_plain(const struct store_read *read, struct stk_error *err)
{
    switch (read->status) {
    case STK_STALE:
        fail(err, STK_STALE, "the object changed since it was indexed");
        fail_remedy(err, "open the dataset again: it will be indexed anew");
        break;
    case STK_TRUNCATED:
        fail(err, STK_TRUNCATED, "the object ends before the %" PRIu64 " bytes that were asked for",
             read->length);
        break;
    case STK_CANCELLED:
        fail(err, STK_CANCELLED, "the read was cancelled");
        break;
    default:
        fail(err, read->status, "reading failed: %s", stk_status_words(read->status));
    }
}

stk_status store_explain(const struct store *store, const struct store_read *read,
                         struct stk_error *err)
{
    struct object object = {.name = ""};
    char buf[FILE_PATH_CAP];
    if (!read->status || !err)
        return read->status;
    if (store->remote && remote_explain(store, read, err))
        return read->status;
    if (read->error_number)
        fail_errno(err, read->error_number, "reading failed");
    else
        explain_plain(read, err);
    err->status = read->status;
    if (read->object < store->table.count)
        store->table.get(store->table.owner, read->object, &object);
    fail_at(err, file_path(store->table.root, object.name, buf), read->offset);
    return read->status;
}
