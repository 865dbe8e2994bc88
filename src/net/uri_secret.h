/* uri_secret.h -- URIs end up in messages, indexes and caches, so none may carry a secret: a
 * password before its host, a signature or a token in its query.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE; the words never hold the URI.
 * Not here: taking URIs apart (site.h). */
#ifndef NET_URI_SECRET_H
#define NET_URI_SECRET_H

#include "stoker/error.h"

/* A whole URI, or a key with its query. */
STK_CHECK stk_status uri_secret_refuse(const char *uri, struct stk_error *err);

#endif
