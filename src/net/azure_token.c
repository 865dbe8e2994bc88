#include "net/azure_token.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "net/azure_cli.h"
#include "net/azure_place.h"
#include "net/escape.h"
#include "net/token_call.h"

#define RESOURCE "https://storage.azure.com/"
#define SCOPE "https://storage.azure.com/.default"
#define AUTHORITY "https://login.microsoftonline.com"
#define METADATA "http://169.254.169.254"
#define ENTRA "Microsoft Entra ID"

/* --- Microsoft Entra ID ---------------------------------------------------------------------- */

/* Secrets go there: https, or this machine. */
static stk_status token_url(struct text *url, const char *tenant, struct stk_error *err)
{
    const char *authority = azure_variable("AZURE_AUTHORITY_HOST");

    if (!authority)
        authority = AUTHORITY;
    if (!strstr(authority, "://"))
        text_format(url, "https://");
    text_format(url, "%s", authority);
    while (url->len && url->data[url->len - 1] == '/')
        url->data[--url->len] = 0;
    if (url->failed)
        return fail_memory(err, url->len);
    stk_status status = token_url_check(url->data, "AZURE_AUTHORITY_HOST", err);
    if (status)
        return status;
    text_format(url, "/");
    escape_add(url, tenant, strlen(tenant), 0);
    text_format(url, "/oauth2/v2.0/token");
    return url->failed ? fail_memory(err, url->len) : STK_OK;
}

/* form: what proves who we are; the rest is added here. */
static stk_status ask_entra(struct net *net, struct text *form, const char *where,
                            struct secret *out, struct stk_error *err)
{
    struct text url = {0}, answer = {0};
    stk_status status = token_url(&url, azure_variable("AZURE_TENANT_ID"), err);

    token_form_add(form, "client_id", azure_variable("AZURE_CLIENT_ID"));
    token_form_add(form, "grant_type", "client_credentials");
    token_form_add(form, "scope", SCOPE);
    if (!status && form->failed)
        status = fail_memory(err, form->len);
    if (status)
        goto done;
    const struct token_call call = {.who = ENTRA,
                                    .url = url.data,
                                    .form = form->data,
                                    .limit_ms = TOKEN_SERVICE_MS,
                                    .tries = TOKEN_SERVICE_TRIES};
    status = token_call(net, &call, &answer, err);
    if (!status)
        status = token_read(&answer, ENTRA, where, out, err);
    else
        fail_remedy(err, "the credentials are those of %s", where);
done:
    secret_text_free(&answer);
    text_free(&url);
    return status;
}

static int has_client(void)
{
    return azure_variable("AZURE_TENANT_ID") && azure_variable("AZURE_CLIENT_ID");
}

static stk_status from_principal(struct net *net, struct secret *out, struct stk_error *err)
{
    const char *client_secret = azure_variable("AZURE_CLIENT_SECRET");
    struct text form = {0};
    stk_status status;

    if (!has_client() || (!client_secret && !azure_variable("AZURE_CLIENT_CERTIFICATE_PATH")))
        return STK_OK;
    if (!client_secret) {
        fail(err, STK_UNSUPPORTED,
             "AZURE_CLIENT_CERTIFICATE_PATH is set, and certificates are not read here");
        fail_remedy(err, "use AZURE_CLIENT_SECRET, a managed identity or 'az login'");
        return STK_UNSUPPORTED;
    }
    token_form_add(&form, "client_secret", client_secret);
    status = ask_entra(net, &form, "AZURE_CLIENT_SECRET", out, err);
    secret_text_free(&form);
    return status;
}

/* The file is written anew by the cluster now and then, so it is read each time. */
static stk_status from_workload(struct net *net, struct secret *out, struct stk_error *err)
{
    const char *path = azure_variable("AZURE_FEDERATED_TOKEN_FILE");
    struct text form = {0}, token = {0};
    stk_status status;

    if (!path || !has_client())
        return STK_OK;
    status = token_file(&token, path, err);
    if (!status) {
        token_form_add(&form, "client_assertion", token.data);
        token_form_add(&form, "client_assertion_type",
                       "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
        status = ask_entra(net, &form, "AZURE_FEDERATED_TOKEN_FILE", out, err);
    }
    secret_text_free(&token);
    secret_text_free(&form);
    return status;
}

/* --- managed identities ---------------------------------------------------------------------- */

struct identity {
    const char *where;
    const char *endpoint, *path; /* the URL is both */
    const char *version;
    const char *header, *value;
    const char *client_name,
        *client; /* of an identity that was assigned; NULL: the machine's own */
    uint32_t tries;
    uint32_t limit_ms;
};

static stk_status ask_identity(struct net *net, const struct identity *identity, struct secret *out,
                               struct stk_error *err)
{
    struct text url = {0}, answer = {0};
    stk_status status;

    text_format(&url, "%s%s%capi-version=%s&resource=", identity->endpoint, identity->path,
                strchr(identity->endpoint, '?') ? '&' : '?', identity->version);
    escape_add(&url, RESOURCE, strlen(RESOURCE), 0);
    if (identity->client) {
        text_format(&url, "&%s=", identity->client_name);
        escape_add(&url, identity->client, strlen(identity->client), 0);
    }
    if (url.failed) {
        text_free(&url);
        return fail_memory(err, 0);
    }
    const struct token_call call = {
        .who = identity->where,
        .url = url.data,
        .headers = {{.name = identity->header, .value = identity->value}},
        .limit_ms = identity->limit_ms,
        .tries = identity->tries,
    };
    status = token_call(net, &call, &answer, err);
    if (!status)
        status = token_read(&answer, identity->where, identity->where, out, err);
    secret_text_free(&answer);
    text_free(&url);
    return status;
}

static stk_status from_metadata(struct net *net, struct secret *out, struct stk_error *err)
{
    const char *address = azure_variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    const struct identity identity = {
        .where = "the managed identity of this machine",
        .endpoint = address ? address : METADATA,
        .path = "/metadata/identity/oauth2/token",
        .version = "2018-02-01",
        .header = "metadata",
        .value = "true",
        .client_name = "client_id",
        .client = azure_variable("AZURE_CLIENT_ID"),
        .limit_ms = TOKEN_METADATA_MS,
        .tries = TOKEN_METADATA_TRIES,
    };
    stk_status status = ask_identity(net, &identity, out, err);

    /* Not a machine of Azure's, or one without an identity (status 400): the next may know. */
    return status == STK_MEMORY || status == STK_CANCELLED ? status : STK_OK;
}

static stk_status from_identity(struct net *net, struct secret *out, struct stk_error *err)
{
    const char *endpoint = azure_variable("IDENTITY_ENDPOINT");
    const char *header = azure_variable("IDENTITY_HEADER");
    const char *older = azure_variable("MSI_ENDPOINT");
    const char *older_secret = azure_variable("MSI_SECRET");
    const char *client = azure_variable("AZURE_CLIENT_ID");
    struct identity identity = {.where = "the managed identity (IDENTITY_ENDPOINT)",
                                .endpoint = endpoint,
                                .path = "",
                                .version = "2019-08-01",
                                .header = "x-identity-header",
                                .value = header,
                                .client_name = "client_id",
                                .client = client,
                                .limit_ms = TOKEN_SERVICE_MS,
                                .tries = TOKEN_SERVICE_TRIES};

    if (endpoint && header)
        return ask_identity(net, &identity, out, err);
    if (!older || !older_secret)
        return from_metadata(net, out, err);
    /* Azure Machine Learning's. */
    identity.where = "the managed identity (MSI_ENDPOINT)";
    identity.endpoint = older;
    identity.version = "2017-09-01";
    identity.header = "secret";
    identity.value = older_secret;
    identity.client_name = "clientid";
    if (!client)
        identity.client = azure_variable("DEFAULT_IDENTITY_CLIENT_ID");
    return ask_identity(net, &identity, out, err);
}

/* --- the command ----------------------------------------------------------------------------- */

static stk_status from_command(struct net *net, struct secret *out, struct stk_error *err)
{
    struct text answer = {0};
    int is_there;
    stk_status status = azure_cli_token(RESOURCE, &answer, &is_there, err);

    (void)net;
    if (!status && is_there)
        status = token_read(&answer, "az", "az login", out, err);
    secret_text_free(&answer);
    return status;
}

stk_status azure_find_token(struct net *net, struct secret *out, struct stk_error *err)
{
    stk_status (*const places[])(struct net *, struct secret *, struct stk_error *) = {
        from_principal, from_workload, from_identity, from_command};

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        stk_status status = places[i](net, out, err);
        if (status || out->kind != SECRET_NONE)
            return status;
    }
    return STK_OK;
}
