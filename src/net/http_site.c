#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/authority.h"
#include "net/digest.h"
#include "net/netrc.h"
#include "net/site.h"
#include "net/uri_secret.h"

static const char *const schemes[] = {"http", "https", NULL};

/* What the environment said when the site was opened: a thread of ours may look again later. */
struct http_source {
    char name[256]; /* of the host */
    char netrc[1024];
    char *token; /* NULL: none for this host */
};

static void source_free(void *user)
{
    struct http_source *source = user;
    if (source->token)
        secret_wipe(source->token, strlen(source->token));
    memory_free(source->token);
    memory_free(source);
}

static stk_status source_find(void *user, struct net *net, struct secret *out,
                              struct stk_error *err)
{
    const struct http_source *source = user;
    struct text file = {0};
    (void)net;
    if (source->token) {
        if (!secret_set(out->token, sizeof(out->token), source->token, strlen(source->token)))
            return fail(err, STK_USAGE, "STOKER_HTTP_TOKEN is too long");
        out->kind = SECRET_BEARER;
        strcpy(out->where, "STOKER_HTTP_TOKEN");
        return STK_OK;
    }
    if (!secret_file_read(&file, source->netrc, NULL) &&
        netrc_find(file.data, file.len, source->name, out))
        snprintf(out->where, sizeof(out->where), "%.120s", source->netrc);
    secret_text_free(&file);
    return STK_OK;
}

/* STOKER_HTTP_TOKEN goes to STOKER_HTTP_TOKEN_HOST alone, and in the clear to this machine only. */
static const char *token_for(const struct authority *authority)
{
    const char *host = getenv("STOKER_HTTP_TOKEN_HOST"), *token = getenv("STOKER_HTTP_TOKEN");
    if (!host || !token || !*token)
        return NULL;
    if (strcasecmp(host, authority->name) && strcasecmp(host, authority->host))
        return NULL;
    return authority->is_tls || authority_is_loopback(authority) ? token : NULL;
}

static void netrc_path(char *to, size_t cap)
{
    const char *path = getenv("NETRC"), *home = getenv("HOME");
    if (path && *path)
        snprintf(to, cap, "%s", path);
    else if (home)
        snprintf(to, cap, "%s/.netrc", home);
}

/* Sets up credentials where there are any; most sites have none and go without. */
static stk_status find_credentials(struct site *site, const struct authority *authority,
                                   struct stk_error *err)
{
    char name[320];
    struct http_source *source = memory_zero(1, sizeof(*source));
    struct secret *found = secret_new();
    stk_status status = source && found ? STK_OK : fail_memory(err, sizeof(*found));
    if (status)
        goto done;
    const char *token = token_for(authority);
    strcpy(source->name, authority->name);
    netrc_path(source->netrc, sizeof(source->netrc));
    if (token && !(source->token = memory_text(token, strlen(token)))) {
        status = fail_memory(err, strlen(token));
        goto done;
    }
    status = source_find(source, site->net, found, err);
    if (status || found->kind == SECRET_NONE)
        goto done;
    snprintf(name, sizeof(name), "http:%s", authority->origin);
    status = site_share_credentials(
        site, name, &(struct credentials_source){source_find, source_free, source}, err);
    source = NULL; /* the credentials own it now */
done:
    if (source)
        source_free(source);
    secret_free(found);
    return status;
}

static stk_status http_open(struct site *site, const char *uri, size_t *site_length,
                            struct stk_error *err)
{
    struct authority authority;
    char host[288];
    stk_status status = authority_parse(&authority, uri, err);
    if (status)
        return status;
    *site_length = authority.length;
    snprintf(host, sizeof(host), "%s:%u", authority.name, authority.port);
    site->uri = memory_text(authority.origin, strlen(authority.origin));
    site->host = memory_text(host, strlen(host));
    return find_credentials(site, &authority, err);
}

/* A key is the URL's own text: what is escaped stays so, and what no URL may hold is escaped. */
static void add_key(struct text *url, const char *key)
{
    static const char unsafe[] = " \"#<>\\^`{|}";
    for (; *key; key++) {
        unsigned char c = (unsigned char)*key;
        if (c <= 0x20 || c >= 0x7F || strchr(unsafe, c))
            text_format(url, "%%%02X", c);
        else
            text_add(url, key, 1);
    }
}

static stk_status add_secret(struct site_made *made, const struct secret *secret,
                             struct stk_error *err)
{
    struct text *value = site_header(made, "Authorization");
    if (!value)
        return fail_memory(err, 0);
    if (secret->kind == SECRET_BEARER) {
        text_format(value, "Bearer %s", secret->token);
        return STK_OK;
    }
    struct text pair = {0};
    text_format(&pair, "%s:%s", secret->id, secret->key);
    stk_status status = STK_OK;
    if (pair.failed || !secret_text_reserve(value, 8 + (pair.len / 3 + 1) * 4)) {
        status = fail_memory(err, pair.len);
    } else {
        text_add(value, "Basic ", 6);
        digest_base64(value, pair.data, pair.len);
    }
    secret_text_free(&pair);
    return status;
}

static stk_status http_make(struct site *site, const struct site_call *call,
                            const struct secret *secret, struct site_made *made,
                            struct stk_error *err)
{
    stk_status status = STK_OK;
    if (call->verb == SITE_LIST) {
        fail(err, STK_UNSUPPORTED, "a plain HTTP server cannot be asked which files it has");
        fail_remedy(err, "name the files, with braces: https://host/shard-{000..127}.tar");
        return STK_UNSUPPORTED;
    }
    if (call->verb != SITE_READ && call->verb != SITE_STAT) {
        fail(err, STK_UNSUPPORTED, "nothing can be written to a plain HTTP server");
        fail_remedy(err, "write to a folder, to s3:// or to az://");
        return STK_UNSUPPORTED;
    }
    status = uri_secret_refuse(call->key, err);
    if (status)
        return status;
    made->request.method = call->verb == SITE_STAT ? WEB_HEAD : WEB_GET;
    text_format(&made->url, "%s/", site->uri);
    add_key(&made->url, call->key);
    if (secret)
        status = add_secret(made, secret, err);
    return status ? status : site_made_finish(made, err);
}

static stk_status http_read_page(struct site *site, const struct site_call *call,
                                 const struct web_answer *answer, const char *body, size_t length,
                                 struct site_page *page, struct stk_error *err)
{
    (void)site, (void)call, (void)answer, (void)body, (void)length, (void)page;
    return fail(err, STK_UNSUPPORTED, "a plain HTTP server cannot be asked which files it has");
}

static void http_read_trouble(struct site *site, const struct web_answer *answer,
                              struct site_trouble *trouble)
{
    (void)site;
    site_trouble_by_status(answer->status, trouble);
}

const struct site_ops http_site = {.schemes = schemes,
                                   .open = http_open,
                                   .make = http_make,
                                   .read_page = http_read_page,
                                   .read_trouble = http_read_trouble};
