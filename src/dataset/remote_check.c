#include "stoker/remote.h"

#include <string.h>
#include <unistd.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "dataset/braces.h"
#include "dataset/remote_names.h"
#include "store/remote.h"
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

static struct remote_patience patience_begin(struct stk_context *context)
{
    int asks = context && context->hooks.waiting;
    return remote_patience_set((struct remote_patience){asks ? asks_hook : NULL, context});
}

static stk_status check_uri(const char *uri, struct stk_error *err)
{
    char shown[REMOTE_NAMES_SHOWN];
    if (remote_names_is(uri))
        return STK_OK;
    return fail(err, STK_USAGE, "%s is no URI of a store", remote_names_shown(uri, shown));
}

stk_status stk_remote_get(struct stk_context *context, const char *uri, uint64_t most,
                          void (*take)(void *user, struct stk_bytes bytes), void *user,
                          struct stk_error *err)
{
    struct text text = {0};
    stk_status status = check_uri(uri, err);
    if (status)
        return status;
    struct remote_patience before = patience_begin(context);
    status = remote_get(uri, most, &text, err);
    remote_patience_set(before);
    if (!status && text.failed)
        status = fail_memory(err, text.len);
    if (!status)
        take(user, (struct stk_bytes){(const uint8_t *)text.data, text.len});
    text_free(&text);
    return status;
}

/* Of a brace list the first name stands for all; STK_END ends the walk. */
static stk_status take_name(void *user, const char *name, struct stk_error *err)
{
    char **first = user;
    *first = memory_text(name, strlen(name));
    return *first ? STK_END : fail_memory(err, strlen(name));
}

stk_status stk_remote_probe(struct stk_context *context, const char *uri,
                            const struct stk_probe_options *options,
                            void (*row)(void *user, const struct stk_probe_row *row), void *user,
                            struct stk_error *err)
{
    struct rows rows = {row, user};
    char *first = NULL;
    struct probe_options wanted = {
        .most_at_once = options && options->most_at_once ? options->most_at_once : CHECK_AT_ONCE,
        .seconds = options && options->seconds > 0 ? options->seconds : CHECK_SECONDS,
        .row = hand_on,
        .user = &rows,
    };
    stk_status status = check_uri(uri, err);
    if (!status)
        status = braces_expand(uri, take_name, &first, err);
    if (status != STK_END)
        return status;
    struct remote_patience before = patience_begin(context);
    wanted.uri = first;
    status = site_probe(&wanted, err);
    remote_patience_set(before);
    memory_free(first);
    return status;
}
