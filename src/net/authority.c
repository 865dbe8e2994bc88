#include "net/authority.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/parse.h"

static stk_status bad(struct stk_error *err, const char *why)
{
    return fail(err, STK_USAGE, "that is no URL of a server: %s", why);
}

static int is_host_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
           c == '~' || c == '[' || c == ']' || c == ':';
}

/* name:port, name, [v6]:port. */
static stk_status parse_name(struct authority *out, const char *from, size_t length,
                             struct stk_error *err)
{
    const char *close = memchr(from, ']', length);
    const char *rest = close ? close : from;
    const char *colon = memchr(rest, ':', length - (size_t)(rest - from));
    size_t name_length = colon ? (size_t)(colon - from) : length;
    uint64_t port = out->is_tls ? 443 : 80;
    if (!name_length || name_length >= sizeof(out->name))
        return bad(err, "its host has no name, or too long a one");
    if (colon && (!parse_u64(colon + 1, length - name_length - 1, &port) || !port || port > 65535))
        return bad(err, "its port is not a number of 1 to 65535");
    for (size_t i = 0; i < name_length; i++) {
        char c = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] + 32) : from[i];
        int in_brackets = from[0] == '[' && close;
        if (!is_host_character(c) || (!in_brackets && (c == '[' || c == ']' || c == ':')))
            return bad(err, "its host's name has a character that no name has");
        out->name[i] = c;
    }
    out->name[name_length] = '\0';
    out->port = (unsigned)port;
    return STK_OK;
}

stk_status authority_parse(struct authority *out, const char *url, struct stk_error *err)
{
    memset(out, 0, sizeof(*out));
    size_t scheme = !strncasecmp(url, "https://", 8) ? 8 : !strncasecmp(url, "http://", 7) ? 7 : 0;
    if (!scheme)
        return bad(err, "it begins neither with http:// nor with https://");
    out->is_tls = scheme == 8;
    size_t length = strcspn(url + scheme, "/?#");
    out->length = scheme + length;
    if (memchr(url + scheme, '@', length)) {
        fail(err, STK_USAGE,
             "the URL has a user or a password before its host, which is refused: "
             "it would show in messages and indexes");
        fail_remedy(err, "write them into ~/.netrc: machine HOST login USER password PASSWORD");
        return STK_USAGE;
    }
    stk_status status = parse_name(out, url + scheme, length, err);
    if (status)
        return status;
    if (out->port == (out->is_tls ? 443u : 80u))
        snprintf(out->host, sizeof(out->host), "%s", out->name);
    else
        snprintf(out->host, sizeof(out->host), "%s:%u", out->name, out->port);
    snprintf(out->origin, sizeof(out->origin), "%s://%s", out->is_tls ? "https" : "http",
             out->host);
    return STK_OK;
}

int authority_is_loopback(const struct authority *authority)
{
    const char *name = authority->name;
    /* Digits and dots alone: 127.0.0.1.example.com is a host of anybody's. */
    return !strcmp(name, "localhost") || !strcmp(name, "[::1]") ||
           (!strncmp(name, "127.", 4) && !name[strspn(name, "0123456789.")]);
}
