#include "base/testing.h"

#include <dirent.h>

#include "net/answering.h"
#include "net/net.h"
#include "pack/pack_upload.h"
#include "pack/upload_notes.h"

enum { SHARDS = 9, BYTES = 3000 };

#define NOTHING "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
#define ONE_SHARD                                                                                  \
    "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>dir/shard-0000.tar</Key>"    \
    "<Size>3000</Size><ETag>\"e\"</ETag></Contents></ListBucketResult>"

/* What is answered to a second run that reads notes. */
#define NOTES_OF(source)                                                                           \
    "{\"stoker_pack\": 1, \"complete\": false, \"source\": \"" source "\", \"shards\": []}"

static char folder[PATH_MAX];
static uint8_t bytes[BYTES];
static struct answering *server;
static struct stk_error err;
static struct net *net; /* held, so that its end is seen */

static int begin(void **state)
{
    (void)state;
    folder_new(folder);
    setenv("HOME", folder, 1);
    setenv("TMPDIR", folder, 1);
    setenv("AWS_ACCESS_KEY_ID", "AKID", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "hidden", 1);
    setenv("STOKER_TIMEOUT", "20", 1);
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_ENDPOINT_URL_S3");
    memset(bytes, 7, sizeof(bytes));
    memset(&err, 0, sizeof(err));
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_give(net);
    net = NULL;
    answering_stop(server);
    server = NULL;
    folder_remove(folder);
    unsetenv("TMPDIR");
    return 0;
}

/* A list of the first shards, with this ETag. */
static const char *list_of(uint32_t shards, const char *etag)
{
    static char text[8192];
    int len = snprintf(text, sizeof(text), "<ListBucketResult><IsTruncated>false</IsTruncated>");

    for (uint32_t i = 0; i < shards; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "<Contents><Key>dir/shard-%04u.tar</Key><Size>3000</Size>"
                        "<ETag>\"%s\"</ETag></Contents>",
                        i, etag);
    snprintf(text + len, sizeof(text) - (size_t)len, "</ListBucketResult>");
    return text;
}

/* A bucket that takes everything. list: what it says is there at first; in the end: what list_of
 * says; put: how it answers shards. */
static void serve_ending(const char *list, const char *end, const char *notes, int put)
{
    struct answering_step steps[] = {
        {.method = "GET",
         .path = "/bucket/?list",
         .times = 1,
         .status = 200,
         .body = list,
         .length = strlen(list)},
        {.method = "GET",
         .path = "/bucket/?list",
         .status = 200,
         .body = end,
         .length = strlen(end)},
        {.method = "GET",
         .path = "/bucket/dir/.stoker/",
         .status = notes ? 200 : 404,
         .body = notes ? notes : "",
         .length = notes ? strlen(notes) : 0},
        {.method = "PUT", .path = "/bucket/dir/.stoker/", .status = 200, .body = "", .length = 0},
        {.method = "PUT",
         .path = "/bucket/dir/",
         .status = put,
         .headers = "ETag: \"e\"\r\n",
         .body = "",
         .length = 0},
        {.method = "HEAD",
         .path = "/bucket/dir/",
         .status = 200,
         .headers = "ETag: \"e\"\r\n",
         .body = bytes,
         .length = sizeof(bytes)},
        {.method = "DELETE", .status = 204, .body = "", .length = 0},
        {.status = 404, .body = "", .length = 0},
    };

    server = answering_start(steps, sizeof(steps) / sizeof(steps[0]));
    setenv("AWS_ENDPOINT_URL", answering_url(server, ""), 1);
    assert_int_equal(net_take(&net, &err), STK_OK);
}

static void serve(const char *list, const char *notes, int put)
{
    serve_ending(list, list_of(SHARDS, "e"), notes, put);
}

static stk_status open_upload(struct pack_upload **out, uint32_t shards, int force)
{
    const struct pack_upload_options options = {
        .uri = "s3://bucket/dir/", .prefix = "shard", .shards = shards, .force = force};

    return pack_upload_open(out, &options, &err);
}

static stk_status add_shard(struct pack_upload *upload, uint32_t number)
{
    char name[16];
    int fd;

    snprintf(name, sizeof(name), "%u", number);
    fd = openat(pack_upload_folder(upload), name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    close(fd);
    return pack_upload_add(upload, number, name, &err);
}

/* Files and folders that the upload left. */
static int left_over(void)
{
    int count = 0;
    DIR *list = opendir(folder);

    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

static const char *last_notes(void)
{
    static char text[8192];
    size_t length;

    for (uint32_t i = answering_requests(server); i-- > 0;) {
        if (strncmp(answering_head(server, i), "PUT /bucket/dir/.stoker/shard.pack.json", 39))
            continue;
        const void *body = answering_body(server, i, &length);
        assert_true(length < sizeof(text));
        memcpy(text, body, length);
        text[length] = 0;
        return text;
    }
    return "";
}

static void shards_are_sent_and_then_noted_as_complete(void **state)
{
    struct pack_upload *upload;

    (void)state;
    serve(NOTHING, NULL, 200);
    assert_int_equal(open_upload(&upload, SHARDS, 0), STK_OK);
    assert_string_equal(pack_upload_label(upload, 3), "s3://bucket/dir/shard-0003.tar");
    for (uint32_t i = 0; i < SHARDS; i++)
        assert_int_equal(add_shard(upload, i), STK_OK);
    assert_int_equal(pack_upload_finish(upload, &err), STK_OK);
    pack_upload_close(upload);
    for (uint32_t i = 0; i < SHARDS; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/bucket/dir/shard-%04u.tar", i);
        assert_int_equal(answering_count(server, path), 2); /* sent, and looked at */
    }
    assert_non_null(strstr(last_notes(), "\"complete\": true"));
    assert_non_null(strstr(last_notes(), "shard-0008.tar"));
    assert_int_equal(left_over(), 0);
}

static void a_failed_upload_ends_all_and_what_is_there_is_noted(void **state)
{
    struct pack_upload *upload;
    stk_status status = STK_OK;

    (void)state;
    serve(NOTHING, NULL, 403);
    assert_int_equal(open_upload(&upload, SHARDS, 0), STK_OK);
    for (uint32_t i = 0; i < SHARDS && !status; i++)
        status = add_shard(upload, i);
    if (!status)
        status = pack_upload_finish(upload, &err);
    assert_int_equal(status, STK_DENIED);
    pack_upload_close(upload);
    assert_int_equal(left_over(), 0);
    /* nothing was there to be noted: the place is anybody's again */
    const char *head = answering_head(server, answering_requests(server) - 1);
    assert_int_equal(strncmp(head, "DELETE /bucket/dir/.stoker/shard.pack.json ", 43), 0);
}

static void breaking_off_leaves_notes_and_no_file(void **state)
{
    struct pack_upload *upload;

    (void)state;
    serve(NOTHING, NULL, 200);
    assert_int_equal(open_upload(&upload, SHARDS, 0), STK_OK);
    assert_int_equal(add_shard(upload, 0), STK_OK);
    answering_await(server, 5); /* list, notes read and written, sent, looked at */
    for (int i = 0; i < 3000 && !strstr(last_notes(), "shard-0000"); i++) {
        usleep(10000); /* the first is noted at once */
    }
    assert_non_null(strstr(last_notes(), "\"complete\": false"));
    pack_upload_close(upload);
    assert_int_equal(left_over(), 0);
}

static void shards_that_are_there_are_refused_or_replaced(void **state)
{
    struct pack_upload *upload;

    (void)state;
    serve(ONE_SHARD, NULL, 200);
    assert_int_equal(open_upload(&upload, SHARDS, 0), STK_USAGE);
    assert_null(upload);
    assert_non_null(strstr(err.remedy, "--force"));
    assert_int_equal(open_upload(&upload, 0, 1), STK_OK);
    assert_int_equal(pack_upload_finish(upload, &err), STK_OK);
    pack_upload_close(upload);
    uint32_t removed = 0;
    for (uint32_t i = 0; i < answering_requests(server); i++)
        removed += !strncmp(answering_head(server, i), "DELETE /bucket/dir/shard-0000.tar ", 34);
    assert_int_equal(removed, 1);
}

/* What a run that was broken off has sent is not sent again; what changed since is. */
static void noted_shards_are_not_sent_again(void **state)
{
    struct upload_notes notes = {.is_complete = 0};
    struct text text = {0};
    struct pack_upload *upload;

    (void)state;
    serve(NOTHING, NULL, 200); /* to learn the notes of it */
    assert_int_equal(open_upload(&upload, 1, 0), STK_OK);
    assert_int_equal(add_shard(upload, 0), STK_OK);
    assert_int_equal(pack_upload_finish(upload, &err), STK_OK);
    pack_upload_close(upload);
    text_format(&text, "%s", last_notes());
    char *word = strstr(text.data, "true"); /* complete */
    memcpy(word, "null", 4);
    net_give(net);
    answering_stop(server);
    serve(ONE_SHARD, text.data, 200);
    assert_int_equal(open_upload(&upload, 2, 0), STK_OK);
    assert_int_equal(add_shard(upload, 0), STK_OK);
    bytes[0]++;
    assert_int_equal(add_shard(upload, 1), STK_OK);
    assert_int_equal(pack_upload_finish(upload, &err), STK_OK);
    pack_upload_close(upload);
    assert_int_equal(answering_count(server, "/bucket/dir/shard-0000.tar"), 0);
    assert_int_equal(answering_count(server, "/bucket/dir/shard-0001.tar"), 2);
    text_free(&text);
    upload_notes_reset(&notes);
}

static void of_two_runs_that_begin_at_once_one_is_refused(void **state)
{
    static const char other[] = NOTES_OF("00112233445566778899aabbccddeeff");
    const struct answering_step steps[] = {
        {.method = "GET",
         .path = "/bucket/?",
         .status = 200,
         .body = NOTHING,
         .length = strlen(NOTHING)},
        {.method = "GET", .path = "/bucket/dir/.stoker/", .times = 1, .status = 404, .body = ""},
        {.method = "GET",
         .path = "/bucket/dir/.stoker/",
         .status = 200,
         .body = other,
         .length = strlen(other)},
        {.method = "PUT", .path = "/bucket/dir/.stoker/", .status = 412, .body = ""},
    };
    struct pack_upload *upload;

    (void)state;
    server = answering_start(steps, sizeof(steps) / sizeof(steps[0]));
    setenv("AWS_ENDPOINT_URL", answering_url(server, ""), 1);
    assert_int_equal(open_upload(&upload, SHARDS, 0), STK_USAGE);
    assert_null(upload);
    uint32_t count = answering_requests(server);
    assert_non_null(strstr(answering_head(server, count - 2), "If-None-Match: *"));
    assert_int_equal(strncmp(answering_head(server, count - 1), "GET ", 4),
                     0); /* none is removed */
}

static void a_shard_that_somebody_replaced_is_told_in_the_end(void **state)
{
    struct pack_upload *upload;

    (void)state;
    serve_ending(NOTHING, list_of(2, "another"), NULL, 200);
    assert_int_equal(open_upload(&upload, 2, 0), STK_OK);
    assert_int_equal(add_shard(upload, 0), STK_OK);
    assert_int_equal(add_shard(upload, 1), STK_OK);
    assert_int_equal(pack_upload_finish(upload, &err), STK_STALE);
    assert_string_equal(err.object, "s3://bucket/dir/shard-0000.tar");
    pack_upload_close(upload);
    assert_null(strstr(last_notes(), "\"complete\": true"));
}

static void notes_are_found_in_whatever_order_they_came(void **state)
{
    static const char *const names[] = {"b", "d", "a", "c", "b"};
    struct upload_notes notes = {0};

    (void)state;
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(
            upload_notes_add(&notes, &(struct upload_note){(char *)names[i], i, i, {0}}, &err),
            STK_OK);
    assert_int_equal(notes.count, 4);
    for (uint64_t i = 1; i < 5; i++)
        assert_int_equal(upload_notes_find(&notes, names[i])->size, i);
    assert_null(upload_notes_find(&notes, "aa"));
    assert_null(upload_notes_find(&notes, "e"));
    upload_notes_reset(&notes);
}

static void plain_http_cannot_be_written_to(void **state)
{
    struct upload_place *place;

    (void)state;
    serve(NOTHING, NULL, 200);
    assert_int_equal(upload_place_open(&place, answering_url(server, "/x"), &err), STK_UNSUPPORTED);
    assert_null(place);
    assert_false(upload_place_is("/some/folder"));
    assert_true(upload_place_is("az://a/b"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(shards_are_sent_and_then_noted_as_complete),
        TEST(a_failed_upload_ends_all_and_what_is_there_is_noted),
        TEST(breaking_off_leaves_notes_and_no_file),
        TEST(shards_that_are_there_are_refused_or_replaced),
        TEST(noted_shards_are_not_sent_again),
        TEST(of_two_runs_that_begin_at_once_one_is_refused),
        TEST(a_shard_that_somebody_replaced_is_told_in_the_end),
        TEST(notes_are_found_in_whatever_order_they_came),
        TEST(plain_http_cannot_be_written_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
