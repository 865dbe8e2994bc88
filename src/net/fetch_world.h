/* fetch_world.h -- what fetches share in a process: hosts and what was measured of them, counts,
 * listings, and the clock that wakes those that wait.
 * Owns: all of that.   Threads: new, stop and free by net.c alone, while nothing is fetched.
 * Errors: status.   Not here: a fetch (fetch.h). */
#ifndef NET_FETCH_WORLD_H
#define NET_FETCH_WORLD_H

#include "net/net.h"

struct fetch_world;

/* Once the web is open. */
STK_CHECK stk_status fetch_world_new(struct fetch_world **out, struct net *net,
                                     struct stk_error *err);
/* Joins the threads that wait for credentials. They may use the web: before web_close. */
void fetch_world_stop(struct fetch_world *world);
/* After web_close, which calls the last of what was to be done. Both accept NULL. */
void fetch_world_free(struct fetch_world *world);

#endif
