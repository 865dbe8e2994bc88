#include "loader/fill_stage.h"

#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/shape.h"
#include "loader/batch_transform.h"
#include "loader/device_decode.h"
#include "loader/media_stage.h"
#include "loader/resident.h"
#include "store/guard.h"

#define SUBSTITUTE_TRIES 16
#define COLD_SPANS 64 /* after a copy that went to the disk, this many are taken for cold */
#define COLD_NS                                                                                    \
    50000 /* a copy this much slower than a byte a nanosecond may have gone to the disk */
/* While one sample is copied, the first lines of a later one are asked for; the processor sees the
 * rest coming by itself. Measured with windows of 3,840 bytes: of 1 to 16 samples ahead and 1 to 60
 * lines, 2 samples and FILL_LONG bytes. */
#define AHEAD_SAMPLES 2

/* --- copying from memory ---------------------------------------------------------------------- */

static int head_is_known(const struct dataset_field *field, const uint8_t *head)
{
    if (field->head == 0)
        return field->plain;
    return field->plain && field->head <= sizeof field->head_bytes &&
           memcmp(head, field->head_bytes, field->head) == 0;
}

/* Stored rows fill the end of their place, and zeros what is before them. `to`: the place. from may
 * be the end of the place itself, where the rows were read to. next: as window_gather_stream's. */
static void gather_rows(const struct field_layout *layout, const uint8_t *from, uint64_t length,
                        uint8_t *to, const uint8_t *next)
{
    uint64_t rows = layout->rows;
    if (length < layout->full) {
        rows = length / layout->row;
        uint64_t before = layout->item - rows * layout->to_row;
        memset(to, 0, before);
        to += before;
    }
    window_gather_stream(layout->gather, from, rows, to, next);
}

/* Puts a value where a read would have put it. Runs under a guard: no lock, no allocation. next: of
 * the same field, to be copied after it; or NULL. */
static inline void copy_value(const struct stk_loader *loader, struct slot *slot, uint32_t place,
                              uint32_t f, const uint8_t *next)
{
    const struct field_layout *layout = &loader->layout.fields[f];
    const struct dataset_field *field = layout->field;
    uint32_t value = place * loader->layout.field_count + f;
    const uint8_t *from = slot->from[value];
    uint64_t length = slot->extents[value].length;
    if (layout->gather) {
        gather_rows(layout, from, length,
                    (uint8_t *)slot->box->fields[f].tensor.data + layout->item * place, next);
        slot->how[value] = HOW_READY;
        return;
    }
    if (layout->place != PLACE_DENSE) {
        memcpy(slot->box->runs[f] + slot->run_at[value], from, length);
    } else if (field->field.kind == STK_KIND_INT) {
        memcpy(slot_side(slot, layout, place), from, length);
    } else {
        uint8_t *to = (uint8_t *)slot->box->fields[f].tensor.data + layout->item * place;
        if (field->payload >= COPY_LARGE)
            copy_past_caches(to, from + field->head, field->payload);
        else
            memcpy(to, from + field->head, field->payload);
        if (head_is_known(field, from)) {
            slot->how[value] = HOW_READY;
            return;
        }
        memcpy(slot_side(slot, layout, place), from, field->head);
    }
    slot->how[value] = HOW_PLACED;
}

struct copy_job {
    const struct stk_loader *loader;
    struct slot *slot;
    uint32_t first, count;
};

static void sample_ask(const struct copy_job *job, uint32_t place)
{
    uint32_t fields = job->loader->layout.field_count;
    uint64_t value = (uint64_t)place * fields;
    for (uint64_t end = value + fields; value < end; value++) {
        if (job->slot->how[value] != HOW_MAP)
            continue;
        const uint8_t *from = job->slot->from[value];
        if (job->slot->extents[value].length < FILL_LONG)
            continue;
        for (uint64_t at = 0; at < FILL_LONG; at += FILL_LINE)
            __builtin_prefetch(from + at);
    }
}

static stk_status copy_span(void *user)
{
    const struct copy_job *job = user;
    uint32_t fields = job->loader->layout.field_count, end = job->first + job->count;
    for (uint32_t i = job->first; i < end && i < job->first + AHEAD_SAMPLES; i++)
        sample_ask(job, i);
    for (uint32_t i = job->first; i < end; i++) {
        if (i + AHEAD_SAMPLES < end)
            sample_ask(job, i + AHEAD_SAMPLES);
        for (uint32_t f = 0; f < fields; f++) {
            uint64_t value = (uint64_t)i * fields + f;
            uint8_t how = job->slot->how[value];
            const uint8_t *next = i + 1 < end ? job->slot->from[value + fields] : NULL;
            if (how == HOW_MAP || how == HOW_MEMORY)
                copy_value(job->loader, job->slot, i, f, next);
        }
    }
    return STK_OK;
}

/* A file that was cut short under its map: find out which samples are hit; their reads will say
 * why. */
static void copy_each(struct copy_job job)
{
    uint32_t fields = job.loader->layout.field_count, end = job.first + job.count;
    for (job.count = 1; job.first < end; job.first++)
        if (guard_run(copy_span, &job))
            for (uint32_t f = 0; f < fields; f++)
                job.slot->how[(uint64_t)job.first * fields + f] = HOW_ODD;
}

/* Asked only after a copy that took long: the question is a system call. */
void fill_look_for_faults(struct worker *worker, uint64_t bytes, int64_t ns)
{
    struct rusage usage;
    if ((uint64_t)ns <= bytes + COLD_NS)
        return;
    if (getrusage(RUSAGE_THREAD, &usage) || usage.ru_majflt == worker->faults)
        return;
    worker->faults = usage.ru_majflt;
    worker->cold = COLD_SPANS;
}

static void fill_copy(struct worker *worker, struct span *span)
{
    struct copy_job job = {
        .loader = worker->loader, .slot = span->slot, .first = span->first, .count = span->count};
    worker->cold -= worker->cold > 0;
    if (span->copies == 0)
        return;
    int64_t begin = clock_now();
    if (guard_run(copy_span, &job))
        copy_each(job);
    fill_look_for_faults(worker, span->count * worker->loader->layout.item, clock_now() - begin);
    atomic_store_explicit(&worker->copies, worker->copies + span->copies, memory_order_relaxed);
}

/* --- finishing one value ---------------------------------------------------------------------- */

static void *worker_scratch(struct worker *worker, uint64_t size)
{
    struct budget *budget = box_pool_budget(worker->loader->pool);
    if (worker->scratch_size >= size)
        return worker->scratch;
    memory_free(worker->scratch);
    budget_give(budget, worker->scratch_size);
    worker->scratch = memory_alloc(size);
    worker->scratch_size = worker->scratch ? size : 0;
    budget_force(budget, worker->scratch_size);
    return worker->scratch;
}

static stk_status value_finish(struct worker *worker, const struct codec_ops *codec,
                               const struct stk_bytes *head, struct stk_tensor *to,
                               struct stk_error *err)
{
    uint64_t size = stk_tensor_size(to);
    stk_status status =
        codec->finish(head, to, worker->scratch_size >= size ? worker->scratch : NULL, err);
    if (status != STK_MEMORY || worker->scratch_size >= size || !worker_scratch(worker, size))
        return status;
    return codec->finish(head, to, worker->scratch, err);
}

static struct stk_tensor dense_item(const struct slot *slot, const struct field_layout *layout,
                                    uint32_t place, uint32_t f)
{
    struct stk_tensor item = layout->shape;
    item.data = (uint8_t *)slot->box->fields[f].tensor.data + layout->item * place;
    return item;
}

/* Rows that were read, into their place or beside it. */
static void finish_rows(const struct span *span, const struct field_layout *layout, uint32_t place,
                        uint32_t f)
{
    const struct slot *slot = span->slot;
    uint8_t *to = (uint8_t *)slot->box->fields[f].tensor.data + layout->item * place;
    uint64_t length = slot->extents[place * slot->box->batch.field_count + f].length;
    const uint8_t *from = to + layout->item - length;
    if (layout->rows_at != STK_NOWHERE)
        from = span->rows + span->row_size * (place - span->first) + layout->rows_at;
    gather_rows(layout, from, length, to, NULL);
}

/* Ones at the end of the place, as many as the extent says. */
static void finish_mask(const struct slot *slot, const struct field_layout *layout, uint32_t place,
                        uint32_t f)
{
    uint8_t *to = (uint8_t *)slot->box->fields[f].tensor.data + layout->item * place;
    uint64_t ones = slot->extents[place * slot->box->batch.field_count + f].offset;
    ones = ones < layout->item ? ones : layout->item;
    memset(to, 0, layout->item - ones);
    memset(to + layout->item - ones, 1, ones);
}

/* A 1 in a row of zeros, one a class. */
static stk_status spread_number(const struct field_layout *layout, struct slot *slot,
                                uint32_t place, uint32_t f, int64_t number, struct stk_error *err)
{
    if (number < 0 || number >= layout->classes) {
        stk_status status =
            fail(err, STK_CORRUPT, "class %lld of %u classes", (long long)number, layout->classes);
        fail_remedy(err, "classes= in batch_transforms must be more than the largest class number");
        return status;
    }
    float *row = (float *)slot->box->fields[f].tensor.data + (uint64_t)layout->classes * place;
    memset(row, 0, layout->item);
    row[number] = 1;
    return STK_OK;
}

/* A number into its place: as it is, or spread over classes. */
static inline stk_status put_number(const struct field_layout *layout, struct slot *slot,
                                    uint32_t place, uint32_t f, int64_t number,
                                    struct stk_error *err)
{
    if (layout->classes)
        return spread_number(layout, slot, place, f, number, err);
    ((int64_t *)slot->box->fields[f].tensor.data)[place] = number;
    return STK_OK;
}

static stk_status finish_number(struct worker *worker, struct slot *slot, uint32_t place,
                                uint32_t f, struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    uint32_t value = place * worker->loader->layout.field_count + f;
    int64_t number;
    struct stk_tensor to = {.data = &number, .dtype = STK_I64};
    struct stk_bytes text = {slot_side(slot, layout, place), slot->extents[value].length};
    stk_status status = layout->field->codec->decode(&text, &to, err);
    return status ? status : put_number(layout, slot, place, f, number, err);
}

static stk_status finish_dense(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                               struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    const struct dataset_field *field = layout->field;
    struct stk_tensor item = dense_item(slot, layout, place, f);
    struct stk_bytes head = {.data = slot_side(slot, layout, place), .len = field->head};
    if (field->field.kind == STK_KIND_INT)
        return finish_number(worker, slot, place, f, err);
    if (head_is_known(field, head.data))
        return STK_OK;
    return value_finish(worker, field->codec, &head, &item, err);
}

/* A tensor with a shape of its own: it lies behind its head in the run. */
static stk_status finish_item(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                              struct stk_error *err)
{
    const struct dataset_field *field = worker->loader->layout.fields[f].field;
    uint32_t value = place * worker->loader->layout.field_count + f;
    uint8_t *run = slot->box->runs[f] + slot->run_at[value];
    struct stk_bytes bytes = {.data = run, .len = slot->extents[value].length};
    struct codec_shape shape;
    stk_status status = field->codec->probe(&bytes, bytes.len, &shape, err);
    if (status)
        return status;
    if (shape.tensor.dtype != field->field.shape.dtype)
        return STK_SHAPE;
    struct stk_bytes head = {.data = run, .len = shape.head};
    struct stk_tensor *item = &box_items(&slot->box->fields[f])[place];
    *item = shape.tensor;
    item->data = run + shape.head;
    if (!shape.plain) {
        status = value_finish(worker, field->codec, &head, item, err);
        if (status)
            return status;
    }
    if (shape.head % stk_dtype_size(item->dtype)) { /* the payload begins at an odd place */
        memmove(run, item->data, stk_tensor_size(item));
        item->data = run;
    }
    return STK_OK;
}

static void value_missing(const struct layout *layout, struct slot *slot, uint32_t place,
                          uint32_t f)
{
    struct stk_batch_field *field = &slot->box->fields[f];
    const struct field_layout *shape = &layout->fields[f];
    if (field->present)
        box_present(field)[place] = 0;
    if (shape->place == PLACE_DENSE)
        memset((uint8_t *)field->tensor.data + shape->item * place, 0, shape->item);
    if (shape->place == PLACE_DENSE && shape->pads)
        box_lengths(field)[place] = 0;
    if (shape->params)
        memset(slot->box->params[f] + (uint64_t)shape->params * place, 0, shape->params);
    if (shape->place == PLACE_DENSE)
        return;
    if (shape->place == PLACE_BYTES)
        box_bytes(field)[place] = (struct stk_bytes){0};
    else
        box_items(field)[place] = (struct stk_tensor){0};
}

static stk_status finish_value(struct worker *worker, const struct span *span, uint32_t place,
                               uint32_t f, struct stk_error *err)
{
    const struct layout *layout = &worker->loader->layout;
    struct slot *slot = span->slot;
    struct stk_batch_field *field = &slot->box->fields[f];
    uint32_t value = place * layout->field_count + f;
    uint8_t how = slot->how[value];
    if (how == HOW_MISSING) {
        value_missing(layout, slot, place, f);
        return STK_OK;
    }
    if (field->present)
        box_present(field)[place] = 1;
    if (layout->fields[f].pipeline)
        return media_fill(worker, span, place, f, err);
    if (how == HOW_VALUE && layout->fields[f].field->is_mask)
        finish_mask(slot, &layout->fields[f], place, f);
    else if (how == HOW_VALUE)
        return put_number(&layout->fields[f], slot, place, f, (int64_t)slot->extents[value].offset,
                          err);
    if (how != HOW_PLACED)
        return STK_OK;
    if (layout->fields[f].gather) {
        finish_rows(span, &layout->fields[f], place, f);
        return STK_OK;
    }
    if (layout->fields[f].place == PLACE_DENSE)
        return finish_dense(worker, slot, place, f, err);
    if (layout->fields[f].place != PLACE_BYTES)
        return finish_item(worker, slot, place, f, err);
    const struct codec_ops *codec = layout->fields[f].field->codec;
    struct stk_bytes *bytes = &box_bytes(field)[place];
    *bytes = (struct stk_bytes){.data = slot->box->runs[f] + slot->run_at[value],
                                .len = slot->extents[value].length};
    return codec->check ? codec->check(bytes, err) : STK_OK;
}

/* --- odd samples and substitutes: one by one, through the dataset's own reader ---------------- */

static stk_status fail_shape(const struct dataset_field *field, const struct stk_tensor *got,
                             struct stk_error *err)
{
    char here[128], there[128];
    shape_text(got, here, sizeof here);
    shape_text(&field->field.shape, there, sizeof there);
    stk_status status = fail(err, STK_SHAPE, "the sample has shape %s, but sample %llu has %s",
                             here, (unsigned long long)field->probed, there);
    if (got->dtype == field->field.shape.dtype)
        fail_remedy(err,
                    "give ragged=\"pad\" or ragged=\"list\" to batch samples of unequal shape");
    else
        fail_remedy(err, "all values of a field must have one dtype: convert the odd ones");
    return status;
}

/* Room for a variable value: its own place in the run when it fits there. */
static void *value_room(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                        uint64_t len)
{
    uint32_t value = place * worker->loader->layout.field_count + f;
    const struct extent *extent = &slot->extents[value];
    if (extent->object < EXTENT_VALUE && len <= extent->length)
        return slot->box->runs[f] + slot->run_at[value];
    return box_extra(slot->box, len);
}

static stk_status store_value(struct worker *worker, struct slot *slot, uint32_t place, uint32_t f,
                              const struct stk_value *value, struct stk_error *err)
{
    const struct field_layout *layout = &worker->loader->layout.fields[f];
    struct stk_batch_field *field = &slot->box->fields[f];
    if (!value->present) {
        value_missing(&worker->loader->layout, slot, place, f);
        return STK_OK;
    }
    if (layout->field->field.kind == STK_KIND_INT)
        return put_number(layout, slot, place, f, *(const int64_t *)value->tensor.data, err);
    if (layout->place == PLACE_DENSE) {
        struct stk_tensor item = dense_item(slot, layout, place, f);
        if (!shape_same(&value->tensor, &item))
            return fail_shape(layout->field, &value->tensor, err);
        memcpy(item.data, value->tensor.data, layout->item);
        return STK_OK;
    }
    int is_bytes = layout->place == PLACE_BYTES;
    if (!is_bytes && value->tensor.dtype != layout->field->field.shape.dtype)
        return fail_shape(layout->field, &value->tensor, err);
    uint64_t len = is_bytes ? value->bytes.len : stk_tensor_size(&value->tensor);
    void *room = value_room(worker, slot, place, f, len);
    if (!room)
        return fail_memory(err, len);
    memcpy(room, is_bytes ? value->bytes.data : value->tensor.data, len);
    if (is_bytes) {
        box_bytes(field)[place] = (struct stk_bytes){.data = room, .len = len};
    } else {
        box_items(field)[place] = value->tensor;
        box_items(field)[place].data = room;
    }
    return STK_OK;
}

/* Words for a sample whose chunk could not be decoded, without decoding it again for each. */
static stk_status chunk_failure(struct worker *worker, const struct slot *slot, uint32_t place,
                                struct stk_error *err)
{
    struct stk_loader *loader = worker->loader;
    uint32_t objects = index_object_count(dataset_index(loader->dataset));
    for (uint32_t f = 0; loader->chunks && f < loader->layout.field_count; f++) {
        uint32_t value = place * loader->layout.field_count + f;
        uint32_t object = slot->extents[value].object;
        if (object < objects || object >= EXTENT_VALUE || slot->how[value] != HOW_ODD)
            continue;
        if (!chunk_cache_data(loader->chunks, object - objects)) {
            stk_status status = chunk_cache_error(loader->chunks, object - objects, err);
            fail_sample(err, slot->samples[place], NULL, 0);
            return status;
        }
    }
    return STK_OK;
}

/* Reads what is there; fields with a pipeline are its to decode. */
static stk_status worker_reader_new(struct worker *worker, struct stk_error *err)
{
    const struct layout *layout = &worker->loader->layout;
    stk_status status = stk_reader_new(worker->loader->dataset, &worker->reader, err);
    for (uint32_t f = 0; !status && f < layout->field_count; f++)
        if (layout->fields[f].pipeline)
            reader_leave_encoded(worker->reader, f);
    return status;
}

static stk_status fill_alone(struct worker *worker, struct slot *slot, uint32_t place,
                             uint64_t sample, struct stk_error *err)
{
    struct stk_loader *loader = worker->loader;
    stk_status status = STK_OK;
    if (loader->decode)
        device_decode_forget(loader->decode, (uint32_t)(slot - loader->slots), place);
    if (loader->resident && resident_land(loader->resident, slot->box, place))
        atomic_fetch_sub_explicit(&slot->found, 1, memory_order_relaxed);
    if (!worker->reader)
        status = worker_reader_new(worker, err);
    if (!status)
        status = reader_read_sample(worker->reader, sample, worker->values, err);
    for (uint32_t f = 0; !status && f < loader->layout.field_count; f++) {
        const struct media_alone media = {place, f, sample, worker->values[f].bytes};
        struct stk_batch_field *field = &slot->box->fields[f];
        int present = worker->values[f].present;
        if (field->present)
            box_present(field)[place] = (uint8_t)present;
        if (loader->layout.fields[f].pipeline && present)
            status = media_fill_alone(worker, slot, &media, err);
        else
            status = store_value(worker, slot, place, f, &worker->values[f], err);
        int own =
            sample == slot->samples[place]; /* else the extents are of the one it stands in for */
        if (status)
            dataset_explain(loader->dataset, sample, f,
                            own ? &slot->extents[place * loader->layout.field_count + f] : NULL,
                            err);
    }
    return status;
}

/* The loader closes: decoding the rest would only make it wait. */
static int fill_is_over(const struct stk_loader *loader)
{
    return atomic_load_explicit(&loader->stop, memory_order_relaxed);
}

/* The stored bytes are at fault: not memory, not the disk, not a mistake of the caller. */
static int is_of_the_sample(stk_status status)
{
    return status == STK_CORRUPT || status == STK_TRUNCATED || status == STK_LIMIT ||
           status == STK_UNSUPPORTED;
}

static int extent_has_failed(const struct stk_loader *loader, const struct extent *extent,
                             stk_status status)
{
    struct store_read range = {extent->object, 1, extent->offset, extent->length, .status = status};
    struct chunk chunk;
    if (extent->object >= EXTENT_VALUE)
        return 0;
    if (extent->object >= loader->objects) {
        uint32_t number = extent->object - loader->objects;
        if (index_chunk(dataset_index(loader->dataset), number, &chunk, NULL))
            return 0;
        range.object = chunk.object;
        range.offset = chunk.offset;
        range.length = chunk.length;
    }
    return store_has_failed(dataset_store(loader->dataset), &range);
}

/* Its bytes could not be had: the network or the store is at fault, and no other sample stands in
 * for it. That one would take as long to fail, and an epoch of substitutes is no epoch. */
static int is_unread(struct worker *worker, uint64_t sample, stk_status status)
{
    const struct stk_loader *loader = worker->loader;
    struct extent extents[DATASET_MAX_FIELDS];
    int failed = 0;
    if (!loader->remote || status == STK_CANCELLED)
        return loader->remote;
    if (dataset_resolve(loader->dataset, &sample, 1, worker->resolve, extents, NULL))
        return 0;
    for (uint32_t f = 0; f < loader->layout.field_count && !failed; f++)
        failed = extent_has_failed(loader, &extents[f], status);
    return failed;
}

/* Another sample in its place; none: bad->error says why. */
static void fill_substitute(struct worker *worker, struct slot *slot, struct slot_bad *bad)
{
    struct stk_loader *loader = worker->loader;
    uint64_t position = plan_share_position(loader->plan, &slot->share, bad->place);
    struct stk_error error;
    for (uint32_t attempt = 0; attempt < SUBSTITUTE_TRIES && !fill_is_over(loader); attempt++) {
        uint64_t sample = plan_substitute(loader->plan, slot->epoch, position, attempt);
        if (sample == slot->samples[bad->place])
            continue;
        stk_status status = fill_alone(worker, slot, bad->place, sample, &error);
        if (status && is_unread(worker, sample, status)) {
            bad->error = error;
            return;
        }
        if (status)
            continue;
        bad->substitute = sample;
        slot->box->samples[bad->place] = sample;
        return;
    }
    fail_remedy(&bad->error,
                "none of %d substitutes could be read either: most of the "
                "data is bad, see `stoker verify`",
                SUBSTITUTE_TRIES);
}

void fill_bad(struct worker *worker, struct slot *slot, uint32_t place,
              const struct stk_error *error)
{
    struct stk_loader *loader = worker->loader;
    struct slot_bad bad = {.place = place, .substitute = STK_NOWHERE, .error = *error};
    if (loader->bad_policy == STK_BAD_REPLACE) {
        if (!is_unread(worker, slot->samples[place], bad.error.status))
            fill_substitute(worker, slot, &bad);
    } else if (!*bad.error.remedy && is_of_the_sample(bad.error.status)) {
        fail_remedy(&bad.error, "give bad=\"replace\" to go on with another sample in its place; "
                                "`stoker verify` lists all that are bad");
    }
    pthread_mutex_lock(&loader->lock);
    slot_add_bad(slot, &bad);
    pthread_mutex_unlock(&loader->lock);
}

/* --- the step --------------------------------------------------------------------------------- */

/* Not 0: the batch is an error already, and its store is remote: each more sample that is read
 * alone may take as long as the first one did, and nobody would look at it. */
static int is_lost(struct stk_loader *loader, const struct slot *slot)
{
    if (!loader->remote)
        return 0;
    pthread_mutex_lock(&loader->lock);
    int lost = !slot_is_whole(slot);
    pthread_mutex_unlock(&loader->lock);
    return lost;
}

static void fill_sample(struct worker *worker, const struct span *span, uint32_t place)
{
    const struct layout *layout = &worker->loader->layout;
    struct slot *slot = span->slot;
    const uint8_t *how = slot->how + (uint64_t)place * layout->field_count;
    struct stk_error error;
    stk_status status = STK_OK;
    int odd = 0;
    for (uint32_t f = 0; f < layout->field_count; f++)
        odd |= how[f] == HOW_ODD;
    for (uint32_t f = 0; f < layout->field_count && !odd; f++)
        odd = finish_value(worker, span, place, f, NULL) != STK_OK;
    if (!odd || is_lost(worker->loader, slot))
        return;
    status = chunk_failure(worker, slot, place, &error);
    if (!status)
        status = fill_alone(worker, slot, place, slot->samples[place], &error);
    if (status)
        fill_bad(worker, slot, place, &error);
}

/* All was copied, and there is nothing to parse. */
static int span_is_ready(const struct layout *layout, const struct span *span)
{
    const uint8_t *how = span->slot->how + (uint64_t)span->first * layout->field_count;
    uint64_t values = (uint64_t)span->count * layout->field_count;
    int left = layout->optional;
    for (uint64_t v = 0; v < values; v++)
        left |= how[v] ^ HOW_READY;
    return !left;
}

void fill_step(struct worker *worker, struct span *span)
{
    int64_t begin = trace_begin(worker->ring);
    fill_copy(worker, span);
    memcpy(span->slot->box->samples + span->first, span->slot->samples + span->first,
           span->count * sizeof(uint64_t));
    if (!span_is_ready(&worker->loader->layout, span))
        for (uint32_t i = span->first;
             i < span->first + span->count && !fill_is_over(worker->loader); i++)
            fill_sample(worker, span, i);
    if (worker->loader->layout.aims)
        media_aim(worker, span);
    if (worker->loader->layout.gathers)
        window_gather_fence();
    if (worker->loader->layout.pipelines)
        media_count(worker);
    trace_end(worker->ring, begin, "fill", span->slot->position,
              span->count * worker->loader->layout.item);
}

int fill_part_done(struct stk_loader *loader, struct slot *slot)
{
    struct slot_bad bad = {.substitute = STK_NOWHERE};
    uint32_t value;
    if (atomic_fetch_sub_explicit(&slot->pending, 1, memory_order_acq_rel) != 1)
        return 0;
    if (atomic_load_explicit(&loader->discard, memory_order_relaxed) || fill_is_over(loader))
        return 1; /* nobody will look at it */
    if (slot_finish(slot, &loader->layout, &value, &bad.error)) {
        bad.place = value / loader->layout.field_count;
        uint64_t sample = slot->box->samples[bad.place];
        int own =
            sample == slot->samples[bad.place]; /* else a substitute's, which lies elsewhere */
        dataset_explain(loader->dataset, sample, value % loader->layout.field_count,
                        own ? &slot->extents[value] : NULL, &bad.error);
        slot_add_bad(slot, &bad); /* no other thread has the slot now */
    } else if (loader->mixes && slot_is_whole(slot)) {
        batch_transform_run(loader->mixes, slot, loader->plan->seed);
    }
    return 1;
}
