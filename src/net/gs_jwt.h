/* gs_jwt.h -- the signed claim (JWT, RS256: RFC 7519, RFC 7523) that a Google service account's key
 * is turned into a token with.
 * Owns: nothing.   Threads: any.   Errors: STK_CORRUPT for a key that is none; words hold no part
 * of it. Not here: the exchange (gs_token.h). */
#ifndef NET_GS_JWT_H
#define NET_GS_JWT_H

#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

struct gs_claim {
    const char *email, *key_id; /* key_id: NULL or "" : not told */
    const char *audience, *scope;
    const char *pem; /* the private key */
    int64_t now_s;   /* it lasts an hour from then */
};
STK_CHECK stk_status gs_jwt_add(struct text *to, const struct gs_claim *claim,
                                struct stk_error *err);

#endif
