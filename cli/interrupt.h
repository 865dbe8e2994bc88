/* interrupt.h -- Ctrl-C and its kin: the first asks the command to end, the second ends it.
 * Owns: the actions of SIGINT, SIGTERM, SIGALRM and SIGPIPE between begin and end.   Threads: begin
 * and end from one; pending from any.   Errors: none.   Not here: who looks at pending (all long
 * loops). */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <signal.h>

#define INTERRUPT_SIGNALS 5

struct interrupt {
    struct sigaction before[INTERRUPT_SIGNALS];
};

void interrupt_begin(struct interrupt *interrupt);
void interrupt_end(const struct interrupt *interrupt);
/* While another program runs in the foreground, signals are as they were before begin. A signal
 * that came until then is forgotten. */
void interrupt_suspend(void);
void interrupt_resume(void);
/* The signal that asked for the end; 0: none did. A command that has not ended 0.8 s after the
 * first one is ended where it stands: files appear by renaming only, so nothing half-written is
 * left. */
int interrupt_pending(void);
/* For a command that has much to clear away: so many seconds instead of 0.8, until the end. */
void interrupt_patience(int seconds);

#endif
