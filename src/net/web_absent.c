/* The web of a build without libcurl: it does not open, so none of the rest is ever called. */
#include <assert.h>

#include "base/fail.h"
#include "net/web.h"

stk_status web_open(struct web **out, const struct web_options *options, struct stk_error *err)
{
    (void)options;
    *out = NULL;
    fail(err, STK_UNSUPPORTED, "this build of Stoker reads no remote data: it has no libcurl");
    fail_remedy(err, "build it where libcurl4-openssl-dev and libssl-dev are installed");
    return STK_UNSUPPORTED;
}

void web_close(struct web *web)
{
    (void)web;
}

void web_start(struct web *web, struct web_request *request)
{
    (void)web, (void)request;
    assert(!"there is no web");
}

void web_wait(struct web *web, struct web_request *request)
{
    (void)web, (void)request;
    assert(!"there is no web");
}

void web_cancel(struct web *web, struct web_request *request)
{
    (void)web, (void)request;
    assert(!"there is no web");
}

void web_later(struct web *web, int64_t when_ns, void (*call)(void *user), void *user)
{
    (void)web, (void)when_ns, (void)call, (void)user;
    assert(!"there is no web");
}

int64_t web_stopped_ns(struct web *web)
{
    (void)web;
    return 0;
}
