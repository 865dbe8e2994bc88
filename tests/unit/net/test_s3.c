#include "base/testing.h"

#include <time.h>

#include "net/aws_time.h"
#include "net/s3_place.h"

static char folder[PATH_MAX];
static struct net *net;
static struct site_made made;

static const char *const variables[] = {"AWS_PROFILE",
                                        "AWS_DEFAULT_PROFILE",
                                        "AWS_REGION",
                                        "AWS_DEFAULT_REGION",
                                        "AWS_ENDPOINT_URL",
                                        "AWS_ENDPOINT_URL_S3",
                                        "AWS_NO_SIGN_REQUEST",
                                        "STOKER_S3_ANONYMOUS",
                                        "AWS_SESSION_TOKEN",
                                        "STOKER_S3_REQUESTER_PAYS",
                                        "AWS_CONFIG_FILE",
                                        "AWS_SHARED_CREDENTIALS_FILE",
                                        "AWS_REQUEST_PAYER",
                                        "AWS_USE_FIPS_ENDPOINT",
                                        "AWS_USE_DUALSTACK_ENDPOINT"};

static int begin(void **state)
{
    (void)state;
    folder_new(folder);
    setenv("HOME", folder, 1);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        unsetenv(variables[i]);
    setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    assert_int_equal(net_take(&net, NULL), STK_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    site_made_reset(&made);
    net_give(net);
    folder_remove(folder);
    return 0;
}

static struct site *site_of(const char *uri)
{
    struct site *site;
    const char *key;
    struct stk_error err = {0};
    stk_status status = site_open(&site, net, uri, &key, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return site;
}

/* "METHOD url" of a call. */
static const char *written(struct site *site, struct site_call call)
{
    static char out[1024];
    static const char *const names[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    site_made_reset(&made);
    assert_int_equal(site_make(site, &call, &made, NULL), STK_OK);
    snprintf(out, sizeof(out), "%s %s", names[made.request.method], made.request.url);
    return out;
}

static const char *header(const char *name)
{
    for (uint32_t i = 0; i < made.request.header_count; i++)
        if (!strcmp(made.request.headers[i].name, name))
            return made.request.headers[i].value;
    return "none";
}

#define OF "https://bucket.s3.us-east-1.amazonaws.com/"

static void each_verb_is_written_as_s3_wants_it(void **state)
{
    (void)state;
    struct site *site = site_of("s3://bucket/x");
    const char *tags[] = {"\"a&b\"", "\"c\""};
    assert_string_equal(
        written(site, (struct site_call){.verb = SITE_READ, .key = "a b/c+\xC3\xA9"}),
        "GET " OF "a%20b/c%2B%C3%A9");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_STAT, .key = "k"}),
                        "HEAD " OF "k");
    assert_string_equal(
        written(
            site,
            (struct site_call){
                .verb = SITE_LIST, .key = "p/q r", .delimiter = "/", .token = "t+/=", .page = 7}),
        "GET " OF "?list-type=2&encoding-type=url&max-keys=7&prefix=p%2Fq%20r&"
        "delimiter=%2F&continuation-token=t%2B%2F%3D");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_BEGIN, .key = "k"}),
                        "POST " OF "k?uploads=");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_PART,
                                                         .key = "k",
                                                         .upload = "u/1",
                                                         .number = 3,
                                                         .send = "xyz",
                                                         .send_length = 3}),
                        "PUT " OF "k?partNumber=3&uploadId=u%2F1");
    assert_int_equal(made.request.send_length, 3);
    assert_string_equal(header("x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    assert_string_equal(
        written(site,
                (struct site_call){
                    .verb = SITE_FINISH, .key = "k", .upload = "u", .number = 2, .tags = tags}),
        "POST " OF "k?uploadId=u");
    assert_string_equal(made.request.send,
                        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"a&amp;b\""
                        "</ETag></Part><Part><PartNumber>2</PartNumber><ETag>\"c\"</ETag></Part>"
                        "</CompleteMultipartUpload>");
    assert_string_equal(
        written(site, (struct site_call){.verb = SITE_ABORT, .key = "k", .upload = "u"}),
        "DELETE " OF "k?uploadId=u");
    assert_string_equal(
        written(site,
                (struct site_call){.verb = SITE_PARTS, .key = "k", .upload = "u", .token = "9"}),
        "GET " OF "k?uploadId=u&part-number-marker=9");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_PARTS, .key = "k"}),
                        "GET " OF "?uploads=&encoding-type=url&prefix=k");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_DELETE, .key = "k"}),
                        "DELETE " OF "k");
    site_close(site);
}

static void requests_are_signed_and_name_the_id_alone(void **state)
{
    (void)state;
    struct site *site = site_of("s3://bucket/x");
    (void)written(site, (struct site_call){.verb = SITE_PUT, .key = "k", .only_new = 1});
    assert_string_equal(header("If-None-Match"), "*");
    assert_string_equal(header("x-amz-content-sha256"),
                        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_non_null(strstr(header("Authorization"), "Credential=AKID/"));
    assert_non_null(strstr(header("Authorization"), "/us-east-1/s3/aws4_request, SignedHeaders="
                                                    "content-md5;content-type;host;if-none-match;"
                                                    "x-amz-content-sha256;x-amz-date, Signature="));
    for (uint32_t i = 0; i < made.request.header_count; i++)
        assert_null(strstr(made.request.headers[i].value, "hidden"));
    assert_string_equal(made.where, "the environment");
    assert_true(made.mark > 0);
    site_close(site);
}

static void names_that_are_no_hosts_go_into_the_path(void **state)
{
    (void)state;
    struct site *site = site_of("s3://my.dotted.bucket/x");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_READ, .key = "k"}),
                        "GET https://s3.us-east-1.amazonaws.com/my.dotted.bucket/k");
    assert_string_equal(site->host, "s3.us-east-1.amazonaws.com:443");
    site_close(site);
}

static void an_endpoint_is_used_by_path_with_a_hash_of_the_body(void **state)
{
    (void)state;
    setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/base/", 1);
    setenv("AWS_REGION", "eu-north-1", 1);
    setenv("STOKER_S3_REQUESTER_PAYS", "1", 1);
    struct site *site = site_of("s3://local/x");
    assert_string_equal(
        written(site,
                (struct site_call){.verb = SITE_PUT, .key = "k", .send = "abc", .send_length = 3}),
        "PUT http://127.0.0.1:9000/base/local/k");
    assert_string_equal(header("x-amz-content-sha256"),
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_non_null(strstr(header("Authorization"), "/eu-north-1/s3/"));
    assert_string_equal(header("x-amz-request-payer"), "requester");
    assert_string_equal(site->host, "127.0.0.1:9000");
    assert_string_equal(site->uri, "s3://local");
    site_close(site);
    unsetenv("STOKER_S3_REQUESTER_PAYS");
    setenv("AWS_REQUEST_PAYER", "requester", 1);
    site = site_of("s3://local2/x");
    (void)written(site, (struct site_call){.verb = SITE_READ, .key = "k"});
    assert_string_equal(header("x-amz-request-payer"), "requester");
    site_close(site);
    unsetenv("AWS_REQUEST_PAYER");
    unsetenv("AWS_ENDPOINT_URL");
}

static void a_profile_sets_style_region_and_endpoint(void **state)
{
    (void)state;
    text_write(
        path_in(folder, "config"),
        "[profile p]\nregion = cn-north-1\ns3 =\n  addressing_style = virtual\nservices = v\n"
        "[services v]\ns3 =\n  endpoint_url = https://store.example.org\n"
        "[profile q]\nregion = cn-north-1\n");
    setenv("AWS_CONFIG_FILE", path_in(folder, "config"), 1);
    unsetenv("AWS_REGION");
    setenv("AWS_PROFILE", "p", 1);
    struct site *site = site_of("s3://styled/x");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_READ, .key = "k"}),
                        "GET https://styled.store.example.org/k");
    assert_non_null(strstr(header("Authorization"), "/cn-north-1/s3/"));
    site_close(site);
    setenv("AWS_PROFILE", "q", 1);
    site = site_of("s3://chinese/x");
    assert_string_equal(written(site, (struct site_call){.verb = SITE_READ, .key = "k"}),
                        "GET https://chinese.s3.cn-north-1.amazonaws.com.cn/k");
    site_close(site);
    setenv("AWS_PROFILE", "absent", 1);
    const char *key;
    struct stk_error err = {0};
    assert_int_equal(site_open(&site, net, "s3://other/x", &key, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "absent"));
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_CONFIG_FILE");
}

static void anonymous_requests_carry_nothing(void **state)
{
    (void)state;
    setenv("AWS_NO_SIGN_REQUEST", "1", 1);
    struct site *site = site_of("s3://public-data/x");
    (void)written(site, (struct site_call){.verb = SITE_READ, .key = "k"});
    assert_int_equal(made.request.header_count, 0);
    assert_int_equal(made.mark, 0);
    site_close(site);
    unsetenv("AWS_NO_SIGN_REQUEST");
}

static void uris_that_name_no_bucket_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"s3://", "s3:///key", "s3://arn:aws:s3:x/k", "s3://a@b/k",
                                      "s3://a b/k"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct site *site;
        const char *key;
        assert_int_equal(site_open(&site, net, bad[i], &key, NULL), STK_USAGE);
    }
}

/* --- lists ----------------------------------------------------------------------------------- */

static stk_status read_page(const struct site_call *call, const char *body, struct site_page *page,
                            struct stk_error *err)
{
    struct site *site = site_of("s3://bucket/x");
    struct web_answer answer = {.status = 200};
    stk_status status = site->ops->read_page(site, call, &answer, body, strlen(body), page, err);
    site_close(site);
    return status;
}

static void a_page_has_names_sizes_and_tags(void **state)
{
    (void)state;
    struct site_page page = {0};
    struct site_call call = {.verb = SITE_LIST, .key = ""};
    static const char body[] =
        "<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/\">"
        "<Name>bucket</Name><Prefix>a</Prefix><EncodingType>url</EncodingType>"
        "<IsTruncated>true</IsTruncated><NextContinuationToken>n&amp;+/=</NextContinuationToken>"
        "<Contents><Key>a+b%2Bc%C3%A9</Key><Size>12</Size><ETag>&quot;e1&quot;</ETag><Owner><ID>z"
        "</ID></Owner></Contents><Contents><Key>dir/</Key><Size>0</Size></Contents>"
        "<CommonPrefixes><Prefix>sub/</Prefix></CommonPrefixes></ListBucketResult>";
    assert_int_equal(read_page(&call, body, &page, NULL), STK_OK);
    assert_int_equal(page.count, 3);
    assert_string_equal(page.entries[0].key, "a b+c\xC3\xA9");
    assert_int_equal(page.entries[0].size, 12);
    assert_string_equal(page.entries[0].etag, "\"e1\"");
    assert_false(page.entries[0].is_folder);
    assert_string_equal(page.entries[1].key, "dir/");
    assert_true(page.entries[1].is_folder);
    assert_string_equal(page.entries[2].key, "sub/");
    assert_true(page.entries[2].is_folder);
    assert_string_equal(page.token, "n&+/=");
    static const char last[] = "<ListBucketResult><Contents><Size>1</Size><Key>a+%</Key></Contents>"
                               "<IsTruncated>false</IsTruncated></ListBucketResult>";
    assert_int_equal(read_page(&call, last, &page, NULL), STK_OK);
    assert_int_equal(page.count, 4);
    assert_string_equal(page.entries[3].key, "a+%"); /* that server does not escape */
    assert_string_equal(page.entries[0].key, "a b+c\xC3\xA9");
    assert_null(page.token);
    site_page_reset(&page);
}

static void parts_and_uploads_are_listed(void **state)
{
    (void)state;
    struct site_page page = {0};
    struct site_call call = {.verb = SITE_PARTS, .key = "k", .upload = "u"};
    assert_int_equal(read_page(&call,
                               "<ListPartsResult><NextPartNumberMarker>2</NextPartNumberMarker>"
                               "<IsTruncated>true</IsTruncated><Part><PartNumber>2</PartNumber>"
                               "<ETag>\"t\"</ETag><Size>5</Size></Part></ListPartsResult>",
                               &page, NULL),
                     STK_OK);
    assert_int_equal(page.count, 1);
    assert_int_equal(page.entries[0].number, 2);
    assert_int_equal(page.entries[0].size, 5);
    assert_string_equal(page.entries[0].etag, "\"t\"");
    assert_string_equal(page.token, "2");
    site_page_reset(&page);
    call.upload = NULL;
    assert_int_equal(
        read_page(&call,
                  "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><Upload><Key>k</Key>"
                  "<UploadId>one</UploadId></Upload><Upload><Key>k2</Key><UploadId>two</UploadId>"
                  "</Upload></ListMultipartUploadsResult>",
                  &page, NULL),
        STK_OK);
    assert_int_equal(page.count, 1);
    assert_string_equal(page.entries[0].etag, "one");
    assert_null(page.token);
    site_page_reset(&page);
}

static void pages_that_are_wrong_are_told_apart(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "<html></html>",
        "<ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key><Size>-1</Size></Contents></ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%0</Key></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>a%00b</Key></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"};
    struct site_call call = {.verb = SITE_LIST, .key = ""};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct site_page page = {0};
        assert_int_equal(read_page(&call, bad[i], &page, NULL), STK_CORRUPT);
        site_page_reset(&page);
    }
    struct site_page page = {0};
    struct stk_error err = {0};
    assert_int_equal(read_page(&call, "<Error><Code>InternalError</Code></Error>", &page, &err),
                     STK_IO);
    assert_non_null(strstr(err.what, "InternalError"));
    site_page_reset(&page);
}

/* --- errors ---------------------------------------------------------------------------------- */

static struct site_trouble trouble_of(struct site *site, struct web_answer answer, const char *body,
                                      int only_new)
{
    struct site_trouble trouble;
    struct site_call call = {.verb = SITE_PUT, .key = "k", .only_new = only_new};
    answer.body = (struct text){.data = (char *)(uintptr_t)body, .len = body ? strlen(body) : 0};
    site_read_trouble(site, &call, &answer, &trouble);
    return trouble;
}

static struct site_trouble code_trouble(int status, const char *code)
{
    char body[512];
    struct site *site = site_of("s3://bucket/x");
    snprintf(body, sizeof(body),
             "<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>some words</Message>"
             "<AWSAccessKeyId>AKID</AWSAccessKeyId><StringToSign>s</StringToSign></Error>",
             code);
    struct site_trouble trouble = trouble_of(site, (struct web_answer){.status = status}, body, 0);
    site_close(site);
    assert_string_equal(trouble.code, code);
    assert_string_equal(trouble.words, "some words");
    return trouble;
}

static void codes_say_what_to_do(void **state)
{
    (void)state;
    struct site_trouble slow = code_trouble(503, "SlowDown");
    assert_true(slow.status == STK_LIMIT && slow.is_throttle && slow.is_passing);
    struct site_trouble inside = code_trouble(500, "InternalError");
    assert_true(inside.status == STK_IO && inside.is_passing && !inside.is_throttle);
    struct site_trouble late = code_trouble(400, "RequestTimeout");
    assert_true(late.status == STK_IO && late.is_passing);
    struct site_trouble expired = code_trouble(400, "ExpiredToken");
    assert_true(expired.status == STK_DENIED && expired.is_credentials && !expired.is_passing);
    struct site_trouble denied = code_trouble(403, "AccessDenied");
    assert_true(denied.status == STK_DENIED && denied.is_credentials);
    struct site_trouble frozen = code_trouble(403, "InvalidObjectState");
    assert_true(frozen.status == STK_DENIED && !frozen.is_credentials);
    assert_int_equal(code_trouble(404, "NoSuchKey").status, STK_NOT_FOUND);
    assert_int_equal(code_trouble(404, "NoSuchBucket").status, STK_NOT_FOUND);
    assert_int_equal(code_trouble(412, "PreconditionFailed").status, STK_STALE);
    assert_int_equal(code_trouble(501, "NotImplemented").status, STK_UNSUPPORTED);
}

static void an_object_that_is_there_is_no_new_one(void **state)
{
    (void)state;
    struct site *site = site_of("s3://bucket/x");
    struct site_trouble trouble = trouble_of(site, (struct web_answer){.status = 412}, NULL, 1);
    assert_int_equal(trouble.status, STK_MISMATCH);
    site_close(site);
}

static void a_bucket_elsewhere_is_asked_for_there(void **state)
{
    (void)state;
    struct site *site = site_of("s3://moved-one/x");
    struct web_answer answer = {.status = 301, .region = "eu-west-3"};
    struct site_trouble trouble =
        trouble_of(site, answer, "<Error><Code>PermanentRedirect</Code></Error>", 0);
    assert_string_equal(trouble.region, "eu-west-3");
    assert_true(trouble.is_passing);
    assert_string_equal(written(site, (struct site_call){.verb = SITE_READ, .key = "k"}),
                        "GET https://moved-one.s3.eu-west-3.amazonaws.com/k");
    assert_non_null(strstr(header("Authorization"), "/eu-west-3/s3/"));
    answer = (struct web_answer){.status = 400};
    trouble = trouble_of(site, answer,
                         "<Error><Code>AuthorizationHeaderMalformed</Code><Message>m</Message>"
                         "<Region>ap-south-1</Region></Error>",
                         0);
    assert_string_equal(trouble.region, "ap-south-1");
    answer = (struct web_answer){.status = 301, .region = "evil.org/"};
    assert_string_equal(trouble_of(site, answer, NULL, 0).region, "");
    site_close(site);
}

/* A HEAD's answer has no body: in the right region, its 400 is that of a token that expired. */
static void a_silent_400_in_the_right_region_asks_for_fresh_credentials(void **state)
{
    (void)state;
    struct site *site = site_of("s3://silent-one/x");
    struct web_answer answer = {.status = 400, .region = "eu-west-3"};
    struct site_trouble trouble = trouble_of(site, answer, NULL, 0);
    assert_string_equal(trouble.region, "eu-west-3");
    assert_false(trouble.is_credentials);
    trouble = trouble_of(site, answer, NULL, 0);
    assert_string_equal(trouble.region, "");
    assert_true(trouble.is_credentials);
    assert_int_equal(trouble.status, STK_DENIED);
    trouble = trouble_of(site, (struct web_answer){.status = 400}, NULL, 0);
    assert_true(trouble.is_credentials);
    trouble = trouble_of(site, (struct web_answer){.status = 400},
                         "<Error><Code>InvalidArgument</Code></Error>", 0);
    assert_false(trouble.is_credentials);
    site_close(site);
}

static void endpoints_may_be_those_of_fips_and_of_both_ip_versions(void **state)
{
    (void)state;
    const struct site_call call = {.verb = SITE_READ, .key = "k"};
    setenv("AWS_REGION", "us-gov-west-1", 1);
    setenv("AWS_USE_FIPS_ENDPOINT", "true", 1);
    struct site *site = site_of("s3://fips-one/x");
    assert_string_equal(written(site, call),
                        "GET https://fips-one.s3-fips.us-gov-west-1.amazonaws.com/k");
    site_close(site);
    setenv("AWS_USE_DUALSTACK_ENDPOINT", "true", 1);
    site = site_of("s3://fips-two/x");
    assert_string_equal(written(site, call),
                        "GET https://fips-two.s3-fips.dualstack.us-gov-west-1.amazonaws.com/k");
    site_close(site);
    unsetenv("AWS_USE_FIPS_ENDPOINT");
    unsetenv("AWS_USE_DUALSTACK_ENDPOINT");
    unsetenv("AWS_REGION");
}

static int64_t signed_at(struct site *site)
{
    char text[32];
    (void)written(site, (struct site_call){.verb = SITE_READ, .key = "k"});
    const char *date = header("x-amz-date");
    snprintf(text, sizeof(text), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", date, date + 4, date + 6,
             date + 9, date + 11, date + 13);
    return aws_time_read(text);
}

static void a_clock_that_is_wrong_is_put_right(void **state)
{
    (void)state;
    struct site *site = site_of("s3://skewed-one/x");
    struct web_answer answer = {.status = 403};
    struct site_trouble trouble = trouble_of(
        site, answer,
        "<Error><Code>RequestTimeTooSkewed</Code><ServerTime>2031-01-01T00:00:00Z</ServerTime>"
        "</Error>",
        0);
    assert_true(trouble.is_clock && trouble.is_passing && !trouble.is_credentials);
    assert_true(signed_at(site) - aws_time_read("2031-01-01T00:00:00Z") < 600);
    assert_true(signed_at(site) >= aws_time_read("2031-01-01T00:00:00Z"));
    /* a HEAD has no body: its Date alone tells */
    answer.date_s = aws_time_read("Wed, 01 Jan 2025 00:00:00 GMT");
    trouble = trouble_of(site, answer, NULL, 0);
    assert_true(trouble.is_clock);
    assert_true(signed_at(site) - aws_time_read("2025-01-01T00:00:00Z") < 600);
    trouble = trouble_of(site, answer, NULL, 0); /* it is right now: so it is the credentials */
    assert_true(!trouble.is_clock && trouble.is_credentials);
    site_close(site);
}

static void an_upload_has_its_id_and_a_success_may_hold_an_error(void **state)
{
    (void)state;
    struct site *site = site_of("s3://bucket/x");
    struct site_call call = {.verb = SITE_BEGIN, .key = "k"};
    struct web_answer answer = {.status = 200, .etag = "\"tag\""};
    struct site_trouble trouble = {0};
    char upload[256];
    static const char begun[] = "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key>"
                                "<UploadId>id&amp;1</UploadId></InitiateMultipartUploadResult>";
    site->ops->read_upload(site, &call, &answer, begun, strlen(begun), upload, &trouble);
    assert_string_equal(upload, "id&1");
    call.verb = SITE_PART;
    site->ops->read_upload(site, &call, &answer, NULL, 0, upload, &trouble);
    assert_string_equal(upload, "\"tag\"");
    assert_int_equal(trouble.status, STK_OK);
    call.verb = SITE_FINISH;
    static const char good[] = "<CompleteMultipartUploadResult><ETag>x</ETag>"
                               "</CompleteMultipartUploadResult>";
    site->ops->read_upload(site, &call, &answer, good, strlen(good), upload, &trouble);
    assert_int_equal(trouble.status, STK_OK);
    static const char bad[] = " <Error><Code>InternalError</Code><Message>m</Message></Error>";
    site->ops->read_upload(site, &call, &answer, bad, strlen(bad), upload, &trouble);
    assert_true(trouble.status == STK_IO && trouble.is_passing);
    site_close(site);
}

/* A site that was not known before, a call of it, and a page. */
static int open_make_and_read(void *user)
{
    int *number = user;
    char uri[64];
    struct site *site = NULL;
    const char *key, *tags[] = {"\"t\""};
    struct site_call finish = {
        .verb = SITE_FINISH, .key = "a b", .upload = "u", .number = 1, .tags = tags};
    struct site_call list = {.verb = SITE_LIST, .key = ""};
    struct site_page page = {0};
    static const char body[] =
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
        "<NextContinuationToken>n</NextContinuationToken><Contents><Key>a%20b</Key></Contents>"
        "</ListBucketResult>";
    struct web_answer answer = {.status = 200};
    snprintf(uri, sizeof(uri), "s3://bucket-%d/x", (*number)++);
    site_made_reset(&made);
    stk_status status = site_open(&site, net, uri, &key, NULL);
    if (!status)
        status = site_make(site, &finish, &made, NULL);
    if (!status)
        status = site->ops->read_page(site, &list, &answer, body, strlen(body), &page, NULL);
    assert_true(!status || status == STK_MEMORY);
    site_page_reset(&page);
    site_close(site);
    return !status;
}

static void memory_that_runs_out_anywhere_is_told(void **state)
{
    (void)state;
    int number = 0;
    fail_each_allocation(open_make_and_read, &number);
    assert_true(number > 10);
}

static void dates_are_read_in_both_ways(void **state)
{
    (void)state;
    assert_int_equal(aws_time_read("2013-05-24T00:00:00Z"), 1369353600);
    assert_int_equal(aws_time_read("2013-05-24T01:00:00.123+01:00"), 1369353600);
    assert_int_equal(aws_time_read("2013-05-23T22:30:00-01:30"), 1369353600);
    assert_int_equal(aws_time_read("2013-05-24 01:00:00+0100"), 1369353600);
    assert_int_equal(aws_time_read("Fri, 24 May 2013 00:00:00 GMT"), 1369353600);
    static const char *const bad[] = {"",
                                      "soon",
                                      "2013-13-24T00:00:00Z",
                                      "2013-05-24T00:00:00Q",
                                      "Fri, 24 ayJ 2013 00:00:00 GMT",
                                      "1369353600"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(aws_time_read(bad[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verb_is_written_as_s3_wants_it),
        cmocka_unit_test(requests_are_signed_and_name_the_id_alone),
        cmocka_unit_test(names_that_are_no_hosts_go_into_the_path),
        cmocka_unit_test(an_endpoint_is_used_by_path_with_a_hash_of_the_body),
        cmocka_unit_test(a_profile_sets_style_region_and_endpoint),
        cmocka_unit_test(anonymous_requests_carry_nothing),
        cmocka_unit_test(uris_that_name_no_bucket_are_refused),
        cmocka_unit_test(a_page_has_names_sizes_and_tags),
        cmocka_unit_test(parts_and_uploads_are_listed),
        cmocka_unit_test(pages_that_are_wrong_are_told_apart),
        cmocka_unit_test(codes_say_what_to_do),
        cmocka_unit_test(an_object_that_is_there_is_no_new_one),
        cmocka_unit_test(a_bucket_elsewhere_is_asked_for_there),
        cmocka_unit_test(a_silent_400_in_the_right_region_asks_for_fresh_credentials),
        cmocka_unit_test(endpoints_may_be_those_of_fips_and_of_both_ip_versions),
        cmocka_unit_test(a_clock_that_is_wrong_is_put_right),
        cmocka_unit_test(an_upload_has_its_id_and_a_success_may_hold_an_error),
        cmocka_unit_test(memory_that_runs_out_anywhere_is_told),
        cmocka_unit_test(dates_are_read_in_both_ways),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
