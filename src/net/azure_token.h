/* azure_token.h -- tokens for Azure Storage, from where the Azure SDKs' default credential looks:
 * a service principal (AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_CLIENT_SECRET), workload identity
 * (AZURE_FEDERATED_TOKEN_FILE), managed identity (IDENTITY_ENDPOINT, MSI_ENDPOINT, else the
 * virtual machine's metadata service), `az account get-access-token`.
 * Owns: nothing.   Threads: any but the web's; it blocks.   Errors: one that is set up and does
 * not work is an error, and the ones behind it are not asked.   Not here: keys
 * (azure_credentials.h). */
#ifndef NET_AZURE_TOKEN_H
#define NET_AZURE_TOKEN_H

#include "net/credentials.h"

/* STK_OK with kind SECRET_NONE: none of them is there. */
STK_CHECK stk_status azure_find_token(struct net *net, struct secret *out, struct stk_error *err);

#endif
