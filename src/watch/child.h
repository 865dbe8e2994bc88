/* child.h -- runs a command as a shell would: same streams, same group, signals as they would be
 * without us.
 * Owns: between start and wait the process's actions for the signals that it passes on.   Threads:
 * one child at a time in a process, started and awaited by one thread.   Errors: STK_NOT_FOUND (no
 * such command: 127), STK_DENIED (it cannot be run: 126), STK_RESOURCE, STK_IO.
 * Not here: watching it (collect.h). */
#ifndef WATCH_CHILD_H
#define WATCH_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "stoker/error.h"
#include "stoker/watch.h"

#define CHILD_SIGNALS 9

struct child {
    pid_t pid; /* 0: none */
    struct sigaction before[CHILD_SIGNALS];
    int kept;      /* actions that were changed */
    sigset_t mask; /* of the thread that starts it */
};

/* environment: all of it, NULL-ended. A signal that ends programs and is sent to us alone goes to
 * the command; one of the terminal reaches both, and only the command heeds it. What was ignored
 * stays ignored. */
STK_CHECK stk_status child_start(struct child *child, const char *const *command,
                                 char *const *environment, struct stk_error *err);
/* Waits for its end and puts the signals' actions back. It stays a zombie, of which /proc still
 * tells what it used. */
STK_CHECK stk_status child_wait(struct child *child, struct stk_watch_exit *out,
                                struct stk_error *err);
/* Lets a command that has ended go; one that did not start is fine. */
void child_close(struct child *child);

#endif
