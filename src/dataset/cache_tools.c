#include "stoker/cache.h"

#include <string.h>

#include "base/context.h"
#include "dataset/dataset_view.h"
#include "store/block_cache.h"
#include "store/block_tools.h"
#include "store/block_warm.h"

struct list_call {
    void (*object)(void *user, const struct stk_cache_object *object);
    void *user;
};

static void list_one(void *user, const struct block_held *held)
{
    const struct list_call *call = user;
    struct stk_cache_object object = {.uri = held->uri,
                                      .size = held->object_size,
                                      .cached_bytes = held->bytes,
                                      .blocks = held->blocks};
    memcpy(object.id, held->id, sizeof object.id);
    call->object(call->user, &object);
}

stk_status stk_cache_list(const char *folder,
                          void (*object)(void *user, const struct stk_cache_object *object),
                          void *user, struct stk_error *err)
{
    struct list_call call = {object, user};
    struct block_total total;
    return block_tools_list(folder, list_one, &call, &total, err);
}

stk_status stk_cache_stat(const char *folder, struct stk_cache_stat *out, struct stk_error *err)
{
    struct block_total total;
    stk_status status = block_tools_list(folder, NULL, NULL, &total, err);
    *out = (struct stk_cache_stat){.limit = total.limit,
                                   .disk_bytes = total.on_disk,
                                   .cached_bytes = total.bytes,
                                   .objects = total.objects,
                                   .blocks = total.blocks,
                                   .files = total.segments,
                                   .hidden_files = total.hidden,
                                   .old_layouts = total.old_layouts};
    return status;
}

int stk_cache_counts(const char *folder, struct stk_cache_counts *out)
{
    struct block_counts counts;
    int found = block_cache_counts_of(folder, &counts);
    *out = (struct stk_cache_counts){.hits = counts.hits,
                                     .misses = counts.misses,
                                     .bypassed = counts.bypassed,
                                     .written = counts.written,
                                     .dropped = counts.dropped,
                                     .damaged = counts.damaged,
                                     .evicted = counts.evicted,
                                     .disk_full = counts.no_space};
    return found;
}

/* ---- long jobs ----------------------------------------------------------------------------- */

struct job {
    const struct stk_context *context;
    struct context_timer timer;
    void (*bad)(void *user, const char *uri, uint64_t offset);
    void *user;
};

static void verify_bad(void *user, const char *uri, uint64_t offset)
{
    const struct job *job = user;
    if (job->bad)
        job->bad(job->user, uri, offset);
}

static int verify_progress(void *user, const struct block_checked *so_far, uint64_t blocks)
{
    struct job *job = user;
    struct stk_progress progress = {.what = "verifying",
                                    .unit = "blocks",
                                    .done = so_far->blocks,
                                    .total = blocks,
                                    .bytes = so_far->bytes};
    return context_progress(job->context, &job->timer, &progress);
}

stk_status stk_cache_verify(struct stk_context *context, const char *folder,
                            void (*bad)(void *user, const char *uri, uint64_t offset), void *user,
                            uint64_t *bad_count, struct stk_error *err)
{
    struct job job = {.context = context, .bad = bad, .user = user};
    struct block_check_calls calls = {&job, verify_bad, verify_progress};
    struct block_checked checked;
    stk_status status = block_tools_verify(folder, &calls, &checked, err);
    *bad_count = checked.bad;
    return status;
}

stk_status stk_cache_clear(const char *folder, struct stk_cache_cleared *out, struct stk_error *err)
{
    struct block_cleared cleared;
    stk_status status = block_tools_clear(folder, &cleared, err);
    *out = (struct stk_cache_cleared){cleared.files, cleared.bytes, cleared.kept};
    return status;
}

/* What is there already counts as done, so that the bar ends where the objects do. */
static int warm_progress(void *user, const struct block_warmed *warmed)
{
    struct job *job = user;
    struct stk_progress progress = {.what = "warming",
                                    .unit = "MiB",
                                    .done = warmed->seen_bytes >> 20,
                                    .total = warmed->bytes >> 20,
                                    .bytes = warmed->fetched_bytes};
    return context_progress(job->context, &job->timer, &progress);
}

stk_status stk_cache_warm(struct stk_context *context, struct stk_dataset *dataset,
                          struct stk_cache_warmed *out, struct stk_error *err)
{
    struct job job = {.context = context};
    struct block_warmed warmed;
    stk_status status = block_warm(dataset_store(dataset), warm_progress, &job, &warmed, err);
    *out = (struct stk_cache_warmed){.blocks = warmed.blocks,
                                     .bytes = warmed.bytes,
                                     .here_blocks = warmed.here,
                                     .fetched_blocks = warmed.fetched,
                                     .fetched_bytes = warmed.fetched_bytes,
                                     .left_blocks = warmed.left};
    return status;
}
