/* azure_place.h -- where a container of Azure Storage is: its account, and the address of its Blob
 * endpoint, from a URI and from the variables that Azure's own tools read.
 * Owns: its strings.   Threads: any; immutable but for the clock's offset.   Errors: STK_USAGE,
 * words that name the variable or the URI and never a value of a secret.
 * Not here: keys and tokens (azure_credentials.h). */
#ifndef NET_AZURE_PLACE_H
#define NET_AZURE_PLACE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct azure_place {
    char *account;
    char *container;  /* as it is, not escaped */
    char *endpoint;   /* "https://ACCOUNT.blob.core.windows.net": no slash at its end */
    char *host;       /* "ACCOUNT.blob.core.windows.net:443" */
    const char *path; /* in endpoint: "" or "/devstoreaccount1" */
    int is_private;   /* https, or a host of this machine: tokens may be sent there */
    int is_known;     /* Azure's own, or named by a variable: a URI alone must not be able to send
                       * tokens and shared access signatures to anybody's host */
    /* What this machine's clock is behind the service's, in seconds; set from a refused answer. */
    _Atomic int64_t clock_behind_s;
};

/* az://ACCOUNT/CONTAINER/... ; abfss:// (abfs, wasbs) CONTAINER@ACCOUNT.dfs.core.windows.net/...
 * *site_length: how much of the URI names the container. */
STK_CHECK stk_status azure_place_new(struct azure_place **out, const char *uri, size_t *site_length,
                                     struct stk_error *err);
void azure_place_free(struct azure_place *place); /* NULL is fine */

/* The account that a connection string is of; 0: it names none, or it does not fit. */
#define AZURE_ACCOUNT_CAP 128
int azure_connection_account(const char *string, char account[AZURE_ACCOUNT_CAP]);
int azure_connection_is_development(const char *string);
/* A variable that is there and not empty; else NULL. */
const char *azure_variable(const char *name);

#define AZURE_DEVELOPMENT_ACCOUNT "devstoreaccount1"

#endif
