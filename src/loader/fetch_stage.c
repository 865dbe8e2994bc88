#include "loader/fetch_stage.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fail.h"
#include "loader/fill_stage.h"
#include "loader/media_stage.h"
#include "loader/resident.h"

/* Where maps reach the disk, values from this size on are read: a queue keeps a disk busier than
 * faults. */
#define READ_WHEN_COLD (16 << 10)
/* Reads that lie closer than this become one; the bytes between them go to waste. */
#define MERGE_GAP FETCH_WASTE
#define MERGE_MOST (4 << 20)

/* Where a value's bytes go: its head beside the batch, its payload into its place. Rows to be
 * gathered go to the end of their place, or beside when they are wider than it. */
static void piece_aim(struct piece *piece, struct span *span, const struct field_layout *layout,
                      uint32_t place, uint32_t f)
{
    struct slot *slot = span->slot;
    const struct stk_batch_field *field = &slot->box->fields[f];
    piece->head = slot_side(slot, layout, place);
    piece->head_len = layout->side;
    if (layout->keeps_encoded) {
        piece->head_len = 0;
        slot->from[piece->value] = piece->to = slot->box->runs[f] + slot->run_at[piece->value];
    } else if (layout->pipeline) { /* where is known when all of the span are: media_place */
        slot->run_at[piece->value] = span->encoded_used;
        span->encoded_used += box_round_up(piece->length);
    } else if (layout->place != PLACE_DENSE) {
        piece->head_len = 0;
        piece->to = slot->box->runs[f] + slot->run_at[piece->value];
    } else if (layout->field->field.kind == STK_KIND_INT) {
        piece->head_len = (uint32_t)piece->length;
        piece->to = NULL;
    } else if (layout->gather && layout->rows_at != STK_NOWHERE) {
        piece->to = span->rows + span->row_size * (place - span->first) + layout->rows_at;
    } else {
        piece->to = (uint8_t *)field->tensor.data + layout->item * place;
        if (layout->gather)
            piece->to += layout->item - piece->length;
    }
}

static int value_is_expected(const struct field_layout *layout, const struct extent *extent)
{
    if (layout->place != PLACE_DENSE || layout->pipeline)
        return 1;
    if (layout->gather)
        return extent->length == layout->full || (extent->length && extent->length < layout->full &&
                                                  extent->length % layout->row == 0);
    if (layout->field->field.kind == STK_KIND_INT)
        return extent->length <= DATASET_MAX_INT_LENGTH;
    return extent->length == layout->field->head + layout->field->payload;
}

/* Pages of a map that are not in memory would be faulted in one by one; asked for ahead, the disk
 * sees them all at once. */
static void map_ask(const uint8_t *from, uint64_t length)
{
    uintptr_t start = (uintptr_t)from & ~(uintptr_t)4095;
    madvise((void *)start, (uintptr_t)from + length - start, MADV_WILLNEED);
}

/* To be copied from a map. Its first lines, and with them the address of its page, are asked for
 * now; more of a long one while others are copied. */
static enum how value_is_mapped(struct span *span, uint32_t value, const uint8_t *from,
                                uint64_t length)
{
    span->slot->from[value] = from;
    span->copies++;
    __builtin_prefetch(from);
    if (length >= FILL_LONG)
        __builtin_prefetch(from + FILL_LINE);
    return HOW_MAP;
}

/* A field's values lie in one object as a rule: its map is looked up once a span. */
static const uint8_t *map_of(struct worker *worker, uint32_t f, uint32_t object)
{
    struct known_map *known = &worker->maps[f];
    if (known->object != object) {
        struct store *store = dataset_store(worker->loader->dataset);
        *known = (struct known_map){object, store_map(store, object)};
    }
    return known->data;
}

static enum how fetch_value(struct worker *worker, struct span *span, uint32_t place, uint32_t f)
{
    struct stk_loader *loader = worker->loader;
    struct slot *slot = span->slot;
    const struct field_layout *layout = &loader->layout.fields[f];
    uint32_t value = place * loader->layout.field_count + f;
    const struct extent *extent = &slot->extents[value];
    uint32_t objects = loader->objects;
    if (extent->object == EXTENT_NONE)
        return layout->field->field.optional ? HOW_MISSING : HOW_ODD;
    if (extent->object == EXTENT_VALUE)
        return HOW_VALUE;
    if (!value_is_expected(layout, extent))
        return HOW_ODD;
    if (extent->object >= objects) {
        const uint8_t *data = chunk_cache_data(loader->chunks, extent->object - objects);
        slot->from[value] = data ? data + extent->offset : NULL;
        if (layout->pipeline)
            return data ? HOW_PLACED : HOW_ODD;
        span->copies += data != NULL;
        return data ? HOW_MEMORY : HOW_ODD;
    }
    slot->from[value] = NULL;
    if (extent->length == 0)
        return HOW_PLACED;
    if (loader->mapped && extent->length <= loader->map_most &&
        (extent->length < READ_WHEN_COLD || !worker->cold)) {
        const uint8_t *map = map_of(worker, f, extent->object);
        if (map && worker->cold)
            map_ask(map + extent->offset, extent->length);
        if (map && layout->pipeline) {
            slot->from[value] = map + extent->offset;
            return HOW_ENCODED;
        }
        if (map)
            return value_is_mapped(span, value, map + extent->offset, extent->length);
    }
    struct piece *piece = &span->pieces[span->piece_count++];
    *piece = (struct piece){.offset = extent->offset,
                            .length = extent->length,
                            .object = extent->object,
                            .value = value};
    piece_aim(piece, span, layout, place, f);
    return HOW_PLACED;
}

static int piece_before(const struct piece *a, const struct piece *b)
{
    return a->object != b->object ? a->object < b->object : a->offset < b->offset;
}

/* One sample's, by object and offset: the order of fields need not be that of the bytes. */
static void pieces_sort(struct piece *pieces, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct piece piece = pieces[i];
        uint32_t j = i;
        for (; j > 0 && piece_before(&piece, &pieces[j - 1]); j--)
            pieces[j] = pieces[j - 1];
        pieces[j] = piece;
    }
}

static void read_add_part(struct store_read *read, void *to, uint64_t len)
{
    if (len)
        read->parts[read->part_count++] = (struct iovec){.iov_base = to, .iov_len = len};
}

static int read_joins(const struct store_read *read, const struct piece *piece)
{
    uint64_t end = read->offset + read->length;
    return read->object == piece->object && piece->offset >= end &&
           piece->offset - end <= MERGE_GAP && read->length + piece->length <= MERGE_MOST &&
           read->part_count + 3 <= STORE_MAX_PARTS;
}

/* Pieces become reads: one each, or one for several that lie close together. */
static void reads_build(struct worker *worker, struct span *span)
{
    struct iovec *parts = span->parts;
    uint64_t merged = 0;
    for (uint32_t i = 0; i < span->piece_count; i++) {
        struct piece *piece = &span->pieces[i];
        struct store_read *read = span->read_count ? &span->reads[span->read_count - 1] : NULL;
        if (read && read_joins(read, piece)) {
            uint64_t gap = piece->offset - (read->offset + read->length);
            read_add_part(read, worker->waste, gap);
            read->length += gap + piece->length;
            merged++;
        } else {
            if (read)
                parts += read->part_count;
            read = &span->reads[span->read_count++];
            *read = (struct store_read){.object = piece->object,
                                        .offset = piece->offset,
                                        .length = piece->length,
                                        .parts = parts,
                                        .owner = span};
        }
        piece->read = span->read_count - 1;
        read_add_part(read, piece->head, piece->head_len);
        read_add_part(read, piece->to, piece->length - piece->head_len);
    }
    atomic_fetch_add_explicit(&worker->reads, span->read_count, memory_order_relaxed);
    atomic_fetch_add_explicit(&worker->merged, merged, memory_order_relaxed);
}

static void reads_submit(struct worker *worker, struct span *span)
{
    span->open = span->read_count;
    atomic_fetch_add_explicit(&span->slot->reads, span->read_count, memory_order_relaxed);
    for (uint32_t i = 0; i < span->read_count;) {
        struct store_read *read = &span->reads[i], *back;
        if (store_submit(worker->queue, &read, 1)) {
            i++;
            continue;
        }
        if (store_reap(worker->queue, &back, 1, -1) > 0) { /* the queue was full: make room */
            fetch_done(back);
        } else if (atomic_load_explicit(&worker->loader->stop, memory_order_relaxed)) {
            span->open -= span->read_count - i; /* nobody waits for them */
            return;
        }
    }
}

void fetch_done(struct store_read *read)
{
    struct span *span = read->owner;
    atomic_fetch_sub_explicit(&span->slot->reads, 1, memory_order_relaxed);
    span->open--;
    if (!read->status)
        return;
    uint32_t number = (uint32_t)(read - span->reads);
    for (uint32_t i = 0; i < span->piece_count; i++)
        if (span->pieces[i].read == number)
            span->slot->how[span->pieces[i].value] =
                HOW_ODD; /* alone it may be good, or has words */
}

/* Not 0: the device has all that the span's samples consist of. */
static int span_is_found(const struct layout *layout, const struct span *span, uint32_t found)
{
    int all = found == span->count;
    for (uint32_t f = 0; f < layout->field_count && all; f++)
        all = layout->fields[f].resident;
    return all;
}

/* Which samples, where they lie, and how many of them the device has already. Where it has all of
 * them they need not even be looked up, but for windows that lack rows. */
static stk_status fetch_resolve(struct worker *worker, struct span *span, uint32_t *found)
{
    struct stk_loader *loader = worker->loader;
    struct slot *slot = span->slot;
    uint64_t *samples = slot->samples + span->first;
    struct extent *extents = slot->extents + (uint64_t)span->first * loader->layout.field_count;
    struct resident_span look = {slot->box, span->first, span->count, samples, NULL};
    int windows = loader->resident && resident_needs_extents(loader->resident);
    stk_status status = STK_OK;
    *found = 0;
    if (!loader->early) {
        struct plan_range range = {slot->epoch, slot->share.first + span->first, span->count};
        status = plan_samples(loader->plan, NULL, &range, samples, NULL);
    }
    if (!status && loader->resident)
        *found = resident_find(loader->resident, &look);
    if (!status && !loader->early && !span_is_found(&loader->layout, span, *found))
        status =
            dataset_resolve(loader->dataset, samples, span->count, worker->resolve, extents, NULL);
    look.extents = extents;
    if (!status && windows && *found < span->count)
        *found = resident_find(loader->resident, &look);
    return status;
}

/* Most values are like the one before: whole, and in the same mapped object. */
static void fetch_sample(struct worker *worker, struct span *span, uint32_t place)
{
    const struct layout *layout = &worker->loader->layout;
    struct slot *slot = span->slot;
    uint32_t value = place * layout->field_count, before = span->piece_count;
    for (uint32_t f = 0; f < layout->field_count; f++, value++) {
        if (layout->fields[f].resident && slot->box->home[f][place] != STK_NOWHERE) {
            slot->how[value] = HOW_READY;
            continue;
        }
        const struct extent *extent = &slot->extents[value];
        const struct known_map *known = &worker->maps[f];
        if (extent->object == known->object && extent->length == layout->fields[f].full &&
            known->data && !worker->cold)
            slot->how[value] =
                (uint8_t)value_is_mapped(span, value, known->data + extent->offset, extent->length);
        else
            slot->how[value] = (uint8_t)fetch_value(worker, span, place, f);
    }
    if (span->piece_count > before + 1)
        pieces_sort(span->pieces + before, span->piece_count - before);
}

/* What was resolved, value by value. */
static void fetch_values(struct worker *worker, struct span *span, uint32_t found)
{
    struct slot *slot = span->slot;
    uint32_t fields = worker->loader->layout.field_count;
    uint8_t *how = slot->how + (uint64_t)span->first * fields;
    if (found)
        atomic_fetch_add_explicit(&slot->found, found, memory_order_relaxed);
    if (span_is_found(&worker->loader->layout, span, found)) {
        memset(how, HOW_READY, (size_t)span->count * fields);
        return;
    }
    for (uint32_t f = 0; f < fields; f++)
        worker->maps[f].object = EXTENT_NONE;
    for (uint32_t i = 0; i < span->count; i++)
        fetch_sample(worker, span, span->first + i);
}

/* They will be read one by one, and say what is wrong. */
static void fetch_failed(struct worker *worker, struct span *span)
{
    uint32_t fields = worker->loader->layout.field_count;
    struct slot *slot = span->slot;
    memset(slot->how + (uint64_t)span->first * fields, HOW_ODD, (size_t)span->count * fields);
    for (uint32_t i = 0; i < span->count && worker->loader->resident; i++)
        resident_land(worker->loader->resident, slot->box, span->first + i);
}

void fetch_step(struct worker *worker, struct span *span)
{
    int64_t begin = trace_begin(worker->ring);
    struct slot *slot = span->slot;
    uint32_t found;
    stk_status status = fetch_resolve(worker, span, &found);
    span->piece_count = span->read_count = span->open = span->copies = 0;
    span->encoded_used = 0;
    if (status)
        fetch_failed(worker, span);
    else
        fetch_values(worker, span, found);
    if (span->encoded_used)
        media_place(worker, span);
    if (span->piece_count) {
        reads_build(worker, span);
        reads_submit(worker, span);
    }
    trace_end(worker->ring, begin, "fetch", slot->position, 0);
}
