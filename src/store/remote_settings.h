/* remote_settings.h -- what all remote reading of a process is limited by, and what a thread that
 * waits for it asks.
 * Owns: nothing.   Threads: any; patience is each thread's own.   Errors: status.
 * Not here: reading (store.h, scan.h), the limits' use (net/). */
#ifndef STORE_REMOTE_SETTINGS_H
#define STORE_REMOTE_SETTINGS_H

#include <stdint.h>

#include "stoker/error.h"

/* Before the first remote object is touched. ca: a file of certificates to trust; NULL or "": as
 * the environment or the system says. timeout_s: how long one read, list or look may take with all
 * its retries; 0: as the environment says, else 60. */
void remote_configure(const char *ca, uint32_t timeout_s);

/* Holds what a process has once for all its remote data (connections, credentials, lists) between
 * calls that would each take and give it back. *out is to be let go; NULL is fine there. */
struct net;
STK_CHECK stk_status remote_hold(struct net **out, struct stk_error *err);
void remote_let_go(struct net *held);

/* What blocking remote calls of this thread ask ten times a second; not 0: they give up with
 * STK_CANCELLED. is_over NULL: never. Whoever starts threads hands it on. */
struct remote_patience {
    int (*is_over)(void *user);
    void *user;
};
/* Returns what was set before, to be set again. */
struct remote_patience remote_patience_set(struct remote_patience patience);

#endif
