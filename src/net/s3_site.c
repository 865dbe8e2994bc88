#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/authority.h"
#include "net/aws_chain.h"
#include "net/s3_place.h"

static const char *const schemes[] = {"s3", "s3a", NULL};

static int is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") && strcasecmp(value, "false") &&
           strcasecmp(value, "no");
}

/* s3://bucket/key. */
static stk_status take_bucket(struct s3_place *place, const char *uri, size_t *site_length,
                              struct stk_error *err)
{
    const char *bucket = strstr(uri, "://") + 3;
    size_t length = strcspn(bucket, "/");
    const char *why = NULL;
    if (!length)
        why = "it names no bucket";
    else if (memchr(bucket, ':', length))
        why = "access points are not known here, buckets are";
    else if (length > 6 && !memcmp(bucket + length - 6, "--x-s3", 6))
        why = "directory buckets (S3 Express) are not known here";
    else if (memchr(bucket, '@', length) || memchr(bucket, '?', length))
        why = "a bucket's name has only letters, digits, dots, hyphens and underscores";
    else if (!secret_set(place->bucket, sizeof(place->bucket), bucket, length))
        why = "its bucket's name is too long";
    for (const char *c = place->bucket; !why && *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c))
            why = "a bucket's name has only letters, digits, dots, hyphens and underscores";
    *site_length = (size_t)(bucket - uri) + length;
    return why ? fail(err, STK_USAGE, "that is no URI of S3: %s", why) : STK_OK;
}

/* Names with capitals, underscores or dots are no names of hosts, or of none that a certificate
 * covers. */
static int fits_host(const char *bucket)
{
    size_t length = strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-");
    return !bucket[length] && length >= 3 && length <= 63;
}

static stk_status take_endpoint(struct s3_place *place, const struct aws_config *config,
                                struct stk_error *err)
{
    char endpoint[512], style[32];
    struct authority authority;
    if (aws_config_endpoint(config, "s3", endpoint, sizeof(endpoint))) {
        stk_status status = authority_parse(&authority, endpoint, err);
        if (status) {
            fail_remedy(err, "AWS_ENDPOINT_URL is like http://127.0.0.1:9000");
            return status;
        }
        strcpy(place->origin, authority.origin);
        const char *base = endpoint + authority.length;
        size_t length = strcspn(base, "?#");
        while (length && base[length - 1] == '/')
            length--;
        if (!secret_set(place->base, sizeof(place->base), base, length))
            return fail(err, STK_USAGE, "the path of AWS_ENDPOINT_URL is too long");
    }
    place->path_style = place->origin[0] || !fits_host(place->bucket);
    if (aws_config_get(config, config->profile, "s3.addressing_style", style, sizeof(style))) {
        if (!strcmp(style, "path"))
            place->path_style = 1;
        else if (!strcmp(style, "virtual"))
            place->path_style = 0;
    }
    return STK_OK;
}

/* Where it is, what it is called there, and what its requests are counted by. */
static stk_status take_place(struct site *site, struct s3_place *place,
                             const struct aws_config *config, struct stk_error *err)
{
    struct text url = {0};
    struct authority authority;
    stk_status status = take_endpoint(place, config, err);
    if (status)
        return status;
    aws_config_region(config, place->region, sizeof(place->region));
    snprintf(place->service, sizeof(place->service), "s3%s%s",
             aws_config_is_true(config, AWS_USE_FIPS_ENDPOINT, "use_fips_endpoint") ? "-fips" : "",
             aws_config_is_true(config, AWS_USE_DUALSTACK_ENDPOINT, "use_dualstack_endpoint")
                 ? ".dualstack"
                 : "");
    const char *payer = aws_env_get(config->env, AWS_REQUEST_PAYER);
    place->requester_pays = is_set("STOKER_S3_REQUESTER_PAYS") || !strcasecmp(payer, "requester");
    s3_add_origin(&url, place, place->region);
    status = url.failed ? fail_memory(err, 0) : authority_parse(&authority, url.data, err);
    text_free(&url);
    if (status)
        return status;
    char text[320];
    snprintf(text, sizeof(text), "%s:%u", authority.name, authority.port);
    site->host = memory_text(text, strlen(text));
    snprintf(text, sizeof(text), "s3://%s", place->bucket);
    site->uri = memory_text(text, strlen(text));
    return STK_OK;
}

static stk_status take_credentials(struct site *site, struct aws_env *env, const char *profile,
                                   struct stk_error *err)
{
    char name[160];
    snprintf(name, sizeof(name), "aws:%s", profile);
    struct credentials_source source = aws_chain_source(env);
    return site_share_credentials(site, name, &source, err);
}

static stk_status s3_open(struct site *site, const char *uri, size_t *site_length,
                          struct stk_error *err)
{
    struct aws_config config = {0};
    struct aws_env *env = aws_env_new();
    struct s3_place *place = s3_place_new();
    site->kind = place; /* s3_close frees it */
    site->can_list = site->can_put = 1;
    stk_status status = env && place ? STK_OK : fail_memory(err, sizeof(*place));
    if (!status)
        status = take_bucket(place, uri, site_length, err);
    if (!status)
        status = aws_config_load(&config, env, err);
    if (!status)
        status = take_place(site, place, &config, err);
    if (!status && !aws_env_is_true(env, AWS_NO_SIGN_REQUEST) && !is_set("STOKER_S3_ANONYMOUS")) {
        status = take_credentials(site, env, config.profile, err);
        env = NULL; /* the credentials own it now */
    }
    aws_config_reset(&config);
    aws_env_free(env);
    return status;
}

const struct site_ops s3_site = {.schemes = schemes,
                                 .open = s3_open,
                                 .close = s3_close,
                                 .make = s3_make,
                                 .read_page = s3_read_page,
                                 .read_trouble = s3_read_trouble,
                                 .read_upload = s3_read_upload};
