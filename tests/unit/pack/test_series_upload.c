#include "base/testing.h"

#include "net/answering.h"
#include "net/net.h"
#include "pack/series_upload.h"

static char folder[PATH_MAX];
static struct answering *server;
static struct stk_error err;
static int replaced;       /* not 0: somebody replaces the array once it was sent */
static int heads_of_array; /* looks at it */

static int begin(void **state)
{
    (void)state;
    heads_of_array = 0;
    folder_new(folder);
    setenv("HOME", folder, 1);
    setenv("TMPDIR", folder, 1);
    setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    setenv("STOKER_TIMEOUT", "20", 1);
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_ENDPOINT_URL_S3");
    return 0;
}

static int end(void **state)
{
    (void)state;
    answering_stop(server);
    server = NULL;
    folder_remove(folder);
    unsetenv("TMPDIR");
    return 0;
}

/* As long as what make_series writes. */
static void tell_size(struct answering_step *step, uint32_t number, const char *head, void *user)
{
    (void)number;
    (void)user;
    step->body = "array";
    step->length = strstr(head, ".mmap") ? 5 : 2;
    if (replaced && strstr(head, ".mmap") && strstr(head, "HEAD") && heads_of_array++)
        step->headers = "ETag: \"another\"\r\n";
}

/* there: the status of a look at metadata.json; put: of what is sent. */
static void serve(int there, int put)
{
    static char empty[1];
    struct answering_step steps[] = {
        {.method = "HEAD",
         .path = "/bucket/dir/metadata.json",
         .times = 1,
         .status = there,
         .headers = "ETag: \"e\"\r\n",
         .body = empty},
        {.method = "HEAD", .change = tell_size, .headers = "ETag: \"e\"\r\n", .status = 200},
        {.method = "PUT", .status = put, .headers = "ETag: \"e\"\r\n", .body = empty},
        {.method = "DELETE", .status = 204, .body = empty},
        {.status = 404, .body = empty},
    };

    server = answering_start(steps, sizeof(steps) / sizeof(steps[0]));
    setenv("AWS_ENDPOINT_URL", answering_url(server, ""), 1);
}

/* What packing would leave. */
static void make_series(const struct series_upload *upload)
{
    const char *path = series_upload_path(upload);

    assert_int_equal(mkdir(path, 0700), 0);
    text_write(path_in(path, "all_features.mmap"), "array");
    text_write(path_in(path, "metadata.json"), "{}");
    text_write(path_in(path, "scaler.json"), "{}");
}

static int request_is(uint32_t number, const char *start)
{
    return !strncmp(answering_head(server, number), start, strlen(start));
}

static uint32_t puts_of(const char *name)
{
    char start[128];
    uint32_t count = 0;

    snprintf(start, sizeof(start), "PUT /bucket/dir/%s ", name);
    for (uint32_t i = 0; i < answering_requests(server); i++)
        count += (uint32_t)request_is(i, start);
    return count;
}

static void the_metadata_is_sent_last(void **state)
{
    struct series_upload *upload;

    (void)state;
    serve(404, 200);
    assert_int_equal(series_upload_open(&upload, NULL, "s3://bucket/dir", 0, &err), STK_OK);
    make_series(upload);
    assert_int_equal(series_upload_send(upload, &err), STK_OK);
    series_upload_close(upload);
    uint32_t metadata = 0, last = 0;
    for (uint32_t i = 0; i < answering_requests(server); i++) {
        last = request_is(i, "PUT ") ? i : last;
        metadata = request_is(i, "PUT /bucket/dir/metadata.json ") ? i : metadata;
    }
    assert_true(metadata && metadata == last);
    assert_int_equal(puts_of("all_features.mmap"), 1);
    assert_int_equal(puts_of("scaler.json"), 1);
    assert_int_equal(rmdir(folder), 0); /* nothing was left there */
    assert_int_equal(mkdir(folder, 0700), 0);
}

static void a_series_that_is_there_is_refused_or_ends_before_the_new_one_begins(void **state)
{
    struct series_upload *upload;

    (void)state;
    serve(200, 200);
    assert_int_equal(series_upload_open(&upload, NULL, "s3://bucket/dir", 0, &err), STK_USAGE);
    assert_null(upload);
    assert_int_equal(series_upload_open(&upload, NULL, "s3://bucket/dir", 1, &err), STK_OK);
    make_series(upload);
    uint32_t before = answering_requests(server);
    assert_int_equal(series_upload_send(upload, &err), STK_OK);
    series_upload_close(upload);
    assert_true(request_is(before, "DELETE /bucket/dir/metadata.json "));
    assert_int_equal(answering_count(server, "/bucket/dir/static.mmap"), 1); /* gone, too */
    assert_int_equal(puts_of("scaler.json"), 1);
}

static void a_file_that_somebody_replaced_leaves_no_series(void **state)
{
    struct series_upload *upload;

    (void)state;
    serve(404, 200);
    replaced = 1;
    assert_int_equal(series_upload_open(&upload, NULL, "s3://bucket/dir", 0, &err), STK_OK);
    make_series(upload);
    assert_int_equal(series_upload_send(upload, &err), STK_STALE);
    series_upload_close(upload);
    replaced = 0;
    assert_true(request_is(answering_requests(server) - 1, "DELETE /bucket/dir/metadata.json "));
}

static void a_failed_upload_leaves_no_metadata(void **state)
{
    struct series_upload *upload;

    (void)state;
    serve(404, 403);
    assert_int_equal(series_upload_open(&upload, NULL, "s3://bucket/dir", 0, &err), STK_OK);
    make_series(upload);
    assert_int_equal(series_upload_send(upload, &err), STK_DENIED);
    series_upload_close(upload);
    for (uint32_t i = 0; i < answering_requests(server); i++)
        assert_false(request_is(i, "PUT /bucket/dir/metadata.json "));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_metadata_is_sent_last),
        TEST(a_series_that_is_there_is_refused_or_ends_before_the_new_one_begins),
        TEST(a_file_that_somebody_replaced_leaves_no_series),
        TEST(a_failed_upload_leaves_no_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
