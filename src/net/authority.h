/* authority.h -- takes the front of a URL apart: scheme, host, port.
 * Owns: nothing.   Threads: any.   Errors: status; the words never hold the URL, which may hold a
 * secret.   Not here: keys (each kind of site). */
#ifndef NET_AUTHORITY_H
#define NET_AUTHORITY_H

#include <stddef.h>

#include "stoker/error.h"

struct authority {
    int is_tls;       /* https */
    char name[256];   /* of the host, lower case; an IPv6 address with its brackets */
    unsigned port;    /* the scheme's own where none is written */
    char origin[288]; /* "https://name:port", the port only where it is not the scheme's own */
    char host[272];   /* what the Host header says: name, and the port where it is not the usual */
    size_t length;    /* bytes of the URL up to its path, query or end */
};

/* http:// and https:// alone. A user or a password in it is refused. */
STK_CHECK stk_status authority_parse(struct authority *out, const char *url, struct stk_error *err);
/* Not 0: this machine itself. */
int authority_is_loopback(const struct authority *authority);

#endif
