/* azure_credentials.h -- where Azure's tools look for a way into a storage account, in their order:
 * AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY (or AZURE_STORAGE_ACCOUNT_KEY),
 * AZURE_STORAGE_SAS_TOKEN, each only where it is of this account; STOKER_AZURE_ANONYMOUS=1; then
 * tokens (azure_token.h).
 * Owns: nothing; see credentials.h.   Threads: any.   Errors: STK_DENIED names the places that
 * were looked at.   Not here: signing (azure_sign.h). */
#ifndef NET_AZURE_CREDENTIALS_H
#define NET_AZURE_CREDENTIALS_H

#include "net/site.h"

/* Sets site->credentials to those of the account, which all its containers share. */
STK_CHECK stk_status azure_share_credentials(struct site *site, const char *account,
                                             struct stk_error *err);
/* One look, for credentials.h's thread. */
STK_CHECK stk_status azure_find_secret(const char *account, struct net *net, struct secret *out,
                                       struct stk_error *err);

#endif
