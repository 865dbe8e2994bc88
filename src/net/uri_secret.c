#include "net/uri_secret.h"

#include <string.h>
#include <strings.h>

#include "base/fail.h"

/* A name before the host is a container's; one with a colon is a user and a password. */
static int has_password(const char *uri)
{
    const char *authority = strstr(uri, "://");
    if (!authority)
        return 0;
    authority += 3;
    size_t length = strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', length);
    return at && memchr(authority, ':', (size_t)(at - authority));
}

/* Parameters that presigned addresses, shared access signatures and token schemes have. */
static int is_secret(const char *name, size_t length)
{
    static const char *const secrets[] = {
        "sig",          "signature",        "x-amz-signature",      "x-amz-credential", "token",
        "access_token", "x-goog-signature", "x-amz-security-token", "api_key",          "apikey",
        "auth",         "password",         "x-auth-token",         "x-goog-credential"};
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        if (strlen(secrets[i]) == length && !strncasecmp(secrets[i], name, length))
            return 1;
    return 0;
}

static int has_signature(const char *uri)
{
    const char *at = strchr(uri, '?');
    while (at && *at) {
        at++; /* behind the ? or the & */
        size_t length = strcspn(at, "=&");
        if (at[length] == '=' && is_secret(at, length))
            return 1;
        at = strchr(at, '&');
    }
    return 0;
}

stk_status uri_secret_refuse(const char *uri, struct stk_error *err)
{
    if (has_password(uri)) {
        fail(err, STK_USAGE,
             "the URI has a password before its host, which is refused: "
             "it would show in messages and indexes");
        fail_remedy(err, "http: ~/.netrc (machine HOST login USER password PASSWORD); clouds: "
                         "their own variables and files");
        return STK_USAGE;
    }
    if (!has_signature(uri))
        return STK_OK;
    fail(err, STK_USAGE,
         "the URL holds a signature or a token, which is refused: it would show in messages and "
         "indexes");
    fail_remedy(err, "use s3://, az:// or gs:// with credentials (AZURE_STORAGE_SAS_TOKEN for a "
                     "SAS); STOKER_HTTP_TOKEN or ~/.netrc for other servers");
    return STK_USAGE;
}
