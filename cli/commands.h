/* commands.h -- the table of commands, in the order of `stoker help`.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: parsing (options.h). */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "options.h"

/* The row of that number; NULL past the last. */
const struct command *commands_at(int row);
const struct command *commands_find(const char *name); /* NULL: no such command */
/* Says that there is no such command, and which is near. Returns EXIT_USAGE. */
int commands_unknown(const char *typed);

#endif
