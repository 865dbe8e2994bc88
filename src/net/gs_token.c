#include "net/gs_token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/json.h"
#include "net/gs_jwt.h"
#include "net/token_call.h"

#define TOKEN_URI "https://oauth2.googleapis.com/token"
#define SCOPE "https://www.googleapis.com/auth/devstorage.read_write"
#define WIDE_SCOPE "https://www.googleapis.com/auth/cloud-platform" /* what exchanges demand */
#define METADATA "169.254.169.254"
#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"
#define GOOGLE "Google's token service"

/* One look at a file of credentials. */
struct look {
    struct net *net;
    const char *path, *where;
    struct secret *out;
    struct stk_error *err;
    int depth; /* credentials may name others that they stand on */
};

static stk_status look_at(struct look *look, const struct json *json);

static stk_status missing(const struct look *look, const char *member)
{
    stk_status status =
        fail(look->err, STK_DENIED, "a file of Google's credentials has no %s", member);

    fail_at(look->err, look->path, STK_NOWHERE);
    return status;
}

static const char *member_or(const struct json *json, const char *name, const char *otherwise)
{
    const char *value;

    return json_get_text(json, name, &value) && value[0] ? value : otherwise;
}

/* --- calls ----------------------------------------------------------------------------------- */

static stk_status call_and_read(struct look *look, const struct token_call *call)
{
    struct text answer = {0};
    stk_status status = token_url_check(call->url, "a file of Google's credentials", look->err);

    if (!status)
        status = token_call(look->net, call, &answer, look->err);
    if (!status)
        status = token_read(&answer, call->who, look->where, look->out, look->err);
    if (status)
        fail_at(look->err, look->path, STK_NOWHERE);
    secret_text_free(&answer);
    return status;
}

/* Posts a form, and wipes it. */
static stk_status exchange(struct look *look, const char *url, struct text *form)
{
    const struct token_call call = {.who = GOOGLE,
                                    .url = url,
                                    .form = form->data,
                                    .limit_ms = TOKEN_SERVICE_MS,
                                    .tries = TOKEN_SERVICE_TRIES};
    stk_status status =
        form->failed ? fail_memory(look->err, form->len) : call_and_read(look, &call);

    secret_text_free(form);
    return status;
}

/* The token that was found becomes one of the account that may be stood in for. */
static stk_status impersonate(struct look *look, const struct json *json)
{
    const char *url = member_or(json, "service_account_impersonation_url", NULL);
    struct text bearer = {0};
    stk_status status;

    if (!url)
        return STK_OK;
    text_format(&bearer, "Bearer %s", look->out->token);
    if (bearer.failed)
        return fail_memory(look->err, bearer.len);
    const struct token_call call = {
        .who = "Google's service for impersonation",
        .url = url,
        .headers = {{.name = "authorization", .value = bearer.data}},
        .form = "{\"scope\":[\"" SCOPE "\"],\"lifetime\":\"3600s\"}",
        .form_type = "application/json",
        .limit_ms = TOKEN_SERVICE_MS,
        .tries = TOKEN_SERVICE_TRIES,
    };
    status = call_and_read(look, &call);
    secret_text_free(&bearer);
    return status;
}

/* --- kinds of files -------------------------------------------------------------------------- */

static stk_status service_account(struct look *look, const struct json *json)
{
    const char *url = member_or(json, "token_uri", TOKEN_URI);
    const struct gs_claim claim = {.email = member_or(json, "client_email", NULL),
                                   .key_id = member_or(json, "private_key_id", NULL),
                                   .audience = url,
                                   .scope = SCOPE,
                                   .pem = member_or(json, "private_key", NULL),
                                   .now_s = (int64_t)time(NULL)};
    struct text form = {0}, jwt = {0};
    stk_status status;

    if (!claim.email || !claim.pem)
        return missing(look, claim.email ? "private_key" : "client_email");
    status = gs_jwt_add(&jwt, &claim, look->err);
    if (status) {
        fail_at(look->err, look->path, STK_NOWHERE);
    } else {
        token_form_add(&form, "grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
        token_form_add(&form, "assertion", jwt.data);
        status = exchange(look, url, &form);
    }
    secret_text_free(&jwt);
    return status;
}

static stk_status authorized_user(struct look *look, const struct json *json)
{
    static const char *const names[] = {"client_id", "client_secret", "refresh_token"};
    struct text form = {0};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = member_or(json, names[i], NULL);
        if (!value) {
            secret_text_free(&form);
            return missing(look, names[i]);
        }
        token_form_add(&form, names[i], value);
    }
    token_form_add(&form, "grant_type", "refresh_token");
    return exchange(look, member_or(json, "token_uri", TOKEN_URI), &form);
}

/* The whole text, or one member of it. */
static stk_status take_subject(struct look *look, const struct json *source,
                               const struct text *text, struct text *subject)
{
    const struct json *format = json_member(source, "format");
    const char *name = member_or(format, "subject_token_field_name", "access_token");
    const char *value;
    struct json *json;
    stk_status status = STK_OK;

    if (strcmp(member_or(format, "type", "text"), "json")) {
        text_add(subject, text->data, text->len);
        return subject->failed ? fail_memory(look->err, text->len) : STK_OK;
    }
    if (json_parse(&json, text->data, text->len, NULL))
        return fail(look->err, STK_DENIED, "the source of credentials gave what is no JSON");
    if (json_get_text(json, name, &value)) {
        text_format(subject, "%s", value);
        secret_wipe((char *)value, strlen(value)); /* it is the document's, which ends here */
    } else {
        status = fail(look->err, STK_DENIED, "the source of credentials gave no %.60s", name);
    }
    json_free(json);
    return status;
}

static stk_status ask_source(struct look *look, const struct json *source, const char *url,
                             struct text *text)
{
    struct token_call call = {.who = "the source of credentials (credential_source.url)",
                              .url = url,
                              .limit_ms = TOKEN_SERVICE_MS,
                              .tries = TOKEN_SERVICE_TRIES};
    const struct json *headers = json_member(source, "headers");
    void *cursor = NULL;
    const char *name;

    for (uint32_t i = 0; i < TOKEN_CALL_HEADERS; i++) {
        const struct json *value = json_each(headers, &cursor, &name);
        if (!value || !json_text(value, &call.headers[i].value))
            break;
        call.headers[i].name = name;
    }
    return token_call(look->net, &call, text, look->err);
}

static stk_status read_subject(struct look *look, const struct json *json, struct text *subject)
{
    const struct json *source = json_member(json, "credential_source");
    const char *path = member_or(source, "file", NULL);
    const char *url = member_or(source, "url", NULL);
    struct text text = {0};
    stk_status status;

    if (member_or(source, "environment_id", NULL) || (!path && !url)) {
        status = fail(look->err, STK_UNSUPPORTED,
                      "credentials of an external account are read from a file or a URL alone");
        fail_remedy(look->err, "use a service account's key, or STOKER_GS_HMAC_ID and "
                               "STOKER_GS_HMAC_SECRET");
    } else if (path) {
        status = token_file(&text, path, look->err);
    } else {
        status = ask_source(look, source, url, &text);
    }
    if (!status)
        status = take_subject(look, source, &text, subject);
    secret_text_free(&text);
    return status;
}

static stk_status external_account(struct look *look, const struct json *json)
{
    static const char *const names[] = {"audience", "subject_token_type"};
    const char *url = member_or(json, "token_url", "https://sts.googleapis.com/v1/token");
    struct text form = {0}, subject = {0};
    stk_status status = STK_OK;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = member_or(json, names[i], NULL);
        if (!value)
            return missing(look, names[i]);
    }
    status = read_subject(look, json, &subject);
    if (status)
        goto done;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        token_form_add(&form, names[i], member_or(json, names[i], ""));
    token_form_add(&form, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange");
    token_form_add(&form, "requested_token_type", "urn:ietf:params:oauth:token-type:access_token");
    token_form_add(&form, "scope", WIDE_SCOPE);
    token_form_add(&form, "subject_token", subject.data);
    status = exchange(look, url, &form);
    if (!status)
        status = impersonate(look, json);
done:
    secret_text_free(&subject);
    secret_text_free(&form);
    return status;
}

static stk_status impersonated(struct look *look, const struct json *json)
{
    const struct json *source = json_member(json, "source_credentials");

    if (!source || look->depth)
        return missing(look, "source_credentials of its own");
    look->depth++;
    stk_status status = look_at(look, source);
    return status ? status : impersonate(look, json);
}

static stk_status look_at(struct look *look, const struct json *json)
{
    static const struct {
        const char *type;
        stk_status (*look)(struct look *look, const struct json *json);
    } kinds[] = {{"service_account", service_account},
                 {"authorized_user", authorized_user},
                 {"external_account", external_account},
                 {"impersonated_service_account", impersonated}};
    const char *type = member_or(json, "type", "");

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(type, kinds[i].type))
            return kinds[i].look(look, json);
    fail(look->err, STK_UNSUPPORTED, "Google's credentials of type '%.40s' are not known", type);
    fail_at(look->err, look->path, STK_NOWHERE);
    return STK_UNSUPPORTED;
}

/* --- all ------------------------------------------------------------------------------------- */

/* The document is about to end: what of it is secret is overwritten. */
static void wipe(const struct json *json)
{
    static const char *const names[] = {"private_key", "client_secret", "refresh_token"};
    const char *value;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_get_text(json, names[i], &value))
            secret_wipe((char *)value, strlen(value));
}

stk_status gs_token_from_file(struct net *net, const char *path, const char *where,
                              struct secret *out, struct stk_error *err)
{
    struct look look = {.net = net, .path = path, .where = where, .out = out, .err = err};
    struct text text = {0};
    struct json *json = NULL;
    stk_status status = secret_file_read(&text, path, err);

    if (!status && json_parse(&json, text.data, text.len, NULL)) {
        status = fail(err, STK_DENIED, "a file of Google's credentials is no JSON");
        fail_at(err, path, STK_NOWHERE);
    }
    if (!status) {
        status = look_at(&look, json);
        wipe(json_member(json, "source_credentials"));
        wipe(json);
    }
    json_free(json);
    secret_text_free(&text);
    return status;
}

stk_status gs_token_from_metadata(struct net *net, struct secret *out, struct stk_error *err)
{
    const char *host = getenv("GCE_METADATA_HOST");
    struct text url = {0}, answer = {0};
    stk_status status;

    text_format(&url, "http://%s" METADATA_PATH, host && host[0] ? host : METADATA);
    if (url.failed) {
        text_free(&url);
        return fail_memory(err, 0);
    }
    const struct token_call call = {.who = "the metadata server",
                                    .url = url.data,
                                    .headers = {{.name = "metadata-flavor", .value = "Google"}},
                                    .limit_ms = TOKEN_METADATA_MS,
                                    .tries = TOKEN_METADATA_TRIES};
    status = token_call(net, &call, &answer, err);
    if (!status)
        status = token_read(&answer, call.who, call.who, out, err);
    secret_text_free(&answer);
    text_free(&url);
    return status;
}
