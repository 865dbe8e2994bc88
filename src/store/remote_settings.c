#include "store/remote_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "net/net.h"

static uint32_t timeout_told(void)
{
    const char *text = getenv("STOKER_TIMEOUT");
    uint64_t seconds = 0;
    if (text && parse_u64(text, strlen(text), &seconds) && seconds && seconds <= 86400)
        return (uint32_t)seconds;
    return 60;
}

static const char *ca_told(void)
{
    static const char *const names[] = {"STOKER_CA", "CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = getenv(names[i]);
        if (path && *path)
            return path;
    }
    return "";
}

void remote_configure(const char *ca, uint32_t timeout_s)
{
    struct net_settings settings = {.timeout_s = timeout_s ? timeout_s : timeout_told()};
    snprintf(settings.ca, sizeof settings.ca, "%s", ca && *ca ? ca : ca_told());
    net_configure(&settings);
}

stk_status remote_hold(struct net **out, struct stk_error *err)
{
    *out = NULL;
    return net_take(out, err);
}

void remote_let_go(struct net *held)
{
    if (held)
        net_give(held);
}

struct remote_patience remote_patience_set(struct remote_patience patience)
{
    struct net_patience before = net_patience();
    struct net_patience now = {patience.is_over, patience.user};
    net_patience_set(&now);
    return (struct remote_patience){before.is_over, before.user};
}
