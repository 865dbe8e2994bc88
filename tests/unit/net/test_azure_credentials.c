#include "base/testing.h"

#include <time.h>

#include "net/answering.h"
#include "net/azure_cli.h"
#include "net/azure_credentials.h"

#define KEY "c3Rva2VyLXRlc3Qta2V5LXRoYXQtcHJvdGVjdHMtbm90aGluZw=="
#define TOKEN "{\"access_token\":\"t0ken\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"

static const char *const variables[] = {
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_ACCOUNT",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SERVICE_ENDPOINT",
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_AUTHORITY_HOST",
    "AZURE_POD_IDENTITY_AUTHORITY_HOST",
    "IDENTITY_ENDPOINT",
    "IDENTITY_HEADER",
    "MSI_ENDPOINT",
    "MSI_SECRET",
    "DEFAULT_IDENTITY_CLIENT_ID",
    "STOKER_AZURE_ANONYMOUS",
};

static char folder[PATH_MAX];
static struct net *net;
static struct secret *secret;
static struct stk_error err;
static struct answering *server;

/* No variable, no az, and a metadata service that does not know us. */
static int begin(void **state)
{
    static const struct answering_step nothing;

    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    folder_new(folder);
    setenv("PATH", folder, 1);
    server = answering_start(&nothing, 1);
    setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", answering_url(server, ""), 1);
    assert_int_equal(net_take(&net, &err), STK_OK);
    secret = secret_new();
    assert_non_null(secret);
    memset(&err, 0, sizeof(err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    secret_free(secret);
    net_give(net);
    answering_stop(server);
    folder_remove(folder);
    return 0;
}

static stk_status find(const char *account)
{
    memset(secret, 0, sizeof(*secret));
    return azure_find_secret(account, net, secret, &err);
}

/* The server answers requests for a path with a body, all others with 404. */
static void answer(const char *path, int status, const char *body)
{
    static struct answering_step steps[2];

    steps[0] = (struct answering_step){
        .path = path, .status = status, .body = body, .length = strlen(body)};
    steps[1] = (struct answering_step){.status = 404, .body = "", .length = 0};
    answering_script(server, steps, 2);
}

static const char *body_of(uint32_t number)
{
    static char text[4096];
    size_t length;
    const void *body = answering_body(server, number, &length);

    assert_true(length < sizeof(text));
    memcpy(text, body, length);
    text[length] = 0;
    return text;
}

static void found_token(const char *where)
{
    assert_int_equal(secret->kind, SECRET_BEARER);
    assert_string_equal(secret->token, "t0ken");
    assert_string_equal(secret->where, where);
    assert_in_range(secret->expires_s, time(NULL) + 3000, time(NULL) + 3600);
}

/* No value that a test set may be in the words. */
static void words_hold_no_secret(void)
{
    static const char *const secrets[] = {"s3cret", "t0ken", KEY, "c3Rva2Vy"};

    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
        assert_null(strstr(err.what, secrets[i]));
        assert_null(strstr(err.remedy, secrets[i]));
        assert_null(strstr(err.object, secrets[i]));
    }
}

/* --- keys ------------------------------------------------------------------------------------ */

static void a_connection_string_s_key_goes_before_all(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc;AccountKey=" KEY, 1);
    setenv("AZURE_STORAGE_KEY", "b3RoZXI=", 1);
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_SHARED_KEY);
    assert_string_equal(secret->id, "acc");
    assert_string_equal(secret->key, KEY);
    assert_string_equal(secret->where, "AZURE_STORAGE_CONNECTION_STRING");
    assert_int_equal(find("other"), STK_OK); /* it is not of that account */
    assert_string_equal(secret->where, "AZURE_STORAGE_KEY");
}

static void a_connection_string_may_hold_a_signature_or_mean_the_emulator(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_CONNECTION_STRING",
           "BlobEndpoint=https://acc.blob.core.windows.net/;SharedAccessSignature=?sv=1&sig=a%3D",
           1);
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_SAS);
    assert_string_equal(secret->token, "sv=1&sig=a%3D");
    setenv("AZURE_STORAGE_CONNECTION_STRING", "UseDevelopmentStorage=true", 1);
    assert_int_equal(find("devstoreaccount1"), STK_OK);
    assert_int_equal(secret->kind, SECRET_SHARED_KEY);
}

static void variables_are_used_for_the_account_that_they_name(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_ACCOUNT", "acc", 1);
    setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY, 1);
    setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=x", 1);
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_SHARED_KEY);
    unsetenv("AZURE_STORAGE_ACCOUNT_KEY");
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_SAS);
    assert_int_equal(find("other"), STK_DENIED);
}

static void keys_and_signatures_that_are_none_are_refused(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_KEY", "s3cret***", 1);
    assert_int_equal(find("acc"), STK_USAGE);
    words_hold_no_secret();
    unsetenv("AZURE_STORAGE_KEY");
    setenv("AZURE_STORAGE_SAS_TOKEN", "s3cret with blanks", 1);
    assert_int_equal(find("acc"), STK_USAGE);
    words_hold_no_secret();
}

static void nothing_at_all_names_the_places_that_were_looked_at(void **state)
{
    (void)state;
    assert_int_equal(find("acc"), STK_DENIED);
    assert_non_null(strstr(err.what, "AZURE_STORAGE_CONNECTION_STRING"));
    assert_non_null(strstr(err.what, "managed identity"));
    assert_non_null(strstr(err.remedy, "az login"));
    setenv("STOKER_AZURE_ANONYMOUS", "1", 1);
    uint32_t before = answering_requests(server);
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_NONE);
    assert_int_equal(answering_requests(server), before); /* nobody was asked */
}

/* --- tokens ---------------------------------------------------------------------------------- */

static void set_client(void)
{
    setenv("AZURE_AUTHORITY_HOST", answering_url(server, "/"), 1);
    setenv("AZURE_TENANT_ID", "tenant", 1);
    setenv("AZURE_CLIENT_ID", "client", 1);
}

static void a_service_principal_s_secret_becomes_a_token(void **state)
{
    (void)state;
    set_client();
    setenv("AZURE_CLIENT_SECRET", "s3cret/+", 1);
    answer("/tenant/oauth2/v2.0/token", 200, TOKEN);
    assert_int_equal(find("acc"), STK_OK);
    found_token("AZURE_CLIENT_SECRET");
    assert_string_equal(body_of(0),
                        "client_secret=s3cret%2F%2B&client_id=client&grant_type=client_credentials"
                        "&scope=https%3A%2F%2Fstorage.azure.com%2F.default");
}

static void a_refused_secret_is_an_error_and_nobody_else_is_asked(void **state)
{
    (void)state;
    set_client();
    setenv("AZURE_CLIENT_SECRET", "s3cret", 1);
    answer("/tenant/", 401, "{\"error\":\"invalid_client\",\"error_description\":\"s3cret\"}");
    assert_int_equal(find("acc"), STK_DENIED);
    assert_non_null(strstr(err.what, "invalid_client"));
    words_hold_no_secret();
    assert_int_equal(answering_requests(server), 1);
}

static void secrets_are_not_sent_over_http_to_another_machine(void **state)
{
    (void)state;
    set_client();
    setenv("AZURE_CLIENT_SECRET", "s3cret", 1);
    setenv("AZURE_AUTHORITY_HOST", "http://login.example.org", 1);
    assert_int_equal(find("acc"), STK_USAGE);
}

static void a_certificate_is_refused_in_words(void **state)
{
    (void)state;
    set_client();
    setenv("AZURE_CLIENT_CERTIFICATE_PATH", "/some/file.pem", 1);
    assert_int_equal(find("acc"), STK_UNSUPPORTED);
    assert_true(err.remedy[0]);
}

static void workload_identity_reads_its_file_each_time(void **state)
{
    (void)state;
    set_client();
    setenv("AZURE_FEDERATED_TOKEN_FILE", path_in(folder, "token"), 1);
    answer("/tenant/oauth2/v2.0/token", 200, TOKEN);
    assert_int_equal(find("acc"), STK_NOT_FOUND);
    text_write(path_in(folder, "token"), "a.b.c\n");
    assert_int_equal(find("acc"), STK_OK);
    found_token("AZURE_FEDERATED_TOKEN_FILE");
    assert_non_null(strstr(body_of(0), "client_assertion=a.b.c&client_assertion_type=urn%3Aietf"));
    text_write(path_in(folder, "token"), "d.e.f");
    assert_int_equal(find("acc"), STK_OK);
    assert_non_null(strstr(body_of(1), "client_assertion=d.e.f&"));
}

static void managed_identity_is_asked_at_its_endpoint(void **state)
{
    (void)state;
    setenv("IDENTITY_ENDPOINT", answering_url(server, "/msi/token"), 1);
    setenv("IDENTITY_HEADER", "s3cret", 1);
    setenv("AZURE_CLIENT_ID", "client", 1);
    answer("/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fstorage.azure.com%2F"
           "&client_id=client",
           200, "{\"access_token\":\"t0ken\",\"expires_on\":\"4102444800\"}");
    assert_int_equal(find("acc"), STK_OK);
    assert_string_equal(secret->token, "t0ken");
    assert_true(secret->expires_s == 4102444800);
    assert_true(answering_had(server, 0, "X-IDENTITY-HEADER", "s3cret"));
    answer("/msi", 403, "{\"error\":\"nope\"}");
    assert_int_equal(find("acc"), STK_DENIED);
    words_hold_no_secret();
}

static void machine_learning_s_older_endpoint_is_asked_too(void **state)
{
    (void)state;
    setenv("MSI_ENDPOINT", answering_url(server, "/older"), 1);
    setenv("MSI_SECRET", "s3cret", 1);
    setenv("DEFAULT_IDENTITY_CLIENT_ID", "given", 1);
    answer("/older?api-version=2017-09-01&resource=https%3A%2F%2Fstorage.azure.com%2F"
           "&clientid=given",
           200, TOKEN);
    assert_int_equal(find("acc"), STK_OK);
    found_token("the managed identity (MSI_ENDPOINT)");
    assert_true(answering_had(server, 0, "secret", "s3cret"));
}

static void a_machine_s_metadata_service_is_asked_last_but_az(void **state)
{
    (void)state;
    answer("/metadata/identity/oauth2/token?api-version=2018-02-01", 200, TOKEN);
    assert_int_equal(find("acc"), STK_OK);
    found_token("the managed identity of this machine");
    assert_true(answering_had(server, 0, "Metadata", "true"));
}

/* It asks others before it answers: it is there, so it is waited for longer. */
static void a_metadata_service_that_is_slow_is_waited_for(void **state)
{
    const struct answering_step slow = {
        .status = 200, .body = TOKEN, .length = strlen(TOKEN), .delay_ms = 1500};

    (void)state;
    answering_script(server, &slow, 1);
    assert_int_equal(find("acc"), STK_OK);
    found_token("the managed identity of this machine");
}

/* --- az -------------------------------------------------------------------------------------- */

static void write_az(const char *script)
{
    text_write(path_in(folder, "az"), script);
    assert_int_equal(chmod(path_in(folder, "az"), 0700), 0);
}

static void az_is_run_without_a_shell_where_it_is_there(void **state)
{
    (void)state;
    write_az("#!/bin/sh\n"
             "echo '{\"accessToken\":\"t0ken\",\"expires_on\":4102444800,\"args\":\"'$*'\"}'\n"
             "echo noise >&2\n");
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(secret->kind, SECRET_BEARER);
    assert_string_equal(secret->token, "t0ken");
    assert_string_equal(secret->where, "az login");
    assert_true(secret->expires_s == 4102444800);
}

static void an_az_that_fails_says_how_to_log_in(void **state)
{
    (void)state;
    write_az("#!/bin/sh\necho s3cret\nexit 1\n");
    assert_int_equal(find("acc"), STK_DENIED);
    assert_non_null(strstr(err.remedy, "az login"));
    words_hold_no_secret();
    write_az("#!/bin/sh\necho s3cret\n");
    assert_int_equal(find("acc"), STK_IO);
    words_hold_no_secret();
}

static int at_once(void *user)
{
    (void)user;
    return 1;
}

static void an_az_that_hangs_ends_with_the_patience(void **state)
{
    struct text answer = {0};
    int is_there;

    (void)state;
    write_az("#!/bin/sh\nsleep 1000\n");
    net_patience_set(&(struct net_patience){.is_over = at_once});
    assert_int_equal(azure_cli_token("r", &answer, &is_there, &err), STK_DENIED);
    net_patience_set(NULL);
    assert_true(is_there);
    assert_non_null(strstr(err.what, "in time"));
    secret_text_free(&answer);
}

static void a_token_service_that_is_busy_is_asked_again(void **state)
{
    static const struct answering_step steps[] = {
        {.path = "/tenant", .times = 1, .status = 503, .body = "", .length = 0},
        {.path = "/tenant", .body = TOKEN, .length = sizeof(TOKEN) - 1, .status = 200}};

    (void)state;
    set_client();
    setenv("AZURE_CLIENT_SECRET", "s3cret", 1);
    answering_script(server, steps, 2);
    assert_int_equal(find("acc"), STK_OK);
    assert_int_equal(answering_requests(server), 2);
}

static void containers_of_an_account_share_what_was_found(void **state)
{
    struct site *sites[2];
    struct site_made made = {.mark = 0};
    const char *key;

    (void)state;
    answer("/metadata/identity/oauth2/token", 200, TOKEN);
    assert_int_equal(site_open(&sites[0], net, "az://acc/one/a/b", &key, &err), STK_OK);
    assert_string_equal(key, "a/b");
    assert_string_equal(sites[0]->uri, "az://acc/one");
    assert_string_equal(sites[0]->host, "acc.blob.core.windows.net:443");
    assert_int_equal(site_open(&sites[1], net, "abfss://two@acc.dfs.core.windows.net/", &key, &err),
                     STK_OK);
    assert_string_equal(key, "");
    for (int i = 0; i < 2; i++) {
        const struct site_call call = {.verb = SITE_READ, .key = "k"};
        assert_int_equal(site_make(sites[i], &call, &made, &err), STK_OK);
        site_made_reset(&made);
        site_close(sites[i]);
    }
    assert_int_equal(answering_requests(server), 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_connection_string_s_key_goes_before_all),
        TEST(a_connection_string_may_hold_a_signature_or_mean_the_emulator),
        TEST(variables_are_used_for_the_account_that_they_name),
        TEST(keys_and_signatures_that_are_none_are_refused),
        TEST(nothing_at_all_names_the_places_that_were_looked_at),
        TEST(a_service_principal_s_secret_becomes_a_token),
        TEST(a_refused_secret_is_an_error_and_nobody_else_is_asked),
        TEST(secrets_are_not_sent_over_http_to_another_machine),
        TEST(a_certificate_is_refused_in_words),
        TEST(workload_identity_reads_its_file_each_time),
        TEST(managed_identity_is_asked_at_its_endpoint),
        TEST(machine_learning_s_older_endpoint_is_asked_too),
        TEST(a_machine_s_metadata_service_is_asked_last_but_az),
        TEST(a_metadata_service_that_is_slow_is_waited_for),
        TEST(az_is_run_without_a_shell_where_it_is_there),
        TEST(an_az_that_fails_says_how_to_log_in),
        TEST(an_az_that_hangs_ends_with_the_patience),
        TEST(a_token_service_that_is_busy_is_asked_again),
        TEST(containers_of_an_account_share_what_was_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
