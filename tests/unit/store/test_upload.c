#include "base/testing.h"

#include "net/answering.h"
#include "net/digest.h"
#include "net/net.h"
#include "store/upload.h"

#define PART ((size_t)8 << 20) /* the first parts' length */

static char folder[PATH_MAX];
static uint8_t *data;
static struct answering *server;

static int begin(void **state)
{
    (void)state;
    folder_new(folder);
    setenv("HOME", folder, 1);
    setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    setenv("STOKER_TIMEOUT", "50", 1); /* whatever else this machine does */
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_ENDPOINT_URL_S3");
    data = malloc(3 * PART);
    for (size_t i = 0; i < 3 * PART; i++)
        data[i] = (uint8_t)(i * 7 + i / 1000);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free(data);
    folder_remove(folder);
    return 0;
}

/* Each test has a server of its own, and a process-wide net that ends with its last upload. */
static void serve(const struct answering_step *steps, uint32_t count)
{
    server = answering_start(steps, count);
    setenv("AWS_ENDPOINT_URL", answering_url(server, ""), 1);
}

static int stop(void **state)
{
    (void)state;
    answering_stop(server);
    server = NULL;
    return 0;
}

#define BEGUN                                                                                      \
    "<InitiateMultipartUploadResult><UploadId>U1</UploadId></InitiateMultipartUploadResult>"
#define ENDED "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"

static struct answering_step answer(const char *method, const char *path, const char *body)
{
    return (struct answering_step){
        .method = method, .path = path, .status = 200, .body = body, .length = strlen(body)};
}

static struct answering_step part_answer(const char *path, const char *tag)
{
    struct answering_step step = answer("PUT", path, "");
    step.headers = tag;
    return step;
}

/* "ETag: \"MD5\"\r\n" of a part's bytes. */
static const char *tag_header(size_t offset, size_t length)
{
    static char out[4][64];
    static int next;
    uint8_t md5[16];
    char hex[33];
    assert_int_equal(digest_md5(data + offset, length, md5), STK_OK);
    digest_hex(md5, sizeof(md5), hex);
    char *to = out[next++ % 4];
    snprintf(to, sizeof(out[0]), "ETag: \"%s\"\r\n", hex);
    return to;
}

/* Writes the first bytes of the data in uneven steps, and ends. */
static stk_status upload_bytes(size_t length, const struct upload_options *options,
                               struct stk_error *err)
{
    struct upload *upload;
    stk_status status = upload_open(&upload, "s3://bucket/dir/key", options, err);
    for (size_t at = 0, step = 1; !status && at < length; at += step, step = step * 3 + 1) {
        if (step > length - at)
            step = length - at;
        status = upload_write(upload, data + at, step, err);
        if (status)
            upload_abort(upload, 0);
    }
    return status ? status : upload_finish(upload, err);
}

/* The number of the request whose head begins so; fails where there is none. */
static uint32_t request_of(const char *start)
{
    for (uint32_t i = 0; i < answering_requests(server); i++)
        if (!strncmp(answering_head(server, i), start, strlen(start)))
            return i;
    print_error("no request %s\n", start);
    assert_true(!"there is such a request");
    return 0;
}

static void assert_sent(const char *start, size_t offset, size_t length)
{
    size_t got;
    const void *body = answering_body(server, request_of(start), &got);
    assert_int_equal(got, length);
    if (length)
        assert_memory_equal(body, data + offset, length);
}

static void a_small_object_is_one_request(void **state)
{
    (void)state;
    const struct answering_step steps[] = {answer("PUT", "/bucket/dir/key", "")};
    serve(steps, 1);
    assert_int_equal(upload_bytes(1000, NULL, NULL), STK_OK);
    assert_int_equal(upload_bytes(0, NULL, NULL), STK_OK);
    assert_int_equal(answering_requests(server), 2);
    assert_sent("PUT /bucket/dir/key HTTP", 0, 1000);
}

static void a_large_object_goes_in_parts_and_is_made_of_them(void **state)
{
    (void)state;
    const struct answering_step steps[] = {
        answer("POST", "/bucket/dir/key?uploads", BEGUN),
        part_answer("/bucket/dir/key?partNumber=1&uploadId=U1", tag_header(0, PART)),
        part_answer("/bucket/dir/key?partNumber=2&uploadId=U1", tag_header(PART, PART)),
        part_answer("/bucket/dir/key?partNumber=3&uploadId=U1", "ETag: \"three\"\r\n"),
        answer("POST", "/bucket/dir/key?uploadId=U1", ENDED)};
    serve(steps, 5);
    struct upload_options options = {.memory = 2 * PART};
    assert_int_equal(upload_bytes(2 * PART + 5, &options, NULL), STK_OK);
    assert_int_equal(answering_requests(server), 5);
    assert_sent("PUT /bucket/dir/key?partNumber=1", 0, PART);
    assert_sent("PUT /bucket/dir/key?partNumber=2", PART, PART);
    assert_sent("PUT /bucket/dir/key?partNumber=3", 2 * PART, 5);
    size_t length;
    const char *body = answering_body(server, 4, &length);
    static const char third[] = "<PartNumber>3</PartNumber><ETag>\"three\"</ETag>";
    assert_non_null(memmem(body, length, third, strlen(third)));
}

static void exactly_one_part_is_still_one_request(void **state)
{
    (void)state;
    const struct answering_step steps[] = {answer("PUT", "/bucket/dir/key", "")};
    serve(steps, 1);
    assert_int_equal(upload_bytes(PART, NULL, NULL), STK_OK);
    assert_int_equal(answering_requests(server), 1);
    assert_sent("PUT /bucket/dir/key HTTP", 0, PART);
}

static void what_fails_leaves_nothing_and_says_why(void **state)
{
    (void)state;
    struct answering_step refused =
        answer("PUT", "/bucket/dir/key?partNumber=2",
               "<Error><Code>AccessDenied</Code><Message>no</Message></Error>");
    refused.status = 403;
    struct answering_step aborted = answer("DELETE", "/bucket/dir/key?uploadId=U1", "");
    aborted.status = 204;
    const struct answering_step steps[] = {
        answer("POST", "/bucket/dir/key?uploads", BEGUN), refused,
        part_answer("/bucket/dir/key?partNumber=", "ETag: \"x\"\r\n"), aborted};
    serve(steps, 4);
    struct stk_error err = {0};
    assert_int_equal(upload_bytes(3 * PART, NULL, &err), STK_DENIED);
    char words[1024];
    stk_error_format(&err, words, sizeof(words));
    assert_non_null(strstr(words, "dir/key"));
    assert_null(strstr(words, "hidden"));
    (void)request_of("DELETE /bucket/dir/key?uploadId=U1");
    for (uint32_t i = 0; i < answering_requests(server); i++) /* it was never made */
        assert_null(strstr(answering_head(server, i), "POST /bucket/dir/key?uploadId"));
}

static void an_end_whose_answer_is_lost_is_an_end(void **state)
{
    (void)state;
    uint8_t both[32], md5[16];
    char hex[33], etag[64];
    struct answering_step lost = answer("POST", "/bucket/dir/key?uploadId=U1", ENDED);
    struct answering_step gone =
        answer("POST", "/bucket/dir/key?uploadId=U1", "<Error><Code>NoSuchUpload</Code></Error>");
    struct answering_step head = answer("HEAD", "/bucket/dir/key", "");
    lost.times = 1;
    lost.cut = CUT_RESET;
    gone.status = 404;
    assert_int_equal(digest_md5(data, PART, both), STK_OK);
    assert_int_equal(digest_md5(data + PART, 9, both + 16), STK_OK);
    assert_int_equal(digest_md5(both, sizeof(both), md5), STK_OK);
    digest_hex(md5, sizeof(md5), hex);
    snprintf(etag, sizeof(etag), "ETag: \"%s-2\"\r\n", hex);
    head.headers = etag;
    const struct answering_step steps[] = {
        answer("POST", "/bucket/dir/key?uploads", BEGUN),
        part_answer("/bucket/dir/key?partNumber=1", tag_header(0, PART)),
        part_answer("/bucket/dir/key?partNumber=2", tag_header(PART, 9)),
        lost,
        gone,
        head};
    serve(steps, 6);
    assert_int_equal(upload_bytes(PART + 9, NULL, NULL), STK_OK);
}

static void parts_of_an_upload_that_broke_off_are_used_again(void **state)
{
    (void)state;
    static const char uploads[] =
        "<ListMultipartUploadsResult><Upload><Key>dir/key</Key><UploadId>U0</UploadId></Upload>"
        "<Upload><Key>dir/key</Key><UploadId>U1</UploadId></Upload></ListMultipartUploadsResult>";
    char parts[1024];
    snprintf(parts, sizeof(parts),
             "<ListPartsResult><Part><PartNumber>1</PartNumber><Size>%zu</Size><ETag>%.34s</ETag>"
             "</Part><Part><PartNumber>2</PartNumber><Size>%zu</Size><ETag>\"other\"</ETag></Part>"
             "</ListPartsResult>",
             PART, tag_header(0, PART) + 6, PART);
    const struct answering_step steps[] = {
        answer("GET", "/bucket/?uploads=", uploads),
        answer("GET", "/bucket/dir/key?uploadId=U1", parts),
        part_answer("/bucket/dir/key?partNumber=2&uploadId=U1", "ETag: \"two\"\r\n"),
        part_answer("/bucket/dir/key?partNumber=3&uploadId=U1", "ETag: \"three\"\r\n"),
        answer("POST", "/bucket/dir/key?uploadId=U1", ENDED)};
    serve(steps, 5);
    struct upload_options options = {.resume = 1};
    assert_int_equal(upload_bytes(2 * PART + 1, &options, NULL), STK_OK);
    assert_int_equal(answering_requests(server), 5);
    assert_int_equal(answering_count(server, "/bucket/dir/key?partNumber=1"), 0);
    size_t length;
    const char *body = answering_body(server, 4, &length);
    assert_non_null(memmem(body, length, tag_header(0, PART) + 6, 34));
}

static void an_object_that_is_there_is_left_alone(void **state)
{
    (void)state;
    struct answering_step there = answer("PUT", "/bucket/dir/key", "");
    there.status = 412;
    serve(&there, 1);
    struct upload_options options = {.only_new = 1};
    assert_int_equal(upload_bytes(10, &options, NULL), STK_MISMATCH);
    assert_true(answering_had(server, 0, "If-None-Match", "*"));
}

static int over(void *user)
{
    return answering_requests(user) > 1; /* a part is on its way */
}

static void patience_ends_a_write_that_waits(void **state)
{
    (void)state;
    struct answering_step held = answer("PUT", "/bucket/dir/key?partNumber", "");
    held.holds = 1;
    const struct answering_step steps[] = {answer("POST", "/bucket/dir/key?uploads", BEGUN), held,
                                           answer("DELETE", "/bucket/dir/key", "")};
    serve(steps, 3);
    struct upload_options options = {.memory = PART};
    net_patience_set(&(struct net_patience){.is_over = over, .user = server});
    assert_int_equal(upload_bytes(3 * PART, &options, NULL), STK_CANCELLED);
    net_patience_set(NULL);
}

static void a_file_goes_whole(void **state)
{
    (void)state;
    const struct answering_step steps[] = {answer("PUT", "/bucket/f", "")};
    serve(steps, 1);
    FILE *file = fopen(path_in(folder, "file"), "wb");
    assert_int_equal(fwrite(data, 1, 70000, file), 70000);
    fclose(file);
    assert_int_equal(upload_file("s3://bucket/f", path_in(folder, "file"), NULL, NULL), STK_OK);
    assert_sent("PUT /bucket/f HTTP", 0, 70000);
    assert_int_equal(upload_file("s3://bucket/f", path_in(folder, "absent"), NULL, NULL),
                     STK_NOT_FOUND);
}

static void where_nothing_can_be_written_is_said_at_once(void **state)
{
    (void)state;
    struct upload *upload;
    serve(NULL, 0);
    assert_int_equal(upload_open(&upload, "http://127.0.0.1:1/x", NULL, NULL), STK_UNSUPPORTED);
    assert_int_equal(upload_open(&upload, "s3://bucket/", NULL, NULL), STK_USAGE);
    assert_int_equal(upload_open(&upload, "s3://bucket/dir/", NULL, NULL), STK_USAGE);
    assert_null(upload);
    upload_abort(NULL, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_small_object_is_one_request),
        TEST(a_large_object_goes_in_parts_and_is_made_of_them),
        TEST(exactly_one_part_is_still_one_request),
        TEST(what_fails_leaves_nothing_and_says_why),
        TEST(an_end_whose_answer_is_lost_is_an_end),
        TEST(parts_of_an_upload_that_broke_off_are_used_again),
        TEST(an_object_that_is_there_is_left_alone),
        TEST(patience_ends_a_write_that_waits),
        TEST(a_file_goes_whole),
        TEST(where_nothing_can_be_written_is_said_at_once),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
