#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "dataset/series_state.h"
#include "dataset/verify_crew.h"
#include "store/scan.h"

/* A series is verified by blocks of its files, not by windows: a row lies in very many of them. A
 * bad block is told once. */

#define VERIFY_BLOCKS 4 /* a span */
#define VERIFY_FRONT 64 /* bytes kept before a block: the time of the row before it */

struct blocks {
    struct stk_dataset *dataset;
    const struct series *series;
    uint64_t bytes[SERIES_MAX_OBJECTS];     /* of each object that count */
    uint64_t first[SERIES_MAX_OBJECTS + 1]; /* its first block; one more: all of them */
    uint64_t hashes;                        /* blocks of the array that have one */
    const struct series_entity **sorted;    /* by their first rows */
};

/* What one thread works with. */
struct block_reader {
    struct scan *hashes; /* NULL: there are none */
    _Alignas(64) uint8_t room[VERIFY_FRONT + SERIES_BLOCK];
};

/* One block on its way. */
struct block {
    uint32_t object;
    uint64_t number, offset, length; /* in the object */
    const uint8_t *data;
};

/* What is wrong in a block: rows first .. last of the array, or of the table of entities. */
struct block_fault {
    uint64_t offset, first, last;
};

/* ---- where a row belongs ------------------------------------------------------------------- */

static int compare_starts(const void *a, const void *b)
{
    uint64_t left = (*(const struct series_entity *const *)a)->start;
    uint64_t right = (*(const struct series_entity *const *)b)->start;
    return (left > right) - (left < right);
}

static stk_status sort_entities(struct blocks *blocks, struct stk_error *err)
{
    const struct series_meta *meta = &blocks->series->meta;
    blocks->sorted = memory_zero(meta->entity_count, sizeof *blocks->sorted);
    if (!blocks->sorted)
        return fail_memory(err, meta->entity_count * sizeof *blocks->sorted);
    for (uint64_t i = 0; i < meta->entity_count; i++)
        blocks->sorted[i] = &meta->entities[i];
    qsort(blocks->sorted, meta->entity_count, sizeof *blocks->sorted, compare_starts);
    return STK_OK;
}

/* The entity that a row belongs to; NULL: none. */
static const struct series_entity *entity_of(const struct blocks *blocks, uint64_t row)
{
    uint64_t low = 0, high = blocks->series->meta.entity_count;
    while (low < high) { /* the first that begins after row */
        uint64_t middle = low + (high - low) / 2;
        if (blocks->sorted[middle]->start <= row)
            low = middle + 1;
        else
            high = middle;
    }
    /* those without rows may begin at the same one */
    for (; low > 0; low--) {
        const struct series_entity *entity = blocks->sorted[low - 1];
        if (row < entity->end)
            return entity;
        if (entity->start < entity->end)
            break;
    }
    return NULL;
}

/* ---- finite values ------------------------------------------------------------------------- */

/* Elements of `size` bytes whose bits of `mask` are all set: NaN and infinities. Counts them, and
 * gives the number of the first. */
#define NOT_FINITE(type, mask)                                                                     \
    static uint64_t not_finite_##type(const uint8_t *data, uint64_t count, uint64_t *first)        \
    {                                                                                              \
        const type *bits = (const type *)data;                                                     \
        uint64_t found = 0;                                                                        \
        for (uint64_t i = 0; i < count; i++)                                                       \
            found += (bits[i] & (mask)) == (mask);                                                 \
        for (uint64_t i = 0; found && i < count; i++)                                              \
            if ((bits[i] & (mask)) == (mask)) {                                                    \
                *first = i;                                                                        \
                break;                                                                             \
            }                                                                                      \
        return found;                                                                              \
    }

typedef uint16_t f16;
typedef uint16_t bf16;
typedef uint32_t f32;
typedef uint64_t f64;
NOT_FINITE(f16, 0x7c00)
NOT_FINITE(bf16, 0x7f80)
NOT_FINITE(f32, 0x7f800000u)
NOT_FINITE(f64, UINT64_C(0x7ff0000000000000))

static uint64_t not_finite(enum stk_dtype dtype, const uint8_t *data, uint64_t length,
                           uint64_t *first)
{
    uint64_t count = length / stk_dtype_size(dtype);
    switch (dtype) {
    case STK_F16:
        return not_finite_f16(data, count, first);
    case STK_BF16:
        return not_finite_bf16(data, count, first);
    case STK_F64:
        return not_finite_f64(data, count, first);
    default:
        return not_finite_f32(data, count, first);
    }
}

/* ---- one block ----------------------------------------------------------------------------- */

/* STK_OK when there is no hash to compare with. */
static stk_status check_hash(const struct blocks *blocks, struct block_reader *own,
                             const struct block *block, struct block_fault *fault,
                             struct stk_error *err)
{
    uint64_t written, row_bytes = blocks->series->row_bytes;
    int partial = block->length < SERIES_BLOCK;
    if (block->number >= blocks->hashes || (partial && blocks->series->unfinished))
        return STK_OK; /* an append may have begun to fill the last block */
    stk_status status =
        scan_read_all(own->hashes, block->number * sizeof written, &written, sizeof written, err);
    if (status)
        return status;
    uint64_t hash = hash_bytes(block->data, block->length, block->number);
    if (hash == le64toh(written))
        return STK_OK;
    *fault = (struct block_fault){block->offset, block->offset / row_bytes,
                                  (block->offset + block->length - 1) / row_bytes};
    return fail(err, STK_CORRUPT,
                "block %" PRIu64 " (%" PRIu64
                " bytes) is not what was written: its hash is %016" PRIx64 " where %016" PRIx64
                " is noted",
                block->number, block->length, hash, le64toh(written));
}

static stk_status check_values(const struct blocks *blocks, const struct block *block,
                               struct block_fault *fault, struct stk_error *err)
{
    const struct series_meta *meta = &blocks->series->meta;
    int table = block->object != SERIES_ARRAY_OBJECT;
    enum stk_dtype dtype = table ? STK_F32 : meta->dtype;
    uint32_t columns = table ? meta->static_count : meta->column_count;
    uint64_t first = 0, found = not_finite(dtype, block->data, block->length, &first);
    if (!found)
        return STK_OK;
    uint64_t element = block->offset / stk_dtype_size(dtype) + first, row = element / columns;
    const char *column = (table ? meta->statics : meta->columns)[element % columns];
    *fault = (struct block_fault){element * stk_dtype_size(dtype), row, row};
    const struct series_entity *entity = table ? &meta->entities[row] : entity_of(blocks, row);
    if (!entity)
        return fail(err, STK_CORRUPT,
                    "%" PRIu64 " values are not finite, the first in row %" PRIu64
                    " of no entity, column \"%s\"",
                    found, row, column);
    return fail(err, STK_CORRUPT,
                "%" PRIu64 " values are not finite, the first in row %" PRIu64
                " of entity \"%s\", column \"%s\"",
                found, table ? 0 : row - entity->start, entity->name, column);
}

/* Times must not run backwards inside an entity: windows are cut and ordered by them. */
static stk_status check_times(const struct blocks *blocks, const struct block *block,
                              struct block_fault *fault, struct stk_error *err)
{
    const int64_t *times = (const int64_t *)block->data;
    uint64_t row = block->offset / sizeof *times;
    for (uint64_t i = row ? 0 : 1; i < block->length / sizeof *times; i++) {
        if (times[(int64_t)i - 1] <= times[i]) /* front holds the one before the block */
            continue;
        const struct series_entity *entity = entity_of(blocks, row + i);
        if (!entity || entity->start == row + i)
            continue;
        *fault = (struct block_fault){block->offset + i * sizeof *times, row + i, row + i};
        return fail(err, STK_CORRUPT,
                    "the time of row %" PRIu64 " of entity \"%s\" is before that of the row "
                    "before it",
                    row + i - entity->start, entity->name);
    }
    return STK_OK;
}

static stk_status read_block(const struct blocks *blocks, struct block_reader *own,
                             const struct block *block, struct stk_error *err)
{
    struct store *store = blocks->dataset->source->store;
    uint64_t before = block->offset ? sizeof(int64_t) : 0;
    struct iovec part = {own->room + VERIFY_FRONT - before, block->length + before};
    struct store_read read = {
        .object = block->object,
        .part_count = 1,
        .offset = block->offset - before,
        .length = block->length + before,
        .parts = &part,
    };
    return store_read_now(store, &read) ? store_explain(store, &read, err) : STK_OK;
}

static stk_status check_block(const struct blocks *blocks, struct block_reader *own,
                              const struct block *block, struct block_fault *fault,
                              struct stk_error *err)
{
    *fault = (struct block_fault){block->offset, 1, 0}; /* of no row */
    stk_status status = read_block(blocks, own, block, err);
    if (status)
        return status;
    if (block->object == blocks->series->time_object)
        return check_times(blocks, block, fault, err);
    if (block->object == SERIES_ARRAY_OBJECT)
        status = check_hash(blocks, own, block, fault, err);
    if (!status)
        status = check_values(blocks, block, fault, err);
    return status;
}

/* The first sample that a fault is in. */
static uint64_t fault_sample(const struct blocks *blocks, const struct block *block,
                             const struct block_fault *fault)
{
    uint64_t first = fault->first, last = fault->last;
    if (first > last)
        return STK_NOWHERE;
    if (block->object != SERIES_ARRAY_OBJECT && block->object == blocks->series->static_object) {
        const struct series_entity *entity = &blocks->series->meta.entities[first];
        if (entity->start == entity->end)
            return STK_NOWHERE;
        first = entity->start;
        last = entity->end - 1;
    }
    return series_first_sample(blocks->dataset->source, first, last);
}

/* ---- the job ------------------------------------------------------------------------------- */

static uint64_t blocks_length(void *user, uint64_t first)
{
    const struct blocks *blocks = user;
    uint64_t left = blocks->first[blocks->series->object_count] - first;
    return left < VERIFY_BLOCKS ? left : VERIFY_BLOCKS;
}

static stk_status blocks_begin(void *user, void **state, struct stk_error *err)
{
    const struct blocks *blocks = user;
    struct block_reader *own = memory_map(sizeof *own);
    *state = own;
    if (!own)
        return fail_memory(err, sizeof *own);
    own->hashes = NULL;
    return blocks->hashes
               ? scan_open(&own->hashes, blocks->dataset->source->root, SERIES_HASHES, err)
               : STK_OK;
}

static void blocks_end(void *state)
{
    struct block_reader *own = state;
    if (!own)
        return;
    scan_close(own->hashes);
    memory_unmap(own, sizeof *own);
}

static stk_status blocks_check(void *user, void *state, struct verify_span *span,
                               struct stk_error *err)
{
    const struct blocks *blocks = user;
    struct block_reader *own = state;
    struct block block = {.data = own->room + VERIFY_FRONT};
    stk_status status = STK_OK;
    for (uint64_t i = span->first; i < span->first + span->count && !status; i++) {
        struct stk_error error = {0};
        struct block_fault fault;
        while (i >= blocks->first[block.object + 1])
            block.object++;
        block.number = i - blocks->first[block.object];
        block.offset = block.number * SERIES_BLOCK;
        uint64_t left = blocks->bytes[block.object] - block.offset;
        block.length = left < SERIES_BLOCK ? left : SERIES_BLOCK;
        span->bytes += block.length;
        stk_status found = check_block(blocks, own, &block, &fault, &error);
        if (!found)
            continue;
        uint64_t sample = fault_sample(blocks, &block, &fault);
        struct extent place = {fault.offset, block.length, block.object};
        dataset_explain(blocks->dataset, sample, UINT32_MAX, &place, &error);
        if (verify_is_ours(found) || found == STK_STALE) { /* nothing more can be said of it */
            *err = error;
            return found;
        }
        status = verify_note(span, sample, &error, err);
    }
    return status;
}

/* How many blocks have a hash. A file of hashes that is not as long as it should be is bad itself.
 */
static stk_status find_hashes(struct blocks *blocks, struct verify_told *told,
                              struct stk_error *err)
{
    const struct series *series = blocks->series;
    uint64_t expected = blocks->first[1] * sizeof(uint64_t), size = 0;
    struct stk_bad bad = {.sample = STK_NOWHERE};
    struct scan *scan = NULL;
    if (!series->meta.has_hashes)
        return STK_OK;
    const char *root = blocks->dataset->source->root;
    stk_status status = scan_open(&scan, root, SERIES_HASHES, &bad.error);
    if (!status) {
        size = scan_size(scan);
        if (size < expected || (size > expected && !series->unfinished)) {
            status = fail(&bad.error, size < expected ? STK_TRUNCATED : STK_CORRUPT,
                          "%" PRIu64 " bytes of hashes where %" PRIu64 " blocks need %" PRIu64,
                          size, blocks->first[1], expected);
            fail_at(&bad.error, scan_name(scan), size < expected ? size : expected);
        }
    }
    scan_close(scan);
    if (verify_is_ours(status)) {
        if (err)
            *err = bad.error;
        return status;
    }
    told->count += status != STK_OK;
    if (status && told->bad)
        told->bad(told->user, &bad);
    size /= sizeof(uint64_t);
    blocks->hashes = size < blocks->first[1] ? size : blocks->first[1];
    return STK_OK;
}

static void count_blocks(struct blocks *blocks)
{
    const struct series *series = blocks->series;
    const struct series_meta *meta = &series->meta;
    blocks->bytes[SERIES_ARRAY_OBJECT] = series->array_bytes;
    if (series->time_object != SERIES_NO_OBJECT)
        blocks->bytes[series->time_object] = meta->rows * sizeof(int64_t);
    if (series->static_object != SERIES_NO_OBJECT)
        blocks->bytes[series->static_object] =
            meta->entity_count * meta->static_count * sizeof(float);
    for (uint32_t i = 0; i < series->object_count; i++)
        blocks->first[i + 1] =
            blocks->first[i] + (blocks->bytes[i] + SERIES_BLOCK - 1) / SERIES_BLOCK;
}

stk_status series_verify(struct stk_dataset *dataset, uint32_t threads, struct verify_told *told,
                         struct stk_error *err)
{
    struct blocks blocks = {.dataset = dataset, .series = dataset->source->series};
    struct verify_job job = {
        .context = &dataset->source->context,
        .unit = "blocks",
        .user = &blocks,
        .length = blocks_length,
        .begin = blocks_begin,
        .end = blocks_end,
        .check = blocks_check,
    };
    count_blocks(&blocks);
    job.total = blocks.first[blocks.series->object_count];
    stk_status status = sort_entities(&blocks, err);
    if (!status)
        status = find_hashes(&blocks, told, err);
    if (!status)
        status = verify_crew_run(&job, threads, told, err);
    memory_free(blocks.sorted);
    return status;
}
