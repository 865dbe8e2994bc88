#include "net/web_fixture.h"

/* --- good answers */

static void a_range_lands_in_its_parts(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){
        .headers = "ETag: \"one\"\r\nLast-Modified: today\r\nContent-Type: image/x\r\n"});
    fixture->request.etag = "\"one\"";
    struct web_answer *answer = get_range(fixture, 1000, 250000);
    assert_int_equal(answer->failure, WEB_FINE);
    assert_int_equal(answer->status, 206);
    assert_int_equal(answer->received, 250000);
    assert_int_equal(answer->length, 250000);
    assert_int_equal(answer->object_size, OBJECT);
    assert_string_equal(answer->etag, "\"one\"");
    assert_string_equal(answer->last_modified, "today");
    assert_string_equal(answer->content_type, "image/x");
    assert_memory_equal(fixture->memory, fixture->object + 1000, 250000);
    assert_int_equal(fixture->memory[250000], 0xee);
    assert_true(answer->started_ns <= answer->first_byte_ns);
    assert_true(answer->first_byte_ns <= answer->finished_ns);
    assert_true(answer->connected_ns > 0);
    assert_true(answering_had(fixture->server, 0, "Range", "bytes=1000-250999"));
    assert_true(answering_had(fixture->server, 0, "If-Match", "\"one\""));
    assert_true(answering_had(fixture->server, 0, "Accept-Encoding", "identity"));
    fixture_free(fixture);
}

/* Long parts are filled past the caches, whole lines at a time: none of the ragged ends is lost. */
static void a_long_part_is_filled_from_any_byte_on(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    for (uint64_t shift = 1; shift < 4; shift++) {
        uint64_t length = OBJECT - 131 * shift;
        memset(fixture->memory, 0xee, OBJECT);
        web_answer_free(&fixture->request.answer);
        ask_range(fixture, shift, length);
        fixture->parts[0].iov_len = shift;
        fixture->parts[2] = (struct iovec){fixture->memory + shift, length - shift};
        web_wait(fixture->web, &fixture->request);
        assert_int_equal(fixture->request.answer.failure, WEB_FINE);
        assert_memory_equal(fixture->memory, fixture->object + shift, length);
        for (uint64_t i = length; i < OBJECT; i++)
            assert_int_equal(fixture->memory[i], 0xee);
    }
    fixture_free(fixture);
}

static void a_200_is_taken_for_a_range_that_is_all(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){.ignores_range = 1});
    struct web_answer *answer = get_range(fixture, 0, OBJECT);
    assert_int_equal(answer->failure, WEB_FINE);
    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->object_size, OBJECT);
    assert_memory_equal(fixture->memory, fixture->object, OBJECT);
    fixture_free(fixture);
}

static void a_whole_body_lands_in_text(void **state)
{
    (void)state;
    struct fixture *fixture =
        fixture_new(&(struct answering_step){.body = "hello", .length = 5, .no_length = 1});
    struct text text = {0};
    struct web_answer *answer = get_text(fixture, "/text?x=1", &text);
    assert_int_equal(answer->failure, WEB_FINE);
    assert_int_equal(answer->status, 200);
    assert_int_equal(answer->length, STK_NOWHERE);
    assert_string_equal(text.data, "hello");
    assert_non_null(strstr(answering_head(fixture->server, 0), "GET /text?x=1 HTTP/1.1"));
    assert_false(answering_had(fixture->server, 0, "Range", NULL));
    text_free(&text);
    fixture_free(fixture);
}

static void paths_go_out_as_they_are(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){.status = 204});
    struct text text = {0};
    get_text(fixture, "/a//b/../c/./d%2F", &text);
    assert_non_null(strstr(answering_head(fixture->server, 0), "GET /a//b/../c/./d%2F HTTP"));
    fixture_free(fixture);
}

static void methods_carry_their_bodies(void **state)
{
    (void)state;
    static const struct {
        enum web_method method;
        const char *name, *send;
    } cases[] = {{WEB_PUT, "PUT", "some bytes"}, {WEB_POST, "POST", "others"},
                 {WEB_GET, "GET", NULL},         {WEB_DELETE, "DELETE", NULL},
                 {WEB_PUT, "PUT", ""},           {WEB_POST, "POST", ""},
                 {WEB_HEAD, "HEAD", NULL},       {WEB_GET, "GET", NULL}};
    struct fixture *fixture =
        fixture_new(&(struct answering_step){.status = 201, .headers = "x-tag: \"made\"\r\n"});
    struct web_request *request = &fixture->request;
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length, sent = cases[i].send ? strlen(cases[i].send) : 0;
        char line[64];
        request->url = answering_url(fixture->server, "/put");
        request->method = cases[i].method;
        request->send = cases[i].send;
        request->send_length = sent;
        request->want_header = "X-Tag";
        request->headers[0] = (struct web_header){"x-own", "of ours"};
        request->headers[1] = (struct web_header){"x-empty", ""};
        request->header_count = 2;
        web_wait(fixture->web, request);
        assert_int_equal(request->answer.failure, WEB_FINE);
        assert_int_equal(request->answer.status, 201);
        assert_string_equal(request->answer.upload, "\"made\"");
        snprintf(line, sizeof line, "%s /put HTTP/1.1\r\n", cases[i].name);
        assert_int_equal(strncmp(answering_head(fixture->server, i), line, strlen(line)), 0);
        const void *body = answering_body(fixture->server, i, &length);
        assert_int_equal(length, sent);
        assert_memory_equal(body, cases[i].send ? cases[i].send : "", sent);
        assert_true(answering_had(fixture->server, i, "x-own", "of ours"));
        assert_true(answering_had(fixture->server, i, "x-empty", ""));
        assert_false(answering_had(fixture->server, i, "Expect", NULL));
        assert_false(answering_had(fixture->server, i, "Content-Type", NULL));
        if (cases[i].send && !sent)
            assert_true(answering_had(fixture->server, i, "Content-Length", "0"));
    }
    fixture_free(fixture);
}

static void a_large_body_goes_out_whole(void **state)
{
    (void)state;
    enum { SIZE = 8 << 20 };
    struct fixture *fixture = fixture_new(&(struct answering_step){.status = 200});
    uint8_t *large = malloc(SIZE);
    for (uint32_t i = 0; i < SIZE; i++)
        large[i] = (uint8_t)(i >> 7);
    size_t length;
    fixture->request.url = answering_url(fixture->server, "/put");
    fixture->request.method = WEB_PUT;
    fixture->request.send = large;
    fixture->request.send_length = SIZE;
    web_wait(fixture->web, &fixture->request);
    assert_int_equal(fixture->request.answer.failure, WEB_FINE);
    const void *body = answering_body(fixture->server, 0, &length);
    assert_int_equal(length, SIZE);
    assert_memory_equal(body, large, SIZE);
    assert_false(answering_had(fixture->server, 0, "Expect", NULL));
    free(large);
    fixture_free(fixture);
}

/* --- errors of servers */

static void an_error_keeps_its_words_for_the_caller(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){
        .status = 503,
        .body = "slow down",
        .length = 9,
        .headers = "Retry-After: 7\r\nx-ms-error-code: ServerBusy\r\n"
                   "Date: Thu, 01 Jan 1970 01:00:00 GMT\r\nx-amz-bucket-region: eu-1\r\n"});
    struct web_answer *answer = get_range(fixture, 0, 100);
    assert_int_equal(answer->failure, WEB_FINE);
    assert_int_equal(answer->status, 503);
    assert_int_equal(answer->retry_after_ms, 7000);
    assert_int_equal(answer->date_s, 3600);
    assert_string_equal(answer->error_code, "ServerBusy");
    assert_string_equal(answer->region, "eu-1");
    assert_string_equal(answer->body.data, "slow down");
    memory_is_untouched(fixture);
    fixture_free(fixture);
}

static void a_long_error_is_cut(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    answering_script(
        fixture->server,
        &(struct answering_step){
            .status = 400, .body = fixture->object, .length = OBJECT, .ignores_range = 1},
        1);
    struct web_answer *answer = get_range(fixture, 0, 100);
    assert_int_equal(answer->status, 400);
    assert_int_equal(answer->body.len, 16 << 10);
    memory_is_untouched(fixture);
    fixture_free(fixture);
}

static void redirects_are_told_and_not_followed(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(
        &(struct answering_step){.status = 307, .headers = "Location: http://127.0.0.1:1/x\r\n"});
    struct web_answer *answer = get_range(fixture, 0, 100);
    assert_int_equal(answer->failure, WEB_FINE);
    assert_int_equal(answer->status, 307);
    assert_string_equal(answer->location, "http://127.0.0.1:1/x");
    assert_int_equal(answering_requests(fixture->server), 1);
    fixture_free(fixture);
}

/* --- answers that must not be kept */

static void bad_answers_leave_the_memory_alone(void **state)
{
    (void)state;
    static const struct {
        struct answering_step step;
        enum web_failure failure;
    } cases[] = {
        {{.ignores_range = 1}, WEB_RANGE},
        {{.range_lie = 1}, WEB_RANGE},
        {{.range_lie = -1}, WEB_RANGE},
        {{.headers = "ETag: \"two\"\r\n"}, WEB_CHANGED},
        {{.headers = "Content-Encoding: gzip\r\n"}, WEB_ENCODED},
        {{.length_lie = 5}, WEB_LENGTH},
        {{.raw = "HTTP/1.1 206 No\r\nContent-Length: 3\r\n\r\nabc"}, WEB_RANGE},
        {{.raw = "HTTP/1.1 206 No\r\nContent-Range: bytes 10-5/3\r\n\r\nabc"}, WEB_RANGE},
        {{.raw = "HTTP/1.1 206 No\r\nContent-Range: bytes 10-109/50\r\n\r\nabc"}, WEB_RANGE},
        {{.raw = "HTTP/1.1 206 No\r\nContent-Range: bytes 10-\r\n\r\nabc"}, WEB_RANGE},
        {{.raw = "HTTP/1.1 206 No\r\nContent-Range: lines 10-109/500\r\n\r\nabc"}, WEB_RANGE},
        {{.raw = "HTTP/1.1 204 No\r\n\r\n"}, WEB_RANGE},
        {{.raw = "this is not HTTP\r\n\r\n"}, WEB_PROTOCOL},
        {{.raw = "\r\n"}, WEB_PROTOCOL},
        {{.cut = CUT_CLOSE}, WEB_RESET},
        {{.raw = ""}, WEB_RESET},
    };
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct answering_step step = cases[i].step;
        step.body = fixture->object;
        step.length = OBJECT;
        answering_script(fixture->server, &step, 1);
        fixture->request.etag = "\"one\"";
        struct web_answer *answer = get_range(fixture, 10, 100);
        if (answer->failure != cases[i].failure)
            print_message("case %u: %s\n", i, answer->words);
        assert_int_equal(answer->failure, cases[i].failure);
        assert_int_equal(answer->received, 0);
        memory_is_untouched(fixture);
    }
    fixture_free(fixture);
}

static void a_broken_body_tells_how_far_it_came(void **state)
{
    static const struct answering_step steps[] = {
        {.cut = CUT_RESET, .cut_after = 70000, .pause_ms = 20, .trickle = 10000, .every_ms = 2},
        {.cut = CUT_CLOSE, .cut_after = 70000},
        {.length_lie = -130000},
    };
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct fixture *fixture = fixture_new(&steps[i]);
        struct web_answer *answer = get_range(fixture, 5000, 200000);
        assert_int_equal(answer->failure, WEB_RESET);
        assert_int_equal(answer->status, 206);
        assert_true(answer->received <= 70000);
        if (i > 0)
            assert_int_equal(answer->received, 70000);
        assert_memory_equal(fixture->memory, fixture->object + 5000, answer->received);
        for (uint64_t k = answer->received; k < OBJECT; k++)
            assert_int_equal(fixture->memory[k], 0xee);
        fixture_free(fixture);
    }
}

static void text_is_kept_up_to_its_limit(void **state)
{
    (void)state;
    for (int told = 0; told < 2; told++) {
        struct fixture *fixture = fixture_new(&(struct answering_step){.no_length = !told});
        struct text text = {0};
        fixture->request.url = answering_url(fixture->server, "/");
        fixture->request.text = &text;
        fixture->request.text_most = OBJECT - 1;
        web_wait(fixture->web, &fixture->request);
        assert_int_equal(fixture->request.answer.failure, WEB_LENGTH);
        assert_true(text.len < OBJECT);
        text_free(&text);
        fixture_free(fixture);
    }
}

/* --- what cannot be reached or must not be asked */

static void what_must_not_be_asked_is_refused(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    char with_user[64];
    snprintf(with_user, sizeof with_user, "http://me:secret@127.0.0.1:%d/",
             answering_port(fixture->server));
    const char *urls[] = {with_user, "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "x", ""};
    for (uint32_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        fixture->request.url = urls[i];
        web_wait(fixture->web, &fixture->request);
        assert_int_equal(fixture->request.answer.failure, WEB_PROTOCOL);
        assert_null(strstr(fixture->request.answer.words, "secret"));
    }
    fixture->request.url = answering_url(fixture->server, "/");
    fixture->request.headers[0] = (struct web_header){"x-name", "a\r\nx-other: b"};
    fixture->request.header_count = 1;
    web_wait(fixture->web, &fixture->request);
    assert_int_equal(fixture->request.answer.failure, WEB_PROTOCOL);
    assert_int_equal(answering_requests(fixture->server), 0);
    fixture_free(fixture);
}

static void who_cannot_be_reached_is_told_apart(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new(&(struct answering_step){0});
    char url[64];
    snprintf(url, sizeof url, "https://127.0.0.1:%d/", answering_port(fixture->server));
    fixture->request.url = url;
    web_wait(fixture->web, &fixture->request);
    assert_int_equal(fixture->request.answer.failure, WEB_TLS);
    assert_true(fixture->request.answer.words[0] != '\0');
    int port = answering_port(fixture->server);
    answering_stop(fixture->server);
    fixture->server = NULL;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/?sig=secret", port);
    web_wait(fixture->web, &fixture->request);
    assert_int_equal(fixture->request.answer.failure, WEB_CONNECT);
    assert_null(strstr(fixture->request.answer.words, "secret"));
    fixture_free(fixture);
}

static void proxies_of_the_environment_are_used(void **state)
{
    (void)state;
    struct answering *proxy =
        answering_start(&(struct answering_step){.body = "by proxy", .length = 8}, 1);
    struct answering *other =
        answering_start(&(struct answering_step){.body = "directly", .length = 8}, 1);
    struct text text = {0};
    char host[64];
    snprintf(host, sizeof host, "http://127.0.0.1:%d", answering_port(proxy));
    setenv("http_proxy", host, 1);
    setenv("no_proxy", "127.0.0.1", 1);
    struct web *web;
    assert_int_equal(web_open(&web, &(struct web_options){0}, NULL), STK_OK);
    unsetenv("http_proxy");
    unsetenv("no_proxy");
    struct web_request request = {.url = "http://somewhere.invalid/x",
                                  .range_first = WEB_NO_RANGE,
                                  .text = &text,
                                  .text_most = 100};
    web_wait(web, &request);
    assert_int_equal(request.answer.failure, WEB_FINE);
    assert_string_equal(text.data, "by proxy");
    assert_non_null(strstr(answering_head(proxy, 0), "GET http://somewhere.invalid/x "));
    request.url = answering_url(other, "/x");
    web_wait(web, &request);
    assert_string_equal(text.data, "by proxydirectly");
    text_free(&text);
    web_close(web);
    answering_stop(proxy);
    answering_stop(other);
}

static void certificates_that_are_not_there_are_told_at_once(void **state)
{
    (void)state;
    struct stk_error err;
    struct web *web = (struct web *)&err;
    struct web_options options = {.ca = "/no/such/certificates.pem"};
    assert_int_equal(web_open(&web, &options, &err), STK_NOT_FOUND);
    assert_null(web);
    assert_string_equal(err.object, options.ca);
    web_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_range_lands_in_its_parts),
        cmocka_unit_test(a_long_part_is_filled_from_any_byte_on),
        cmocka_unit_test(a_200_is_taken_for_a_range_that_is_all),
        cmocka_unit_test(a_whole_body_lands_in_text),
        cmocka_unit_test(paths_go_out_as_they_are),
        cmocka_unit_test(methods_carry_their_bodies),
        cmocka_unit_test(a_large_body_goes_out_whole),
        cmocka_unit_test(an_error_keeps_its_words_for_the_caller),
        cmocka_unit_test(a_long_error_is_cut),
        cmocka_unit_test(redirects_are_told_and_not_followed),
        cmocka_unit_test(bad_answers_leave_the_memory_alone),
        cmocka_unit_test(a_broken_body_tells_how_far_it_came),
        cmocka_unit_test(text_is_kept_up_to_its_limit),
        cmocka_unit_test(what_must_not_be_asked_is_refused),
        cmocka_unit_test(who_cannot_be_reached_is_told_apart),
        cmocka_unit_test(proxies_of_the_environment_are_used),
        cmocka_unit_test(certificates_that_are_not_there_are_told_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
