#include "stoker/remote.h"

#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "dataset/remote_names.h"
#include "store/remote_settings.h"
#include "store/site_probe.h"

#define CHECK_AT_ONCE 64
#define CHECK_SECONDS 0.5

stk_status stk_remote_configure(const struct stk_remote_options *options, struct stk_error *err)
{
    if (options->ca && *options->ca && access(options->ca, R_OK)) {
        stk_status status = fail(err, STK_NOT_FOUND, "the file of certificates cannot be read");
        fail_at(err, options->ca, STK_NOWHERE);
        return status;
    }
    remote_configure(options->ca, options->timeout_s);
    return STK_OK;
}

int stk_is_remote(const char *source)
{
    return remote_names_is(source);
}

struct rows {
    void (*row)(void *user, const struct stk_probe_row *row);
    void *user;
};

static void hand_on(void *user, const struct probe_row *from)
{
    static const enum stk_check_state states[] = {[PROBE_GOOD] = STK_CHECK_GOOD,
                                                  [PROBE_ABSENT] = STK_CHECK_ABSENT,
                                                  [PROBE_BAD] = STK_CHECK_WARN};
    const struct rows *rows = user;
    struct stk_probe_row row = {from->step,    states[from->state], from->value,      from->remedy,
                                from->seconds, from->at_once,       from->bytes_per_s};
    rows->row(rows->user, &row);
}

static int asks_hook(void *user)
{
    const struct stk_context *context = user;
    return context->hooks.waiting(context->hooks.user);
}

stk_status stk_remote_probe(struct stk_context *context, const char *uri,
                            const struct stk_probe_options *options,
                            void (*row)(void *user, const struct stk_probe_row *row), void *user,
                            struct stk_error *err)
{
    struct rows rows = {row, user};
    struct probe_options wanted = {
        .uri = uri,
        .most_at_once = options && options->most_at_once ? options->most_at_once : CHECK_AT_ONCE,
        .seconds = options && options->seconds > 0 ? options->seconds : CHECK_SECONDS,
        .row = hand_on,
        .user = &rows,
    };
    char shown[REMOTE_NAMES_SHOWN];
    if (!remote_names_is(uri))
        return fail(err, STK_USAGE, "%s is no URI of a store", remote_names_shown(uri, shown));
    int asks = context && context->hooks.waiting;
    struct remote_patience patience = {asks ? asks_hook : NULL, context};
    struct remote_patience before = remote_patience_set(patience);
    stk_status status = site_probe(&wanted, err);
    remote_patience_set(before);
    return status;
}
