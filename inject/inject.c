#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject_clock.h"
#include "inject_recorder.h"

enum {
    TICK_MS = 250,
    TURN_MS = 5000, /* so long a caller waits for another that talks to CUPTI */
    END_MS = 3000,  /* so long the end of the process waits for the last records */
    TICKS_PER_LOOK = 4,
    TICKS_BEHIND = 8, /* one of so many flushes while the device is far behind */
    TRIES = 5,        /* to take CUPTI over: it may not be ready while the driver starts */
    STACK_BYTES = 1 << 20,
};

/* What this process is doing. Whoever talks to CUPTI has made it BUSY from RECORDS or YIELDED. */
enum inject_state { STATE_OFF, STATE_RECORDS, STATE_YIELDED, STATE_BUSY, STATE_ENDED, STATE_CHILD };

/* The one for the process: neither the driver nor CUPTI hands anything through. */
static struct {
    _Atomic int state;               /* enum inject_state */
    _Atomic int is_yield_first;      /* a yield came before the start */
    _Atomic int is_ending;           /* the thread is to end */
    _Atomic uint32_t wake;           /* a futex: the thread is to flush now */
    struct inject_recorder recorder; /* of whoever has the turn */
    int tries_left;                  /* the same; 0: CUPTI is not wanted, or is ours */
    pthread_t thread;                /* of start and stop */
    _Atomic int has_thread;
    int is_prepared; /* handlers are registered; of start */
    char folder[PATH_MAX];
} inject = {.recorder.sink.lock = PTHREAD_MUTEX_INITIALIZER};

/* --- turns ------------------------------------------------------------------------------------ */

static void sleep_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* The state that was made BUSY; any other: the turn was not taken. */
static int turn_take(void)
{
    for (int waited_us = 0; waited_us < TURN_MS * 1000; waited_us += 200) {
        int state = atomic_load(&inject.state);
        if (state == STATE_BUSY) {
            sleep_us(200);
            continue;
        }
        if (state != STATE_RECORDS && state != STATE_YIELDED)
            return state;
        if (atomic_compare_exchange_strong(&inject.state, &state, STATE_BUSY))
            return state;
    }
    return STATE_BUSY;
}

static int is_turn(int state)
{
    return state == STATE_RECORDS || state == STATE_YIELDED;
}

static void turn_give(int state)
{
    atomic_store(&inject.state, state);
}

/* --- the thread ------------------------------------------------------------------------------- */

static void thread_wake(void)
{
    if (!atomic_exchange(&inject.wake, 1))
        syscall(SYS_futex, &inject.wake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void thread_sleep(void)
{
    const struct timespec most = {.tv_nsec = TICK_MS * 1000000L};
    syscall(SYS_futex, &inject.wake, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0);
    atomic_store(&inject.wake, 0);
}

/* The parent tells by files of these names. */
static int is_told(const char *name)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", inject.folder, name);
    return access(path, F_OK) == 0;
}

/* The parent has seen enough. */
static int is_stopped(void)
{
    return is_told("stop");
}

/* Tries to take CUPTI over; after the last try the ring says why not. The state to go on with. */
static int records_try(void)
{
    char words[CUPTI_WORDS];
    struct inject_recorder *recorder = &inject.recorder;
    if (!inject_recorder_start(recorder, words)) {
        inject.tries_left = 0;
        cupti_version(&recorder->table, words, sizeof words);
        inject_sink_state(&recorder->sink, GPU_RECORDS, words);
        return STATE_RECORDS;
    }
    if (--inject.tries_left == 0)
        inject_sink_state(&recorder->sink, GPU_ABSENT, words);
    return STATE_YIELDED;
}

static int records_begin(void)
{
    if (inject.recorder.rested_at) { /* another profiler came and went */
        inject_sink_state(&inject.recorder.sink, GPU_RESTS, NULL);
        return STATE_RECORDS;
    }
    inject.tries_left = TRIES;
    return records_try();
}

static int records_flush(void)
{
    struct inject_recorder *recorder = &inject.recorder;
    switch (inject_recorder_flush(recorder)) {
    case RECORDER_WELL:
        return STATE_RECORDS;
    case RECORDER_RESET: /* PyTorch's profiler may do that some time after its end */
        inject_sink_state(&recorder->sink, GPU_YIELDS, "CUPTI was shut down");
        inject_buffers_forget(&recorder->buffers);
        return records_begin();
    case RECORDER_TAKEN:
        inject_buffers_forget(&recorder->buffers);
        inject_sink_state(&recorder->sink, GPU_ABSENT,
                          "another profiler took CUPTI over: kernels and copies after that were "
                          "not seen");
        return STATE_YIELDED;
    }
    return STATE_RECORDS;
}

static void tick(void)
{
    int state = turn_take();
    if (!is_turn(state))
        return;
    if (state == STATE_RECORDS)
        state = records_flush();
    else if (inject.tries_left)
        state = records_try();
    else
        inject_sink_reached(&inject.recorder.sink, inject_clock_now());
    turn_give(state);
}

/* The last records. Here and not in the thread that ends: CUPTI may hang while a process ends. */
static void finish(void)
{
    int state = turn_take();
    if (!is_turn(state))
        return;
    struct inject_recorder *recorder = &inject.recorder;
    inject_sink_ending(&recorder->sink);
    if (state == STATE_RECORDS)
        inject_recorder_stop(recorder);
    inject_sink_state(&recorder->sink, GPU_ENDS, NULL);
    inject_sink_close(&recorder->sink);
    turn_give(STATE_ENDED);
}

static void *thread_main(void *unused)
{
    (void)unused;
    for (int ticks = 1; !atomic_load(&inject.is_ending); ticks++) {
        thread_sleep();
        int rests = ticks % TICKS_BEHIND && inject_recorder_is_behind(&inject.recorder);
        if (!rests && !atomic_load(&inject.is_ending))
            tick();
        if (ticks % TICKS_PER_LOOK == 0 && is_stopped())
            break;
    }
    finish();
    return NULL;
}

/* No signal of the program's is for this thread. */
static int thread_start(void)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes))
        return -1;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&inject.thread, &attributes, thread_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (error)
        return -1;
    pthread_setname_np(inject.thread, "stoker-gpu");
    atomic_store(&inject.has_thread, 1);
    return 0;
}

/* 0: the thread is over and joined. */
static int thread_end(void)
{
    if (!atomic_exchange(&inject.has_thread, 0))
        return -1;
    atomic_store(&inject.is_ending, 1);
    thread_wake();
    struct timespec until; /* by the clock that the function asks for */
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_MS / 1000;
    return pthread_timedjoin_np(inject.thread, NULL, &until);
}

/* --- beginning and end ------------------------------------------------------------------------ */

/* A forked child has neither our thread nor CUDA: it is left alone. */
static void in_child(void)
{
    atomic_store(&inject.state, STATE_CHILD);
    inject_sink_forget(&inject.recorder.sink);
}

static void at_exit(void)
{
    if (atomic_load(&inject.state) != STATE_CHILD)
        (void)thread_end();
}

/* Handlers stay for ever, so must the code. */
static void prepare(void)
{
    if (inject.is_prepared)
        return;
    Dl_info info;
    if (dladdr((void *)(uintptr_t)in_child, &info) && info.dli_fname)
        (void)dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    pthread_atfork(NULL, NULL, in_child);
    atexit(at_exit); /* after CUPTI was loaded: before CUPTI's own end */
    inject.is_prepared = 1;
}

/* The state to go on with; the ring is open. */
static int begin(void)
{
    char words[CUPTI_WORDS];
    struct inject_recorder *recorder = &inject.recorder;
    int state = STATE_YIELDED;
    if (inject_recorder_open(recorder, words)) {
        inject_sink_state(&recorder->sink, GPU_ABSENT, words);
        goto absent;
    }
    prepare();
    recorder->never_rests = is_told("every-kernel");
    if (!atomic_exchange(&inject.is_yield_first, 0))
        state = records_begin();
    else
        inject_sink_state(&recorder->sink, GPU_YIELDS, NULL);
    if (!thread_start())
        return state;
    if (state == STATE_RECORDS)
        inject_recorder_stop(recorder);
    inject_sink_state(&recorder->sink, GPU_ABSENT, "there is no thread to be had for recording");
absent:
    inject_sink_close(&recorder->sink);
    return STATE_ENDED;
}

static int start(const char *folder)
{
    int state = STATE_OFF;
    if (!folder || !folder[0] || strlen(folder) >= sizeof inject.folder)
        return -1;
    if (!atomic_compare_exchange_strong(&inject.state, &state, STATE_BUSY))
        return is_turn(state) || state == STATE_BUSY ? 0 : -1;
    strcpy(inject.folder, folder);
    atomic_store(&inject.is_ending, 0);
    state = STATE_ENDED;
    if (!is_stopped() && !inject_sink_open(&inject.recorder.sink, folder))
        state = begin();
    turn_give(state);
    return is_turn(state) ? 0 : -1;
}

int InitializeInjection(void)
{
    (void)start(getenv("STOKER_WATCH"));
    return 1;
}

int stoker_inject_start(const char *folder)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return -1; /* nothing to record, and nothing to tell */
    int result = start(folder);
    dlclose(driver);
    return result;
}

/* Waits for the device of the calling thread, by the driver that the program has loaded. A capture
 * of that thread's would be lost. */
static void device_wait(void)
{
    enum { CAPTURE_RELAXED = 2 };
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        return;
    int (*exchange)(int *mode) = NULL;
    int (*wait)(void) = NULL;
    *(void **)&exchange = dlsym(driver, "cuThreadExchangeStreamCaptureMode");
    *(void **)&wait = dlsym(driver, "cuCtxSynchronize");
    int mode = CAPTURE_RELAXED;
    int is_relaxed = exchange && !exchange(&mode);
    if (wait)
        (void)wait();
    if (is_relaxed)
        (void)exchange(&mode);
    dlclose(driver);
}

void stoker_inject_yield(void)
{
    int state = STATE_OFF;
    if (atomic_load(&inject.state) == STATE_OFF)
        atomic_store(&inject.is_yield_first, 1);
    if (atomic_load(&inject.state) == STATE_RECORDS)
        device_wait();
    state = turn_take();
    if (!is_turn(state))
        return;
    if (state == STATE_RECORDS) {
        inject_recorder_stop(&inject.recorder);
        inject_sink_state(&inject.recorder.sink, GPU_YIELDS, NULL);
    }
    inject.recorder.never_rests = 1; /* see inject_recorder.h */
    inject.tries_left = 0;
    turn_give(STATE_YIELDED);
}

void stoker_inject_resume(void)
{
    atomic_store(&inject.is_yield_first, 0);
    int state = turn_take();
    if (is_turn(state))
        turn_give(state == STATE_YIELDED ? records_begin() : state);
}

void stoker_inject_graph(void)
{
    int state = atomic_load(&inject.state);
    if (state == STATE_RECORDS || state == STATE_BUSY)
        inject_recorder_graph(&inject.recorder);
}

void stoker_inject_flush(void)
{
    tick();
}

void stoker_inject_stop(void)
{
    int state = atomic_load(&inject.state);
    if (state == STATE_CHILD || state == STATE_OFF)
        return;
    if (state == STATE_RECORDS)
        device_wait();
    if (atomic_load(&inject.has_thread) && thread_end())
        return; /* CUPTI hangs: what it holds is not safe to touch */
    int ended = STATE_ENDED;
    (void)atomic_compare_exchange_strong(&inject.state, &ended, STATE_OFF);
}
