/* gs_credentials.h -- where Google's tools look for a way into Cloud Storage, in their order:
 * GOOGLE_APPLICATION_CREDENTIALS, gcloud's application_default_credentials.json, the metadata
 * server. Before them STOKER_GS_HMAC_ID and STOKER_GS_HMAC_SECRET, the keys of Cloud Storage that
 * sign as S3's do; behind the first of them STOKER_GS_ANONYMOUS=1.
 * Owns: nothing; see credentials.h.   Threads: any.   Errors: STK_DENIED names the places that
 * were looked at.   Not here: tokens (gs_token.h). */
#ifndef NET_GS_CREDENTIALS_H
#define NET_GS_CREDENTIALS_H

#include "net/site.h"

/* An emulator is asked without credentials where none are named by a variable; EXPOSED: what is
 * sent can be read on the way, so that no secret is sent at all. */
enum gs_service { GS_CLOUD, GS_EMULATOR, GS_EXPOSED };

STK_CHECK stk_status gs_share_credentials(struct site *site, enum gs_service service,
                                          struct stk_error *err);
/* One look, for credentials.h's thread. */
STK_CHECK stk_status gs_find_secret(enum gs_service service, struct net *net, struct secret *out,
                                    struct stk_error *err);

#endif
