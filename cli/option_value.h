/* option_value.h -- the text of one option into its value.
 * Owns: nothing; words of a list point into text, which is cut up.   Threads: any.
 * Errors: NULL, or what should have been there ("a number").   Not here: which option (options.h).
 */
#ifndef CLI_OPTION_VALUE_H
#define CLI_OPTION_VALUE_H

#include "options.h"

/* to: where the value goes, of the type that option->kind says. */
const char *option_value_read(const struct option *option, char *text, void *to);
/* "512MiB", "1.5GB", "64k", "4096". 0: it is not a size. */
int option_value_size(const char *text, uint64_t *out);
/* Decimal digits only, at most max. */
int option_value_number(const char *text, uint64_t max, uint64_t *out);

#endif
