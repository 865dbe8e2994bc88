#include "dataset/verify_crew.h"

#include <pthread.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "store/remote_settings.h"
#include "work/cores.h"

/* Workers take spans in order and note what is bad; the caller's thread hands it out in the same
 * order. A ring of spans bounds how far ahead the workers run. */

#define CREW_MAX_THREADS 256
#define CREW_AHEAD 4 /* spans in the ring for each thread */

struct crew {
    const struct verify_job *job;
    uint32_t thread_count;
    pthread_t threads[CREW_MAX_THREADS];
    pthread_mutex_t lock; /* of all below, and of span.done */
    pthread_cond_t moved;
    struct verify_span *ring;
    uint64_t ring_size;
    uint64_t next;          /* the unit that the next span begins at */
    uint64_t taken, handed; /* spans given to workers, spans handed out */
    int all_taken, stop;
    stk_status status; /* what ended it, if not something bad */
    struct stk_error error;
};

int verify_is_ours(stk_status status)
{
    return status == STK_MEMORY || status == STK_RESOURCE;
}

stk_status verify_note(struct verify_span *span, uint64_t sample, const struct stk_error *error,
                       struct stk_error *err)
{
    if (span->bad_count == span->bad_cap) {
        uint64_t cap = span->bad_cap ? span->bad_cap * 2 : 4;
        struct stk_bad *grown = memory_grow(span->bad, cap * sizeof *grown);
        if (!grown)
            return fail_memory(err, cap * sizeof *grown);
        span->bad = grown;
        span->bad_cap = cap;
    }
    span->bad[span->bad_count++] = (struct stk_bad){.sample = sample, .error = *error};
    return STK_OK;
}

/* ---- the workers --------------------------------------------------------------------------- */

/* The next span, or NULL when there is none. */
static struct verify_span *take_span(struct crew *crew)
{
    struct verify_span *span = NULL;
    pthread_mutex_lock(&crew->lock);
    while (!crew->stop && !crew->all_taken && crew->taken - crew->handed == crew->ring_size)
        pthread_cond_wait(&crew->moved, &crew->lock);
    if (!crew->stop && !crew->all_taken) {
        span = &crew->ring[crew->taken++ % crew->ring_size];
        span->first = crew->next;
        span->count = crew->job->length(crew->job->user, crew->next);
        span->bad_count = span->bytes = 0;
        span->done = 0;
        crew->next += span->count;
        crew->all_taken = crew->next == crew->job->total;
    }
    pthread_mutex_unlock(&crew->lock);
    return span;
}

static void end_span(struct crew *crew, struct verify_span *span, stk_status status,
                     const struct stk_error *error)
{
    pthread_mutex_lock(&crew->lock);
    if (span)
        span->done = 1;
    if (status && !crew->status) {
        crew->status = status;
        crew->error = *error;
    }
    crew->stop |= status != STK_OK;
    pthread_cond_broadcast(&crew->moved);
    pthread_mutex_unlock(&crew->lock);
}

/* Asked by this crew's threads while they wait for the network. */
static int crew_is_over(void *user)
{
    struct crew *crew = user;
    pthread_mutex_lock(&crew->lock);
    int stop = crew->stop;
    pthread_mutex_unlock(&crew->lock);
    return stop;
}

static void *crew_work(void *user)
{
    struct crew *crew = user;
    remote_patience_set((struct remote_patience){crew_is_over, crew});
    const struct verify_job *job = crew->job;
    struct stk_error error = {0};
    void *state = NULL;
    stk_status status = job->begin(job->user, &state, &error);
    if (status)
        end_span(crew, NULL, status, &error);
    for (struct verify_span *span; !status && (span = take_span(crew));) {
        status = job->check(job->user, state, span, &error);
        end_span(crew, span, status, &error);
    }
    job->end(state);
    return NULL;
}

/* ---- the caller ---------------------------------------------------------------------------- */

/* Waits for the next span in order; NULL when all are handed out or the work has stopped. */
static struct verify_span *await_span(struct crew *crew)
{
    struct verify_span *span = &crew->ring[crew->handed % crew->ring_size];
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        int open = crew->handed < crew->taken;
        if (crew->stop || (open && span->done) || (!open && crew->all_taken))
            break;
        pthread_cond_wait(&crew->moved, &crew->lock);
    }
    if (crew->stop || crew->handed == crew->taken)
        span = NULL;
    pthread_mutex_unlock(&crew->lock);
    return span;
}

static void release_span(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->handed++;
    pthread_cond_broadcast(&crew->moved);
    pthread_mutex_unlock(&crew->lock);
}

static stk_status hand_out(struct crew *crew, struct verify_told *told, struct stk_error *err)
{
    const struct verify_job *job = crew->job;
    struct stk_progress progress = {.what = "verifying", .unit = job->unit, .total = job->total};
    struct context_timer timer = {0};
    stk_status status = STK_OK;
    for (struct verify_span *span; !status && (span = await_span(crew)); release_span(crew)) {
        for (uint64_t i = 0; i < span->bad_count && told->bad; i++)
            told->bad(told->user, &span->bad[i]);
        told->count += span->bad_count;
        progress.done += span->count;
        progress.bytes += span->bytes;
        if (context_progress(job->context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "stopped on request");
    }
    return status;
}

static stk_status start(struct crew *crew, uint32_t wanted, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < wanted && !status; i++) {
        struct cores_place place = {.number = i, .name = "stoker-verify"};
        status = cores_start(&crew->threads[i], crew_work, crew, &place, err);
        if (!status)
            crew->thread_count++;
    }
    return crew->thread_count ? STK_OK : status; /* fewer threads will do */
}

static void join(struct crew *crew, int stop)
{
    pthread_mutex_lock(&crew->lock);
    crew->stop |= stop;
    pthread_cond_broadcast(&crew->moved);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->thread_count; i++)
        pthread_join(crew->threads[i], NULL);
}

static stk_status run(struct crew *crew, uint32_t threads, struct verify_told *told,
                      struct stk_error *err)
{
    crew->ring = memory_zero(crew->ring_size, sizeof *crew->ring);
    if (!crew->ring)
        return fail_memory(err, crew->ring_size * sizeof *crew->ring);
    stk_status status = start(crew, threads, err);
    if (!status)
        status = hand_out(crew, told, err);
    join(crew, status != STK_OK);
    if (!status && crew->status) {
        status = crew->status;
        if (err)
            *err = crew->error;
    }
    for (uint64_t i = 0; i < crew->ring_size; i++)
        memory_free(crew->ring[i].bad);
    memory_free(crew->ring);
    return status;
}

stk_status verify_crew_run(const struct verify_job *job, uint32_t threads, struct verify_told *told,
                           struct stk_error *err)
{
    struct crew crew = {.job = job, .all_taken = !job->total};
    if (!threads)
        threads = cores_usable();
    if (threads > CREW_MAX_THREADS)
        threads = CREW_MAX_THREADS;
    crew.ring_size = (uint64_t)threads * CREW_AHEAD;
    pthread_mutex_init(&crew.lock, NULL);
    pthread_cond_init(&crew.moved, NULL);
    stk_status status = run(&crew, threads, told, err);
    pthread_cond_destroy(&crew.moved);
    pthread_mutex_destroy(&crew.lock);
    return status;
}
