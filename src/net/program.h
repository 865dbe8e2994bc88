/* program.h -- runs another program, without a shell, for what it prints.
 * Owns: nothing; the program, and what it started, is gone on return.   Threads: any; it blocks
 * until the limit, or until the thread's patience (net.h) ends.   Errors: told by the result.
 * Not here: what is printed (aws_process.c, azure_cli.h). */
#ifndef NET_PROGRAM_H
#define NET_PROGRAM_H

#include <stdint.h>

#include "base/text.h"

enum program_end {
    PROGRAM_ENDED,   /* number: its exit status; -1: a signal's */
    PROGRAM_LATE,    /* it took too long, or printed more than 64 KiB */
    PROGRAM_NOT_RUN, /* number: errno */
    PROGRAM_NO_MEMORY
};

struct program_result {
    enum program_end end;
    int number;
};

/* words: NULL behind the last; the first is looked for along PATH unless it has a slash. Input is
 * empty, and errors go nowhere: they may hold secrets. out is empty before, and to be freed by
 * secret_text_free. */
struct program_result program_run(char *const words[], int64_t limit_ns, struct text *out);

#endif
