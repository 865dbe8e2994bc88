/* stoker_main.h -- the `stoker` command as a function, for the binary and for the Python package.
 * Owns: while it runs, the process's actions for SIGINT, SIGTERM, SIGALRM and SIGPIPE; it puts back
 * what was there.   Threads: one call at a time.   Errors: the exit status; words go to standard
 * error. Not here: what the commands do (the library). */
#ifndef CLI_STOKER_MAIN_H
#define CLI_STOKER_MAIN_H

#include "stoker/context.h"

/* Runs one command. Returns its exit status: 0 done, 1 failed, 2 bad usage, 128 + N ended by signal
 * N (130: Ctrl-C; 141: the reader of standard output went away). context: made with stoker_hooks.
 */
int stoker_main(int argc, char **argv, struct stk_context *context);

/* Sets the progress and notice hooks to those of the command: a bar on a terminal, sentences on
 * standard error, Ctrl-C cancels. Neither looks at user; it and write_table are left alone. */
void stoker_hooks(struct stk_hooks *hooks);

#endif
