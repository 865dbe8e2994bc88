/* gs_token.h -- tokens for Google Cloud Storage: from a file of application default credentials
 * (service_account, authorized_user, external_account, impersonated_service_account), and from the
 * metadata server of a machine of Google's.
 * Owns: nothing.   Threads: any but the web's; it blocks.   Errors: status; words name the file and
 * the member, never a value.   Not here: which of them (gs_credentials.h). */
#ifndef NET_GS_TOKEN_H
#define NET_GS_TOKEN_H

#include "net/credentials.h"

/* where: what words call it. */
STK_CHECK stk_status gs_token_from_file(struct net *net, const char *path, const char *where,
                                        struct secret *out, struct stk_error *err);
/* STK_NOT_FOUND: there is no such server here. */
STK_CHECK stk_status gs_token_from_metadata(struct net *net, struct secret *out,
                                            struct stk_error *err);

#endif
