/* Claims of a build without OpenSSL: nothing is sent there, so nothing is signed. */
#include "net/gs_jwt.h"

#include "base/fail.h"

stk_status gs_jwt_add(struct text *to, const struct gs_claim *claim, struct stk_error *err)
{
    (void)to, (void)claim;
    return fail(err, STK_UNSUPPORTED, "this build has no OpenSSL, so that it cannot sign");
}
