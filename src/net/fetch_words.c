/* What went wrong, in words: the one place that says what a failure or a status means, whether it
 * is tried again, and what the user can do about it. */
#include "net/fetch_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"

#define CHECK "`stoker check URI` tries each step"
#define BROKEN "a proxy or a link between may be at fault; " CHECK

/* Why there was no whole answer. tries_most 0: tried again until the deadline. */
static const struct fetch_words failures[WEB_FAILURES] = {
    [WEB_FINE] = {STK_OK, 1, "there is an answer", ""},
    [WEB_RESOLVE] = {STK_IO, 3, "the host's name is not known",
                     "check the name, and this machine's DNS; " CHECK},
    [WEB_CONNECT] = {STK_IO, 3, "the host does not answer",
                     "check that it is up and reached from here (firewall, HTTPS_PROXY, NO_PROXY)"},
    [WEB_TLS] = {STK_IO, 1, "the connection is not secure: TLS failed",
                 "a certificate of your own is named by --ca FILE or STOKER_CA; check the date of "
                 "this machine, too"},
    [WEB_RESET] = {STK_IO, 0, "the connection broke off", BROKEN},
    [WEB_SLOW] = {STK_IO, 0, "the host stopped sending", BROKEN},
    [WEB_LATE] = {STK_IO, 0, "the answer did not come in time", BROKEN},
    [WEB_LENGTH] = {STK_CORRUPT, 5, "the answer is longer than what was asked for", BROKEN},
    [WEB_RANGE] = {STK_UNSUPPORTED, 2, "the answer is not the range that was asked for",
                   "the server must know byte ranges; copy the data to one that does, or to disk"},
    [WEB_CHANGED] = {STK_STALE, 1, "the object changed since it was indexed",
                     "index it again (stoker index), and do not write to data that is being read"},
    [WEB_ENCODED] = {STK_CORRUPT, 2, "the answer was compressed on its way",
                     "a proxy changes the data: go round it (NO_PROXY), or turn that off there"},
    [WEB_REDIRECT] = {STK_IO, 1, "the redirect leads to where it must not go", ""},
    [WEB_PROTOCOL] = {STK_IO, 5, "the answer is not HTTP",
                      "check the port and the scheme (http or https)"},
    [WEB_CANCELLED] = {STK_CANCELLED, 1, "stopped on request", ""},
    [WEB_MEMORY] = {STK_MEMORY, 1, "out of memory", ""},
};

/* What a status means where the site says nothing better. */
static const struct status_row {
    int status;
    struct fetch_words words;
} statuses[] = {
    {400, {STK_USAGE, 1, "the request was taken for wrong", CHECK}},
    {401,
     {STK_DENIED, 1, "credentials are asked for", "docs/stores.md says where they are looked for"}},
    {403,
     {STK_DENIED, 1, "access is refused",
      "the credentials in use may not do this, or there are none; docs/stores.md says where they "
      "are looked for"}},
    {404,
     {STK_NOT_FOUND, 1, "there is no such object",
      "check its name (upper and lower case differ); `stoker ls` shows what is there"}},
    {405, {STK_UNSUPPORTED, 1, "the server does not do that", CHECK}},
    {407, {STK_DENIED, 1, "the proxy asks for credentials", "see HTTPS_PROXY"}},
    {408, {STK_IO, 0, "the server gave up waiting", BROKEN}},
    {409, {STK_MISMATCH, 1, "something else is there, or is being written", ""}},
    {410, {STK_NOT_FOUND, 1, "the object is gone", ""}},
    {411, {STK_IO, 1, "the request was taken for wrong", CHECK}},
    {412,
     {STK_STALE, 1, "the object changed since it was indexed",
      "index it again (stoker index), and do not write to data that is being read"}},
    {413, {STK_LIMIT, 1, "it is too large for the server", ""}},
    {416,
     {STK_STALE, 1, "the object is shorter than its index says", "index it again (stoker index)"}},
    {425, {STK_IO, 0, "the server was not ready", ""}},
    {429,
     {STK_LIMIT, 0, "the server says that there are too many requests",
      "fewer processes at once, or a higher limit there"}},
    {500, {STK_IO, 0, "the server failed", "look at the server's own log or status page"}},
    {501, {STK_UNSUPPORTED, 1, "the server does not do that", CHECK}},
    {502, {STK_IO, 0, "the server behind the gateway failed", ""}},
    {503, {STK_LIMIT, 0, "the server is busy", "fewer processes at once, or a higher limit there"}},
    {504, {STK_IO, 0, "the server behind the gateway did not answer", ""}},
};
static const struct fetch_words other_status = {STK_IO, 1, "the answer is not understood", CHECK};
static const struct fetch_words other_failure = {STK_IO, 0, "the server failed", ""};

const struct fetch_words *words_of_failure(enum web_failure failure)
{
    return &failures[failure < WEB_FAILURES ? failure : WEB_PROTOCOL];
}

const struct fetch_words *words_of_status(int status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        if (statuses[i].status == status)
            return &statuses[i].words;
    }
    return status >= 500 ? &other_failure : &other_status;
}

void words_object(struct fetch_private *inside, struct stk_error *err)
{
    const struct fetch *fetch = inside->fetch;
    char object[sizeof err->object];
    const char *key = fetch->call.key ? fetch->call.key : "";
    /* The tail of a long name says more than its head. */
    const size_t head = strlen(fetch->site->uri), tail = strlen(key);
    const size_t skip = head + 2 + tail > sizeof object ? head + 2 + tail - sizeof object : 0;
    snprintf(object, sizeof object, "%s%s%s", fetch->site->uri, *key ? "/" : "",
             skip < tail ? key + skip : key);
    fail_at(err, object, fetch_is_ranged(fetch) ? fetch->offset : STK_NOWHERE);
}

void words_tries(struct fetch_private *inside, struct stk_error *err)
{
    const size_t len = strlen(err->what);
    const double seconds = (double)(clock_now() - inside->started_ns) * 1e-9;
    if (inside->fetch->tries > 1)
        snprintf(err->what + len, sizeof err->what - len, " (tried %u times in %.1f s)",
                 inside->fetch->tries, seconds);
}

/* Whom it was about: a redirect's host is named, since nobody would guess it. */
static void host_name(const struct fetch_private *inside, char *out, size_t cap)
{
    const char *name = inside->fetch->site->host;
    size_t len = strlen(name);
    if (inside->redirect.len) {
        name = strstr(inside->redirect.data, "://");
        name = name ? name + 3 : "";
        len = strcspn(name, "/?#");
    }
    snprintf(out, cap, "%.*s%s", (int)(len < 200 ? len : 200), name,
             inside->redirect.len ? " (by a redirect)" : "");
}

stk_status words_failure(struct fetch_private *inside, const struct web_answer *answer)
{
    const struct fetch_words *words = words_of_failure(answer->failure);
    char host[256];
    host_name(inside, host, sizeof host);
    fail(&inside->cause, words->status, "%s: %s%s%s", host, words->what, *answer->words ? ": " : "",
         answer->words);
    fail_remedy(&inside->cause, "%s", words->remedy);
    words_object(inside, &inside->cause);
    return words->status;
}

/* "HTTP 403 AccessDenied: the site's own sentence". Sites without a code of their own say the
 * status twice. */
static void status_words(int status, const struct site_trouble *trouble, char *out, size_t cap)
{
    char number[16];
    snprintf(number, sizeof number, "%d", status);
    const char *code = strcmp(trouble->code, number) == 0 ? "" : trouble->code;
    snprintf(out, cap, "HTTP %s%s%s%s%s", number, *code ? " " : "", code,
             *trouble->words ? ": " : "", trouble->words);
}

stk_status words_trouble(struct fetch_private *inside, int status,
                         const struct site_trouble *trouble)
{
    const struct fetch_words *words = words_of_status(status);
    const stk_status code = trouble->status ? trouble->status : words->status;
    char said[384];
    status_words(status, trouble, said, sizeof said);
    fail(&inside->cause, code, "%s: %s", words->what, said);
    fail_remedy(&inside->cause, "%s", words->remedy);
    words_object(inside, &inside->cause);
    return code;
}

stk_status words_refused(struct fetch_private *inside, int status,
                         const struct site_trouble *trouble)
{
    const char *where = inside->first.made.where;
    char said[384];
    if (!inside->first.made.mark)
        return words_trouble(inside, status, trouble); /* none were sent */
    status_words(status, trouble, said, sizeof said);
    fail(&inside->cause, STK_DENIED, "the credentials%s%s were refused: %s", *where ? " from " : "",
         where, said);
    fail_remedy(&inside->cause, "%s", words_of_status(403)->remedy);
    words_object(inside, &inside->cause);
    return STK_DENIED;
}

stk_status words_say(struct fetch_private *inside, stk_status status, const char *remedy,
                     const char *format, ...)
{
    char what[sizeof inside->cause.what];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fail(&inside->cause, status, "%s", what);
    fail_remedy(&inside->cause, "%s", remedy);
    words_object(inside, &inside->cause);
    return status;
}
