/* guard.h -- copying from a map without dying when its file was cut short under us.
 * Owns: the process's SIGBUS action, from the first guard_install on; a SIGBUS that is not in a
 * guarded span goes to whoever handled it before.   Threads: one guard a thread (thread-local).
 * Errors: the guarded function's result, or STK_STALE.   Not here: the maps (store.h). */
#ifndef STORE_GUARD_H
#define STORE_GUARD_H

#include "stoker/error.h"

/* Idempotent. Called again after somebody else took the signal, it goes before them. */
STK_CHECK stk_status guard_install(struct stk_error *err);

/* Runs copy(user). A SIGBUS inside it ends it at once with STK_STALE: so copy takes no lock,
 * allocates nothing and can be run again. Guards do not nest. */
stk_status guard_run(stk_status (*copy)(void *user), void *user);

#endif
