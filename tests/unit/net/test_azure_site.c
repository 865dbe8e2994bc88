#include "base/testing.h"

#include "net/azure_place.h"
#include "net/site.h"

#define KEY "c3Rva2VyLXRlc3Qta2V5LXRoYXQtcHJvdGVjdHMtbm90aGluZw=="

/* A site whose credentials are handed in, so that nothing is asked for them. */
struct fixture {
    struct site site;
    struct site_made made;
    struct secret *secret;
};

static void fixture_open(struct fixture *fixture, const char *uri, enum secret_kind kind)
{
    struct azure_place *place;
    size_t length;

    memset(fixture, 0, sizeof(*fixture));
    assert_int_equal(azure_place_new(&place, uri, &length, NULL), STK_OK);
    fixture->site = (struct site){.ops = &azure_site, .kind = place};
    fixture->secret = secret_new();
    assert_non_null(fixture->secret);
    fixture->secret->kind = kind;
    snprintf(fixture->secret->id, sizeof(fixture->secret->id), "%s", place->account);
    if (kind == SECRET_SHARED_KEY)
        strcpy(fixture->secret->key, KEY);
    else
        strcpy(fixture->secret->token, kind == SECRET_SAS ? "sv=2021&sig=a%2Fb" : "t0ken");
}

static void fixture_make(struct fixture *fixture, const struct site_call *call)
{
    struct stk_error err;
    struct web_request before = fixture->made.request;

    site_made_reset(&fixture->made);
    fixture->made.request.range_first = before.range_first;
    fixture->made.request.range_length = before.range_length;
    fixture->made.request.etag = before.etag;
    assert_int_equal(azure_site.make(&fixture->site, call, fixture->secret, &fixture->made, &err),
                     STK_OK);
}

static void fixture_close(struct fixture *fixture)
{
    site_made_reset(&fixture->made);
    secret_free(fixture->secret);
    azure_site.close(&fixture->site);
}

static const char *header(const struct fixture *fixture, const char *name)
{
    const struct web_request *request = &fixture->made.request;

    for (uint32_t i = 0; i < request->header_count; i++)
        if (!strcmp(request->headers[i].name, name))
            return request->headers[i].value;
    return NULL;
}

static void a_read_is_a_get_of_the_escaped_key(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SHARED_KEY);
    fixture_make(&fixture, &(struct site_call){.verb = SITE_READ, .key = "a b/\xC3\xA9+%.tar"});
    assert_int_equal(fixture.made.request.method, WEB_GET);
    assert_string_equal(fixture.made.request.url,
                        "https://acc1.blob.core.windows.net/train/a%20b/%C3%A9%2B%25.tar");
    assert_string_equal(header(&fixture, "x-ms-version"), "2021-12-02");
    assert_non_null(header(&fixture, "x-ms-date"));
    assert_int_equal(strncmp(header(&fixture, "authorization"), "SharedKey acc1:", 15), 0);
    fixture_close(&fixture);
}

/* What a range is asked for with is signed: another one, another signature. */
static void range_and_etag_are_signed(void **state)
{
    const struct site_call call = {.verb = SITE_READ, .key = "x"};
    char signatures[3][128];
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SHARED_KEY);
    /* The moment is signed, too: as good as certainly the same second in one of a few tries. */
    for (int tries = 0; tries < 100; tries++) {
        char date[64];
        fixture.made.request.range_length = 0;
        fixture.made.request.etag = NULL;
        fixture_make(&fixture, &call);
        strcpy(date, header(&fixture, "x-ms-date"));
        strcpy(signatures[0], header(&fixture, "authorization"));
        fixture.made.request.range_first = 10;
        fixture.made.request.range_length = 5;
        fixture_make(&fixture, &call);
        strcpy(signatures[1], header(&fixture, "authorization"));
        fixture.made.request.etag = "\"0x8D\"";
        fixture_make(&fixture, &call);
        strcpy(signatures[2], header(&fixture, "authorization"));
        if (!strcmp(date, header(&fixture, "x-ms-date")))
            break;
    }
    assert_string_not_equal(signatures[0], signatures[1]);
    assert_string_not_equal(signatures[1], signatures[2]);
    assert_int_equal(fixture.made.request.range_first, 10);
    fixture_close(&fixture);
}

static void a_list_says_prefix_marker_and_delimiter(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "abfss://train@acc1.dfs.core.windows.net/x", SECRET_SAS);
    fixture_make(
        &fixture,
        &(struct site_call){.verb = SITE_LIST, .key = "a b/", .token = "2!m/=", .delimiter = "/"});
    assert_string_equal(fixture.made.request.url,
                        "https://acc1.blob.core.windows.net/train?comp=list&delimiter=%2F&include="
                        "metadata&marker=2%21m%2F%3D&maxresults=5000&prefix=a%20b%2F&restype="
                        "container&sv=2021&sig=a%2Fb");
    assert_null(header(&fixture, "authorization"));
    fixture_make(&fixture, &(struct site_call){.verb = SITE_LIST, .key = "", .page = 2});
    assert_string_equal(fixture.made.request.url,
                        "https://acc1.blob.core.windows.net/train?comp=list&include=metadata&"
                        "maxresults=2&restype=container&sv=2021&sig=a%2Fb");
    fixture_make(&fixture, &(struct site_call){.verb = SITE_STAT, .key = "k"});
    assert_int_equal(fixture.made.request.method, WEB_HEAD);
    assert_string_equal(fixture.made.request.url,
                        "https://acc1.blob.core.windows.net/train/k?sv=2021&sig=a%2Fb");
    fixture_close(&fixture);
}

static void a_token_goes_to_private_places_alone(void **state)
{
    const struct site_call call = {.verb = SITE_READ, .key = "k"};
    struct fixture fixture;
    struct stk_error err;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_BEARER);
    fixture_make(&fixture, &call);
    assert_string_equal(header(&fixture, "authorization"), "Bearer t0ken");
    fixture_close(&fixture);
    setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc1;BlobEndpoint=http://example.org",
           1);
    fixture_open(&fixture, "az://acc1/train/x", SECRET_BEARER);
    assert_int_equal(azure_site.make(&fixture.site, &call, fixture.secret, &fixture.made, &err),
                     STK_DENIED);
    assert_null(strstr(err.what, "t0ken"));
    fixture_close(&fixture);
    unsetenv("AZURE_STORAGE_CONNECTION_STRING");
}

static void a_uri_alone_cannot_send_a_token_to_anybodys_host(void **state)
{
    static const char uri[] = "abfss://train@acc1.dfs.core.windows.net.example.org/x";
    const struct site_call call = {.verb = SITE_READ, .key = "k"};
    const enum secret_kind kinds[] = {SECRET_BEARER, SECRET_SAS};
    struct fixture fixture;
    struct stk_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        fixture_open(&fixture, uri, kinds[i]);
        assert_int_equal(azure_site.make(&fixture.site, &call, fixture.secret, &fixture.made, &err),
                         STK_DENIED);
        assert_null(strstr(err.what, "t0ken"));
        assert_null(strstr(err.what, "sig"));
        assert_non_null(strstr(err.remedy, "AZURE_STORAGE_SERVICE_ENDPOINT"));
        fixture_close(&fixture);
    }
    setenv("AZURE_STORAGE_SERVICE_ENDPOINT", "https://acc1.storage.example.org", 1);
    fixture_open(&fixture, "abfss://train@acc1.storage.example.org/x", SECRET_BEARER);
    fixture_make(&fixture, &call);
    assert_string_equal(header(&fixture, "authorization"), "Bearer t0ken");
    fixture_close(&fixture);
    unsetenv("AZURE_STORAGE_SERVICE_ENDPOINT");
    fixture_open(&fixture, uri, SECRET_SHARED_KEY); /* which stays here */
    fixture_make(&fixture, &call);
    fixture_close(&fixture);
}

static void without_a_secret_nothing_is_signed(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_NONE);
    fixture_make(&fixture, &(struct site_call){.verb = SITE_READ, .key = "k"});
    assert_null(header(&fixture, "authorization"));
    assert_string_equal(fixture.made.request.url, "https://acc1.blob.core.windows.net/train/k");
    fixture_close(&fixture);
}

static void a_blob_is_put_whole_with_its_hash(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SHARED_KEY);
    fixture_make(
        &fixture,
        &(struct site_call){
            .verb = SITE_PUT, .key = "k", .send = "hello", .send_length = 5, .only_new = 1});
    assert_int_equal(fixture.made.request.method, WEB_PUT);
    assert_string_equal(header(&fixture, "x-ms-blob-type"), "BlockBlob");
    assert_string_equal(header(&fixture, "content-md5"), "XUFAKrxLKna5cZ2REBfFkg==");
    assert_string_equal(header(&fixture, "if-none-match"), "*");
    assert_int_equal(fixture.made.request.send_length, 5);
    fixture_close(&fixture);
}

static void an_upload_s_blocks_are_put_and_then_named_in_order(void **state)
{
    /* 000001-5d41402abc4b2a76b9719d911017c592 in base64 */
    static const char id[] = "MDAwMDAxLTVkNDE0MDJhYmM0YjJhNzZiOTcxOWQ5MTEwMTdjNTky";
    const struct site_call part = {
        .verb = SITE_PART, .key = "k", .number = 1, .send = "hello", .send_length = 5};
    struct web_answer answer = {.status = 201};
    struct site_trouble trouble = {.status = STK_OK};
    struct fixture fixture;
    char tag[256] = "", url[256];

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SAS);
    fixture_make(&fixture, &part);
    snprintf(url, sizeof(url),
             "https://acc1.blob.core.windows.net/train/k?blockid=%s&comp=block&sv=2021&sig=a%%2Fb",
             id);
    assert_string_equal(fixture.made.request.url, url);
    azure_site.read_upload(&fixture.site, &part, &answer, "", 0, tag, &trouble);
    assert_string_equal(tag, "\"5d41402abc4b2a76b9719d911017c592\"");
    const char *const tags[] = {tag, tag};
    fixture_make(&fixture,
                 &(struct site_call){.verb = SITE_FINISH, .key = "k", .number = 2, .tags = tags});
    assert_string_equal(
        fixture.made.request.url,
        "https://acc1.blob.core.windows.net/train/k?comp=blocklist&sv=2021&sig=a%2Fb");
    assert_non_null(strstr(fixture.made.body.data, id));
    assert_non_null(strstr(fixture.made.body.data, "<Latest>MDAwMDAyLTVk"));
    assert_ptr_equal(fixture.made.request.send, fixture.made.body.data);
    assert_int_equal(fixture.made.request.send_length, strlen(fixture.made.body.data));
    fixture_close(&fixture);
}

static void beginning_and_forgetting_an_upload_need_no_request(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SAS);
    const struct site_call calls[] = {{.verb = SITE_BEGIN, .key = "k"},
                                      {.verb = SITE_ABORT, .key = "k"}};
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(
            azure_site.make(&fixture.site, &calls[i], fixture.secret, &fixture.made, NULL),
            STK_UNSUPPORTED);
    fixture_close(&fixture);
}

static void a_wrong_clock_is_set_by_the_service_s(void **state)
{
    struct web_answer answer = {.status = 403, .date_s = 1000000000};
    struct site_trouble trouble;
    struct fixture fixture;

    (void)state;
    strcpy(answer.error_code, "AuthenticationFailed");
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SHARED_KEY);
    azure_site.read_trouble(&fixture.site, &answer, &trouble);
    assert_int_equal(trouble.is_clock, 1);
    fixture_make(&fixture, &(struct site_call){.verb = SITE_READ, .key = "k"});
    assert_int_equal(strncmp(header(&fixture, "x-ms-date"), "Sun, 09 Sep 2001 01:", 20), 0);
    azure_site.read_trouble(&fixture.site, &answer, &trouble);
    assert_int_equal(trouble.is_clock, 0); /* it is right now: the key is not */
    fixture_close(&fixture);
}

static int make_once(void *user)
{
    struct fixture *fixture = user;
    struct stk_error err;
    const struct site_call call = {.verb = SITE_PART,
                                   .key = "some/longer/key/that/makes/texts/grow",
                                   .number = 1,
                                   .send = "hello",
                                   .send_length = 5};
    stk_status status =
        azure_site.make(&fixture->site, &call, fixture->secret, &fixture->made, &err);

    site_made_reset(&fixture->made);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    struct fixture fixture;

    (void)state;
    fixture_open(&fixture, "az://acc1/train/x", SECRET_SHARED_KEY);
    fail_each_allocation(make_once, &fixture);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_read_is_a_get_of_the_escaped_key),
        cmocka_unit_test(range_and_etag_are_signed),
        cmocka_unit_test(a_list_says_prefix_marker_and_delimiter),
        cmocka_unit_test(a_token_goes_to_private_places_alone),
        cmocka_unit_test(a_uri_alone_cannot_send_a_token_to_anybodys_host),
        cmocka_unit_test(without_a_secret_nothing_is_signed),
        cmocka_unit_test(a_blob_is_put_whole_with_its_hash),
        cmocka_unit_test(an_upload_s_blocks_are_put_and_then_named_in_order),
        cmocka_unit_test(beginning_and_forgetting_an_upload_need_no_request),
        cmocka_unit_test(a_wrong_clock_is_set_by_the_service_s),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    unsetenv("AZURE_STORAGE_CONNECTION_STRING");
    unsetenv("AZURE_STORAGE_SERVICE_ENDPOINT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
