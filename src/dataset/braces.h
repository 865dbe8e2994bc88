/* braces.h -- brace lists in names: train-{0000..0999}.tar, {a,b}/{1..3}.tar.
 * Owns: nothing.   Threads: any.   Errors: STK_LIMIT over BRACES_MAX names, STK_MEMORY; what `each`
 * returns ends the walk.   Not here: whether the names exist (names.h). */
#ifndef DATASET_BRACES_H
#define DATASET_BRACES_H

#include "stoker/error.h"

#define BRACES_MAX 10000000

/* Calls each for every name, in order, as a shell would: comma lists, numeric ranges {1..9},
 * {001..100} (padded when either end is), {0..8..2}, letters {a..f}, nested. Braces that are none
 * of these stay as they are, so a text without any is one name. */
STK_CHECK stk_status braces_expand(const char *text,
                                   stk_status (*each)(void *user, const char *name,
                                                      struct stk_error *err),
                                   void *user, struct stk_error *err);
int braces_any(const char *text); /* not 0: there is something to expand */

#endif
