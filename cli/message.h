/* message.h -- words for the user: errors and notes on standard error, numbers made readable.
 * Owns: nothing.   Threads: any.   Errors: they are the subject.   Not here: JSON (json_out.h). */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include <stdint.h>

#include "stoker/error.h"

/* "stoker: WHAT (...)" and the remedy. Returns the exit status that goes with it: EXIT_USAGE for
 * STK_USAGE that names no object, 128 + N when it was cancelled by a signal (then it says nothing),
 * else EXIT_FAILED. */
int message_error(const struct stk_error *err);
/* "stoker: ..."; returns EXIT_FAILED. */
int message_failed(const char *format, ...) STK_PRINTF(1, 2);
/* "stoker: ..." and where help is; command NULL: of all. Returns EXIT_USAGE. */
int message_usage(const char *command, const char *format, ...) STK_PRINTF(2, 3);
/* "stoker: note: ..." */
void message_note(const char *text);

/* "1.1 MiB"; out is also what it returns. */
const char *message_size(uint64_t bytes, char out[24]);

/* The words of an error, as message_error would say them. */
void message_words(const struct stk_error *err, char *out, size_t cap);
/* Prints text from outside (a key, a field's name) at least width columns wide: control characters,
 * which could play tricks on a terminal, become question marks. */
void message_word(const char *text, size_t len, int width);

/* Flushes standard output. Returns status, or what a failed write makes of it: EXIT_PIPE_CLOSED
 * without a word when the reader went away, else EXIT_FAILED. */
int message_flush(int status);
/* Not 0 when standard output failed or a signal came: the loop that prints ends. */
int message_stopped(void);

#endif
