/* token_call.h -- asks a service for an access token: one small HTTP call, and what its JSON says.
 * Owns: nothing.   Threads: any but the web's; it blocks.   Errors: status; words name the service
 * and its error's code, never what was sent.   Not here: which service (azure_token.h,
 * gs_credentials.h). */
#ifndef NET_TOKEN_CALL_H
#define NET_TOKEN_CALL_H

#include "base/text.h"
#include "net/credentials.h"
#include "net/net.h"

#define TOKEN_CALL_HEADERS 3

struct token_call {
    const char *who; /* for words: "Microsoft Entra ID" */
    const char *url;
    struct web_header headers[TOKEN_CALL_HEADERS]; /* until the first without a name */
    const char *form;                              /* posted; NULL: GET */
    const char *form_type;                         /* NULL: application/x-www-form-urlencoded */
    uint32_t limit_ms;                             /* of each try */
    uint32_t tries;
};

/* What a metadata service gets: it is near, or it is not there. One that takes the connection and
 * does not answer in this time is asked once more with a service's. */
#define TOKEN_METADATA_MS 1000
#define TOKEN_METADATA_TRIES 2
#define TOKEN_SERVICE_MS 10000
#define TOKEN_SERVICE_TRIES 3

/* The answer's text, at most 64 KiB, to be freed by secret_text_free.
 * STK_NOT_FOUND: no such service here (nobody answers, or 404). STK_DENIED: it refused. STK_IO: it
 * did not answer, or not as it should. */
STK_CHECK stk_status token_call(struct net *net, const struct token_call *call, struct text *answer,
                                struct stk_error *err);

/* {"access_token": ..., "expires_in" or "expires_on": ...} (also accessToken, expireTime) becomes
 * a bearer's secret. One that says no end is taken to last five minutes behind the refresh. */
STK_CHECK stk_status token_read(const struct text *answer, const char *who, const char *where,
                                struct secret *out, struct stk_error *err);

/* Adds NAME=VALUE to a form, escaped. */
void token_form_add(struct text *form, const char *name, const char *value);
/* A file that holds a token alone: blanks at its end are left out. */
STK_CHECK stk_status token_file(struct text *out, const char *path, struct stk_error *err);
/* STK_USAGE where a secret must not be sent: neither https nor this machine. what: who said so. */
STK_CHECK stk_status token_url_check(const char *url, const char *what, struct stk_error *err);

#endif
