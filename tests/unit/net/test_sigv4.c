#include "base/testing.h"

#include "net/sigv4.h"

/* The examples of AWS's documentation of Signature Version 4 for S3. */
#define ID "AKIAIOSFODNN7EXAMPLE"
#define KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define MOMENT 1369353600 /* 2013-05-24 00:00:00 */
#define HOST "https://examplebucket.s3.amazonaws.com"

static struct sigv4_key kept;

static const char *signature(const char *method, const char *url, const struct web_header *headers,
                             uint32_t count, const char *payload)
{
    static char out[65];
    struct sigv4_request request = {method, url, headers, count};
    struct sigv4 how = {"us-east-1", "s3", payload, MOMENT, &kept};
    struct text canonical = {0}, names = {0};
    struct secret *secret = secret_new();
    strcpy(secret->key, KEY);
    secret->mark = 1;
    assert_int_equal(sigv4_canonical(&request, payload, &canonical, &names, NULL), STK_OK);
    assert_int_equal(sigv4_signature(&canonical, secret, &how, out), STK_OK);
    secret_free(secret);
    text_free(&canonical);
    text_free(&names);
    return out;
}

static void a_range_is_signed_as_in_the_example(void **state)
{
    (void)state;
    const struct web_header headers[] = {{"Range", "bytes=0-9"},
                                         {"x-amz-date", "20130524T000000Z"},
                                         {"x-amz-content-sha256", EMPTY}};
    assert_string_equal(signature("GET", HOST "/test.txt", headers, 3, EMPTY),
                        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void a_put_is_signed_as_in_the_example(void **state)
{
    (void)state;
    static const char payload[] =
        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct web_header headers[] = {{"x-amz-content-sha256", payload},
                                         {"x-amz-date", "20130524T000000Z"},
                                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                                         {"Date", "Fri, 24 May 2013 00:00:00 GMT"}};
    assert_string_equal(signature("PUT", HOST "/test%24file.text", headers, 4, payload),
                        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

static void queries_are_signed_as_in_the_examples(void **state)
{
    (void)state;
    const struct web_header headers[] = {{"x-amz-date", "20130524T000000Z"},
                                         {"x-amz-content-sha256", EMPTY}};
    assert_string_equal(signature("GET", HOST "/?lifecycle", headers, 2, EMPTY),
                        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    static const char listed[] = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    assert_string_equal(signature("GET", HOST "/?max-keys=2&prefix=J", headers, 2, EMPTY), listed);
    assert_string_equal(signature("GET", HOST "/?prefix=J&max-keys=2", headers, 2, EMPTY), listed);
}

/* The last header, which is the signature, of a request that one secret signs. */
static const char *signed_with(struct secret *secret, const char *region, int64_t now_s,
                               struct sigv4_key *key)
{
    static char out[4][512];
    static int next;
    static struct site_made made;
    struct sigv4 how = {region, "s3", EMPTY, now_s, key};
    site_made_reset(&made);
    text_format(&made.url, HOST "/test.txt");
    assert_int_equal(sigv4_sign(&made, secret, &how, NULL), STK_OK);
    char *to = out[next++ % 4];
    snprintf(to, sizeof(out[0]), "%s", made.request.headers[made.request.header_count - 1].value);
    site_made_reset(&made);
    return to;
}

static void a_key_that_is_kept_is_made_anew_where_anything_differs(void **state)
{
    (void)state;
    struct sigv4_key key = {0};
    struct secret *secret = secret_new();
    static const int64_t times[] = {MOMENT, MOMENT + 5, MOMENT + 86400};
    static const char *const regions[] = {"us-east-1", "eu-west-1"};
    for (size_t i = 0; i < 12;
         i++) { /* the secret changes at each step, moment and region at some */
        int64_t now_s = times[i / 2 % 3];
        const char *region = regions[i / 6 % 2];
        snprintf(secret->key, sizeof(secret->key), "key %zu", i % 2);
        secret->mark = 7 + i % 2;
        assert_string_equal(signed_with(secret, region, now_s, &key),
                            signed_with(secret, region, now_s, NULL));
        assert_int_equal(key.mark, secret->mark);
    }
    secret_free(secret);
}

static void parameters_are_ordered_by_name_then_value(void **state)
{
    (void)state;
    struct sigv4_request request = {"GET", "http://h:9000/p?a-b=1&a=2&a=1&b", NULL, 0};
    struct text canonical = {0}, names = {0};
    assert_int_equal(sigv4_canonical(&request, "X", &canonical, &names, NULL), STK_OK);
    assert_string_equal(canonical.data, "GET\n/p\na=1&a=2&a-b=1&b=\nhost:h:9000\n\nhost\nX");
    text_free(&canonical);
    text_free(&names);
}

static void too_many_parameters_are_refused(void **state)
{
    (void)state;
    struct text url = {0}, canonical = {0}, names = {0};
    text_format(&url, "http://h/?a=0");
    for (int i = 1; i < 40; i++)
        text_format(&url, "&a=%d", i);
    struct sigv4_request request = {"GET", url.data, NULL, 0};
    assert_int_equal(sigv4_canonical(&request, "X", &canonical, &names, NULL), STK_LIMIT);
    text_free(&url);
    text_free(&canonical);
    text_free(&names);
}

static void a_session_token_is_sent_and_signed(void **state)
{
    (void)state;
    struct secret *secret = secret_new();
    static struct site_made made;
    strcpy(secret->id, ID);
    strcpy(secret->key, KEY);
    strcpy(secret->token, "TOKEN");
    text_format(&made.url, HOST "/test.txt");
    struct sigv4 how = {"us-east-1", "s3", EMPTY, MOMENT, NULL};
    assert_int_equal(sigv4_sign(&made, secret, &how, NULL), STK_OK);
    const struct web_request *request = &made.request;
    assert_int_equal(request->header_count, 3);
    assert_string_equal(request->headers[0].value, "20130524T000000Z");
    assert_string_equal(request->headers[1].name, "x-amz-security-token");
    assert_string_equal(request->headers[1].value, "TOKEN");
    assert_non_null(strstr(request->headers[2].value,
                           "Credential=" ID "/20130524/us-east-1/s3/aws4_request, "
                           "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature="));
    assert_null(strstr(request->headers[2].value, KEY));
    site_made_reset(&made);
    assert_null(made.url.data);
    secret_free(secret);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_is_signed_as_in_the_example),
        cmocka_unit_test(a_put_is_signed_as_in_the_example),
        cmocka_unit_test(queries_are_signed_as_in_the_examples),
        cmocka_unit_test(a_key_that_is_kept_is_made_anew_where_anything_differs),
        cmocka_unit_test(parameters_are_ordered_by_name_then_value),
        cmocka_unit_test(too_many_parameters_are_refused),
        cmocka_unit_test(a_session_token_is_sent_and_signed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
