#include "net/gs_credentials.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/gs_token.h"

#define WELL_KNOWN "application_default_credentials.json"

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

static stk_status from_keys(struct secret *out, struct stk_error *err)
{
    const char *id = variable("STOKER_GS_HMAC_ID"), *key = variable("STOKER_GS_HMAC_SECRET");

    if (!id && !key)
        return STK_OK;
    if (!id || !key || !secret_set(out->id, sizeof(out->id), id, strlen(id)) ||
        !secret_set(out->key, sizeof(out->key), key, strlen(key)))
        return fail(err, STK_USAGE,
                    "STOKER_GS_HMAC_ID and STOKER_GS_HMAC_SECRET go together, and one of them is "
                    "missing or too long");
    out->kind = SECRET_AWS;
    snprintf(out->where, sizeof(out->where), "STOKER_GS_HMAC_ID");
    return STK_OK;
}

/* gcloud's own file, if it is there. */
static int well_known_path(char path[PATH_MAX])
{
    const char *folder = variable("CLOUDSDK_CONFIG"), *home = variable("HOME");
    int length = -1;

    if (folder)
        length = snprintf(path, PATH_MAX, "%s/" WELL_KNOWN, folder);
    else if (home)
        length = snprintf(path, PATH_MAX, "%s/.config/gcloud/" WELL_KNOWN, home);
    return length > 0 && length < PATH_MAX && access(path, F_OK) == 0;
}

static stk_status nothing_found(struct stk_error *err)
{
    fail(err, STK_DENIED,
         "no credentials for Google Cloud Storage: looked at STOKER_GS_HMAC_ID, "
         "GOOGLE_APPLICATION_CREDENTIALS, gcloud's " WELL_KNOWN " and the metadata server");
    fail_remedy(err, "run 'gcloud auth application-default login', or set one of them; "
                     "STOKER_GS_ANONYMOUS=1 reads public buckets");
    return STK_DENIED;
}

static stk_status from_defaults(struct net *net, struct secret *out, struct stk_error *err)
{
    char path[PATH_MAX];

    if (well_known_path(path))
        return gs_token_from_file(net, path, "gcloud's " WELL_KNOWN, out, err);
    stk_status status = gs_token_from_metadata(net, out, err);
    return status && status != STK_MEMORY && status != STK_CANCELLED ? nothing_found(err) : status;
}

stk_status gs_find_secret(enum gs_service service, struct net *net, struct secret *out,
                          struct stk_error *err)
{
    const char *path = variable("GOOGLE_APPLICATION_CREDENTIALS");
    const char *anonymous = variable("STOKER_GS_ANONYMOUS");
    stk_status status;

    if (service == GS_EXPOSED)
        return STK_OK;
    status = from_keys(out, err);
    if (status || out->kind != SECRET_NONE)
        return status;
    if (anonymous && strcmp(anonymous, "0"))
        return STK_OK;
    if (path)
        return gs_token_from_file(net, path, "GOOGLE_APPLICATION_CREDENTIALS", out, err);
    if (service == GS_CLOUD)
        return from_defaults(net, out, err);
    if (!variable("GCE_METADATA_HOST"))
        return STK_OK;
    status = gs_token_from_metadata(net, out, err);
    return status == STK_NOT_FOUND ? STK_OK : status;
}

/* --- shared by all buckets ------------------------------------------------------------------- */

static stk_status find(void *user, struct net *net, struct secret *out, struct stk_error *err)
{
    return gs_find_secret(*(enum gs_service *)user, net, out, err);
}

stk_status gs_share_credentials(struct site *site, enum gs_service service, struct stk_error *err)
{
    static const char *const names[] = {
        [GS_CLOUD] = "gs:cloud", [GS_EMULATOR] = "gs:emulator", [GS_EXPOSED] = "gs:exposed"};
    enum gs_service *user = memory_alloc(sizeof(*user));
    const struct credentials_source source = {.find = find, .free = memory_free, .user = user};

    if (!user)
        return fail_memory(err, sizeof(*user));
    *user = service;
    return site_share_credentials(site, names[service], &source, err);
}
