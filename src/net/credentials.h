/* credentials.h -- secrets, from where a cloud's own tools look for them, in their order.
 * Owns: the secrets; they are wiped when they go, and left out of cores.   Threads: any; one thread
 * fetches, the others wait for it or use what still lasts.   Errors: status; words name the places
 * that were looked at, never a value.   Not here: signing (sigv4.h, azure_sign.h). */
#ifndef NET_CREDENTIALS_H
#define NET_CREDENTIALS_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

struct net;

enum secret_kind {
    SECRET_NONE,       /* anonymous */
    SECRET_AWS,        /* id, key, token ("" : none) */
    SECRET_SHARED_KEY, /* id: the account; key: base64 as given */
    SECRET_SAS,        /* token: the query, no "?" before it */
    SECRET_BEARER,     /* token */
    SECRET_BASIC       /* id: the user; key: the password */
};

/* Lies in memory that cores leave out (madvise DONTDUMP) and is wiped by secret_reset. */
struct secret {
    enum secret_kind kind;
    char id[256], key[1024];
    char token[8192];
    char where[128];   /* where it was found: "environment", "profile prod of ~/.aws/credentials" */
    int64_t expires_s; /* seconds since 1970; 0: never */
    uint64_t mark;     /* which of its credentials it is: 1, 2, ... Set by credentials_take */
};

/* One way to secrets: a chain of places. All that use it share what it found. */
struct credentials;
struct credentials_source {
    /* Looks through the chain. Blocks; runs on a thread of our own. *out is all zero. */
    stk_status (*find)(void *user, struct net *net, struct secret *out, struct stk_error *err);
    void (*free)(void *user);
    void *user;
};
STK_CHECK stk_status credentials_new(struct credentials **out, struct net *net,
                                     const struct credentials_source *source,
                                     struct stk_error *err);
void credentials_free(struct credentials *credentials);

/* What is valid now, to be given back. Within CREDENTIALS_REFRESH_BEFORE_S of its end one thread
 * fetches anew in the background while the old one still lasts; past it all wait for that one.
 * may_wait 0: STK_BUSY instead of waiting. */
STK_CHECK stk_status credentials_take(struct credentials *credentials, int may_wait,
                                      const struct secret **out, struct stk_error *err);
void credentials_give(struct credentials *credentials, const struct secret *secret);
/* The site refused the secret of this mark: the next take looks anew, unless that happened since.
 */
void credentials_refused(struct credentials *credentials, uint64_t mark);
#define CREDENTIALS_REFRESH_BEFORE_S 300

struct secret *secret_new(void);         /* all zero; NULL: no memory */
void secret_free(struct secret *secret); /* wipes; NULL is fine */
/* Memory like a secret's, for others that hold some: all zero, left out of cores. */
void *secret_pages_new(size_t size);
void secret_pages_free(void *pages, size_t size);
void secret_wipe(void *data, size_t length);
/* Room for cap bytes in an empty text, so that growing leaves no copies behind. 0: no memory. */
int secret_text_reserve(struct text *text, size_t cap);
/* Room for `more` bytes behind what a text holds; memory that it leaves is wiped. 0: none, and the
 * text has failed. */
int secret_text_room(struct text *text, size_t more);
void secret_text_free(struct text *text); /* wipes and frees a text that held a secret */
/* A whole small file, in memory that no growing leaves behind. *out is empty before. */
STK_CHECK stk_status secret_file_read(struct text *out, const char *path, struct stk_error *err);
/* Copies a value into a field of a secret (or any other); 0: it does not fit, the field is "". */
int secret_set(char *field, size_t cap, const char *value, size_t length);

#endif
