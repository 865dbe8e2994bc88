/* name_guess.h -- words for a name that is not there: those that are, and the one that was meant.
 * Owns: its text, until name_guess_fail.   Threads: one at a time.   Errors: that is its work.
 * Not here: what the names are of. */
#ifndef BASE_NAME_GUESS_H
#define BASE_NAME_GUESS_H

#include "stoker/error.h"
#include "base/text.h"

/* wanted is set, all else zero at first. */
struct name_guess {
    const char *wanted;
    const char *nearest; /* NULL: none is near */
    uint32_t least;      /* letters that it differs by */
    struct text there;
};

void name_guess_add(struct name_guess *guess, const char *own);
/* STK_NOT_FOUND: "there is no WHAT NAME", and in the remedy all that were added. */
stk_status name_guess_fail(struct name_guess *guess, const char *what, struct stk_error *err);

#endif
