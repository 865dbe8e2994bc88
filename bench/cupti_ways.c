/* cupti_ways.c -- a library that CUDA loads into a training loop (CUDA_INJECTION64_PATH) and that
 * has CUPTI record in one of several ways: what does each cost the loop, and what is left of that
 * once it is switched off? (bench/gpu/cupti_loop.py)
 *
 *     STOKER_CUPTI_WAY=NAME    one of the ways below
 *     STOKER_CUPTI_STOP=FILE   once it is there, what is to be switched off is */
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "limit_cupti.h"

enum {
    TICK_MS = 250,
    LATE_TICKS = 16, /* the context and the kernels' code are there by then */
    TURN_TICKS = 12, /* of which recording is on for one */
};

/* What a way does, besides the parts that it records. */
enum {
    CALLS = PARTS_END,          /* those that launch graphs, for as long as the rest */
    LATE = PARTS_END << 1,      /* switched on in the running program, not before its context */
    STOPS = PARTS_END << 2,     /* switched off */
    TURNS = PARTS_END << 3,     /* switched off, and on again now and then */
    FINALIZES = PARTS_END << 4, /* CUPTI is shut down whenever it is switched off */
    OPENS = PARTS_END << 5, /* CUPTI is loaded and knows who takes records; none are asked for */
};
#define ALL (KERNELS | COPIES | SYNCS | OVERHEADS)

static const struct way {
    const char *name;
    unsigned what;
} ways[] = {
    {"opened", OPENS},
    {"kernels", KERNELS},
    {"kernels_copies", KERNELS | COPIES},
    {"kernels_syncs", KERNELS | SYNCS},
    {"syncs", SYNCS},
    {"all", ALL},
    {"all_calls", ALL | CALLS},
    {"kernels_stopped", KERNELS | STOPS},
    {"syncs_stopped", SYNCS | STOPS},
    {"all_stopped", ALL | STOPS},
    {"all_calls_stopped", ALL | CALLS | STOPS},
    {"all_late_stopped", ALL | LATE | STOPS},
    {"kernels_late_stopped", KERNELS | LATE | STOPS},
    {"all_turns", ALL | TURNS},
    {"all_turns_finalized", ALL | TURNS | FINALIZES},
};

static unsigned what;

static void switch_on(void)
{
    if (cupti.register_clock)
        (void)cupti.register_clock(our_clock);
    (void)cupti.register_callbacks(give_buffer, take_buffer);
    if (cupti.enable_all_syncs)
        (void)cupti.enable_all_syncs(0);
    parts_set(what, cupti.enable);
    if (what & CALLS)
        calls_set(1);
}

static void switch_off(void)
{
    parts_set(what, cupti.disable);
    if (what & CALLS)
        calls_set(0);
    (void)cupti.flush_all(1);
    if (what & FINALIZES)
        finalize();
}

static void *run(void *unused)
{
    const char *stop = getenv("STOKER_CUPTI_STOP");
    int is_on = !(what & LATE), turn = 0;
    (void)unused;
    for (int tick = 1;; tick++) {
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
        if (is_on)
            (void)cupti.flush_all(0);
        int is_over = what & (STOPS | TURNS) && stop && access(stop, F_OK) == 0;
        turn += is_over;
        int is_wanted =
            !is_over ? tick >= LATE_TICKS || is_on : what & TURNS && turn % TURN_TICKS == 0;
        if (is_wanted != is_on)
            is_wanted ? switch_on() : switch_off();
        is_on = is_wanted;
    }
    return NULL;
}

__attribute__((visibility("default"))) int InitializeInjection(void)
{
    const char *name = getenv("STOKER_CUPTI_WAY");
    char words[CUPTI_WORDS];
    pthread_t thread;
    for (size_t i = 0; name && i < sizeof ways / sizeof ways[0]; i++)
        what = strcmp(ways[i].name, name) ? what : ways[i].what;
    if (!what || cupti_open(&cupti, words)) {
        fprintf(stderr, "cupti_ways: %s\n", what ? words : "there is no such way");
        return 1;
    }
    if (!(what & LATE))
        switch_on();
    if (pthread_create(&thread, NULL, run, NULL))
        fprintf(stderr, "cupti_ways: there is no thread to be had\n");
    return 1;
}
