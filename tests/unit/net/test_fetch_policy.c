/* Budgets, waits, percentiles, advice and redirects: the pure parts of a fetch. */
#include "base/testing.h"

#include "net/fetch_parts.h"

#define MS 1000000LL
#define SECOND 1000000000LL

static void a_budget_is_spent_and_comes_back_with_time(void **state)
{
    (void)state;
    struct retry_budget budget;
    retry_budget_init(&budget, 0);
    int paid = 0;
    while (retry_pay(&budget, 0, RETRY_COST))
        paid++;
    assert_int_equal(paid, RETRY_TOKENS / RETRY_COST);
    assert_false(retry_pay(&budget, 1 * MS, RETRY_COST));
    assert_true(retry_pay(&budget, SECOND, RETRY_COST));
    assert_true(retry_pay(&budget, 1000 * SECOND, RETRY_TOKENS)); /* full, and no fuller */
    assert_false(retry_pay(&budget, 1000 * SECOND, 1));
}

static void a_server_that_fails_now_and_then_never_empties_it(void **state)
{
    (void)state;
    struct retry_budget budget;
    retry_budget_init(&budget, 0);
    for (int i = 0; i < 100000; i++) { /* 9 % fail, and succeed at the second try */
        if (i % 11 == 0) {
            assert_true(retry_pay(&budget, 0, RETRY_COST));
            retry_earn(&budget, RETRY_COST);
        } else {
            retry_earn(&budget, 1);
        }
    }
}

static void waits_grow_are_random_and_have_a_cap(void **state)
{
    (void)state;
    struct retry_cause cause = {.tries = 1, .retry_after_ms = -1, .random = 0.999999};
    int64_t before = 0;
    for (cause.tries = 1; cause.tries < 9; cause.tries++) {
        const int64_t wait = retry_wait(&cause);
        assert_true(wait > before && wait <= RETRY_BASE_NS << (cause.tries - 1));
        before = wait;
    }
    cause.tries = 1000000;
    assert_true(retry_wait(&cause) <= RETRY_CAP_NS && retry_wait(&cause) > RETRY_CAP_NS / 2);
    cause.random = 0;
    assert_int_equal(retry_wait(&cause), 0); /* full jitter */
    cause = (struct retry_cause){
        .tries = 1, .retry_after_ms = -1, .random = 0.999999, .is_throttle = 1};
    assert_true(retry_wait(&cause) > 900 * MS && retry_wait(&cause) <= SECOND);
}

static void a_wait_that_was_asked_for_is_kept(void **state)
{
    (void)state;
    struct retry_cause cause = {.tries = 1, .retry_after_ms = 3000, .random = 0};
    assert_int_equal(retry_wait(&cause), 3 * SECOND);
    cause.random = 0.999999;
    assert_true(retry_wait(&cause) < 3400 * MS);
    cause.retry_after_ms = INT64_MAX; /* no overflow */
    assert_true(retry_wait(&cause) >= 86400 * SECOND);
}

static void percentiles_are_those_of_what_was_learned(void **state)
{
    (void)state;
    struct hedge hedge = {0};
    assert_int_equal(hedge_wait(&hedge), HEDGE_UNKNOWN_NS);
    for (int i = 1; i <= 1000; i++)
        hedge_learn(&hedge, i * MS);
    const int64_t half = hedge_percentile(&hedge, 0.5), tail = hedge_percentile(&hedge, 0.97);
    assert_true(half >= 500 * MS && half <= 630 * MS); /* buckets are a quarter of an octave */
    assert_true(tail >= 970 * MS && tail <= 1220 * MS);
    for (int i = 0; i < 100000; i++) /* the host is quick now */
        hedge_learn(&hedge, 1 * MS);
    assert_true(hedge_percentile(&hedge, 0.97) < 2 * MS);
    assert_int_equal(hedge_wait(&hedge), HEDGE_LEAST_NS);
    hedge_learn(&hedge, INT64_MAX);
    hedge_learn(&hedge, -5);
}

static void a_body_is_slow_only_far_beyond_what_is_usual(void **state)
{
    (void)state;
    struct hedge hedge = {0};
    for (int i = 0; i < 100; i++) {
        hedge_learn(&hedge, 10 * MS);
        hedge_learn_body(&hedge, 1 << 20, 10 * MS); /* 100 MiB a second */
    }
    assert_false(hedge_is_slow(&hedge, 1 << 19, 1 << 19, 5 * MS));
    assert_false(hedge_is_slow(&hedge, 1 << 19, 1 << 19, 20 * MS));
    assert_true(hedge_is_slow(&hedge, 1000, 1 << 20, SECOND));
    assert_true(hedge_is_slow(&hedge, 0, 1 << 20, SECOND));
}

/* A link, and a host that gives each request only so much of it. */
struct link {
    double latency_s, bandwidth, each; /* bytes a second of all, of one request */
    uint64_t bytes;                    /* of an answer */
};

/* Seconds with as many requests under way as is advised. */
static void follow(struct pace *pace, const struct link *link, double seconds)
{
    static int64_t now = SECOND;
    const int64_t end = now + (int64_t)(seconds * 1e9);
    while (now < end) {
        const uint32_t number = pace_in_flight(pace);
        const double alone = link->latency_s + (double)link->bytes / link->each;
        const double rate = number * (double)link->bytes / alone;
        now += (int64_t)((double)link->bytes / (rate < link->bandwidth ? rate : link->bandwidth) *
                         1e9);
        pace_learn(pace, &(struct pace_answer){.now_ns = now,
                                               .first_byte_ns = (int64_t)(link->latency_s * 1e9),
                                               .bytes = link->bytes,
                                               .in_flight = number - 1});
    }
}

static void advice_fills_the_link_and_no_more(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace); /* 20 ms away: 20 MB are under way at once, 17 such ranges */
    follow(&pace, &(struct link){0.020, 1e9, 1e9, 1200000}, 20);
    assert_in_range(pace_in_flight(&pace), 40, 60);
    assert_in_range(pace_range(&pace), 1 << 20, 4 << 20);
    pace_init(&pace); /* next door */
    follow(&pace, &(struct link){0.0003, 2e9, 1e9, 1200000}, 20);
    assert_in_range(pace_in_flight(&pace), 8, 12);
    pace_init(&pace); /* a cloud: 90 MB/s each, 39 of them are 3 GB/s */
    follow(&pace, &(struct link){0.015, 3e9, 90e6, 8 << 20}, 30);
    assert_in_range(pace_in_flight(&pace), 30, 60);
    pace_init(&pace); /* it is too fast for what we may have */
    follow(&pace, &(struct link){0.2, 1e10, 90e6, 8 << 20}, 60);
    assert_in_range(pace_in_flight(&pace), 220, PACE_MOST_IN_FLIGHT);
    assert_int_equal(pace_range(&pace), PACE_MOST_RANGE);
    pace_init(&pace); /* a thin line */
    follow(&pace, &(struct link){0.05, 1e6, 1e6, 256 << 10}, 600);
    assert_in_range(pace_in_flight(&pace), 8, 12);
    assert_int_equal(pace_range(&pace), PACE_LEAST_RANGE);
}

static void who_does_not_follow_changes_nothing(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace);
    for (int i = 1; i < 10000; i++)
        pace_learn(&pace,
                   &(struct pace_answer){
                       .now_ns = i * MS, .first_byte_ns = MS, .bytes = 1000000, .in_flight = 3});
    assert_int_equal(pace_in_flight(&pace), PACE_FIRST_IN_FLIGHT);
}

static void throttles_cut_the_number_and_answers_raise_it(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace);
    pace_throttled(&pace, 10 * SECOND);
    assert_int_equal(pace_in_flight(&pace), 22);
    pace_throttled(&pace, 10 * SECOND + MS); /* the same moment: once */
    assert_int_equal(pace_in_flight(&pace), 22);
    for (int i = 2; i < 50; i++)
        pace_throttled(&pace, i * 10 * SECOND);
    assert_int_equal(pace_in_flight(&pace), PACE_LEAST_IN_FLIGHT);
    follow(&pace, &(struct link){0.02, 1e9, 1e9, 1200000}, 20);
    assert_true(pace_in_flight(&pace) > 30);
}

static void expect_redirect(const char *base, const char *location, enum redirect_kind kind,
                            const char *url)
{
    struct text out = {0};
    assert_int_equal(redirect_resolve(base, location, &out), kind);
    if (url)
        assert_string_equal(out.data, url);
    text_free(&out);
}

static void redirects_lead_where_they_may(void **state)
{
    (void)state;
    const char *base = "https://host/a/b?c=/d";
    expect_redirect(base, "/x", REDIRECT_SAME, "https://host/x");
    expect_redirect(base, "x?y#z", REDIRECT_SAME, "https://host/a/x?y");
    expect_redirect(base, "https://HOST:443/x", REDIRECT_SAME, "https://HOST:443/x");
    expect_redirect(base, "//other/x", REDIRECT_FOREIGN, "https://other/x");
    expect_redirect(base, "https://host:444/", REDIRECT_FOREIGN, NULL);
    expect_redirect(base, "https://host.evil/", REDIRECT_FOREIGN, NULL);
    expect_redirect("http://host/", "https://host/", REDIRECT_FOREIGN, NULL); /* up, but anew */
    expect_redirect(base, "http://host/a", REDIRECT_DOWN, NULL);
    expect_redirect(base, "http://other/a", REDIRECT_DOWN, NULL);
    expect_redirect(base, "", REDIRECT_BAD, NULL);
    expect_redirect(base, "file:///etc/passwd", REDIRECT_BAD, NULL);
    expect_redirect(base, "gopher://host/", REDIRECT_BAD, NULL);
    expect_redirect(base, "https://user:word@host/", REDIRECT_BAD, NULL);
    expect_redirect(base, "https:///x", REDIRECT_BAD, NULL);
    expect_redirect(base, "/x y", REDIRECT_BAD, NULL);
    expect_redirect(base, "mailto:x", REDIRECT_BAD, NULL);
    expect_redirect("https://host", "x", REDIRECT_SAME, "https://host/x");
}

static void every_failure_has_words(void **state)
{
    (void)state;
    for (int i = 0; i < WEB_FAILURES; i++) {
        assert_non_null(words_of_failure((enum web_failure)i)->what);
        assert_non_null(words_of_failure((enum web_failure)i)->remedy);
        assert_true(i == WEB_FINE || words_of_failure((enum web_failure)i)->status != STK_OK);
    }
    for (int i = 300; i < 600; i++) {
        assert_non_null(words_of_status(i)->what);
        assert_true(words_of_status(i)->status != STK_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_budget_is_spent_and_comes_back_with_time),
        cmocka_unit_test(a_server_that_fails_now_and_then_never_empties_it),
        cmocka_unit_test(waits_grow_are_random_and_have_a_cap),
        cmocka_unit_test(a_wait_that_was_asked_for_is_kept),
        cmocka_unit_test(percentiles_are_those_of_what_was_learned),
        cmocka_unit_test(a_body_is_slow_only_far_beyond_what_is_usual),
        cmocka_unit_test(advice_fills_the_link_and_no_more),
        cmocka_unit_test(who_does_not_follow_changes_nothing),
        cmocka_unit_test(throttles_cut_the_number_and_answers_raise_it),
        cmocka_unit_test(redirects_lead_where_they_may),
        cmocka_unit_test(every_failure_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
