/* fail.h -- fills a struct stk_error and hands back its status, so that `return fail(...)` reads
 * well. Owns: nothing.   Threads: one at a time for one error.   Errors: none; err may be NULL
 * everywhere. Not here: the struct (stoker/error.h). */
#ifndef BASE_FAIL_H
#define BASE_FAIL_H

#include "stoker/error.h"

/* Starts anew: sets status and what, forgets object, offset, sample, key, field and remedy. */
stk_status fail(struct stk_error *err, stk_status status, const char *format, ...) STK_PRINTF(3, 4);
/* As fail, with strerror(number) behind the words; status by errno (ENOENT NOT_FOUND, EACCES
 * DENIED, ENOMEM MEMORY, EMFILE RESOURCE, ... else IO), with a remedy where one is common. */
stk_status fail_errno(struct stk_error *err, int number, const char *format, ...) STK_PRINTF(3, 4);
/* "out of memory (N bytes)"; 0: a library asked, and did not say for how many. */
stk_status fail_memory(struct stk_error *err, uint64_t bytes);

/* These add to an error already set. */
void fail_at(struct stk_error *err, const char *object, uint64_t offset);
void fail_sample(struct stk_error *err, uint64_t sample, const char *key, size_t key_len);
void fail_field(struct stk_error *err, const char *field);
void fail_remedy(struct stk_error *err, const char *format, ...) STK_PRINTF(2, 3);

#endif
