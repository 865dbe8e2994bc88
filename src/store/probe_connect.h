/* probe_connect.h -- is a host's name known, and does anything listen there. Plain sockets: it
 * tells what stands between this machine and a site, before HTTP has its say.
 * Owns: nothing after return.   Threads: any.   Errors: status, words with the cause.
 * Not here: TLS and all above it (site_probe.c). */
#ifndef STORE_PROBE_CONNECT_H
#define STORE_PROBE_CONNECT_H

#include <netdb.h>
#include <stddef.h>

#include "stoker/error.h"

#define PROBE_HOST 300

/* "host:443", "[::1]:80" -> its two parts; port: "443" where there is none. */
void probe_host_split(const char *from, char host[PROBE_HOST], char port[8]);

/* The proxy that requests of this kind go through, without user and password; 0: none. */
int probe_proxy(int https, const char *host, char out[PROBE_HOST]);

/* Addresses of the host, to be freed by freeaddrinfo; told: "10.0.0.7, 3 addresses". */
STK_CHECK stk_status probe_resolve(const char *host, const char *port, struct addrinfo **out,
                                   char *told, size_t cap, struct stk_error *err);

/* Connects to each address. STK_OK when one answers; *silent: how many do not. */
STK_CHECK stk_status probe_connect(const struct addrinfo *addresses, uint32_t *silent, char *told,
                                   size_t cap, struct stk_error *err);

#endif
