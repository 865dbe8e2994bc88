/* error.h -- the words that go with a status: what happened, where, and what to do.
 * Owns: nothing; the struct is the caller's, of fixed size and never allocated.   Threads: one at a
 * time for one struct.   Errors: none; text too long is cut.   Not here: the status codes. */
#ifndef STOKER_ERROR_H
#define STOKER_ERROR_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/status.h"

#define STK_NOWHERE UINT64_MAX /* an offset or a sample that is not known */

/* Every function that takes a struct stk_error * accepts NULL. */
struct stk_error {
    stk_status status;
    uint64_t offset;  /* in object, or STK_NOWHERE */
    uint64_t sample;  /* number in the dataset, or STK_NOWHERE */
    char what[320];   /* one sentence without a full stop */
    char object[512]; /* URI or path; "" when none. A longer one keeps its tail */
    char key[128];    /* the sample's key; "" when none */
    char field[64];   /* "" when none */
    char remedy[256]; /* what the user can do; "" when nothing */
};

/* One line, or two with the remedy:
 * "WHAT (object OBJECT, offset N, sample N, key K, field F)\n  REMEDY".
 * Returns the length it would have had; buf is always ended by NUL when cap > 0. */
STK_API size_t stk_error_format(const struct stk_error *err, char *buf, size_t cap);

#endif
