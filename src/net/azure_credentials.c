#include "net/azure_credentials.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "net/azure_place.h"
#include "net/azure_token.h"
#include "net/connection_string.h"
#include "net/digest.h"

/* The emulator's key is written in its manual: it protects nothing. */
#define DEVELOPMENT_KEY                                                                            \
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

static stk_status take_key(const char *account, const char *key, size_t length, const char *where,
                           struct secret *out, struct stk_error *err)
{
    uint8_t bytes[sizeof(out->key)];
    size_t got = 0;
    int is_bad = digest_base64_decode(key, length, bytes, sizeof(bytes), &got);

    secret_wipe(bytes, sizeof(bytes));
    if (is_bad || !got || !secret_set(out->key, sizeof(out->key), key, length)) {
        fail(err, STK_USAGE, "the account key in %s is not base64", where);
        fail_remedy(err, "copy it anew: az storage account keys list -n %.100s", account);
        return STK_USAGE;
    }
    out->kind = SECRET_SHARED_KEY;
    snprintf(out->id, sizeof(out->id), "%s", account);
    snprintf(out->where, sizeof(out->where), "%s", where);
    return STK_OK;
}

static stk_status take_sas(const char *sas, size_t length, const char *where, struct secret *out,
                           struct stk_error *err)
{
    if (length && sas[0] == '?') {
        sas++;
        length--;
    }
    /* It goes into URLs as it is. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)sas[i] <= ' ' || (unsigned char)sas[i] >= 127)
            length = 0;
    if (!length || !secret_set(out->token, sizeof(out->token), sas, length)) {
        fail(err, STK_USAGE, "the shared access signature in %s is none", where);
        fail_remedy(err, "it looks like sv=...&sig=...");
        return STK_USAGE;
    }
    out->kind = SECRET_SAS;
    snprintf(out->where, sizeof(out->where), "%s", where);
    return STK_OK;
}

/* kind stays SECRET_NONE where the string is of another account, or has no secret in it. */
static stk_status from_connection_string(const char *account, struct secret *out,
                                         struct stk_error *err)
{
    static const char name[] = "AZURE_STORAGE_CONNECTION_STRING";
    const char *string = azure_variable(name);
    char found[AZURE_ACCOUNT_CAP];
    size_t length;

    if (!string || !azure_connection_account(string, found) || strcmp(found, account))
        return STK_OK;
    const char *value = connection_string_find(string, "AccountKey", &length);
    if (value)
        return take_key(account, value, length, name, out, err);
    value = connection_string_find(string, "SharedAccessSignature", &length);
    if (value)
        return take_sas(value, length, name, out, err);
    if (azure_connection_is_development(string))
        return take_key(account, DEVELOPMENT_KEY, strlen(DEVELOPMENT_KEY), name, out, err);
    return STK_OK;
}

static stk_status from_variables(const char *account, struct secret *out, struct stk_error *err)
{
    static const char *const keys[] = {"AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCOUNT_KEY"};
    static const char sas_name[] = "AZURE_STORAGE_SAS_TOKEN";
    const char *named = azure_variable("AZURE_STORAGE_ACCOUNT");
    const char *sas = azure_variable(sas_name);

    if (named && strcmp(named, account))
        return STK_OK; /* they are of another account */
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *key = azure_variable(keys[i]);
        if (key)
            return take_key(account, key, strlen(key), keys[i], out, err);
    }
    return sas ? take_sas(sas, strlen(sas), sas_name, out, err) : STK_OK;
}

static stk_status nothing_found(const char *account, struct stk_error *err)
{
    fail(err, STK_DENIED,
         "no credentials for storage account %.100s: looked at AZURE_STORAGE_CONNECTION_STRING, "
         "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, AZURE_CLIENT_SECRET, "
         "AZURE_FEDERATED_TOKEN_FILE, managed identity, az",
         account);
    fail_remedy(err, "set one of them or run 'az login'; STOKER_AZURE_ANONYMOUS=1 reads public "
                     "containers");
    return STK_DENIED;
}

stk_status azure_find_secret(const char *account, struct net *net, struct secret *out,
                             struct stk_error *err)
{
    const char *anonymous = azure_variable("STOKER_AZURE_ANONYMOUS");
    stk_status status = from_connection_string(account, out, err);

    if (!status && out->kind == SECRET_NONE)
        status = from_variables(account, out, err);
    if (status || out->kind != SECRET_NONE)
        return status;
    if (anonymous && strcmp(anonymous, "0")) {
        snprintf(out->where, sizeof(out->where), "STOKER_AZURE_ANONYMOUS");
        return STK_OK;
    }
    status = azure_find_token(net, out, err);
    if (!status && out->kind == SECRET_NONE)
        status = nothing_found(account, err);
    return status;
}

/* --- shared by the containers of an account -------------------------------------------------- */

static stk_status find(void *user, struct net *net, struct secret *out, struct stk_error *err)
{
    return azure_find_secret(user, net, out, err);
}

stk_status azure_share_credentials(struct site *site, const char *account, struct stk_error *err)
{
    char name[AZURE_ACCOUNT_CAP + 16];
    const struct credentials_source source = {
        .find = find, .free = memory_free, .user = memory_text(account, strlen(account))};

    if (!source.user)
        return fail_memory(err, strlen(account));
    snprintf(name, sizeof(name), "azure:%s", account);
    return site_share_credentials(site, name, &source, err);
}
