#include "base/testing.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <time.h>

#include "base/json.h"
#include "net/answering.h"
#include "net/digest.h"
#include "net/gs_credentials.h"
#include "net/gs_jwt.h"

#define TOKEN "{\"access_token\":\"t0ken\",\"expires_in\":3599,\"token_type\":\"Bearer\"}"

static const char *const variables[] = {
    "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG",     "STOKER_GS_HMAC_ID",
    "STOKER_GS_HMAC_SECRET",          "STOKER_GS_ANONYMOUS", "STORAGE_EMULATOR_HOST",
};

static char folder[PATH_MAX];
static struct net *net;
static struct secret *secret;
static struct stk_error err;
static struct answering *server;

static int begin(void **state)
{
    static const struct answering_step nothing;
    char host[64];

    (void)state;
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    folder_new(folder);
    setenv("HOME", folder, 1);
    server = answering_start(&nothing, 1);
    snprintf(host, sizeof(host), "127.0.0.1:%d", answering_port(server));
    setenv("GCE_METADATA_HOST", host, 1);
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

static stk_status find(enum gs_service service)
{
    memset(secret, 0, sizeof(*secret));
    return gs_find_secret(service, net, secret, &err);
}

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
    static char text[8192];
    size_t length;
    const void *body = answering_body(server, number, &length);

    assert_true(length < sizeof(text));
    memcpy(text, body, length);
    text[length] = 0;
    return text;
}

/* Writes a file of credentials and names it. %s in it is the server's address. */
static void write_file(const char *text)
{
    char filled[8192];

    snprintf(filled, sizeof(filled), text, answering_url(server, ""), answering_url(server, ""));
    text_write(path_in(folder, "credentials.json"), filled);
    setenv("GOOGLE_APPLICATION_CREDENTIALS", path_in(folder, "credentials.json"), 1);
}

static void found_token(const char *where)
{
    assert_int_equal(secret->kind, SECRET_BEARER);
    assert_string_equal(secret->token, "t0ken");
    assert_string_equal(secret->where, where);
    assert_in_range(secret->expires_s, time(NULL) + 3000, time(NULL) + 3600);
}

static void words_hold_no_secret(void)
{
    assert_null(strstr(err.what, "s3cret"));
    assert_null(strstr(err.remedy, "s3cret"));
    assert_null(strstr(err.what, "t0ken"));
}

/* --- claims ---------------------------------------------------------------------------------- */

static EVP_PKEY *key_new(char pem[8192])
{
    EVP_PKEY *key = EVP_RSA_gen(2048);
    BIO *memory = BIO_new(BIO_s_mem());

    assert_non_null(key);
    assert_int_equal(PEM_write_bio_PrivateKey(memory, key, NULL, NULL, 0, NULL, NULL), 1);
    int length = BIO_read(memory, pem, 8191);
    assert_true(length > 0);
    pem[length] = 0;
    BIO_free(memory);
    return key;
}

/* base64 of URLs, decoded. */
static size_t decode(const char *from, size_t length, uint8_t *to, size_t cap)
{
    char text[4096];
    size_t got;

    assert_true(length + 4 < sizeof(text));
    for (size_t i = 0; i < length; i++)
        text[i] = from[i] == '-' ? '+' : from[i] == '_' ? '/' : from[i];
    while (length % 4)
        text[length++] = '=';
    assert_int_equal(digest_base64_decode(text, length, to, cap, &got), 0);
    return got;
}

static void claims_are(const char *jwt, const char *audience, EVP_PKEY *key)
{
    const char *first = strchr(jwt, '.'), *second = strchr(first + 1, '.');
    uint8_t claims[4096], signature[1024];
    struct json *json;
    const char *text;

    assert_non_null(second);
    size_t length = decode(first + 1, (size_t)(second - first - 1), claims, sizeof(claims));
    assert_int_equal(json_parse(&json, (char *)claims, length, NULL), STK_OK);
    assert_true(json_get_text(json, "iss", &text));
    assert_string_equal(text, "me@project.iam");
    assert_true(json_get_text(json, "aud", &text));
    assert_string_equal(text, audience);
    uint64_t from = 0, to = 0;
    assert_true(json_get_u64(json, "iat", &from) && json_get_u64(json, "exp", &to));
    assert_int_equal(to - from, 3600);
    json_free(json);
    length = decode(second + 1, strlen(second + 1), signature, sizeof(signature));
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestVerify(context, signature, length, (const uint8_t *)jwt, (size_t)(second - jwt)),
        1);
    EVP_MD_CTX_free(context);
}

static void a_claim_is_signed_with_the_account_s_key(void **state)
{
    char pem[8192];
    EVP_PKEY *key = key_new(pem);
    struct text jwt = {0};
    const struct gs_claim claim = {.email = "me@project.iam",
                                   .key_id = "id1",
                                   .audience = "https://a/token",
                                   .scope = "s",
                                   .pem = pem,
                                   .now_s = 1000};
    struct gs_claim bad = claim;

    (void)state;
    assert_int_equal(gs_jwt_add(&jwt, &claim, &err), STK_OK);
    claims_are(jwt.data, "https://a/token", key);
    assert_int_equal(strncmp(jwt.data, "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImlkMSJ9.", 53),
                     0);
    text_free(&jwt);
    bad.pem = "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----\n";
    assert_int_equal(gs_jwt_add(&jwt, &bad, &err), STK_CORRUPT);
    words_hold_no_secret();
    text_free(&jwt);
    EVP_PKEY_free(key);
}

static void a_service_account_s_key_becomes_a_token(void **state)
{
    char pem[8192], text[8192], assertion[4096], audience[256];
    EVP_PKEY *key = key_new(pem);
    struct text quoted = {0};

    (void)state;
    json_add_string(&quoted, pem, strlen(pem));
    snprintf(text, sizeof(text),
             "{\"type\":\"service_account\",\"client_email\":\"me@project.iam\","
             "\"private_key_id\":\"id1\",\"private_key\":%s,\"token_uri\":\"%%s/token\"}",
             quoted.data);
    write_file(text);
    answer("/token", 200, TOKEN);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    found_token("GOOGLE_APPLICATION_CREDENTIALS");
    static const char front[] =
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    assert_int_equal(strncmp(body_of(0), front, strlen(front)), 0);
    snprintf(assertion, sizeof(assertion), "%s", body_of(0) + strlen(front));
    snprintf(audience, sizeof(audience), "%s/token", answering_url(server, ""));
    claims_are(assertion, audience, key);
    text_free(&quoted);
    EVP_PKEY_free(key);
}

/* --- other files ----------------------------------------------------------------------------- */

#define USER                                                                                       \
    "{\"type\":\"authorized_user\",\"client_id\":\"c\",\"client_secret\":\"s3cret\","              \
    "\"refresh_token\":\"r\",\"token_uri\":\"%s/token\"}"

static void a_user_s_refresh_token_becomes_a_token(void **state)
{
    (void)state;
    write_file(USER);
    answer("/token", 200, TOKEN);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    found_token("GOOGLE_APPLICATION_CREDENTIALS");
    assert_string_equal(body_of(0), "client_id=c&client_secret=s3cret&refresh_token=r&"
                                    "grant_type=refresh_token");
    answer("/token", 400, "{\"error\":\"invalid_grant\",\"error_description\":\"s3cret\"}");
    assert_int_equal(find(GS_CLOUD), STK_DENIED);
    assert_non_null(strstr(err.what, "invalid_grant"));
    words_hold_no_secret();
}

static void gcloud_s_own_file_is_found(void **state)
{
    (void)state;
    write_file(USER);
    unsetenv("GOOGLE_APPLICATION_CREDENTIALS");
    setenv("CLOUDSDK_CONFIG", folder, 1);
    assert_int_equal(rename(path_in(folder, "credentials.json"),
                            path_in(folder, "application_default_credentials.json")),
                     0);
    answer("/token", 200, TOKEN);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    found_token("gcloud's application_default_credentials.json");
}

#define OTHER "{\"accessToken\":\"other\",\"expireTime\":\"2100-01-01T00:00:00Z\"}"

static void an_external_account_s_token_is_exchanged_and_stands_in_for_another(void **state)
{
    char text[2048];
    static const struct answering_step steps[] = {
        {.path = "/sts", .status = 200, .body = TOKEN, .length = sizeof(TOKEN) - 1},
        {.path = "/stand-in", .status = 200, .body = OTHER, .length = sizeof(OTHER) - 1}};

    (void)state;
    text_write(path_in(folder, "subject"), "{\"id\":\"a.b.c\"}");
    snprintf(
        text, sizeof(text),
        "{\"type\":\"external_account\",\"audience\":\"//iam/x\",\"subject_token_type\":\"jwt\","
        "\"token_url\":\"%%s/sts\",\"credential_source\":{\"file\":\"%s\",\"format\":{\"type\":"
        "\"json\",\"subject_token_field_name\":\"id\"}},"
        "\"service_account_impersonation_url\":\"%%s/stand-in\"}",
        path_in(folder, "subject"));
    write_file(text);
    answering_script(server, steps, 2);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    assert_string_equal(secret->token, "other");
    assert_true(secret->expires_s == 4102444800);
    assert_non_null(strstr(body_of(0), "subject_token=a.b.c"));
    assert_non_null(strstr(body_of(0), "audience=%2F%2Fiam%2Fx&subject_token_type=jwt"));
    assert_true(answering_had(server, 1, "Authorization", "Bearer t0ken"));
}

static void files_that_cannot_be_used_are_named(void **state)
{
    static const struct {
        const char *text;
        stk_status status;
    } files[] = {
        {"s3cret", STK_DENIED},
        {"{\"type\":\"strange\"}", STK_UNSUPPORTED},
        {"{\"type\":\"authorized_user\",\"client_secret\":\"s3cret\"}", STK_DENIED},
        {"{\"type\":\"service_account\",\"client_email\":\"x\",\"private_key\":\"s3cret\"}",
         STK_CORRUPT},
        {"{\"type\":\"external_account\",\"audience\":\"a\",\"subject_token_type\":\"b\","
         "\"credential_source\":{\"environment_id\":\"aws1\"}}",
         STK_UNSUPPORTED},
        {"{\"type\":\"authorized_user\",\"client_id\":\"c\",\"client_secret\":\"s3cret\","
         "\"refresh_token\":\"r\",\"token_uri\":\"http://example.org/token\"}",
         STK_USAGE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        write_file(files[i].text);
        assert_int_equal(find(GS_CLOUD), files[i].status);
        words_hold_no_secret();
    }
    setenv("GOOGLE_APPLICATION_CREDENTIALS", path_in(folder, "none"), 1);
    assert_int_equal(find(GS_CLOUD), STK_NOT_FOUND);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void the_metadata_server_is_asked_last(void **state)
{
    (void)state;
    answer("/computeMetadata/v1/instance/service-accounts/default/token", 200, TOKEN);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    found_token("the metadata server");
    assert_true(answering_had(server, 0, "Metadata-Flavor", "Google"));
    answer("/none", 200, "");
    assert_int_equal(find(GS_CLOUD), STK_DENIED);
    assert_non_null(strstr(err.what, "GOOGLE_APPLICATION_CREDENTIALS"));
}

static void keys_go_before_all_and_come_in_pairs(void **state)
{
    (void)state;
    write_file(USER);
    setenv("STOKER_GS_HMAC_ID", "id", 1);
    assert_int_equal(find(GS_CLOUD), STK_USAGE);
    setenv("STOKER_GS_HMAC_SECRET", "s3cret", 1);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    assert_int_equal(secret->kind, SECRET_AWS);
    assert_string_equal(secret->id, "id");
    assert_string_equal(secret->key, "s3cret");
}

static void an_emulator_is_asked_without_credentials_unless_some_are_named(void **state)
{
    (void)state;
    assert_int_equal(find(GS_EMULATOR), STK_OK); /* there is no metadata server, it says */
    assert_int_equal(secret->kind, SECRET_NONE);
    unsetenv("GCE_METADATA_HOST");
    assert_int_equal(find(GS_EMULATOR), STK_OK);
    assert_int_equal(secret->kind, SECRET_NONE);
    write_file(USER);
    answer("/token", 200, TOKEN);
    assert_int_equal(find(GS_EMULATOR), STK_OK);
    found_token("GOOGLE_APPLICATION_CREDENTIALS");
    assert_int_equal(find(GS_EXPOSED), STK_OK); /* http to another machine */
    assert_int_equal(secret->kind, SECRET_NONE);
    setenv("STOKER_GS_ANONYMOUS", "1", 1);
    assert_int_equal(find(GS_CLOUD), STK_OK);
    assert_int_equal(secret->kind, SECRET_NONE);
}

static void a_bucket_is_reached_by_its_path(void **state)
{
    struct site *site;
    const char *key;
    struct site_made made = {.mark = 0};
    const struct site_call put = {
        .verb = SITE_PUT, .key = "a b", .send = "x", .send_length = 1, .only_new = 1};

    (void)state;
    setenv("STORAGE_EMULATOR_HOST", answering_url(server, ""), 1);
    setenv("STOKER_GS_ANONYMOUS", "1", 1);
    assert_int_equal(site_open(&site, net, "gs://bucket-1/deep/key", &key, &err), STK_OK);
    assert_string_equal(key, "deep/key");
    assert_string_equal(site->uri, "gs://bucket-1");
    assert_int_equal(site_make(site, &put, &made, &err), STK_OK);
    assert_string_equal(made.request.url, answering_url(server, "/bucket-1/a%20b"));
    int has_condition = 0;
    for (uint32_t i = 0; i < made.request.header_count; i++)
        has_condition |= !strcmp(made.request.headers[i].name, "x-goog-if-generation-match") &&
                         !strcmp(made.request.headers[i].value, "0");
    assert_true(has_condition);
    site_made_reset(&made);
    /* Google refuses x-goog- headers beside a signature's x-amz- ones, and any that is unsigned. */
    secret->kind = SECRET_AWS;
    strcpy(secret->id, "GOOG1");
    strcpy(secret->key, "hidden");
    assert_int_equal(site->ops->make(site, &put, secret, &made, &err), STK_OK);
    int is_signed = 0;
    for (uint32_t i = 0; i < made.request.header_count; i++) {
        const struct web_header *header = &made.request.headers[i];
        assert_int_not_equal(strncmp(header->name, "x-goog-", 7), 0);
        is_signed |= !strcmp(header->name, "Authorization") &&
                     strstr(header->value, ";x-amz-if-generation-match,") != NULL;
    }
    assert_true(is_signed);
    site_made_reset(&made);
    site_close(site);
    assert_int_equal(site_open(&site, net, "gs://x/k", &key, &err), STK_USAGE);
    assert_int_equal(site_open(&site, net, "gs://a?b/k", &key, &err), STK_USAGE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_claim_is_signed_with_the_account_s_key),
        TEST(a_service_account_s_key_becomes_a_token),
        TEST(a_user_s_refresh_token_becomes_a_token),
        TEST(gcloud_s_own_file_is_found),
        TEST(an_external_account_s_token_is_exchanged_and_stands_in_for_another),
        TEST(files_that_cannot_be_used_are_named),
        TEST(the_metadata_server_is_asked_last),
        TEST(keys_go_before_all_and_come_in_pairs),
        TEST(an_emulator_is_asked_without_credentials_unless_some_are_named),
        TEST(a_bucket_is_reached_by_its_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
