/* sim_stream.c -- streams: each is a thread with a queue. It runs its operations in order, each
 * after a delay, so that whoever forgets to wait finds the wrong bytes. */
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "simulator.h"

static pthread_key_t per_thread_key;
static pthread_once_t per_thread_once = PTHREAD_ONCE_INIT;
static _Thread_local struct gpu_stream *per_thread[SIM_DEVICES];

uint64_t sim_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* --- the thread ------------------------------------------------------------------------------- */

static void stream_unlist(struct gpu_stream *stream)
{
    struct gpu_stream **link = &simulator.streams;
    while (*link != stream)
        link = &(*link)->next;
    *link = stream->next;
}

struct gpu_stream *sim_stream_keep(struct gpu_stream *stream)
{
    stream->references++;
    return stream;
}

void sim_stream_release(struct gpu_stream *stream)
{
    if (!stream || --stream->references)
        return;
    pthread_cond_destroy(&stream->arrived);
    free(stream);
}

/* Without the lock. */
static void operation_run(struct gpu_stream *stream, struct sim_operation *operation)
{
    uint64_t most = simulator.delay_us * 1000;
    if (most) {
        struct timespec pause = {0, 0};
        uint64_t delay = sim_random(&stream->random) % (most + 1);
        pause.tv_sec = (time_t)(delay / 1000000000);
        pause.tv_nsec = (long)(delay % 1000000000);
        nanosleep(&pause, NULL);
    }
    operation->backwards = (int)(sim_random(&stream->random) >> 63);
    operation->run(operation);
}

static void stream_step(struct gpu_stream *stream)
{
    struct sim_operation *operation = stream->first;
    while (operation->wait && operation->wait->finished < operation->wait_sequence)
        pthread_cond_wait(&simulator.progress, &simulator.lock);
    sim_stream_release(operation->wait);
    if (operation->run && !stream->context->lost) {
        int error = sim_check_operation(operation); /* memory may be freed since the call */
        if (error && !stream->context->lost)
            stream->context->lost = error;
        if (!error) {
            /* The lock is not taken again between the delay and the work: it would order what
             * streams do without an event, and the thread sanitizer would miss the race. */
            pthread_mutex_unlock(&simulator.lock);
            operation_run(stream, operation);
            pthread_mutex_lock(&simulator.lock);
        }
    }
    stream->first = operation->next;
    if (!stream->first)
        stream->last = NULL;
    stream->finished = operation->sequence;
    pthread_cond_broadcast(&simulator.progress);
    if (operation->free_data)
        free(operation->data);
    free(operation);
}

static void *stream_main(void *data)
{
    struct gpu_stream *stream = data;
    prctl(PR_SET_TIMERSLACK, 1UL); /* short delays stay short */
    pthread_mutex_lock(&simulator.lock);
    while (stream->first || !stream->closed) {
        if (stream->first)
            stream_step(stream);
        else
            pthread_cond_wait(&stream->arrived, &simulator.lock);
    }
    stream_unlist(stream);
    sim_stream_release(stream);
    pthread_mutex_unlock(&simulator.lock);
    return NULL;
}

static struct gpu_stream *stream_new(struct cuda_context *context, int made, int blocking)
{
    struct gpu_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->number = ++simulator.streams_begun;
    stream->references = 2; /* the handle and the thread */
    stream->made = made;
    stream->blocking = blocking;
    stream->random = simulator.seed * 1000003 + stream->number;
    pthread_cond_init(&stream->arrived, NULL);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    int error = pthread_create(&thread, &detached, stream_main, stream);
    pthread_attr_destroy(&detached);
    if (error) {
        pthread_cond_destroy(&stream->arrived);
        free(stream);
        return NULL;
    }
    stream->next = simulator.streams;
    simulator.streams = stream;
    return stream;
}

/* What is in it still runs; then its thread ends. */
static void stream_close(struct gpu_stream *stream)
{
    stream->closed = 1;
    pthread_cond_signal(&stream->arrived);
    sim_stream_release(stream);
}

/* --- handles ---------------------------------------------------------------------------------- */

static void per_thread_end(void *streams)
{
    pthread_mutex_lock(&simulator.lock);
    for (int i = 0; i < SIM_DEVICES && !simulator.forked; i++)
        if (((struct gpu_stream **)streams)[i])
            stream_close(((struct gpu_stream **)streams)[i]);
    pthread_mutex_unlock(&simulator.lock);
}

static void per_thread_open(void)
{
    pthread_key_create(&per_thread_key, per_thread_end);
}

static struct gpu_stream *per_thread_find(struct cuda_context *context)
{
    struct gpu_stream **stream = &per_thread[context->number];
    pthread_once(&per_thread_once, per_thread_open);
    if (!*stream)
        *stream = stream_new(context, 0, 1);
    if (*stream)
        pthread_setspecific(per_thread_key, per_thread);
    return *stream;
}

int sim_stream_find(struct sim_call *call, struct gpu_stream *handle, struct gpu_stream **out)
{
    struct cuda_context *context = call->context;
    if (!handle || handle == CUDA_STREAM_LEGACY) {
        if (!context->legacy)
            context->legacy = stream_new(context, 0, 0);
        *out = context->legacy;
        return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (handle == CUDA_STREAM_PER_THREAD) {
        *out = per_thread_find(context);
        return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    for (*out = simulator.streams; *out; *out = (*out)->next)
        if (*out == handle && !handle->closed && handle->context == context)
            return CUDA_SUCCESS;
    sim_complain("%s: %p is no stream of this context", call->name, (void *)handle);
    return CUDA_ERROR_INVALID_HANDLE;
}

/* --- the queue -------------------------------------------------------------------------------- */

static int queue_push(struct gpu_stream *stream, const struct sim_operation *model)
{
    struct sim_operation *operation = malloc(sizeof *operation);
    if (!operation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *operation = *model;
    operation->next = NULL;
    operation->sequence = ++stream->issued;
    if (operation->wait)
        sim_stream_keep(operation->wait);
    if (stream->last)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    pthread_cond_signal(&stream->arrived);
    return CUDA_SUCCESS;
}

static int queue_wait_for(struct gpu_stream *stream, struct gpu_stream *other)
{
    struct sim_operation wait = {.wait = other, .wait_sequence = other->issued};
    return other->finished < other->issued ? queue_push(stream, &wait) : CUDA_SUCCESS;
}

/* The legacy stream waits for all blocking ones, and they for it. */
static int queue_wait_implicitly(struct gpu_stream *stream)
{
    struct gpu_stream *legacy = stream->context->legacy;
    if (stream->blocking && legacy)
        return queue_wait_for(stream, legacy);
    int error = CUDA_SUCCESS;
    struct gpu_stream *other = stream == legacy ? simulator.streams : NULL;
    for (; other && !error; other = other->next)
        if (other->blocking && other->context == stream->context)
            error = queue_wait_for(stream, other);
    return error;
}

int sim_issue(struct gpu_stream *stream, const struct sim_operation *operation, uint64_t *sequence)
{
    int error = sim_capture_check_issue(stream);
    if (!error && !stream->capture)
        error = queue_wait_implicitly(stream);
    if (!error && !stream->capture)
        error = queue_push(stream, operation);
    else if (operation->free_data)
        free(operation->data);
    if (sequence)
        *sequence = stream->issued;
    return error;
}

void sim_stream_wait(struct gpu_stream *stream, uint64_t sequence)
{
    sim_stream_keep(stream);
    while (stream->finished < sequence)
        pthread_cond_wait(&simulator.progress, &simulator.lock);
    sim_stream_release(stream);
}

void sim_drain(void)
{
    uint64_t done = 0; /* streams with lower numbers; the list may change while we wait */
    for (;;) {
        struct gpu_stream *next = NULL;
        for (struct gpu_stream *stream = simulator.streams; stream; stream = stream->next)
            if (stream->number > done && (!next || stream->number < next->number))
                next = stream;
        if (!next)
            return;
        done = next->number;
        sim_stream_wait(next, next->issued);
    }
}

/* --- the driver's functions ------------------------------------------------------------------- */

int cuStreamCreateWithPriority(struct gpu_stream **stream, unsigned flags, int priority)
{
    struct sim_call call;
    (void)priority; /* out of range is clamped, and all threads are equal */
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        if (!stream || flags > CUDA_STREAM_NON_BLOCKING)
            call.result = CUDA_ERROR_INVALID_VALUE;
        else if (!(*stream = stream_new(call.context, 1, !flags)))
            call.result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    return sim_leave(&call);
}

int cuStreamDestroy_v2(struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_FREES)) {
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result && !found->made)
            call.result = CUDA_ERROR_INVALID_HANDLE;
        if (!call.result)
            stream_close(found);
    }
    return sim_leave(&call);
}

int cuStreamSynchronize(struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result)
            call.result = sim_capture_check_sync(found);
        if (!call.result) {
            sim_stream_wait(found, found->issued);
            call.result = call.context->lost;
        }
    }
    return sim_leave(&call);
}

static void operation_call(struct sim_operation *operation)
{
    operation->function(operation->data);
}

int sim_cuda_call_in_stream(struct gpu_stream *stream, void (*function)(void *), void *data)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct sim_operation operation = {.name = call.name,
                                          .run = operation_call,
                                          .function = function,
                                          .data = data,
                                          .free_data = 1};
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result) {
            call.result = sim_issue(found, &operation, NULL);
            data = NULL;
        }
        free(data);
    } else {
        free(data);
    }
    return sim_leave(&call);
}
