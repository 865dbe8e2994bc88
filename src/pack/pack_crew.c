#include "pack/pack_crew.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/context.h"
#include "base/fail.h"
#include "work/cores.h"

struct pack_crew {
    const struct pack_crew_job *job;
    pthread_mutex_t lock;
    pthread_cond_t joined_one; /* `joined` rose, or `status` was set */
    uint64_t claimed, joined;  /* steps; under lock */
    stk_status status;         /* of step `failed`; under lock */
    uint64_t failed;
    struct stk_error error;
    _Atomic uint64_t done; /* pairs with nothing: a sum for the bar */
    struct context_timer timer;
};

struct pack_worker {
    struct pack_crew *crew;
    uint32_t number;
    pthread_t thread;
};

uint32_t pack_crew_threads(uint32_t asked)
{
    uint32_t threads = asked ? asked : cores_usable();

    return threads < PACK_CREW_MAX ? threads : PACK_CREW_MAX;
}

/* Under lock. Every step below a claimed one was claimed too and runs to its end, so that the
 * lowest failure is always found. */
static void crew_failed(struct pack_crew *crew, uint64_t step, stk_status status,
                        const struct stk_error *error)
{
    if (crew->status && crew->failed <= step)
        return;
    crew->status = status;
    crew->failed = step;
    crew->error = *error;
    pthread_cond_broadcast(&crew->joined_one);
}

/* Not 0: *step is this worker's. */
static int crew_claim(struct pack_crew *crew, uint32_t worker, uint64_t *step)
{
    struct stk_error error = {0};
    stk_status status;

    pthread_mutex_lock(&crew->lock);
    *step = crew->claimed;
    status = crew->status ? STK_END : crew->job->claim(crew->job->user, worker, *step, &error);
    if (!status)
        crew->claimed++;
    else if (status != STK_END)
        crew_failed(crew, *step, status, &error);
    pthread_mutex_unlock(&crew->lock);
    return status == STK_OK;
}

static void crew_join(struct pack_crew *crew, uint32_t worker, uint64_t step)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->joined != step && !crew->status)
        pthread_cond_wait(&crew->joined_one, &crew->lock);
    if (!crew->status) {
        crew->job->join(crew->job->user, worker, step);
        crew->joined++;
        pthread_cond_broadcast(&crew->joined_one);
    }
    pthread_mutex_unlock(&crew->lock);
}

/* The user's wish to stop counts as a failure behind all steps. */
static void crew_tell(struct pack_crew *crew)
{
    const struct pack_crew_job *job = crew->job;
    struct stk_progress progress = {.what = job->what, .unit = job->unit, .total = job->total};
    struct stk_error error;

    progress.done = job->before + atomic_load_explicit(&crew->done, memory_order_relaxed);
    if (!context_progress(job->context, &crew->timer, &progress))
        return;
    fail(&error, STK_CANCELLED, "%s was stopped", job->what);
    pthread_mutex_lock(&crew->lock);
    crew_failed(crew, UINT64_MAX, STK_CANCELLED, &error);
    pthread_mutex_unlock(&crew->lock);
}

static void crew_work(struct pack_crew *crew, uint32_t worker)
{
    const struct pack_crew_job *job = crew->job;
    uint64_t step;

    while (crew_claim(crew, worker, &step)) {
        struct stk_error error = {0};
        uint64_t done = 0;
        stk_status status = job->run(job->user, worker, step, &done, &error);
        atomic_fetch_add_explicit(&crew->done, done, memory_order_relaxed);
        if (status) {
            pthread_mutex_lock(&crew->lock);
            crew_failed(crew, step, status, &error);
            pthread_mutex_unlock(&crew->lock);
        } else if (job->join) {
            crew_join(crew, worker, step);
        }
        if (worker == 0)
            crew_tell(crew);
    }
}

static void *worker_thread(void *user)
{
    struct pack_worker *worker = user;

    crew_work(worker->crew, worker->number);
    return NULL;
}

stk_status pack_crew_run(const struct pack_crew_job *job, struct stk_error *err)
{
    struct pack_crew crew = {
        .job = job, .lock = PTHREAD_MUTEX_INITIALIZER, .joined_one = PTHREAD_COND_INITIALIZER};
    struct pack_worker workers[PACK_CREW_MAX];
    uint32_t started = 1; /* the caller is worker 0 */

    for (; started < job->threads && started < PACK_CREW_MAX; started++) {
        const struct cores_place place = {.number = started, .name = "stoker-pack"};
        workers[started] = (struct pack_worker){.crew = &crew, .number = started};
        if (cores_start(&workers[started].thread, worker_thread, &workers[started], &place, NULL))
            break; /* fewer do it as well */
    }
    crew_work(&crew, 0);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (!crew.status) /* the last steps may have been another's */
        crew_tell(&crew);
    pthread_mutex_destroy(&crew.lock);
    pthread_cond_destroy(&crew.joined_one);
    if (crew.status && err)
        *err = crew.error;
    return crew.status;
}
