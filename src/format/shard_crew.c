#include "format/shard_crew.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/memory.h"
#include "format/format_tell.h"
#include "store/remote_settings.h"

#define CREW_MAX_THREADS 64u
#define CREW_AHEAD 2u /* parts a thread may be ahead of the join: bounds the memory */

/* A place for a shard; shard n sits at n % seat_count from its claim until it is joined. */
struct seat {
    struct shard shard;
    int done; /* under the crew's lock */
};

struct shard_crew {
    const struct format_input *input;
    struct index_builder *builder;
    shard_scan scan;
    struct format_tell tell;
    struct seat *seats;
    uint32_t seat_count, thread_count;
    int alone; /* no threads; set before any starts */
    pthread_t threads[CREW_MAX_THREADS];
    pthread_mutex_t lock;
    pthread_cond_t changed;   /* a shard is done, or a seat is free, or stop was set */
    uint64_t claimed, joined; /* under lock */
    _Atomic int stop;       /* written under lock; scans look at it without: they only end sooner */
    _Atomic uint64_t bytes; /* pairs with nothing: a sum for the progress bar */
};

static void seat_scan(struct shard_crew *crew, struct seat *seat, uint64_t number)
{
    struct shard *shard = &seat->shard;
    shard->crew = crew;
    shard->input = crew->input;
    shard->object = &crew->input->objects[number];
    shard->number = (uint32_t)number;
    shard->skipped = 0;
    shard->status = crew->scan(shard, &shard->error);
    if (shard->status && !shard->error.object[0]) {
        char path[4096];
        uint64_t offset = shard->error.offset;
        fail_at(&shard->error, format_path(crew->input, shard->object, path, sizeof(path)), offset);
    }
}

/* Asked by this crew's threads while they wait for the network. */
static int crew_is_over(void *user)
{
    struct shard_crew *crew = user;
    return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

static void *crew_thread(void *user)
{
    struct shard_crew *crew = user;
    remote_patience_set((struct remote_patience){crew_is_over, crew});
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (!crew->stop && crew->claimed < crew->input->object_count &&
               crew->claimed >= crew->joined + crew->seat_count)
            pthread_cond_wait(&crew->changed, &crew->lock);
        if (crew->stop || crew->claimed == crew->input->object_count)
            break;
        uint64_t number = crew->claimed++;
        struct seat *seat = &crew->seats[number % crew->seat_count];
        pthread_mutex_unlock(&crew->lock);
        seat_scan(crew, seat, number);
        pthread_mutex_lock(&crew->lock);
        seat->done = 1;
        pthread_cond_broadcast(&crew->changed);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

/* Fewer threads than wanted are no error: the caller's own does the work when there is none. */
static void crew_start(struct shard_crew *crew, uint32_t wanted)
{
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (crew->thread_count < wanted &&
           !pthread_create(&crew->threads[crew->thread_count], NULL, crew_thread, crew))
        crew->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (crew->thread_count == 0)
        crew->alone = 1;
}

static void crew_stop(struct shard_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->stop = 1;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->thread_count; i++)
        pthread_join(crew->threads[i], NULL);
}

/* Waits until the next shard in order is scanned, or scans it when there are no threads. */
static stk_status crew_wait(struct shard_crew *crew, struct seat *seat, struct stk_error *err)
{
    stk_status status = STK_OK;
    if (crew->alone) {
        seat_scan(crew, seat, crew->joined);
        return STK_OK;
    }
    pthread_mutex_lock(&crew->lock);
    while (!seat->done && !status) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&crew->changed, &crew->lock, &until);
        uint64_t done = crew->joined;
        pthread_mutex_unlock(&crew->lock); /* the hook may take its time */
        status = format_tell(&crew->tell, done, crew->bytes, err);
        pthread_mutex_lock(&crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

static stk_status crew_join(struct shard_crew *crew, struct seat *seat, struct stk_error *err)
{
    struct shard *shard = &seat->shard;
    if (shard->status) {
        if (err)
            *err = shard->error;
        return shard->status;
    }
    index_builder_skipped(crew->builder, shard->skipped);
    stk_status status = index_builder_join(crew->builder, shard->part, err);
    pthread_mutex_lock(&crew->lock);
    seat->done = 0;
    crew->joined++;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    if (!status)
        status = format_tell(&crew->tell, crew->joined, crew->bytes, err);
    return status;
}

static stk_status crew_seats(struct shard_crew *crew, struct stk_error *err)
{
    crew->seats = memory_zero(crew->seat_count, sizeof(*crew->seats));
    if (!crew->seats)
        return fail_memory(err, crew->seat_count * sizeof(*crew->seats));
    stk_status status = STK_OK;
    for (uint32_t i = 0; !status && i < crew->seat_count; i++)
        status = index_part_new(&crew->seats[i].shard.part, err);
    return status;
}

static stk_status crew_objects(struct shard_crew *crew, struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint64_t i = 0; !status && i < crew->input->object_count; i++) {
        const struct format_object *object = &crew->input->objects[i];
        uint32_t number;
        status = index_builder_object(crew->builder, object->name, object->size, object->version,
                                      &number, err);
    }
    return status;
}

stk_status crew_run(const struct format_input *input, struct index_builder *builder,
                    shard_scan scan, struct stk_error *err)
{
    struct shard_crew *crew = memory_zero(1, sizeof(*crew));
    if (!crew)
        return fail_memory(err, sizeof(*crew));
    uint64_t threads = input->threads < CREW_MAX_THREADS ? input->threads : CREW_MAX_THREADS;
    if (threads > input->object_count)
        threads = input->object_count;
    crew->input = input;
    crew->builder = builder;
    crew->scan = scan;
    crew->tell = (struct format_tell){.input = input, .unit = "shards"};
    crew->seat_count = threads > 1 ? (uint32_t)threads * CREW_AHEAD : 1;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->changed, NULL);
    stk_status status = crew_objects(crew, err);
    if (!status)
        status = crew_seats(crew, err);
    crew->alone = threads <= 1;
    if (!status && !crew->alone)
        crew_start(crew, (uint32_t)threads);
    while (!status && crew->joined < input->object_count) {
        struct seat *seat = &crew->seats[crew->joined % crew->seat_count];
        status = crew_wait(crew, seat, err);
        if (!status)
            status = crew_join(crew, seat, err);
    }
    crew_stop(crew);
    for (uint32_t i = 0; crew->seats && i < crew->seat_count; i++)
        index_part_free(crew->seats[i].shard.part);
    pthread_cond_destroy(&crew->changed);
    pthread_mutex_destroy(&crew->lock);
    memory_free(crew->seats);
    memory_free(crew);
    return status;
}

stk_status shard_tick(struct shard *shard, uint64_t bytes, struct stk_error *err)
{
    struct shard_crew *crew = shard->crew;
    uint64_t sum = atomic_fetch_add_explicit(&crew->bytes, bytes, memory_order_relaxed) + bytes;
    if (atomic_load_explicit(&crew->stop, memory_order_relaxed))
        return fail(err, STK_CANCELLED, "indexing was stopped");
    if (crew->alone)
        return format_tell(&crew->tell, crew->joined, sum, err);
    return STK_OK;
}

void shard_notice(struct shard *shard, const char *words)
{
    const struct stk_hooks *hooks = shard->input->hooks;
    char text[1024];
    if (!hooks->notice)
        return;
    snprintf(text, sizeof(text), "%s: %s", shard->object->name, words);
    hooks->notice(hooks->user, text);
}
