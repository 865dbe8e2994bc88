/* Slow answers, second requests, credentials that must be waited for, and cancelling at any time.
 */
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

static void start_range(void)
{
    reading_begin(&one, 500, 6000, &over);
    one.fetch.etag = "\"v1\"";
    one.fetch.may_hedge = 1;
    fetch_start(&one.fetch);
}

/* The host has answered often, each time in `ms`. */
static void learn_host(int ms)
{
    struct fetch_host *host = world_host(net.world, site.host);
    for (int i = 0; i < 200; i++) {
        hedge_learn(&host->hedge, ms * MS);
        hedge_learn_body(&host->hedge, 1000000, 10 * MS);
        hedge_sent(&host->hedge);
    }
}

static struct fetch_counts counts_now(void)
{
    struct fetch_counts counts;
    fetch_counts(&net, &counts);
    return counts;
}

static void a_slow_first_byte_is_asked_for_a_second_time(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.after_ms = 15000}, {.after_ms = 100});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 2);
    assert_int_equal(web.sent[1].first, 500);
    assert_int_equal(web.sent[1].length, 6000);
    assert_int_equal(web.sent[1].new_connection, 1);
    assert_int_equal(one.fetch.hedges, 1);
    assert_int_equal(one.fetch.tries, 1);
    assert_true(one.fetch.took_ns < 500 * MS);
    assert_int_equal(counts_now().hedges_won, 1);
}

static void a_hedge_writes_nothing_of_the_callers_until_it_has_won(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.after_ms = 15000}, {.first_ms = 50, .early = 3000, .after_ms = 400});
    start_range();
    run_for(350 * MS);
    assert_int_equal(web.sent_count, 2);
    for (size_t i = 0; i < sizeof one.bytes; i++)
        assert_int_equal(one.bytes[i], 0xee);
    run_until(&over, 1);
    reading_check(&one);
}

static void a_hedge_that_loses_changes_nothing(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.after_ms = 300}, {.first_ms = 10, .early = 3000, .after_ms = 20000});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(one.fetch.hedges, 1);
    memset(one.bytes, 0x11, sizeof one.bytes); /* the caller's again */
    run_for(SECOND);
    for (size_t i = 0; i < sizeof one.bytes; i++)
        assert_int_equal(one.bytes[i], 0x11);
    assert_int_equal(counts_now().hedges_won, 0);
    assert_int_equal(counts_now().wasted_bytes, 3000);
    assert_int_equal(net.world->hedge_bytes, 0);
}

static void fault_69_a_body_that_trickles_is_hedged_from_where_it_is(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.first_ms = 100, .early = 1500, .never = 1}, {.after_ms = 100});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 2);
    assert_int_equal(web.sent[1].first, 2000);
    assert_int_equal(web.sent[1].length, 4500);
    assert_true(one.fetch.took_ns < 2 * SECOND);
}

static void fault_69_a_stall_is_resumed_even_without_a_hedge(void **state)
{
    (void)state;
    SCRIPT({.failure = WEB_SLOW, .bytes = 1, .after_ms = 20000}, {0});
    reading_begin(&one, 500, 6000, &over);
    one.fetch.etag = "\"v1\"";
    fetch_start(&one.fetch);
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent[1].first, 501);
}

static void the_first_may_fail_and_the_hedge_still_win(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.failure = WEB_RESET, .bytes = 2000, .after_ms = 200}, {.after_ms = 300});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 2);
}

static void both_may_fail_and_it_is_tried_again(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.failure = WEB_RESET, .bytes = 2000, .after_ms = 200},
           {.failure = WEB_RESET, .bytes = 10, .after_ms = 300}, {0});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 3);
    assert_int_equal(web.sent[2].first, 2500);
}

static void a_hedge_of_another_object_is_not_taken(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.after_ms = 1000}, {.after_ms = 100, .etag = "\"v2\""});
    start_range();
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(counts_now().hedges_won, 0);
}

static void nor_is_one_of_another_version(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.after_ms = 1000}, {.after_ms = 100, .etag = "\"v2\""});
    reading_begin(&one, 500, 6000, &over);
    one.fetch.version = site_version("\"v1\"", 0, "");
    one.fetch.may_hedge = 1;
    fetch_start(&one.fetch);
    run_until(&over, 1);
    reading_check(&one);
    assert_int_equal(web.sent_count, 2);
    assert_int_equal(counts_now().hedges_won, 0);
}

static struct reply slow_answer(uint32_t number)
{
    (void)number;
    return (struct reply){.after_ms = 5000};
}

static void few_requests_are_asked_for_twice_however_slow_all_are(void **state)
{
    (void)state;
    static struct reading many[640];
    learn_host(1);
    web.answer = slow_answer;
    for (int i = 0; i < 640; i++) {
        many[i] = (struct reading){0};
        reading_begin(&many[i], 0, 100, &over);
        many[i].fetch.may_hedge = 1;
        fetch_start(&many[i].fetch);
    }
    run_until(&over, 640);
    const struct fetch_counts counts = counts_now();
    assert_true(counts.hedges > 0);
    assert_true(counts.hedges <= (640 + 200) / HEDGE_ONE_IN + HEDGE_FIRST);
}

static void credentials_are_awaited_by_one_helper_for_all(void **state)
{
    (void)state;
    static struct reading many[50];
    SCRIPT({0});
    web.busy = 1;
    for (int i = 0; i < 50; i++) {
        many[i] = (struct reading){0};
        reading_begin(&many[i], (uint64_t)i, 100, &over);
        fetch_start(&many[i].fetch);
    }
    run_until(&over, 50);
    for (int i = 0; i < 50; i++)
        reading_check(&many[i]);
    assert_int_equal(web.helpers, 1);
}

static void credentials_that_are_not_found_are_told_to_all(void **state)
{
    (void)state;
    web.busy = 1;
    web.helper_status = STK_DENIED;
    start_range();
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_DENIED);
    assert_string_equal(one.fetch.error.what, "no credentials were found in the environment");
    assert_string_equal(one.fetch.error.object, "s3://bucket/folder/object");
    assert_int_equal(web.sent_count, 0);
}

static void credentials_that_never_last_are_given_up(void **state)
{
    (void)state;
    web.busy = 2;
    start_range();
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_DENIED);
    assert_int_equal(web.sent_count, 0);
    assert_int_equal(web.helpers, 8);
}

static void cancelled_before_it_begins(void **state)
{
    (void)state;
    SCRIPT({0});
    start_range();
    fetch_cancel(&one.fetch);
    fetch_cancel(&one.fetch); /* twice is as good */
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_CANCELLED);
    assert_int_equal(web.sent_count, 0);
    fetch_cancel(&one.fetch); /* over: nothing happens */
}

static void cancelled_while_it_runs(void **state)
{
    (void)state;
    SCRIPT({.never = 1});
    start_range();
    run_for(SECOND);
    const int64_t asked = web.now_ns;
    fetch_cancel(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_CANCELLED);
    assert_true(web.now_ns - asked < 10 * MS);
}

static void cancelled_while_it_waits_to_try_again(void **state)
{
    (void)state;
    SCRIPT({.status = 503, .retry_after_s = 30});
    start_range();
    run_for(SECOND);
    const int64_t asked = web.now_ns;
    fetch_cancel(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_CANCELLED);
    assert_true(web.now_ns - asked < 10 * MS);
}

static void cancelled_with_a_hedge_out(void **state)
{
    (void)state;
    learn_host(100);
    SCRIPT({.never = 1});
    start_range();
    run_for(SECOND);
    assert_int_equal(web.sent_count, 2);
    fetch_cancel(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_CANCELLED);
    run_for(SECOND);
    assert_int_equal(net.world->hedge_bytes, 0);
}

static void cancelled_while_credentials_are_awaited(void **state)
{
    (void)state;
    web.busy = 1;
    web.helper_slow = 1;
    start_range();
    struct event event;
    while (event_next(&event, 0)) /* what is due now: it waits for the helper */
        event_run(&event);
    assert_int_equal(one.fetch.inside->state, FETCH_MAKING);
    fetch_cancel(&one.fetch);
    run_until(&over, 1);
    assert_int_equal(one.fetch.status, STK_CANCELLED);
    pthread_mutex_lock(&web.lock);
    web.helper_slow = 0;
    pthread_mutex_unlock(&web.lock);
}

static void advice_begins_bounded_and_follows_what_is_measured(void **state)
{
    (void)state;
    struct fetch_advice advice;
    fetch_advice(&site, &advice);
    assert_int_equal(advice.in_flight, PACE_FIRST_IN_FLIGHT);
    assert_int_equal(advice.range, PACE_FIRST_RANGE);
    SCRIPT({.after_ms = 20});
    for (int i = 0; i < 20; i++) {
        over = 0;
        reading_begin(&one, 0, 6000, &over);
        fetch_start(&one.fetch);
        run_until(&over, 1);
    }
    fetch_advice(&site, &advice);
    assert_true(advice.in_flight >= PACE_LEAST_IN_FLIGHT);
    assert_true(advice.in_flight <= PACE_MOST_IN_FLIGHT);
    assert_true(advice.range >= PACE_LEAST_RANGE && advice.range <= PACE_MOST_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, fake_close)
        TEST(a_slow_first_byte_is_asked_for_a_second_time),
        TEST(a_hedge_writes_nothing_of_the_callers_until_it_has_won),
        TEST(a_hedge_that_loses_changes_nothing),
        TEST(fault_69_a_body_that_trickles_is_hedged_from_where_it_is),
        TEST(fault_69_a_stall_is_resumed_even_without_a_hedge),
        TEST(the_first_may_fail_and_the_hedge_still_win),
        TEST(both_may_fail_and_it_is_tried_again),
        TEST(a_hedge_of_another_object_is_not_taken),
        TEST(nor_is_one_of_another_version),
        TEST(few_requests_are_asked_for_twice_however_slow_all_are),
        TEST(credentials_are_awaited_by_one_helper_for_all),
        TEST(credentials_that_are_not_found_are_told_to_all),
        TEST(credentials_that_never_last_are_given_up),
        TEST(cancelled_before_it_begins),
        TEST(cancelled_while_it_runs),
        TEST(cancelled_while_it_waits_to_try_again),
        TEST(cancelled_with_a_hedge_out),
        TEST(cancelled_while_credentials_are_awaited),
        TEST(advice_begins_bounded_and_follows_what_is_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
