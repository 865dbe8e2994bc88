#include "stoker/dataset.h"

#include <pthread.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/dataset_state.h"
#include "format/format.h"
#include "store/scan.h"
#include "work/cores.h"

/* Workers take spans of samples in order and note what is bad; the caller's thread hands it out in
 * the order of the samples. A ring of spans bounds how far ahead the workers run. */

#define VERIFY_SPAN 64 /* samples, where no chunk says otherwise */
#define VERIFY_MAX_THREADS 256
#define VERIFY_AHEAD 4 /* spans in the ring for each thread */

struct span {
    uint64_t first, count, bytes;
    struct stk_bad *bad;
    uint64_t bad_count, bad_cap;
    int done; /* under the lock */
};

struct verify {
    struct stk_dataset *dataset;
    int by_chunk; /* a span is a chunk's samples: it is decoded once */
    uint32_t thread_count;
    pthread_t threads[VERIFY_MAX_THREADS];
    pthread_mutex_t lock; /* of all below, and of span.done */
    pthread_cond_t moved;
    struct span *ring;
    uint64_t ring_size;
    uint64_t next_sample, next_chunk; /* where the next span begins */
    uint64_t taken, handed;           /* spans given to workers, spans handed out */
    int all_taken, stop;
    stk_status status; /* what ended it, if not a bad sample */
    struct stk_error error;
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

static stk_status verify_sample(struct verify *verify, struct stk_reader *reader, uint64_t position,
                                struct stk_value *values, uint64_t *bytes, struct stk_error *err)
{
    const struct dataset_source *source = verify->dataset->source;
    stk_status status = stk_reader_read(reader, position, values, err);
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

static stk_status span_add(struct span *span, uint64_t sample, const struct stk_error *error)
{
    if (span->bad_count == span->bad_cap) {
        uint64_t cap = span->bad_cap ? span->bad_cap * 2 : 4;
        struct stk_bad *grown = memory_grow(span->bad, cap * sizeof *grown);
        if (!grown)
            return STK_MEMORY;
        span->bad = grown;
        span->bad_cap = cap;
    }
    span->bad[span->bad_count++] = (struct stk_bad){.sample = sample, .error = *error};
    return STK_OK;
}

/* The machine is at fault, not the sample. */
static int is_ours(stk_status status)
{
    return status == STK_MEMORY || status == STK_RESOURCE;
}

static stk_status verify_span(struct verify *verify, struct stk_reader *reader, struct span *span,
                              struct stk_value *values, struct stk_error *err)
{
    for (uint64_t i = 0; i < span->count; i++) {
        struct stk_error error = {0};
        uint64_t sample;
        stk_status status =
            verify_sample(verify, reader, span->first + i, values, &span->bytes, &error);
        if (!status)
            continue;
        if (is_ours(status)) {
            *err = error;
            return status;
        }
        status = stk_dataset_sample(verify->dataset, span->first + i, &sample, err);
        if (!status && span_add(span, sample, &error))
            status = fail_memory(err, sizeof error);
        if (status)
            return status;
    }
    return STK_OK;
}

/* ---- the workers --------------------------------------------------------------------------- */

/* How many samples the next span has: up to the end of its chunk, where there is one. */
static uint64_t span_length(struct verify *verify)
{
    const struct index *index = verify->dataset->source->index;
    uint64_t left = verify->dataset->samples - verify->next_sample;
    struct chunk chunk;
    while (verify->by_chunk && verify->next_chunk < index_chunk_count(index)) {
        if (index_chunk(index, (uint32_t)verify->next_chunk, &chunk, NULL) || !chunk.count)
            break;
        uint64_t end = chunk.first + chunk.count;
        if (end > verify->next_sample)
            return end - verify->next_sample < left ? end - verify->next_sample : left;
        verify->next_chunk++;
    }
    return left < VERIFY_SPAN ? left : VERIFY_SPAN;
}

/* The next span, or NULL when there is none. */
static struct span *take_span(struct verify *verify)
{
    struct span *span = NULL;
    pthread_mutex_lock(&verify->lock);
    while (!verify->stop && !verify->all_taken &&
           verify->taken - verify->handed == verify->ring_size)
        pthread_cond_wait(&verify->moved, &verify->lock);
    if (!verify->stop && !verify->all_taken) {
        span = &verify->ring[verify->taken++ % verify->ring_size];
        span->first = verify->next_sample;
        span->count = span_length(verify);
        span->bad_count = span->bytes = 0;
        span->done = 0;
        verify->next_sample += span->count;
        verify->all_taken = verify->next_sample == verify->dataset->samples;
    }
    pthread_mutex_unlock(&verify->lock);
    return span;
}

static void end_span(struct verify *verify, struct span *span, stk_status status,
                     const struct stk_error *error)
{
    pthread_mutex_lock(&verify->lock);
    if (span)
        span->done = 1;
    if (status && !verify->status) {
        verify->status = status;
        verify->error = *error;
    }
    verify->stop |= status != STK_OK;
    pthread_cond_broadcast(&verify->moved);
    pthread_mutex_unlock(&verify->lock);
}

static void *verify_work(void *user)
{
    struct verify *verify = user;
    struct stk_reader *reader = NULL;
    struct stk_error error = {0};
    uint32_t fields = verify->dataset->source->field_count;
    struct stk_value *values = memory_zero(fields, sizeof *values);
    stk_status status = values ? stk_reader_new(verify->dataset, &reader, &error)
                               : fail_memory(&error, fields * sizeof *values);
    if (status)
        end_span(verify, NULL, status, &error);
    for (struct span *span; !status && (span = take_span(verify));) {
        status = verify_span(verify, reader, span, values, &error);
        end_span(verify, span, status, &error);
    }
    stk_reader_free(reader);
    memory_free(values);
    return NULL;
}

/* ---- the caller ---------------------------------------------------------------------------- */

/* Waits for the next span in order; NULL when all are handed out or the work has stopped. */
static struct span *await_span(struct verify *verify)
{
    struct span *span = &verify->ring[verify->handed % verify->ring_size];
    pthread_mutex_lock(&verify->lock);
    for (;;) {
        int open = verify->handed < verify->taken;
        if (verify->stop || (open && span->done) || (!open && verify->all_taken))
            break;
        pthread_cond_wait(&verify->moved, &verify->lock);
    }
    if (verify->stop || verify->handed == verify->taken)
        span = NULL;
    pthread_mutex_unlock(&verify->lock);
    return span;
}

static void release_span(struct verify *verify)
{
    pthread_mutex_lock(&verify->lock);
    verify->handed++;
    pthread_cond_broadcast(&verify->moved);
    pthread_mutex_unlock(&verify->lock);
}

static stk_status hand_out(struct verify *verify,
                           void (*bad)(void *user, const struct stk_bad *bad), void *user,
                           uint64_t *bad_count, struct stk_error *err)
{
    const struct stk_context *context = &verify->dataset->source->context;
    struct stk_progress progress = {
        .what = "verifying", .unit = "samples", .total = verify->dataset->samples};
    struct context_timer timer = {0};
    stk_status status = STK_OK;
    for (struct span *span; !status && (span = await_span(verify)); release_span(verify)) {
        for (uint64_t i = 0; i < span->bad_count && bad; i++)
            bad(user, &span->bad[i]);
        *bad_count += span->bad_count;
        progress.done += span->count;
        progress.bytes += span->bytes;
        if (context_progress(context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "stopped on request");
    }
    return status;
}

static stk_status start(struct verify *verify, uint32_t wanted, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < wanted && !status; i++) {
        struct cores_place place = {.number = i, .name = "stoker-verify"};
        status = cores_start(&verify->threads[i], verify_work, verify, &place, err);
        if (!status)
            verify->thread_count++;
    }
    return verify->thread_count ? STK_OK : status; /* fewer threads will do */
}

static void join(struct verify *verify, int stop)
{
    pthread_mutex_lock(&verify->lock);
    verify->stop |= stop;
    pthread_cond_broadcast(&verify->moved);
    pthread_mutex_unlock(&verify->lock);
    for (uint32_t i = 0; i < verify->thread_count; i++)
        pthread_join(verify->threads[i], NULL);
}

static stk_status run(struct verify *verify, uint32_t threads,
                      void (*bad)(void *user, const struct stk_bad *bad), void *user,
                      uint64_t *bad_count, struct stk_error *err)
{
    verify->ring = memory_zero(verify->ring_size, sizeof *verify->ring);
    if (!verify->ring)
        return fail_memory(err, verify->ring_size * sizeof *verify->ring);
    stk_status status = start(verify, threads, err);
    if (!status)
        status = hand_out(verify, bad, user, bad_count, err);
    join(verify, status != STK_OK);
    if (!status && verify->status) {
        status = verify->status;
        if (err)
            *err = verify->error;
    }
    for (uint64_t i = 0; i < verify->ring_size; i++)
        memory_free(verify->ring[i].bad);
    memory_free(verify->ring);
    return status;
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
static stk_status verify_objects(struct stk_dataset *dataset,
                                 void (*bad)(void *user, const struct stk_bad *bad), void *user,
                                 uint64_t *bad_count, struct stk_error *err)
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
        if (is_ours(status) || status == STK_CANCELLED) {
            if (err)
                *err = found.error;
            return status;
        }
        *bad_count += status != STK_OK;
        if (status && bad)
            bad(user, &found);
    }
    return STK_OK;
}

stk_status stk_dataset_verify(struct stk_dataset *dataset, uint32_t threads,
                              void (*bad)(void *user, const struct stk_bad *bad), void *user,
                              uint64_t *bad_count, struct stk_error *err)
{
    struct verify verify = {.dataset = dataset, .all_taken = !dataset->samples};
    *bad_count = 0;
    stk_status status = index_verify(dataset->source->index, err);
    if (status)
        return status;
    if (!threads)
        threads = cores_usable();
    if (threads > VERIFY_MAX_THREADS)
        threads = VERIFY_MAX_THREADS;
    verify.by_chunk = !dataset->parent;
    verify.ring_size = (uint64_t)threads * VERIFY_AHEAD;
    pthread_mutex_init(&verify.lock, NULL);
    pthread_cond_init(&verify.moved, NULL);
    status = run(&verify, threads, bad, user, bad_count, err);
    if (!status)
        status = verify_objects(dataset, bad, user, bad_count, err);
    pthread_cond_destroy(&verify.moved);
    pthread_mutex_destroy(&verify.lock);
    return status;
}
