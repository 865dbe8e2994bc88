#include "store/remote_settings.h"

#include <stdio.h>

#include "net/net.h"

void remote_configure(const char *ca, uint32_t timeout_s)
{
    struct net_settings settings = {.timeout_s =
                                        timeout_s}; /* 0 and "": net.c asks the variables */
    snprintf(settings.ca, sizeof settings.ca, "%s", ca ? ca : "");
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
