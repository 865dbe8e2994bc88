/* Lists: pages, order, those that never end, and one listing a process. */
#include "net/fake_web.h"

/* A page's body is "key key key;token": no token, no page behind it. */
static stk_status read_page(struct site *of, const struct site_call *call,
                            const struct web_answer *answer, const char *body, size_t length,
                            struct site_page *page, struct stk_error *err)
{
    (void)of, (void)call, (void)answer;
    char *copy = memory_text(body, length), *token = strchr(copy, ';'), *rest = NULL;
    if (token)
        *token++ = '\0';
    for (char *key = strtok_r(copy, " ", &rest); key; key = strtok_r(NULL, " ", &rest))
        assert_int_equal(site_page_add(page, &(struct site_entry){.key = key}, err), STK_OK);
    page->token = token ? memory_text(token, strlen(token)) : NULL;
    memory_free(copy);
    return STK_OK;
}

static const struct site_ops plain_ops = {.read_page = read_page};

/* The listing itself blocks: on a thread of its own, while this one is the web's. */
struct lister {
    pthread_t thread;
    uint64_t most;
    int anew;
    const char *prefix;
    struct site_listing listing;
    struct stk_error err;
    stk_status status;
    uint32_t *over;
};

static pthread_mutex_t over_lock = PTHREAD_MUTEX_INITIALIZER;

static void *lister_run(void *user)
{
    struct lister *lister = user;
    lister->status = fetch_list(&site, lister->prefix ? lister->prefix : "data/", lister->most,
                                lister->anew, &lister->listing, &lister->err);
    pthread_mutex_lock(&over_lock);
    ++*lister->over;
    pthread_mutex_unlock(&over_lock);
    return NULL;
}

static void run_web(uint32_t *over, uint32_t count)
{
    struct event event;
    for (int idle = 0; idle < 10000; idle++) {
        pthread_mutex_lock(&over_lock);
        const int is_over = *over >= count;
        pthread_mutex_unlock(&over_lock);
        if (is_over)
            return;
        /* Time goes on only while a fetch is there that may need it. */
        if (event_next(&event, net.world->active != NULL)) {
            event_run(&event);
            idle = 0;
        } else {
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
    }
    assert_true(0);
}

static void list(struct lister *lister, uint64_t most)
{
    uint32_t over = 0;
    lister->most = most;
    lister->over = &over;
    assert_int_equal(pthread_create(&lister->thread, NULL, lister_run, lister), 0);
    run_web(&over, 1);
    pthread_join(lister->thread, NULL);
}

static void expect_names(const struct lister *lister, const char *names)
{
    struct text text = {0};
    assert_int_equal(lister->status, STK_OK);
    for (uint64_t i = 0; i < lister->listing.names.count; i++)
        text_format(&text, "%s%s", i ? " " : "", lister->listing.names.entries[i].key);
    assert_string_equal(text.data ? text.data : "", names);
    text_free(&text);
}

static void all_pages_are_read_sorted_and_each_name_once(void **state)
{
    (void)state;
    struct lister lister = {0};
    SCRIPT({.body = "b a z;t1"}, {.body = ";t2"}, {.body = "c b B aa;t3"}, {.body = "y"});
    list(&lister, 100);
    expect_names(&lister, "B a aa b c y z");
    assert_int_equal(web.sent_count, 4);
    assert_string_equal(web.sent[1].url, "https://host/data/?t1");
    site_listing_reset(&lister.listing);
}

static void an_empty_list_is_one(void **state)
{
    (void)state;
    struct lister lister = {0};
    SCRIPT({.body = " "});
    list(&lister, 100);
    expect_names(&lister, "");
    site_listing_reset(&lister.listing);
}

static void a_page_that_breaks_off_or_fails_is_read_again(void **state)
{
    (void)state;
    struct lister lister = {0};
    SCRIPT({.body = "a b;t1"}, {.failure = WEB_RESET, .bytes = 10}, {.status = 500}, {.body = "c"});
    list(&lister, 100);
    expect_names(&lister, "a b c");
    assert_int_equal(web.sent_count, 4);
    site_listing_reset(&lister.listing);
}

static void fault_71_an_error_instead_of_a_page_is_tried_again(void **state)
{
    (void)state;
    struct lister lister = {0};
    SCRIPT({.body = "<?xml version=\"1.0\"?><Error><Code>x</Code></Error>"}, {.body = "c"});
    list(&lister, 100);
    expect_names(&lister, "c");
    site_listing_reset(&lister.listing);
}

static void fault_74_a_token_that_comes_again_ends_it(void **state)
{
    (void)state;
    struct lister lister = {0};
    SCRIPT({.body = "a;t1"}, {.body = "b;t2"}, {.body = "c;t1"}, {.body = "d;t3"});
    list(&lister, 100);
    assert_int_equal(lister.status, STK_CORRUPT);
    assert_non_null(strstr(lister.err.what, "the same token twice"));
    assert_string_equal(lister.err.object, "s3://bucket/data/");
    assert_int_equal(lister.listing.names.count, 0);
}

static struct reply same_page(uint32_t number)
{
    static char body[64];
    snprintf(body, sizeof body, "a b c;t%u", number);
    return (struct reply){.body = body};
}

static void fault_74_a_page_that_comes_again_ends_it(void **state)
{
    (void)state;
    struct lister lister = {0};
    web.answer = same_page;
    list(&lister, 100);
    assert_int_equal(lister.status, STK_CORRUPT);
    assert_int_equal(web.sent_count, 2);
}

static struct reply empty_page(uint32_t number)
{
    static char body[64];
    snprintf(body, sizeof body, ";t%u", number);
    return (struct reply){.body = body};
}

static void fault_74_pages_without_names_end_it(void **state)
{
    (void)state;
    struct lister lister = {0};
    web.answer = empty_page;
    list(&lister, 100);
    assert_int_equal(lister.status, STK_CORRUPT);
    assert_true(web.sent_count < 1100);
}

static struct reply new_page(uint32_t number)
{
    static char body[64];
    snprintf(body, sizeof body, "a%u b%u;t%u", number, number, number);
    return (struct reply){.body = body};
}

static void fault_74_more_names_than_may_be_end_it(void **state)
{
    (void)state;
    struct lister lister = {0};
    web.answer = new_page;
    list(&lister, 99);
    assert_int_equal(lister.status, STK_LIMIT);
    assert_int_equal(web.sent_count, 50);
    assert_non_null(strstr(lister.err.remedy, "narrower"));
}

static void what_was_listed_is_known_for_a_minute(void **state)
{
    (void)state;
    struct lister first = {0}, second = {0}, third = {0}, fourth = {0}, fifth = {0};
    SCRIPT({.body = "a b"}, {.body = "a b c"}, {.body = "d"}, {.body = "e"});
    list(&first, 100);
    list(&second, 100);
    expect_names(&second, "a b");
    assert_int_equal(web.sent_count, 1);
    site_listing_reset(&second.listing);
    list(&second, 1); /* the limit holds all the same */
    assert_int_equal(second.status, STK_LIMIT);
    third.anew = 1;
    list(&third, 100);
    expect_names(&third, "a b c");
    fourth.prefix = "other/";
    list(&fourth, 100);
    expect_names(&fourth, "d");
    web.now_ns += 61 * SECOND;
    list(&fifth, 100);
    expect_names(&fifth, "e");
    site_listing_reset(&first.listing);
    site_listing_reset(&third.listing);
    site_listing_reset(&fourth.listing);
    site_listing_reset(&fifth.listing);
}

static void many_that_ask_at_once_get_one_listing(void **state)
{
    (void)state;
    struct lister listers[8] = {{0}};
    uint32_t over = 0;
    SCRIPT({.body = "a;t", .after_ms = 100}, {.body = "b", .after_ms = 100});
    for (int i = 0; i < 8; i++) {
        listers[i].most = 100;
        listers[i].over = &over;
        assert_int_equal(pthread_create(&listers[i].thread, NULL, lister_run, &listers[i]), 0);
    }
    run_web(&over, 8);
    for (int i = 0; i < 8; i++) {
        pthread_join(listers[i].thread, NULL);
        expect_names(&listers[i], "a b");
        site_listing_reset(&listers[i].listing);
    }
    assert_int_equal(web.sent_count, 2);
}

static void a_failure_is_not_kept(void **state)
{
    (void)state;
    struct lister first = {0}, second = {0};
    SCRIPT({.status = 404}, {.body = "a"});
    list(&first, 100);
    assert_int_equal(first.status, STK_NOT_FOUND);
    list(&second, 100);
    expect_names(&second, "a");
    site_listing_reset(&second.listing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, fake_open, fake_close)
        TEST(all_pages_are_read_sorted_and_each_name_once),
        TEST(an_empty_list_is_one),
        TEST(a_page_that_breaks_off_or_fails_is_read_again),
        TEST(fault_71_an_error_instead_of_a_page_is_tried_again),
        TEST(fault_74_a_token_that_comes_again_ends_it),
        TEST(fault_74_a_page_that_comes_again_ends_it),
        TEST(fault_74_pages_without_names_end_it),
        TEST(fault_74_more_names_than_may_be_end_it),
        TEST(what_was_listed_is_known_for_a_minute),
        TEST(many_that_ask_at_once_get_one_listing),
        TEST(a_failure_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
