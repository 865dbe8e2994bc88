/* Google Cloud Storage as a kind of site: its XML interface, which is S3's, with Google's tokens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/authority.h"
#include "net/gs_credentials.h"
#include "net/s3_place.h"

#define ENDPOINT "https://storage.googleapis.com"

/* STORAGE_EMULATOR_HOST as Google's libraries read it: an address, with or without http://. */
static stk_status find_endpoint(struct authority *out, enum gs_service *service,
                                struct stk_error *err)
{
    const char *emulator = getenv("STORAGE_EMULATOR_HOST");
    char url[320];
    stk_status status;

    *service = GS_CLOUD;
    if (!emulator || !emulator[0])
        return authority_parse(out, ENDPOINT, err);
    snprintf(url, sizeof(url), "%s%s", strstr(emulator, "://") ? "" : "http://", emulator);
    status = authority_parse(out, url, err);
    if (status)
        fail(err, STK_USAGE, "STORAGE_EMULATOR_HOST is no address");
    *service = out->is_tls || authority_is_loopback(out) ? GS_EMULATOR : GS_EXPOSED;
    return status;
}

/* Letters, digits, -, _ and dots; nothing that could change the URL it is put into. */
static size_t bucket_length(const char *name)
{
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.");
}

static stk_status gs_open(struct site *site, const char *uri, size_t *site_length,
                          struct stk_error *err)
{
    const char *bucket = uri + strlen("gs://");
    size_t length = bucket_length(bucket);
    struct authority authority;
    enum gs_service service;
    char host[320];
    stk_status status = STK_OK;

    if (length < 3 || (bucket[length] && bucket[length] != '/')) {
        status = fail(err, STK_USAGE, "the URI names no bucket");
        fail_at(err, uri, STK_NOWHERE);
        fail_remedy(err, "write gs://BUCKET/PATH");
        return status;
    }
    struct s3_place *place = s3_place_new();
    if (!place)
        return fail_memory(err, sizeof(*place));
    site->kind = place;
    site->can_list = site->can_put = 1;
    *site_length = (size_t)(bucket - uri) + length;
    if (length >= sizeof(place->bucket))
        return fail(err, STK_USAGE, "the bucket's name is too long");
    status = find_endpoint(&authority, &service, err);
    if (status)
        return status;
    snprintf(place->bucket, sizeof(place->bucket), "%.*s", (int)length, bucket);
    snprintf(place->origin, sizeof(place->origin), "%s", authority.origin);
    snprintf(place->region, sizeof(place->region), "auto");
    place->path_style = place->is_google = 1;
    snprintf(host, sizeof(host), "%s:%u", authority.name, authority.port);
    site->host = memory_text(host, strlen(host));
    site->uri = memory_text(uri, *site_length);
    if (!site->host || !site->uri)
        return fail_memory(err, *site_length);
    return gs_share_credentials(site, service, err);
}

static const char *const schemes[] = {"gs", NULL};

const struct site_ops gs_site = {
    .schemes = schemes,
    .open = gs_open,
    .close = s3_close,
    .make = s3_make,
    .read_page = s3_read_page,
    .read_trouble = s3_read_trouble,
    .read_upload = s3_read_upload,
};
