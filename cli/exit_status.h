/* exit_status.h -- what the command tells the shell.
 * Owns: nothing.   Threads: any.   Errors: they are the subject.   Not here: the words (message.h).
 */
#ifndef CLI_EXIT_STATUS_H
#define CLI_EXIT_STATUS_H

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_SIGNALLED = 128,  /* plus the signal's number */
    EXIT_PIPE_CLOSED = 141 /* what a shell shows for SIGPIPE */
};

#endif
