/* The faults of a network (the numbers are those of the list of faults), one after the other. */
#include "net/fake_web.h"

static const struct site_ops plain_ops = {0};
static struct reading one;
static uint32_t over;

static int begin(void **state)
{
    memset(&one, 0, sizeof one);
    over = 0;
    return fake_open(state);
}

/* A second world within one test. */
static void again(void **state)
{
    fake_close(state);
    begin(state);
}

/* Reads 6000 bytes at 500, with the ETag that the object has. */
static void read_range(void)
{
    reading_begin(&one, 500, 6000, &over);
    one.fetch.etag = "\"v1\"";
    fetch_start(&one.fetch);
    run_until(&over, 1);
}

static void read_text(void)
{
    one.over = &over;
    one.fetch.site = &site;
    one.fetch.call = (struct site_call){.verb = SITE_READ, .key = "index"};
    one.fetch.text = &one.text;
    one.fetch.text_most = 2 * OBJECT_SIZE;
    one.fetch.done = reading_done;
    one.fetch.owner = &one;
    fetch_start(&one.fetch);
    run_until(&over, 1);
}

static void expect_words(const char *words)
{
    char line[2048];
    stk_error_format(&one.fetch.error, line, sizeof line);
    if (!strstr(line, words))
        print_message("the words are: %s\n", line);
    assert_non_null(strstr(line, words));
    assert_null(strstr(line, "secret"));
}

static void a_range_comes_whole_into_its_parts(void **state)
{
    (void)state;
    SCRIPT({0});
    read_range();
    reading_check(&one);
    assert_int_equal(web.sent_count, 1);
    assert_int_equal(web.sent[0].first, 500);
    assert_int_equal(web.sent[0].length, 6000);
    assert_string_equal(web.sent[0].etag, "\"v1\"");
    assert_int_equal(one.fetch.object_size, OBJECT_SIZE);
    assert_string_equal(one.fetch.found_etag, "\"v1\"");
    assert_int_equal(one.fetch.tries, 1);
}

static void a_range_of_nothing_needs_no_request(void **state)
{
    (void)state;
    reading_begin(&one, 500, 0, &over);
    fetch_start(&one.fetch);
    assert_int_equal(over, 0); /* never inside fetch_start */
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_OK);
    assert_int_equal(web.sent_count, 0);
}

static void fault_59_a_reset_is_resumed_behind_the_last_good_byte(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESET, .bytes = 1000}, {.failure = WEB_RESET, .bytes = 2500}, {0});
    read_range();
    reading_check(&one);
    assert_int_equal(web.sent_count, 3);
    assert_int_equal(web.sent[1].first, 1500);
    assert_int_equal(web.sent[1].length, 5000);
    assert_int_equal(web.sent[2].first, 4000);
    assert_int_equal(web.sent[2].new_connection, 1);
}

static void fault_59_without_any_mark_of_the_object_all_is_read_again(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESET, .bytes = 1000, .etag = ""}, {.etag = ""});
    reading_begin(&one, 500, 6000, &over);
    fetch_start(&one.fetch);
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent[1].first, 500);
}

static void fault_59_a_date_is_mark_enough_and_is_compared(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESET, .bytes = 1000, .etag = "", .modified = "monday"},
           {.etag = "", .modified = "tuesday"}, {.etag = "", .modified = "tuesday"});
    reading_begin(&one, 500, 6000, &over);
    fetch_start(&one.fetch);
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent[1].first, 1500);
    assert_int_equal(web.sent[2].first, 500); /* never a mix: all of it again */
}

static void fault_60_an_answer_that_is_too_long_is_tried_again_and_then_an_error(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_LENGTH}, {0});
    read_range();
    reading_check(&one);
    again(state);
    SCRIPT({.failure = WEB_LENGTH});
    read_range();
    assert_int_equal(one.fetch.status, STK_CORRUPT);
    assert_int_equal(web.sent_count, 5);
    expect_words("longer than what was asked for");
}

static void fault_61_and_62_another_range_is_never_spliced(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RANGE, .status = 200});
    read_range();
    assert_int_equal(one.fetch.status, STK_UNSUPPORTED);
    assert_int_equal(web.sent_count, 2);
    assert_int_equal(one.bytes[0], 0xee);
    expect_words("must know byte ranges");
    expect_words("s3://bucket/folder/object, offset 500");
}

static void fault_63_an_object_that_changes_is_stale(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESET, .bytes = 1000}, {.etag = "\"v2\""});
    read_range();
    assert_int_equal(one.fetch.status, STK_STALE);
    assert_int_equal(web.sent_count, 2);
    expect_words("stoker index");
}

static void fault_63_so_is_one_that_says_so_by_412_or_by_its_version(void **state)
{
    (void)state;
    SCRIPT({.status = 412});
    read_range();
    assert_int_equal(one.fetch.status, STK_STALE);
    over = 0;
    SCRIPT({.etag = "\"v2\""});
    reading_begin(&one, 0, 6000, &over);
    one.fetch.etag = NULL;
    one.fetch.version = site_version("\"v1\"", 0, "");
    fetch_start(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_STALE);
}

static void fault_63_a_whole_object_is_resumed_and_read_again_when_it_changed(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESET, .bytes = 1000}, {.etag = "\"v2\""}, {.etag = "\"v2\""});
    text_add(&one.text, "before", 6);
    read_text();
    assert_int_equal(one.fetch.status, STK_OK);
    assert_int_equal(web.sent[1].first, 1000);
    assert_int_equal(web.sent[1].length, OBJECT_SIZE - 1000);
    assert_int_equal(web.sent[2].length, 0); /* all */
    assert_int_equal(one.text.len, 6 + OBJECT_SIZE);
    assert_int_equal((uint8_t)one.text.data[6 + 777], byte_at(777));
    assert_string_equal(one.fetch.found_etag, "\"v2\"");
    text_free(&one.text);
}

static void fault_64_a_throttle_waits_as_long_as_it_is_told(void **state)
{
    (void)state;
    SCRIPT({.status = 503, .retry_after_s = 7, .body = "<Error>"}, {0});
    read_range();
    reading_check(&one);
    const int64_t waited = web.sent[1].at_ns - web.sent[0].at_ns;
    assert_true(waited >= 7 * SECOND && waited < 9 * SECOND);
    struct fetch_counts counts;
    fetch_counts(&net, &counts);
    assert_int_equal(counts.throttles, 1);
    assert_int_equal(counts.retries, 1);
}

static void fault_64_a_wait_beyond_the_deadline_is_not_begun(void **state)
{
    (void)state;
    SCRIPT({.status = 429, .retry_after_s = 3600, .body = "<Error>"});
    const int64_t began = web.now_ns;
    read_range();
    assert_int_equal(one.fetch.status, STK_LIMIT);
    assert_true(web.now_ns - began < SECOND);
    expect_words("HTTP 429 SlowDown: please wait");
}

static void fault_64_throttles_make_no_storm(void **state)
{
    (void)state;
    static struct reading many[200];
    SCRIPT({.status = 503});
    for (int i = 0; i < 200; i++) {
        many[i] = (struct reading){0};
        reading_begin(&many[i], 0, 100, &over);
        fetch_start(&many[i].fetch);
    }
    run_until(&over, 200);
    for (int i = 0; i < 200; i++)
        assert_int_equal(many[i].fetch.status, STK_LIMIT);
    /* 500 tokens and 50 a second for a minute, at 5 each; and every fetch's first. */
    assert_true(web.sent_count <= 200 + (500 + 60 * 50) / 5);
    assert_true(web.sent_count > 300); /* but it was tried */
    struct fetch_advice advice;
    fetch_advice(&site, &advice);
    assert_int_equal(advice.in_flight, PACE_LEAST_IN_FLIGHT);
}

static void fault_65_a_failure_that_passes_is_not_seen(void **state)
{
    (void)state;
    SCRIPT({.status = 500}, {.status = 502}, {.status = 504}, {0});
    read_range();
    reading_check(&one);
    assert_int_equal(one.fetch.tries, 4);
    assert_true(one.fetch.took_ns < SECOND); /* waits begin at 50 ms */
}

static void fault_66_refused_credentials_are_renewed_once(void **state)
{
    (void)state;
    SCRIPT({.status = 403}, {0});
    read_range();
    reading_check(&one);
    assert_int_equal(web.refused, 1);
    again(state);
    SCRIPT({.status = 403});
    read_range();
    assert_int_equal(one.fetch.status, STK_DENIED);
    assert_int_equal(web.refused, 1);
    assert_int_equal(web.sent_count, 2);
    expect_words("the credentials from the environment were refused");
}

static void a_clock_that_is_wrong_is_taken_over_and_no_credentials_are_renewed(void **state)
{
    (void)state;
    web.clocks = 1;
    SCRIPT({.status = 403}, {0});
    read_range();
    reading_check(&one);
    assert_int_equal(web.refused, 0);
    assert_int_equal(web.sent_count, 2);
}

static void fault_67_what_is_not_there_is_not_tried_again(void **state)
{
    (void)state;
    SCRIPT({.status = 404});
    read_range();
    assert_int_equal(one.fetch.status, STK_NOT_FOUND);
    assert_int_equal(web.sent_count, 1);
    expect_words("there is no such object: HTTP 404 (object");
}

static void fault_68_a_region_is_taken_over_and_signed_anew(void **state)
{
    (void)state;
    web.regions = 1;
    SCRIPT({.status = 301}, {0});
    read_range();
    reading_check(&one);
    assert_int_equal(web.sent[1].headers, 1);
    assert_true(web.now_ns - 1000 * SECOND < SECOND); /* at once */
}

static void fault_68_another_host_gets_no_header_of_ours(void **state)
{
    (void)state;
    SCRIPT({.status = 302, .location = "https://elsewhere/x?y"}, {.status = 307, .location = "/z"},
           {.status = 301, .location = "https://host/back"}, {0});
    read_range();
    reading_check(&one);
    assert_string_equal(web.sent[1].url, "https://elsewhere/x?y");
    assert_string_equal(web.sent[2].url, "https://elsewhere/z");
    assert_string_equal(web.sent[3].url, "https://host/back");
    assert_int_equal(web.sent[0].headers, 1);
    for (int i = 1; i < 4; i++)
        assert_int_equal(web.sent[i].headers, 0);
}

static void fault_68_the_same_host_gets_them(void **state)
{
    (void)state;
    SCRIPT({.status = 307, .location = "https://HOST:443/there"}, {.status = 307, .location = "x"},
           {0});
    read_range();
    reading_check(&one);
    assert_string_equal(web.sent[2].url, "https://HOST:443/x");
    assert_int_equal(web.sent[2].headers, 1);
}

static void fault_68_down_to_http_nothing_goes(void **state)
{
    (void)state;
    SCRIPT({.status = 302, .location = "http://host/folder/object"});
    read_range();
    assert_int_equal(one.fetch.status, STK_DENIED);
    assert_int_equal(web.sent_count, 1);
    expect_words("from https down to http");
}

static void fault_68_redirects_end(void **state)
{
    (void)state;
    SCRIPT({.status = 302, .location = "/a"});
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    assert_int_equal(web.sent_count, 6);
    again(state);
    SCRIPT({.status = 302, .location = "file:///etc/passwd"});
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    again(state);
    SCRIPT({.status = 302, .location = "https://user:secret@host/"});
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    expect_words("leads nowhere");
}

static void fault_70_a_name_that_is_not_known_ends_soon(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_RESOLVE});
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    assert_int_equal(web.sent_count, 3);
    assert_true(one.fetch.took_ns < SECOND);
    expect_words("host:443: the host's name is not known");
    expect_words("tried 3 times");
}

static void fault_70_a_host_that_was_there_is_waited_for(void **state)
{
    (void)state;
    SCRIPT({0}, {.failure = WEB_CONNECT}, {.failure = WEB_CONNECT}, {.failure = WEB_CONNECT},
           {.failure = WEB_CONNECT}, {.failure = WEB_CONNECT}, {0});
    read_range();
    over = 0;
    read_range();
    reading_check(&one);
    assert_int_equal(web.sent_count, 7);
}

static void fault_70_a_certificate_is_not_tried_twice(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_TLS});
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    assert_int_equal(web.sent_count, 1);
    expect_words("--ca FILE");
}

static void fault_71_an_error_in_a_good_answer_is_an_error(void **state)
{
    (void)state;
    SCRIPT({.body = "<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code></Error>",
            .type = "application/xml",
            .etag = ""},
           {0});
    read_text();
    assert_int_equal(one.fetch.status, STK_OK);
    assert_int_equal(one.text.len, OBJECT_SIZE);
    assert_int_equal(web.sent_count, 2);
    text_free(&one.text);
    /* And for ever: */
    again(state);
    SCRIPT({.body = "<Error><Code>SlowDown</Code></Error>", .type = "text/xml", .etag = ""});
    read_text();
    assert_int_equal(one.fetch.status, STK_IO);
    assert_int_equal(one.text.len, 0);
    expect_words("SlowDown: please wait");
    text_free(&one.text);
}

static void fault_71_an_object_may_well_be_xml(void **state)
{
    (void)state;
    SCRIPT({.body = "<Error>not at all</Error>", .type = "application/xml"});
    read_text();
    assert_int_equal(one.fetch.status, STK_OK);
    assert_string_equal(one.text.data, "<Error>not at all</Error>");
    text_free(&one.text);
}

static void fault_72_what_a_proxy_compressed_is_an_error(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_ENCODED, .status = 206});
    read_range();
    assert_int_equal(one.fetch.status, STK_CORRUPT);
    expect_words("compressed on its way");
}

static void a_bad_server_is_given_up_at_the_deadline_with_the_cause(void **state)
{
    (void)state;
    SCRIPT({.status = 500});
    const int64_t began = web.now_ns;
    read_range();
    assert_int_equal(one.fetch.status, STK_IO);
    assert_true(web.now_ns - began <= 60 * SECOND);
    assert_true(web.now_ns - began > 10 * SECOND);
    expect_words("the server failed: HTTP 500");
}

static void a_server_that_says_nothing_is_given_up_at_the_deadline(void **state)
{
    (void)state;
    SCRIPT({.never = 1});
    reading_begin(&one, 0, 100, &over);
    one.fetch.deadline_ns = web.now_ns + 5 * SECOND;
    fetch_start(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_IO);
    assert_true(one.fetch.took_ns >= 5 * SECOND && one.fetch.took_ns < 6 * SECOND);
    expect_words("no answer within 5.0 s");
}

static void time_in_which_the_process_was_stopped_does_not_count(void **state)
{
    (void)state;
    SCRIPT({.after_ms = 65000});
    reading_begin(&one, 0, 100, &over);
    fetch_start(&one.fetch);
    run_for(SECOND);
    web.now_ns += 60 * SECOND;
    web.stopped_ns += 60 * SECOND;
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 1);
}

static int countdown;
static int fail_nth(void *user, size_t size)
{
    (void)user, (void)size;
    return countdown >= 0 && countdown-- == 0;
}

static void memory_may_run_out_anywhere(void **state)
{
    stk_status status = STK_MEMORY;
    uint32_t failed = 0;
    for (int nth = 0; nth < 100; nth++) {
        again(state);
        SCRIPT({.failure = WEB_RESET, .bytes = 1000}, {.status = 302, .location = "/x"},
               {.status = 500}, {0});
        countdown = nth;
        memory_set_hook(fail_nth, NULL);
        read_range();
        memory_set_hook(NULL, NULL);
        status = one.fetch.status;
        assert_true(status == STK_OK || status == STK_MEMORY);
        failed += status == STK_MEMORY;
        if (countdown >= 0)
            break; /* it never came to that one */
    }
    assert_int_equal(status, STK_OK);
    reading_check(&one);
    assert_true(failed >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, fake_close)
        TEST(a_range_comes_whole_into_its_parts),
        TEST(a_range_of_nothing_needs_no_request),
        TEST(fault_59_a_reset_is_resumed_behind_the_last_good_byte),
        TEST(fault_59_without_any_mark_of_the_object_all_is_read_again),
        TEST(fault_59_a_date_is_mark_enough_and_is_compared),
        TEST(fault_60_an_answer_that_is_too_long_is_tried_again_and_then_an_error),
        TEST(fault_61_and_62_another_range_is_never_spliced),
        TEST(fault_63_an_object_that_changes_is_stale),
        TEST(fault_63_so_is_one_that_says_so_by_412_or_by_its_version),
        TEST(fault_63_a_whole_object_is_resumed_and_read_again_when_it_changed),
        TEST(fault_64_a_throttle_waits_as_long_as_it_is_told),
        TEST(fault_64_a_wait_beyond_the_deadline_is_not_begun),
        TEST(fault_64_throttles_make_no_storm),
        TEST(fault_65_a_failure_that_passes_is_not_seen),
        TEST(fault_66_refused_credentials_are_renewed_once),
        TEST(a_clock_that_is_wrong_is_taken_over_and_no_credentials_are_renewed),
        TEST(fault_67_what_is_not_there_is_not_tried_again),
        TEST(fault_68_a_region_is_taken_over_and_signed_anew),
        TEST(fault_68_another_host_gets_no_header_of_ours),
        TEST(fault_68_the_same_host_gets_them),
        TEST(fault_68_down_to_http_nothing_goes),
        TEST(fault_68_redirects_end),
        TEST(fault_70_a_name_that_is_not_known_ends_soon),
        TEST(fault_70_a_host_that_was_there_is_waited_for),
        TEST(fault_70_a_certificate_is_not_tried_twice),
        TEST(fault_71_an_error_in_a_good_answer_is_an_error),
        TEST(fault_71_an_object_may_well_be_xml),
        TEST(fault_72_what_a_proxy_compressed_is_an_error),
        TEST(a_bad_server_is_given_up_at_the_deadline_with_the_cause),
        TEST(a_server_that_says_nothing_is_given_up_at_the_deadline),
        TEST(memory_may_run_out_anywhere),
        TEST(time_in_which_the_process_was_stopped_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
