#include "store/remote_fixture.h"

/* A bucket of a few objects: any list of it is all of them that begin with the prefix, in one page;
 * an object that is asked about has its size. */
static const struct {
    const char *key;
    size_t size;
} bucket[] = {{"data/", 0},         {"data/.hidden", 5},    {"data/a.tar", 10},
              {"data/b.tar", 20},   {"data/sub/c.tar", 30}, {"data/sub/.d/e.tar", 40},
              {"data/x[1].tar", 7}, {"database.tar", 50},   {"empty", 0}};
#define KEYS (sizeof bucket / sizeof bucket[0])

struct imitation {
    struct answering *server;
    char body[8192], headers[KEYS][32];
    uint32_t lists, stats;
};

static void decode(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        unsigned value;
        if (*from == '%' && sscanf(from + 1, "%2x", &value) == 1) {
            *to++ = (char)value;
            from += 2;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void answer_list(struct imitation *imitation, struct answering_step *step, const char *from)
{
    char prefix[256] = "";
    size_t used = 0, cap = sizeof imitation->body;
    char *out = imitation->body;
    from = strstr(from, "prefix=");
    if (from)
        sscanf(from, "prefix=%255[^& ]", prefix);
    decode(prefix);
    imitation->lists++;
    used += (size_t)snprintf(out, cap, "<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (size_t i = 0; i < KEYS; i++)
        if (!strncmp(bucket[i].key, prefix, strlen(prefix)))
            used += (size_t)snprintf(out + used, cap - used,
                                     "<Contents><Key>%s</Key><ETag>&quot;e%zu&quot;</ETag>"
                                     "<Size>%zu</Size></Contents>",
                                     bucket[i].key, i, bucket[i].size);
    used += (size_t)snprintf(out + used, cap - used, "</ListBucketResult>");
    step->body = out;
    step->length = used;
}

static void answer(struct answering_step *step, uint32_t number, const char *head, void *user)
{
    struct imitation *imitation = user;
    char path[512] = "";
    (void)number;
    sscanf(head, "%*s /bucket/%511s", path);
    const char *list = strstr(head, "list-type=");
    if (list && list < strstr(head, "\r\n")) {
        answer_list(imitation, step, list);
        return;
    }
    decode(path);
    imitation->stats++;
    for (size_t i = 0; i < KEYS; i++)
        if (!strcmp(path, bucket[i].key)) {
            step->headers = imitation->headers[i];
            step->status = 200;
            step->body = imitation->body;
            step->length = bucket[i].size;
            return;
        }
    step->status = 404;
}

static struct imitation *imitation_new(void)
{
    struct imitation *imitation = calloc(1, sizeof *imitation);
    struct answering_step step = {.change = answer, .user = imitation};
    for (size_t i = 0; i < KEYS; i++)
        snprintf(imitation->headers[i], sizeof imitation->headers[i], "ETag: \"e%zu\"\r\n", i);
    imitation->server = answering_start(&step, 1);
    setenv("AWS_ENDPOINT_URL", answering_url(imitation->server, ""), 1);
    setenv("AWS_ACCESS_KEY_ID", "test", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "test", 1);
    setenv("AWS_REGION", "us-east-1", 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    return imitation;
}

static void imitation_free(struct imitation *imitation)
{
    answering_stop(imitation->server);
    free(imitation);
}

/* What a URI means, as "root|name name". */
static const char *listed(const char *uri, enum remote_kind *kind, stk_status wanted)
{
    static char out[1024];
    struct list list = {0};
    struct stk_error err = {0};
    stk_status status = remote_list_add(&list, &uri, 1, kind, &err);
    if (status != wanted)
        print_error("%s: %s (%s)\n", uri, err.what, stk_status_name(status));
    assert_int_equal(status, wanted);
    size_t used = (size_t)snprintf(out, sizeof out, "%s|", list.root ? list.root : "");
    for (uint64_t i = 0; i < list.count; i++)
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", i ? " " : "",
                                 list.items[i].name);
    list_free(&list);
    return out;
}

static void a_folder_is_all_below_it_but_what_is_hidden(void **state)
{
    (void)state;
    struct imitation *imitation = imitation_new();
    enum remote_kind kind;
    static const char wanted[] = "s3://bucket/data|a.tar b.tar sub/c.tar x[1].tar";
    assert_string_equal(listed("s3://bucket/data/", &kind, STK_OK), wanted);
    assert_int_equal(kind, REMOTE_FOLDER);
    assert_string_equal(listed("s3://bucket/data", &kind, STK_OK), wanted);
    assert_int_equal(kind, REMOTE_FOLDER);
    assert_string_equal(listed("s3://bucket", &kind, STK_OK),
                        "s3://bucket|data/a.tar data/b.tar data/sub/c.tar data/x[1].tar "
                        "database.tar empty");
    assert_string_equal(listed("s3://bucket/data/sub", &kind, STK_OK),
                        "s3://bucket/data/sub|c.tar");
    listed("s3://bucket/dat", &kind, STK_NOT_FOUND);
    imitation_free(imitation);
}

static void an_object_is_asked_about_and_not_listed(void **state)
{
    (void)state;
    struct imitation *imitation = imitation_new();
    const char *uri = "s3://bucket/data/b.tar";
    struct list list = {0};
    enum remote_kind kind;
    assert_int_equal(remote_list_add(&list, &uri, 1, &kind, NULL), STK_OK);
    assert_int_equal(kind, REMOTE_OBJECT);
    assert_true(list.items[0].size == 20);
    assert_true(list.items[0].version == site_version("\"e3\"", 0, ""));
    assert_int_equal(imitation->lists, 0);
    list_free(&list);
    assert_string_equal(listed("s3://bucket/empty", &kind, STK_OK), "s3://bucket|empty");
    assert_int_equal(kind, REMOTE_OBJECT);
    imitation_free(imitation);
}

static void globs_are_matched_against_one_list(void **state)
{
    (void)state;
    struct imitation *imitation = imitation_new();
    enum remote_kind kind;
    assert_string_equal(listed("s3://bucket/data/*.tar", &kind, STK_OK),
                        "s3://bucket/data|a.tar b.tar x[1].tar");
    assert_int_equal(kind, REMOTE_GLOB);
    assert_string_equal(listed("s3://bucket/**/[bc].tar", &kind, STK_OK),
                        "s3://bucket/data|b.tar sub/c.tar");
    assert_string_equal(listed("s3://bucket/data*/*/c.tar", &kind, STK_OK),
                        "s3://bucket/data/sub|c.tar");
    assert_string_equal(listed("s3://bucket/data/x[1].tar", &kind, STK_OK),
                        "s3://bucket/data|x[1].tar"); /* it is there: no pattern */
    assert_int_equal(kind, REMOTE_OBJECT);
    listed("s3://bucket/data/*.zip", &kind, STK_NOT_FOUND);
    assert_int_equal(imitation->stats, 0);
    imitation_free(imitation);
}

static void many_objects_are_asked_about_at_once(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    struct answering_step step = {.body = "12345", .length = 5, .headers = ETAG, .holds = 1};
    struct answering *server = answering_start(&step, 1);
    char texts[COUNT][64];
    const char *uris[COUNT];
    enum remote_kind kinds[COUNT];
    struct list list = {0};
    for (int i = 0; i < COUNT; i++) {
        snprintf(texts[i], sizeof texts[i], "%s%03d.tar", answering_url(server, "/a/"), i);
        uris[i] = texts[i];
    }
    answering_release(server);
    assert_int_equal(remote_list_add(&list, uris, COUNT, kinds, NULL), STK_OK);
    assert_int_equal(list.count, COUNT);
    assert_string_equal(list.items[299].name, "299.tar");
    assert_true(list.items[0].size == 5 && kinds[0] == REMOTE_OBJECT);
    assert_true(answering_requests(server) >= COUNT);
    list_free(&list);
    answering_stop(server);
}

static void the_first_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct answering_step steps[] = {{.path = "/good", .body = "1", .length = 1}, {.status = 404}};
    struct answering *server = answering_start(steps, 2);
    const char *uris[] = {answering_url(server, "/good"), answering_url(server, "/bad")};
    enum remote_kind kinds[2];
    struct list list = {0};
    struct stk_error err;
    assert_int_equal(remote_list_add(&list, uris, 2, kinds, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.object, "/bad"));
    list_free(&list);
    answering_stop(server);
}

static void plain_servers_cannot_list(void **state)
{
    (void)state;
    struct answering_step step = {.body = "1", .length = 1};
    struct answering *server = answering_start(&step, 1);
    enum remote_kind kind;
    struct list list = {0};
    struct stk_error err;
    static const char *const paths[] = {"/folder/", "/*.tar", "/a[1].tar", ""};
    for (int i = 0; i < 4; i++) {
        const char *uri = answering_url(server, paths[i]);
        assert_int_equal(remote_list_add(&list, &uri, 1, &kind, &err), STK_UNSUPPORTED);
        assert_true(err.remedy[0]);
    }
    const char *query = answering_url(server, "/get?name=/a/b.tar");
    assert_int_equal(remote_list_add(&list, &query, 1, &kind, &err), STK_OK);
    assert_string_equal(list.items[0].name, "get?name=/a/b.tar");
    list_free(&list);
    answering_stop(server);
}

static void what_is_here_and_what_is_there_do_not_mix(void **state)
{
    (void)state;
    struct imitation *imitation = imitation_new();
    char folder[PATH_MAX];
    struct list list = {0};
    struct stk_error err;
    enum remote_kind kind;
    const char *uris[] = {"s3://bucket/data/b.tar", "s3://bucket/database.tar"};
    enum remote_kind kinds[2];
    folder_new(folder);
    text_write(path_in(folder, "a.tar"), "x");
    assert_int_equal(list_add(&list, folder, &err), STK_OK);
    assert_int_equal(remote_list_add(&list, uris, 1, &kind, &err), STK_USAGE);
    list_free(&list);
    assert_int_equal(remote_list_add(&list, uris, 2, kinds, &err), STK_OK);
    assert_string_equal(list.root, "s3://bucket");
    assert_string_equal(list.items[0].name, "data/b.tar");
    assert_int_equal(list_add(&list, folder, &err), STK_USAGE);
    list_free(&list);
    folder_remove(folder);
    imitation_free(imitation);
}

static void places_that_share_nothing_are_named_in_full(void **state)
{
    (void)state;
    struct list list = {0};
    const char *below;
    assert_int_equal(list_base(&list, "s3://one/a", &below, NULL), STK_OK);
    assert_int_equal(list_put(&list, below, "x.tar", 1, 2, NULL), STK_OK);
    assert_int_equal(list_base(&list, "s3://other", &below, NULL), STK_OK);
    assert_int_equal(list_put(&list, below, "y.tar", 3, 4, NULL), STK_OK);
    assert_string_equal(list.root, "");
    assert_string_equal(list.items[0].name, "s3://one/a/x.tar");
    assert_string_equal(list.items[1].name, "s3://other/y.tar");
    list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_all_below_it_but_what_is_hidden),
        cmocka_unit_test(an_object_is_asked_about_and_not_listed),
        cmocka_unit_test(globs_are_matched_against_one_list),
        cmocka_unit_test(many_objects_are_asked_about_at_once),
        cmocka_unit_test(the_first_that_is_not_there_is_named),
        cmocka_unit_test(plain_servers_cannot_list),
        cmocka_unit_test(what_is_here_and_what_is_there_do_not_mix),
        cmocka_unit_test(places_that_share_nothing_are_named_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
