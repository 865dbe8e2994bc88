#include "stoker/dataset.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/dataset_state.h"
#include "dataset/series_state.h"
#include "dataset/verify_crew.h"
#include "format/format.h"
#include "store/scan.h"

/* Every field of every sample is read and decoded. */

#define VERIFY_SPAN 64 /* samples, where no chunk says otherwise */

struct verify {
    struct stk_dataset *dataset;
    int by_chunk;        /* a span is a chunk's samples: it is decoded once */
    uint64_t next_chunk; /* that may hold the next span's samples */
};

/* What one thread reads with. */
struct verify_reader {
    struct stk_reader *reader;
    struct stk_value values[];
};

/* ---- one sample ---------------------------------------------------------------------------- */

static stk_status check_tensor(const struct verify *verify, uint32_t f,
                               const struct stk_tensor *tensor, struct stk_error *err)
{
    const struct dataset_field *field = &verify->dataset->source->fields[f];
    const struct stk_tensor *probed = &field->field.shape;
    if (field->probed == STK_NOWHERE ||
        (probed->dtype == tensor->dtype && probed->rank == tensor->rank))
        return STK_OK;
    return fail(err, STK_SHAPE, "%s of %d axes where sample %llu has %s of %d",
                stk_dtype_name(tensor->dtype), tensor->rank, (unsigned long long)field->probed,
                stk_dtype_name(probed->dtype), probed->rank);
}

static stk_status verify_sample(struct verify *verify, struct verify_reader *own, uint64_t position,
                                uint64_t *bytes, struct stk_error *err)
{
    struct stk_value *values = own->values;
    const struct dataset_source *source = verify->dataset->source;
    stk_status status = stk_reader_read(own->reader, position, values, err);
    for (uint32_t f = 0; f < source->field_count && !status; f++) {
        if (!values[f].present)
            continue;
        if (values[f].kind == STK_KIND_TENSOR)
            status = check_tensor(verify, f, &values[f].tensor, err);
        *bytes += values[f].kind == STK_KIND_TENSOR ? stk_tensor_size(&values[f].tensor)
                                                    : values[f].bytes.len;
        uint64_t sample;
        struct stk_place place;
        if (status && !stk_dataset_sample(verify->dataset, position, &sample, NULL)) {
            dataset_explain(verify->dataset, sample, f, NULL, err);
            if (!stk_dataset_place(verify->dataset, position, f, &place, NULL))
                fail_at(err, place.object, place.offset);
        }
    }
    return status;
}

/* How many samples the next span has: up to the end of its chunk, where there is one. */
static uint64_t samples_length(void *user, uint64_t first)
{
    struct verify *verify = user;
    const struct index *index = verify->dataset->source->index;
    uint64_t left = verify->dataset->samples - first;
    struct chunk chunk;
    while (verify->by_chunk && verify->next_chunk < index_chunk_count(index)) {
        if (index_chunk(index, (uint32_t)verify->next_chunk, &chunk, NULL) || !chunk.count)
            break;
        uint64_t end = chunk.first + chunk.count;
        if (end > first)
            return end - first < left ? end - first : left;
        verify->next_chunk++;
    }
    return left < VERIFY_SPAN ? left : VERIFY_SPAN;
}

static stk_status samples_begin(void *user, void **state, struct stk_error *err)
{
    struct verify *verify = user;
    uint64_t size = sizeof(struct verify_reader) +
                    verify->dataset->source->field_count * sizeof(struct stk_value);
    struct verify_reader *own = memory_zero(1, size);
    *state = own;
    return own ? stk_reader_new(verify->dataset, &own->reader, err) : fail_memory(err, size);
}

static void samples_end(void *state)
{
    struct verify_reader *own = state;
    if (own)
        stk_reader_free(own->reader);
    memory_free(own);
}

static stk_status samples_check(void *user, void *state, struct verify_span *span,
                                struct stk_error *err)
{
    struct verify *verify = user;
    struct verify_reader *own = state;
    for (uint64_t i = 0; i < span->count; i++) {
        struct stk_error error = {0};
        uint64_t sample;
        stk_status status = verify_sample(verify, own, span->first + i, &span->bytes, &error);
        if (!status)
            continue;
        if (verify_is_ours(status)) {
            *err = error;
            return status;
        }
        status = stk_dataset_sample(verify->dataset, span->first + i, &sample, err);
        if (!status)
            status = verify_note(span, sample, &error, err);
        if (status)
            return status;
    }
    return STK_OK;
}

/* ---- sums of whole objects ----------------------------------------------------------------- */

struct object_walk {
    const struct stk_context *context;
    struct context_timer timer;
    struct stk_progress progress;
};

static int object_step(void *user, uint64_t bytes)
{
    struct object_walk *walk = user;
    walk->progress.bytes += bytes;
    return context_progress(walk->context, &walk->timer, &walk->progress);
}

static stk_status verify_object(const struct dataset_source *source, uint32_t number,
                                const struct format_ops *format, const struct format_step *step,
                                struct stk_error *err)
{
    struct index_object object;
    struct scan *scan = NULL;
    stk_status status = index_object(source->index, number, &object, err);
    if (!status)
        status = scan_open(&scan, source->root, object.name, err);
    if (!status)
        status = format->check(scan, step, err);
    scan_close(scan);
    return status;
}

/* A bad object is told once, for no one sample of it. */
static stk_status verify_objects(struct stk_dataset *dataset, struct verify_told *told,
                                 struct stk_error *err)
{
    const struct dataset_source *source = dataset->source;
    const struct format_ops *format = format_find(index_format(source->index));
    struct object_walk walk = {.context = &source->context};
    const struct format_step step = {object_step, &walk};
    uint32_t count = index_object_count(source->index);
    if (!format || !format->check || dataset->parent)
        return STK_OK;
    walk.progress = (struct stk_progress){.what = "verifying", .unit = "files", .total = count};
    for (uint32_t i = 0; i < count; i++, walk.progress.done++) {
        struct stk_bad found = {.sample = STK_NOWHERE};
        stk_status status = verify_object(source, i, format, &step, &found.error);
        if (verify_is_ours(status) || status == STK_CANCELLED) {
            if (err)
                *err = found.error;
            return status;
        }
        told->count += status != STK_OK;
        if (status && told->bad)
            told->bad(told->user, &found);
    }
    return STK_OK;
}

static stk_status verify_samples(struct stk_dataset *dataset, uint32_t threads,
                                 struct verify_told *told, struct stk_error *err)
{
    struct verify verify = {.dataset = dataset, .by_chunk = !dataset->parent};
    struct verify_job job = {
        .context = &dataset->source->context,
        .total = dataset->samples,
        .unit = "samples",
        .user = &verify,
        .length = samples_length,
        .begin = samples_begin,
        .end = samples_end,
        .check = samples_check,
    };
    stk_status status = index_verify(dataset->source->index, err);
    if (!status)
        status = verify_crew_run(&job, threads, told, err);
    if (!status)
        status = verify_objects(dataset, told, err);
    return status;
}

stk_status stk_dataset_verify(struct stk_dataset *dataset, uint32_t threads,
                              void (*bad)(void *user, const struct stk_bad *bad), void *user,
                              uint64_t *bad_count, struct stk_error *err)
{
    struct verify_told told = {bad, user, 0};
    stk_status status = dataset->source->series ? series_verify(dataset, threads, &told, err)
                                                : verify_samples(dataset, threads, &told, err);
    *bad_count = told.count;
    return status;
}
