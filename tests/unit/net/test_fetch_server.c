/* Fetches over real connections, from a server on this machine that does what servers do. */
#include "base/testing.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "net/answering.h"
#include "net/fetch.h"

#define MS 1000000LL
#define SIZE 400000

static uint8_t object[SIZE];
static struct answering *server;
static struct net *net;
static struct site *site;
static const char *key;

static int begin(void **state)
{
    static const struct answering_step nothing;
    struct stk_error err;
    (void)state;
    for (uint32_t i = 0; i < SIZE; i++)
        object[i] = (uint8_t)(i * 2654435761u >> 13);
    server = answering_start(&nothing, 1);
    assert_int_equal(net_take(&net, &err), STK_OK);
    assert_int_equal(site_open(&site, net, answering_url(server, "/object"), &key, &err), STK_OK);
    assert_string_equal(key, "object");
    return 0;
}

static int finish(void **state)
{
    (void)state;
    site_close(site);
    net_give(net);
    answering_stop(server);
    return 0;
}

#define SCRIPT(...)                                                                                \
    do {                                                                                           \
        static const struct answering_step steps[] = {__VA_ARGS__};                                \
        answering_script(server, steps, sizeof steps / sizeof steps[0]);                           \
    } while (0)
#define GOOD .body = object, .length = SIZE, .headers = "ETag: \"v1\"\r\n"

static stk_status get_range(uint64_t offset, uint64_t length, struct stk_error *err)
{
    uint8_t *bytes = malloc(length);
    struct iovec parts[2] = {{bytes, length / 2}, {bytes + length / 2, length - length / 2}};
    struct fetch fetch = {.site = site,
                          .call = {.verb = SITE_READ, .key = key},
                          .offset = offset,
                          .length = length,
                          .parts = parts,
                          .part_count = 2,
                          .etag = "\"v1\""};
    const stk_status status = fetch_now(&fetch, err);
    if (!status) {
        assert_memory_equal(bytes, object + offset, length);
        assert_int_equal(fetch.object_size, SIZE);
        assert_string_equal(fetch.found_etag, "\"v1\"");
    }
    free(bytes);
    return status;
}

static void a_range_is_read(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_true(answering_had(server, 0, "Range", "bytes=1000-200999"));
    assert_true(answering_had(server, 0, "If-Match", "\"v1\""));
}

static void fault_59_a_reset_is_resumed(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.times = 1, .cut = CUT_RESET, .cut_after = 50000, GOOD},
           {.times = 1, .cut = CUT_CLOSE, .cut_after = 20000, GOOD}, {GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_int_equal(answering_requests(server), 3);
    assert_false(answering_had(server, 2, "Range", "bytes=1000-200999"));
}

static void fault_60_a_body_that_is_shorter_than_it_says_is_tried_again(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.times = 1, .closes = 1, .length_lie = 100, GOOD}, {GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_true(answering_requests(server) >= 2);
}

static void fault_61_a_server_without_ranges_is_an_error(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.ignores_range = 1, GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_UNSUPPORTED);
}

static void fault_62_another_range_is_an_error(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.range_lie = 1, GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_UNSUPPORTED);
}

static void fault_63_a_change_is_an_error(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.times = 1, .cut = CUT_RESET, .cut_after = 50000, GOOD},
           {.body = object, .length = SIZE, .headers = "ETag: \"v2\"\r\n"});
    assert_int_equal(get_range(1000, 200000, &err), STK_STALE);
    SCRIPT({.status = 412});
    assert_int_equal(get_range(1000, 200000, &err), STK_STALE);
}

static void fault_64_a_throttle_is_waited_for(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.times = 1, .status = 503, .headers = "Retry-After: 1\r\n"}, {GOOD});
    const int64_t began = clock_now();
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_true(clock_now() - began >= 1000 * MS);
}

static void fault_65_a_failure_passes(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.times = 2, .status = 500}, {GOOD});
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_int_equal(answering_requests(server), 3);
}

static void fault_66_and_67_refusals_are_told_with_their_object(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.status = 403});
    assert_int_equal(get_range(1000, 2000, &err), STK_DENIED);
    SCRIPT({.status = 404});
    assert_int_equal(get_range(1000, 2000, &err), STK_NOT_FOUND);
    assert_string_equal(err.object, answering_url(server, "/object"));
    assert_int_equal(err.offset, 1000);
}

static void fault_68_a_redirect_is_followed(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.path = "/there", GOOD},
           {.path = "/object", .status = 302, .headers = "Location: /there?x=1\r\n"});
    assert_int_equal(get_range(1000, 200000, &err), STK_OK);
    assert_true(answering_had(server, 1, "Range", "bytes=1000-200999"));
    assert_int_equal(answering_count(server, "/there"), 1);
}

static void fault_70_a_host_that_is_not_there_ends_in_bounded_time(void **state)
{
    struct stk_error err;
    struct site *dead;
    const char *name;
    struct text text = {0};
    (void)state;
    assert_int_equal(site_open(&dead, net, "http://127.0.0.1:1/x", &name, &err), STK_OK);
    struct fetch fetch = {
        .site = dead, .call = {.verb = SITE_READ, .key = name}, .text = &text, .text_most = 100};
    const int64_t began = clock_now();
    assert_int_equal(fetch_now(&fetch, &err), STK_IO);
    assert_true(clock_now() - began < 20000 * MS);
    assert_string_equal(err.object, "http://127.0.0.1:1/x");
    text_free(&text);
    site_close(dead);
}

static void fault_72_an_encoding_that_nobody_asked_for_is_an_error(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT(
        {.body = object, .length = SIZE, .headers = "ETag: \"v1\"\r\nContent-Encoding: gzip\r\n"});
    assert_int_equal(get_range(1000, 2000, &err), STK_CORRUPT);
}

/* A second request, when the first is held back: it takes the place of the one that hangs. */
static void fault_69_a_request_that_hangs_is_hedged(void **state)
{
    struct stk_error err;
    (void)state;
    uint8_t bytes[1000];
    struct iovec part = {bytes, sizeof bytes};
    struct fetch fetch = {.site = site,
                          .call = {.verb = SITE_READ, .key = key},
                          .length = sizeof bytes,
                          .parts = &part,
                          .part_count = 1,
                          .may_hedge = 1};
    SCRIPT({.times = 1, .holds = 1, GOOD}, {GOOD});
    const int64_t began = clock_now();
    assert_int_equal(fetch_now(&fetch, &err), STK_OK);
    assert_memory_equal(bytes, object, sizeof bytes);
    assert_int_equal(fetch.hedges, 1);
    assert_true(clock_now() - began < 20000 * MS);
    answering_release(server);
}

static int asked;
static int soon_over(void *user)
{
    (void)user;
    return ++asked > 3;
}

static void patience_that_ends_cancels(void **state)
{
    struct stk_error err;
    (void)state;
    SCRIPT({.holds = 1, GOOD});
    const struct net_patience patience = {.is_over = soon_over};
    asked = 0;
    net_patience_set(&patience);
    const int64_t began = clock_now();
    assert_int_equal(get_range(0, 1000, &err), STK_CANCELLED);
    net_patience_set(NULL);
    assert_true(clock_now() - began < 10000 * MS);
    assert_int_equal(asked, 4);
    answering_release(server);
}

/* Many fetches from many threads, some cancelled, against a server that fails as it likes: what is
 * delivered is right, everything ends, and done() comes once each. */
struct one {
    struct fetch fetch;
    uint8_t bytes[3000];
    struct iovec part;
    int done;
};
struct crowd {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    uint32_t done;
    struct one ones[100];
};

static void one_done(struct fetch *fetch)
{
    struct crowd *crowd = fetch->owner;
    pthread_mutex_lock(&crowd->lock);
    crowd->done++;
    pthread_cond_signal(&crowd->ready);
    pthread_mutex_unlock(&crowd->lock);
}

static void fail_some(struct answering_step *step, uint32_t number, const char *head, void *user)
{
    (void)head, (void)user;
    if (number % 20 == 7)
        *step = (struct answering_step){.status = 500};
    else if (number % 50 == 9)
        *step = (struct answering_step){.cut = CUT_RESET, .cut_after = 1000, GOOD};
    else if (number % 40 == 11)
        *step = (struct answering_step){.status = 503, .headers = "Retry-After: 0\r\n"};
}

static void *crowd_run(void *user)
{
    const uint64_t number = (uint64_t)(uintptr_t)user;
    struct crowd *crowd = calloc(1, sizeof *crowd);
    pthread_mutex_init(&crowd->lock, NULL);
    pthread_cond_init(&crowd->ready, NULL);
    for (uint32_t i = 0; i < 100; i++) {
        struct one *one = &crowd->ones[i];
        one->part = (struct iovec){one->bytes, sizeof one->bytes};
        one->fetch = (struct fetch){.site = site,
                                    .call = {.verb = SITE_READ, .key = key},
                                    .offset = (number * 100 + i) * 500,
                                    .length = sizeof one->bytes,
                                    .parts = &one->part,
                                    .part_count = 1,
                                    .may_hedge = 1,
                                    .etag = "\"v1\"",
                                    .done = one_done,
                                    .owner = crowd};
        fetch_start(&one->fetch);
        if (i % 10 == 3)
            fetch_cancel(&one->fetch);
    }
    pthread_mutex_lock(&crowd->lock);
    while (crowd->done < 100)
        pthread_cond_wait(&crowd->ready, &crowd->lock);
    pthread_mutex_unlock(&crowd->lock);
    for (uint32_t i = 0; i < 100; i++) {
        const struct one *one = &crowd->ones[i];
        if (one->fetch.status == STK_CANCELLED && i % 10 == 3)
            continue;
        assert_int_equal(one->fetch.status, STK_OK);
        assert_memory_equal(one->bytes, object + one->fetch.offset, sizeof one->bytes);
    }
    pthread_cond_destroy(&crowd->ready);
    pthread_mutex_destroy(&crowd->lock);
    free(crowd);
    return NULL;
}

static void many_threads_read_through_a_server_that_fails(void **state)
{
    (void)state;
    static const struct answering_step step = {.change = fail_some, GOOD};
    pthread_t threads[4];
    answering_script(server, &step, 1);
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    struct fetch_counts counts;
    fetch_counts(net, &counts);
    assert_true(counts.retries > 0 && counts.requests >= 360);
    struct fetch_advice advice;
    fetch_advice(site, &advice);
    assert_true(advice.in_flight >= 4 && advice.in_flight <= 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
        TEST(a_range_is_read),
        TEST(fault_59_a_reset_is_resumed),
        TEST(fault_60_a_body_that_is_shorter_than_it_says_is_tried_again),
        TEST(fault_61_a_server_without_ranges_is_an_error),
        TEST(fault_62_another_range_is_an_error),
        TEST(fault_63_a_change_is_an_error),
        TEST(fault_64_a_throttle_is_waited_for),
        TEST(fault_65_a_failure_passes),
        TEST(fault_66_and_67_refusals_are_told_with_their_object),
        TEST(fault_68_a_redirect_is_followed),
        TEST(fault_69_a_request_that_hangs_is_hedged),
        TEST(fault_70_a_host_that_is_not_there_ends_in_bounded_time),
        TEST(fault_72_an_encoding_that_nobody_asked_for_is_an_error),
        TEST(patience_that_ends_cancels),
        TEST(many_threads_read_through_a_server_that_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
