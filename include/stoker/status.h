/* status.h -- what a call came to. One list; names, words and Python exceptions are made from it.
 * Owns: nothing.   Threads: any.   Errors: they are the subject.   Not here: the words of one error
 * (error.h). */
#ifndef STOKER_STATUS_H
#define STOKER_STATUS_H

#include "stoker/export.h"

/* name, what it means to a user. Numbers are stable: add at the end. */
#define STK_STATUS_LIST(X)                                                                         \
    X(OK, "done")                                                                                  \
    X(END, "the epoch is over")                                                                    \
    X(USAGE, "the call's arguments do not fit")                                                    \
    X(NOT_FOUND, "there is no such object, sample or field")                                       \
    X(DENIED, "no permission")                                                                     \
    X(IO, "reading or writing failed")                                                             \
    X(CORRUPT, "the bytes are not what their format demands")                                      \
    X(TRUNCATED, "the bytes end too early")                                                        \
    X(LIMIT, "a cap was passed")                                                                   \
    X(SHAPE, "samples differ in shape or type")                                                    \
    X(UNSUPPORTED, "this build or this format cannot do that")                                     \
    X(STALE, "the object changed since it was indexed")                                            \
    X(MISMATCH, "the state belongs to another dataset or other options")                           \
    X(MEMORY, "out of memory, or over the memory budget")                                          \
    X(RESOURCE, "the system refused a thread, a file or a lock")                                   \
    X(CANCELLED, "stopped on request")                                                             \
    X(BUSY, "another thread is using it")

typedef enum stk_status {
#define X(name, words) STK_##name,
    STK_STATUS_LIST(X)
#undef X
        STK_STATUS_COUNT
} stk_status;

/* "CORRUPT", never NULL. */
STK_API const char *stk_status_name(stk_status status);
/* "the bytes are not what their format demands", never NULL. */
STK_API const char *stk_status_words(stk_status status);

#endif
