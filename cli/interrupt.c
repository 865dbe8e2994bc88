#include "interrupt.h"

#include <sys/time.h>
#include <unistd.h>

#include "exit_status.h"

static const int signals[INTERRUPT_SIGNALS] = {SIGINT, SIGTERM, SIGALRM, SIGPIPE};

/* A handler has no other way to speak. Written by it, read by everybody. */
static volatile sig_atomic_t pending;

static void handle(int number)
{
    static const struct itimerval patience = {.it_value = {.tv_usec = 800000}};

    if (pending) /* the second one, or patience ran out */
        _exit(EXIT_SIGNALLED + pending);
    if (number == SIGALRM)
        return;
    pending = number;
    (void)setitimer(ITIMER_REAL, &patience, NULL);
}

void interrupt_begin(struct interrupt *interrupt)
{
    pending = 0;
    for (int i = 0; i < INTERRUPT_SIGNALS; i++) {
        /* No SA_RESTART: a write to a pipe that nobody reads must return. */
        struct sigaction action = {.sa_handler = signals[i] == SIGPIPE ? SIG_IGN : handle};
        sigemptyset(&action.sa_mask);
        (void)sigaction(signals[i], &action, &interrupt->before[i]);
    }
}

void interrupt_end(const struct interrupt *interrupt)
{
    static const struct itimerval off;

    (void)setitimer(ITIMER_REAL, &off, NULL);
    for (int i = 0; i < INTERRUPT_SIGNALS; i++)
        (void)sigaction(signals[i], &interrupt->before[i], NULL);
}

int interrupt_pending(void)
{
    return pending;
}
