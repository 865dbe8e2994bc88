/* netrc.h -- users and passwords of hosts, from the file that curl, git and ftp share.
 * Owns: nothing.   Threads: any.   Errors: 0 where there is none.   Not here: who asks
 * (http_site.c). */
#ifndef NET_NETRC_H
#define NET_NETRC_H

#include "net/credentials.h"

/* Looks in a file's text for a host, then for "default". Not 0: *out is a SECRET_BASIC. */
int netrc_find(const char *text, size_t length, const char *host, struct secret *out);

#endif
