#include "interrupt.h"

#include <sys/time.h>
#include <unistd.h>

#include "exit_status.h"

static const int signals[INTERRUPT_SIGNALS] = {SIGINT, SIGTERM, SIGALRM, SIGPIPE, SIGXFSZ};

/* A handler has no other way to speak. Written by it, read by everybody. */
static volatile sig_atomic_t pending;
/* Seconds from the first signal to the end; 0: the usual 0.8. Read by the handler. */
static volatile sig_atomic_t patience;

/* Between begin and end: what suspend puts back is stoker_main's. */
static const struct interrupt *current;

static void handle(int number)
{
    const struct itimerval wait = {
        .it_value = {.tv_sec = patience, .tv_usec = patience ? 0 : 800000}};

    if (pending) /* the second one, or patience ran out */
        _exit(EXIT_SIGNALLED + pending);
    if (number == SIGALRM)
        return;
    pending = number;
    (void)setitimer(ITIMER_REAL, &wait, NULL);
}

static void take(struct sigaction *before)
{
    for (int i = 0; i < INTERRUPT_SIGNALS; i++) {
        /* No SA_RESTART: a write to a pipe that nobody reads must return. A file that may not grow
         * further is an error like a full disk. */
        int is_ignored = signals[i] == SIGPIPE || signals[i] == SIGXFSZ;
        struct sigaction action = {.sa_handler = is_ignored ? SIG_IGN : handle};
        sigemptyset(&action.sa_mask);
        (void)sigaction(signals[i], &action, before ? &before[i] : NULL);
    }
}

void interrupt_begin(struct interrupt *interrupt)
{
    pending = 0;
    patience = 0;
    take(interrupt->before);
    current = interrupt;
}

void interrupt_end(const struct interrupt *interrupt)
{
    static const struct itimerval off;

    (void)setitimer(ITIMER_REAL, &off, NULL);
    for (int i = 0; i < INTERRUPT_SIGNALS; i++)
        (void)sigaction(signals[i], &interrupt->before[i], NULL);
    current = NULL;
}

void interrupt_suspend(void)
{
    if (!current)
        return;
    const struct interrupt *kept = current;
    interrupt_end(kept);
    current = kept;
}

void interrupt_resume(void)
{
    if (!current)
        return;
    pending = 0;
    take(NULL);
}

int interrupt_pending(void)
{
    return pending;
}

void interrupt_patience(int seconds)
{
    patience = seconds;
}
