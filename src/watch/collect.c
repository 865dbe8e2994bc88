#include "watch/collect.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "watch/device_sample.h"
#include "work/cores.h"

#define ROUND_NS UINT64_C(50000000)
/* Every so many rounds. */
#define LIVE_EVERY 5
#define DEVICE_EVERY 10
#define LIST_EVERY 10
#define SETTLE_EVERY 20
#define PCIE_EVERY 40
#define ROOM_LEAST ((uint64_t)1 << 20)
/* Writers look for the end of watching once a second. */
#define STOP_PATIENCE_NS UINT64_C(1600000000)

struct collect {
    struct collect_options options;
    struct ring_set *rings;
    struct host_sample host;
    struct device_sample devices;
    int devices_known;
    uint64_t device_memory;
    uint64_t round, settled;
    uint64_t stopped; /* when the time to watch was over; 0: it is not */
    uint64_t ended;
    uint64_t cpu;
    char cupti[32];
    char *notices[COLLECT_NOTICES];
    size_t notice_count;
    stk_status failed; /* of attribution, which then hears no more */
    struct stk_error fault;
    pthread_t thread;
    int started, over;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int stop; /* under lock */
};

/* --- what is seen goes on -----------------------------------------------------------------------
 */

static void hand_over(struct collect *collect, const struct watch_event *event)
{
    if (collect->stopped && event->start > collect->stopped)
        return;
    if (!collect->failed)
        collect->failed = attribution_take(collect->options.attribution, event, &collect->fault);
    if (collect->options.trace)
        trace_out_take(collect->options.trace, event);
}

static void take_event(void *user, const struct watch_event *event)
{
    struct collect *collect = user;
    if (event->type == EVENT_RECORD && event->record->type == RECORD_PROCESS) {
        const struct record_text *text = (const struct record_text *)event->record;
        host_sample_process(&collect->host, event->pid, text->text, text->len,
                            (uint64_t)clock_now());
    } else if (event->type == EVENT_RECORD && event->record->type == RECORD_GPU) {
        const struct record_gpu *gpu = (const struct record_gpu *)event->record;
        if (gpu->state == GPU_RECORDS && gpu->len > 0)
            snprintf(collect->cupti, sizeof collect->cupti, "%.*s", (int)gpu->len, gpu->text);
    }
    hand_over(collect, event);
}

static void take_notice(void *user, const char *sentence)
{
    struct collect *collect = user;
    for (size_t i = 0; i < collect->notice_count; i++)
        if (!strcmp(collect->notices[i], sentence))
            return;
    if (collect->notice_count == COLLECT_NOTICES)
        return;
    char *copy = memory_text(sentence, strlen(sentence));
    if (copy)
        collect->notices[collect->notice_count++] = copy;
}

static void take_ring(void *user, uint32_t pid, uint32_t parent)
{
    struct collect *collect = user;
    (void)parent;
    host_sample_ring(&collect->host, pid, (uint64_t)clock_now());
}

static int alive(void *user, uint32_t pid)
{
    struct collect *collect = user;
    return host_sample_alive(&collect->host, pid);
}

/* --- rounds -------------------------------------------------------------------------------------
 */

static void look_at_devices(struct collect *collect, uint64_t now)
{
    if (!collect->devices_known) { /* here, not earlier: the command must not wait for NVML */
        device_sample_open(&collect->devices, collect->options.visible);
        collect->devices_known = 1;
    }
    if (collect->round % PCIE_EVERY == 0)
        device_sample_pcie(&collect->devices);
    collect->device_memory = 0;
    for (uint32_t i = 0; i < collect->devices.count; i++) {
        struct watch_device device;
        if (!device_sample_take(&collect->devices, i, &device))
            continue;
        struct watch_event event = {
            .type = EVENT_DEVICE, .start = now, .end = now, .device = &device};
        collect->device_memory += device.memory_used_bytes;
        hand_over(collect, &event);
    }
}

/* A process that finds no room for its ring says nothing, so it is said here. */
static void look_at_room(struct collect *collect)
{
    struct statvfs about;
    if (fstatvfs(collect->options.folder, &about) || about.f_blocks == 0 ||
        (uint64_t)about.f_bavail * about.f_frsize >= ROOM_LEAST)
        return;
    take_notice(collect, "The place where watched processes write what they tell was full: what "
                         "some of them did is missing. Free memory in /dev/shm, or set TMPDIR.");
}

static void settle(struct collect *collect, uint64_t upto)
{
    if (collect->failed || upto <= collect->settled)
        return;
    collect->settled = upto;
    collect->failed = attribution_settle(collect->options.attribution, upto, &collect->fault);
}

static void tell_live(struct collect *collect, uint64_t now)
{
    struct stk_watch_now seen = {.busy = -1, .samples_s = -1, .waits = ""};
    if (!collect->options.live)
        return;
    attribution_now(collect->options.attribution, &seen);
    seen.seconds = 1e-9 * (double)(now - collect->options.begun);
    seen.memory_bytes = host_sample_rss(&collect->host);
    seen.gpu_memory_bytes = collect->device_memory;
    collect->options.live(collect->options.user, &seen);
}

/* The time to watch is over: processes are told by a file, and what they still say is awaited. */
static void end_watching(struct collect *collect, uint64_t now)
{
    if (!collect->stopped) {
        host_sample_finish(&collect->host, now);
        collect->stopped = collect->options.until;
        int fd = openat(collect->options.folder, "stop", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    } else if (now - collect->stopped >= STOP_PATIENCE_NS) {
        collect->over = 1;
    }
}

void collect_round(struct collect *collect, uint64_t now)
{
    uint64_t round = collect->round;
    if (collect->options.until && now >= collect->options.until)
        end_watching(collect, now);
    ring_set_read(collect->rings, now, alive);
    if (!collect->stopped) {
        host_sample_threads(&collect->host, now);
        host_sample_use(&collect->host, now);
        if (round % LIST_EVERY == 0) {
            host_sample_list(&collect->host, now);
            look_at_room(collect);
        }
        if (round % DEVICE_EVERY == 0)
            look_at_devices(collect, now);
        if (round % LIVE_EVERY == 0)
            tell_live(collect, now);
    }
    if (round % SETTLE_EVERY == 0)
        settle(collect, ring_set_settled(collect->rings, now));
    collect->round++;
}

/* What was not read yet, and the end of all that was watched. */
static void read_rest(struct collect *collect)
{
    uint64_t now = (uint64_t)clock_now();
    if (!collect->stopped)
        host_sample_finish(&collect->host, now);
    ring_set_read(collect->rings, now, alive);
    collect->ended = collect->stopped ? collect->stopped : now;
    settle(collect, now);
}

static void *run(void *user)
{
    struct collect *collect = user;
    struct timespec cpu;
    uint64_t next = (uint64_t)clock_now();
    pthread_mutex_lock(&collect->lock);
    while (!collect->stop && !collect->over) {
        pthread_mutex_unlock(&collect->lock);
        uint64_t now = (uint64_t)clock_now();
        collect_round(collect, now);
        next = next + ROUND_NS > now ? next + ROUND_NS : now + ROUND_NS; /* rounds do not pile up */
        struct timespec until = {.tv_sec = (time_t)(next / 1000000000u),
                                 .tv_nsec = (long)(next % 1000000000u)};
        pthread_mutex_lock(&collect->lock);
        while (!collect->stop && !pthread_cond_timedwait(&collect->wake, &collect->lock, &until))
            ;
    }
    pthread_mutex_unlock(&collect->lock);
    read_rest(collect);
    if (!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu))
        collect->cpu = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
    return NULL;
}

/* --- life ---------------------------------------------------------------------------------------
 */

stk_status collect_new(struct collect **out, const struct collect_options *options,
                       struct stk_error *err)
{
    pthread_condattr_t attributes;
    *out = NULL;
    struct collect *collect = memory_zero(1, sizeof *collect);
    if (!collect)
        return fail_memory(err, sizeof *collect);
    collect->options = *options;
    pthread_mutex_init(&collect->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&collect->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    struct watch_sink sink = {
        .event = take_event, .notice = take_notice, .ring = take_ring, .user = collect};
    collect->rings = ring_set_new(options->folder, &sink);
    if (!collect->rings) {
        collect_free(collect);
        return fail(err, STK_RESOURCE, "the folder of the run cannot be read");
    }
    host_sample_init(&collect->host, options->root, options->begun, &sink);
    *out = collect;
    return STK_OK;
}

stk_status collect_start(struct collect *collect, struct stk_error *err)
{
    const struct cores_place place = {.name = "stoker-watch"};
    stk_status status = cores_start(&collect->thread, run, collect, &place, err);
    collect->started = !status;
    return status;
}

void collect_stop(struct collect *collect)
{
    if (!collect->started) {
        if (!collect->ended)
            read_rest(collect);
        return;
    }
    pthread_mutex_lock(&collect->lock);
    collect->stop = 1;
    pthread_cond_signal(&collect->wake);
    pthread_mutex_unlock(&collect->lock);
    pthread_join(collect->thread, NULL);
    collect->started = 0;
}

void collect_facts(const struct collect *collect, struct collect_facts *out)
{
    *out = (struct collect_facts){
        .records = ring_set_records(collect->rings),
        .lost = ring_set_lost(collect->rings),
        .cpu_ns = collect->cpu,
        .ended = collect->ended,
        .gpu_name = collect->devices.name,
        .driver = collect->devices.driver,
        .cupti = collect->cupti,
        .python = collect->host.python,
        .torch = collect->host.torch,
        .fault = collect->failed ? collect->fault.what : NULL,
    };
    for (size_t i = 0; i < collect->notice_count; i++)
        out->notices[i] = collect->notices[i];
}

void collect_free(struct collect *collect)
{
    if (!collect)
        return;
    if (collect->started)
        collect_stop(collect);
    ring_set_free(collect->rings);
    host_sample_reset(&collect->host);
    for (size_t i = 0; i < collect->notice_count; i++)
        memory_free(collect->notices[i]);
    pthread_cond_destroy(&collect->wake);
    pthread_mutex_destroy(&collect->lock);
    memory_free(collect);
}
