#include "net/fetch_parts.h"

#include <string.h>
#include <strings.h>

/* The pieces of an absolute URL; all point into it. */
struct url {
    const char *scheme, *authority, *path; /* path: from its slash on, query included */
    size_t scheme_len, authority_len, path_len;
};

static int url_split(const char *text, struct url *out)
{
    const char *colon = strstr(text, "://");
    if (!colon || colon == text)
        return 0;
    out->scheme = text;
    out->scheme_len = (size_t)(colon - text);
    out->authority = colon + 3;
    out->authority_len = strcspn(out->authority, "/?#");
    out->path = out->authority + out->authority_len;
    out->path_len = strcspn(out->path, "#");
    return out->authority_len > 0 && !memchr(out->authority, '@', out->authority_len);
}

static int is_scheme(const struct url *url, const char *scheme)
{
    return url->scheme_len == strlen(scheme) &&
           strncasecmp(url->scheme, scheme, url->scheme_len) == 0;
}

/* Without the port that its scheme has anyway. */
static size_t authority_len(const struct url *url)
{
    const char *port = is_scheme(url, "https") ? ":443" : ":80";
    const size_t len = strlen(port);
    if (url->authority_len > len &&
        memcmp(url->authority + url->authority_len - len, port, len) == 0)
        return url->authority_len - len;
    return url->authority_len;
}

static int is_same_origin(const struct url *a, const struct url *b)
{
    return a->scheme_len == b->scheme_len &&
           strncasecmp(a->scheme, b->scheme, a->scheme_len) == 0 &&
           authority_len(a) == authority_len(b) &&
           strncasecmp(a->authority, b->authority, authority_len(a)) == 0;
}

/* Joins a location that may lack scheme, host or folder to the URL that answered with it. */
static void join(const struct url *base, const char *location, struct text *out)
{
    const size_t len = strcspn(location, "#");
    if (strncmp(location, "//", 2) == 0) {
        text_add(out, base->scheme, base->scheme_len);
        text_add(out, ":", 1);
        text_add(out, location, len);
        return;
    }
    text_add(out, base->scheme, base->scheme_len);
    text_add(out, "://", 3);
    text_add(out, base->authority, base->authority_len);
    if (*location != '/') {
        size_t folder = 0;
        for (size_t i = 0; i < base->path_len && base->path[i] != '?'; i++) {
            if (base->path[i] == '/')
                folder = i + 1;
        }
        text_add(out, folder ? base->path : "/", folder ? folder : 1);
    }
    text_add(out, location, len);
}

enum redirect_kind redirect_resolve(const char *base, const char *location, struct text *out)
{
    struct url from, to;
    if (!url_split(base, &from) || !*location)
        return REDIRECT_BAD;
    const size_t scheme = strcspn(location, ":/?#");
    if (location[scheme] == ':')
        text_add(out, location, strcspn(location, "#"));
    else
        join(&from, location, out);
    if (out->failed || !url_split(out->data, &to))
        return REDIRECT_BAD;
    for (const char *at = out->data; *at; at++) {
        if ((unsigned char)*at <= ' ' || *at == 0x7f)
            return REDIRECT_BAD;
    }
    if (!is_scheme(&to, "http") && !is_scheme(&to, "https"))
        return REDIRECT_BAD;
    if (is_scheme(&from, "https") && !is_scheme(&to, "https"))
        return REDIRECT_DOWN;
    return is_same_origin(&from, &to) ? REDIRECT_SAME : REDIRECT_FOREIGN;
}

/* A server may have signed what it sent us to. */
void redirect_free(struct text *url)
{
    if (url->data)
        explicit_bzero(url->data, url->len);
    text_free(url);
}
