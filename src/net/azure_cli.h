/* azure_cli.h -- asks Azure's own command, `az`, for a token.
 * Owns: nothing; the process it starts is gone on return.   Threads: any; it blocks, at most 20 s.
 * Errors: STK_DENIED where az is there and gives none; words say how to log in.
 * Not here: what the answer means (token_call.h). */
#ifndef NET_AZURE_CLI_H
#define NET_AZURE_CLI_H

#include "stoker/error.h"

#include "base/text.h"

/* Runs `az account get-access-token` without a shell. *is_there 0: there is no az on PATH. answer:
 * its JSON, to be wiped. */
STK_CHECK stk_status azure_cli_token(const char *resource, struct text *answer, int *is_there,
                                     struct stk_error *err);

#endif
