/* site_kinds.h -- which kinds of sites there are.
 * Owns: nothing.   Threads: any.   Errors: NULL.   Not here: what a kind does (its own file). */
#ifndef NET_SITE_KINDS_H
#define NET_SITE_KINDS_H

#include "net/site.h"

/* The kind whose scheme a URI begins with ("s3" of "s3://..."); NULL: none. */
const struct site_ops *site_kind_of(const char *uri);

#endif
