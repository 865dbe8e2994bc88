#include "net/azure_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "net/authority.h"
#include "net/connection_string.h"

#define DEFAULT_SUFFIX "core.windows.net"
/* The emulator's well-known address. */
#define DEVELOPMENT_ENDPOINT "http://127.0.0.1:10000/" AZURE_DEVELOPMENT_ACCOUNT

const char *azure_variable(const char *name)
{
    const char *value = getenv(name);

    return value && value[0] ? value : NULL;
}

/* --- addresses ------------------------------------------------------------------------------- */

/* Behind "https://". */
static const char *behind_scheme(const char *url)
{
    const char *mark = strstr(url, "://");

    return mark ? mark + 3 : url;
}

/* The length of host and port at the start of a text. */
static size_t authority_length(const char *authority)
{
    return strcspn(authority, "/?#");
}

/* An address without a dot, or a number: its path begins with the account. */
static int is_path_style(const char *authority, size_t length)
{
    size_t digits = strspn(authority, "0123456789.:");

    return digits >= length || authority[0] == '[' || !memchr(authority, '.', length);
}

/* Whose endpoint it is: its host's first part, or the last part of its path. */
static int endpoint_account(const char *endpoint, size_t length, char account[AZURE_ACCOUNT_CAP])
{
    char copy[512];

    if (length >= sizeof(copy))
        return 0;
    memcpy(copy, endpoint, length);
    copy[length] = 0;
    while (length && copy[length - 1] == '/')
        copy[--length] = 0;
    const char *from = behind_scheme(copy);
    size_t host = authority_length(from);
    size_t part = strcspn(from, ".:/");
    if (is_path_style(from, host)) {
        const char *slash = strrchr(from, '/');
        from = slash ? slash + 1 : "";
        part = strlen(from);
    }
    if (!part || part >= AZURE_ACCOUNT_CAP)
        return 0;
    memcpy(account, from, part);
    account[part] = 0;
    return 1;
}

/* --- connection strings ---------------------------------------------------------------------- */

int azure_connection_is_development(const char *string)
{
    size_t length;
    const char *value = connection_string_find(string, "UseDevelopmentStorage", &length);

    return value && length == 4 && !strncasecmp(value, "true", 4);
}

int azure_connection_account(const char *string, char account[AZURE_ACCOUNT_CAP])
{
    size_t length;
    const char *value = connection_string_find(string, "AccountName", &length);

    account[0] = 0;
    if (azure_connection_is_development(string)) {
        snprintf(account, AZURE_ACCOUNT_CAP, "%s", AZURE_DEVELOPMENT_ACCOUNT);
        return 1;
    }
    if (!value) {
        value = connection_string_find(string, "BlobEndpoint", &length);
        return value && endpoint_account(value, length, account);
    }
    if (length >= AZURE_ACCOUNT_CAP)
        return 0;
    memcpy(account, value, length);
    account[length] = 0;
    return 1;
}

static void connection_endpoint(const char *string, const char *account, struct text *to)
{
    size_t length, protocol_length, suffix_length;
    const char *value = connection_string_find(string, "BlobEndpoint", &length);
    const char *protocol =
        connection_string_find(string, "DefaultEndpointsProtocol", &protocol_length);
    const char *suffix = connection_string_find(string, "EndpointSuffix", &suffix_length);

    if (value) {
        text_add(to, value, length);
    } else if (azure_connection_is_development(string)) {
        text_format(to, "%s", DEVELOPMENT_ENDPOINT);
    } else {
        if (!suffix)
            suffix = DEFAULT_SUFFIX, suffix_length = strlen(DEFAULT_SUFFIX);
        if (!protocol)
            protocol = "https", protocol_length = strlen("https");
        text_format(to, "%.*s://%s.blob.%.*s", (int)protocol_length, protocol, account,
                    (int)suffix_length, suffix);
    }
}

/* --- the URI --------------------------------------------------------------------------------- */

struct parts {
    const char *account, *container, *host; /* host: "" for az:// */
    size_t account_length, container_length, host_length;
};

static stk_status refuse_uri(const char *uri, const char *what, struct stk_error *err)
{
    fail(err, STK_USAGE, "%s", what);
    fail_at(err, uri, STK_NOWHERE);
    fail_remedy(err, "write az://ACCOUNT/CONTAINER/PATH or "
                     "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH");
    return STK_USAGE;
}

/* az://ACCOUNT/CONTAINER. */
static void split_short(const char *rest, struct parts *parts)
{
    parts->account = rest;
    parts->account_length = strcspn(rest, "/");
    rest += parts->account_length;
    parts->container = *rest ? rest + 1 : rest;
    parts->container_length = strcspn(parts->container, "/");
    parts->host = "";
}

/* abfss://CONTAINER@ACCOUNT.dfs.core.windows.net. */
static void split_long(const char *rest, struct parts *parts)
{
    size_t length = strcspn(rest, "/");
    const char *at = memchr(rest, '@', length);

    parts->container = rest;
    parts->container_length = at ? (size_t)(at - rest) : 0;
    parts->host = at ? at + 1 : rest;
    parts->host_length = length - (at ? parts->container_length + 1 : 0);
    parts->account = parts->host;
    parts->account_length = strcspn(parts->host, "./:");
    if (parts->account_length > parts->host_length)
        parts->account_length = parts->host_length;
}

static int is_plain(const char *name, size_t length, const char *more)
{
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            !strchr(more, c))
            return 0;
    }
    return length > 0;
}

static stk_status split(const char *uri, struct parts *parts, struct stk_error *err)
{
    memset(parts, 0, sizeof(*parts));
    if (!strncasecmp(uri, "az://", 5))
        split_short(uri + 5, parts);
    else
        split_long(behind_scheme(uri), parts);
    if (!is_plain(parts->account, parts->account_length, "-") ||
        parts->account_length >= AZURE_ACCOUNT_CAP)
        return refuse_uri(uri, "the URI names no storage account", err);
    if (!is_plain(parts->container, parts->container_length, "-_$"))
        return refuse_uri(uri, "the URI names no container", err);
    if (parts->host_length && !is_plain(parts->host, parts->host_length, "-."))
        return refuse_uri(uri, "the URI's host is none of Azure Storage's", err);
    return STK_OK;
}

/* The Blob endpoint of the same account: ".dfs." becomes ".blob.". */
static void usual_endpoint(const struct parts *parts, struct text *to)
{
    const char *rest = parts->host + parts->account_length;
    size_t length = parts->host_length - parts->account_length;
    const char *dfs = parts->host_length ? memmem(rest, length, ".dfs.", 5) : NULL;

    text_format(to, "https://%.*s", (int)parts->account_length, parts->account);
    if (!parts->host_length || !length) {
        text_format(to, ".blob." DEFAULT_SUFFIX);
    } else if (!dfs) {
        text_add(to, rest, length);
    } else {
        text_add(to, rest, (size_t)(dfs - rest));
        text_format(to, ".blob.");
        text_add(to, dfs + 5, length - (size_t)(dfs - rest) - 5);
    }
}

static int is_azures(const char *host, size_t length)
{
    static const char *const suffixes[] = {".core.windows.net",       ".core.chinacloudapi.cn",
                                           ".core.usgovcloudapi.net", ".core.cloudapi.de",
                                           ".storage.azure.net",      ".fabric.microsoft.com"};

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        size_t suffix = strlen(suffixes[i]);
        if (length > suffix && !strncasecmp(host + length - suffix, suffixes[i], suffix))
            return 1;
    }
    return 0;
}

/* --- all together ---------------------------------------------------------------------------- */

static stk_status choose_endpoint(const struct parts *parts, struct azure_place *place,
                                  struct text *to, struct stk_error *err)
{
    const char *account = place->account;
    const char *string = azure_variable("AZURE_STORAGE_CONNECTION_STRING");
    const char *endpoint = azure_variable("AZURE_STORAGE_SERVICE_ENDPOINT");
    const char *named = azure_variable("AZURE_STORAGE_ACCOUNT");
    char found[AZURE_ACCOUNT_CAP];

    if (string && !azure_connection_account(string, found)) {
        fail(err, STK_USAGE, "AZURE_STORAGE_CONNECTION_STRING names no account");
        fail_remedy(err, "it needs AccountName=... or BlobEndpoint=...");
        return STK_USAGE;
    }
    place->is_known = 1;
    /* One of another account says nothing about this one. */
    if (string && !strcmp(found, account)) {
        connection_endpoint(string, account, to);
    } else if (endpoint &&
               ((named && !strcmp(named, account)) ||
                (endpoint_account(endpoint, strlen(endpoint), found) && !strcmp(found, account)))) {
        text_format(to, "%s", endpoint);
    } else {
        usual_endpoint(parts, to);
        place->is_known = to->data && is_azures(to->data, to->len);
    }
    while (to->len && to->data[to->len - 1] == '/')
        to->data[--to->len] = 0;
    return to->failed ? fail_memory(err, to->len) : STK_OK;
}

static stk_status take_endpoint(struct azure_place *place, struct stk_error *err)
{
    struct authority authority;
    char host[320];
    stk_status status = authority_parse(&authority, place->endpoint, err);

    if (!status && strpbrk(place->endpoint + authority.length, "?#"))
        status = STK_USAGE;
    if (status) {
        fail(err, STK_USAGE, "the Blob endpoint of account %s is no address", place->account);
        fail_remedy(err, "look at AZURE_STORAGE_CONNECTION_STRING and "
                         "AZURE_STORAGE_SERVICE_ENDPOINT: https://HOST is wanted");
        return STK_USAGE;
    }
    place->path = place->endpoint + authority.length;
    place->is_private = authority.is_tls || authority_is_loopback(&authority);
    snprintf(host, sizeof(host), "%s:%u", authority.name, authority.port);
    place->host = memory_text(host, strlen(host));
    return place->host ? STK_OK : fail_memory(err, strlen(host));
}

stk_status azure_place_new(struct azure_place **out, const char *uri, size_t *site_length,
                           struct stk_error *err)
{
    struct azure_place *place = NULL;
    struct text endpoint = {0};
    struct parts parts;
    stk_status status = split(uri, &parts, err);

    *out = NULL;
    *site_length = 0;
    if (status)
        return status;
    place = memory_zero(1, sizeof(*place));
    if (!place)
        return fail_memory(err, sizeof(*place));
    place->account = memory_text(parts.account, parts.account_length);
    place->container = memory_text(parts.container, parts.container_length);
    if (!place->account || !place->container)
        status = fail_memory(err, parts.container_length);
    if (!status)
        status = choose_endpoint(&parts, place, &endpoint, err);
    if (!status)
        place->endpoint = memory_text(endpoint.data, endpoint.len);
    if (!status)
        status = place->endpoint ? take_endpoint(place, err) : fail_memory(err, endpoint.len);
    if (status)
        goto done;
    const char *end = parts.host_length ? parts.host + parts.host_length
                                        : parts.container + parts.container_length;
    *site_length = (size_t)(end - uri);
    *out = place;
    place = NULL;
done:
    azure_place_free(place);
    text_free(&endpoint);
    return status;
}

void azure_place_free(struct azure_place *place)
{
    if (!place)
        return;
    memory_free(place->account);
    memory_free(place->container);
    memory_free(place->endpoint);
    memory_free(place->host);
    memory_free(place);
}
