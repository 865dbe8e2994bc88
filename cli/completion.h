/* completion.h -- completion scripts for shells, made from the tables of commands and options.
 * Owns: nothing.   Threads: any.   Errors: those of standard output.   Not here: the tables. */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

enum completion_shell { COMPLETION_NONE, COMPLETION_BASH, COMPLETION_ZSH };

void completion_print(enum completion_shell shell);

#endif
