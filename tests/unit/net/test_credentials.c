#include "base/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/fail.h"
#include "net/credentials.h"
#include "net/net.h"

/* A chain whose answers the test sets. */
struct chain {
    atomic_int searches, freed;
    atomic_int holds; /* a search waits until it is 0 */
    atomic_int fails;
    atomic_llong lasts_s; /* 0: for ever */
};

static stk_status chain_find(void *user, struct net *net, struct secret *out, struct stk_error *err)
{
    struct chain *chain = user;
    (void)net;
    int number = atomic_fetch_add(&chain->searches, 1) + 1;
    while (atomic_load(&chain->holds)) {
        struct net_patience patience = net_patience();
        if (patience.is_over && patience.is_over(patience.user))
            return fail(err, STK_CANCELLED, "ended");
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (atomic_load(&chain->fails))
        return fail(err, STK_DENIED, "nothing in search %d", number);
    out->kind = SECRET_BEARER;
    snprintf(out->token, sizeof(out->token), "token %d", number);
    long long lasts_s = atomic_load(&chain->lasts_s);
    out->expires_s = lasts_s ? (int64_t)time(NULL) + lasts_s : 0;
    return STK_OK;
}

static void chain_free(void *user)
{
    struct chain *chain = user;
    atomic_fetch_add(&chain->freed, 1);
}

static struct credentials *credentials_of(struct chain *chain)
{
    struct credentials *credentials;
    struct credentials_source source = {chain_find, chain_free, chain};
    assert_int_equal(credentials_new(&credentials, NULL, &source, NULL), STK_OK);
    return credentials;
}

/* The token that is valid now, or the status' name. */
static const char *token(struct credentials *credentials, int may_wait)
{
    static _Thread_local char out[64];
    const struct secret *secret;
    struct stk_error err = {0};
    stk_status status = credentials_take(credentials, may_wait, &secret, &err);
    snprintf(out, sizeof(out), "%.50s", status ? stk_status_name(status) : secret->token);
    if (status)
        assert_null(secret);
    credentials_give(credentials, secret);
    return out;
}

static void wait_for_searches(struct chain *chain, int count)
{
    while (atomic_load(&chain->searches) < count)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void one_search_is_enough_for_what_lasts(void **state)
{
    (void)state;
    struct chain chain = {0};
    struct credentials *credentials = credentials_of(&chain);
    for (int i = 0; i < 100; i++)
        assert_string_equal(token(credentials, 1), "token 1");
    assert_int_equal(chain.searches, 1);
    credentials_free(credentials);
    assert_int_equal(chain.freed, 1);
}

static void who_may_not_wait_is_told_so_and_the_search_begins(void **state)
{
    (void)state;
    struct chain chain = {.holds = 1};
    struct credentials *credentials = credentials_of(&chain);
    assert_string_equal(token(credentials, 0), "BUSY");
    assert_string_equal(token(credentials, 0), "BUSY");
    chain.holds = 0;
    assert_string_equal(token(credentials, 1), "token 1");
    assert_string_equal(token(credentials, 0), "token 1");
    assert_int_equal(chain.searches, 1);
    credentials_free(credentials);
}

static void *take_one(void *user)
{
    return strcmp(token(user, 1), "token 1") ? user : NULL;
}

static void many_threads_wait_for_one_search(void **state)
{
    (void)state;
    struct chain chain = {.holds = 1};
    struct credentials *credentials = credentials_of(&chain);
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_one, credentials), 0);
    wait_for_searches(&chain, 1);
    chain.holds = 0;
    for (int i = 0; i < 16; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(chain.searches, 1);
    credentials_free(credentials);
}

static void what_was_refused_is_looked_for_anew_once(void **state)
{
    (void)state;
    struct chain chain = {0};
    struct credentials *credentials = credentials_of(&chain);
    const struct secret *old;
    assert_int_equal(credentials_take(credentials, 1, &old, NULL), STK_OK);
    credentials_refused(credentials, old->mark);
    assert_string_equal(token(credentials, 1), "token 2");
    credentials_refused(credentials, old->mark); /* by a request that was under way */
    assert_string_equal(token(credentials, 1), "token 2");
    assert_string_equal(old->token, "token 1"); /* who holds it may still read it */
    credentials_give(credentials, old);
    assert_int_equal(chain.searches, 2);
    credentials_free(credentials);
}

static void the_old_one_is_used_while_a_new_one_is_fetched(void **state)
{
    (void)state;
    struct chain chain = {.lasts_s = CREDENTIALS_REFRESH_BEFORE_S - 10};
    struct credentials *credentials = credentials_of(&chain);
    assert_string_equal(token(credentials, 1), "token 1");
    chain.holds = 1;
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL); /* the least pause */
    assert_string_equal(token(credentials, 0), "token 1");
    wait_for_searches(&chain, 2);
    assert_string_equal(token(credentials, 0), "token 1");
    chain.holds = 0;
    while (strcmp(token(credentials, 0), "token 2"))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    credentials_free(credentials);
}

static void what_is_over_is_waited_for(void **state)
{
    (void)state;
    struct chain chain = {.lasts_s = -5};
    struct credentials *credentials = credentials_of(&chain);
    assert_string_equal(token(credentials, 1), "token 1"); /* new: the site may judge */
    nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 50000000}, NULL);
    chain.lasts_s = 0;
    assert_string_equal(token(credentials, 0), "BUSY");
    assert_string_equal(token(credentials, 1), "token 2");
    credentials_free(credentials);
}

static void a_search_that_fails_says_why_and_may_be_tried_again(void **state)
{
    (void)state;
    struct chain chain = {.fails = 1};
    struct credentials *credentials = credentials_of(&chain);
    const struct secret *secret;
    struct stk_error err;
    assert_int_equal(credentials_take(credentials, 1, &secret, &err), STK_DENIED);
    assert_string_equal(err.what, "nothing in search 1");
    chain.fails = 0;
    assert_string_equal(token(credentials, 1), "token 2");
    credentials_free(credentials);
}

static int at_once(void *user)
{
    (void)user;
    return 1;
}

static void waiting_ends_with_the_callers_patience_and_freeing_with_the_search(void **state)
{
    (void)state;
    struct chain chain = {.holds = 1};
    struct credentials *credentials = credentials_of(&chain);
    net_patience_set(&(struct net_patience){.is_over = at_once});
    assert_string_equal(token(credentials, 1), "CANCELLED");
    net_patience_set(NULL);
    credentials_free(credentials); /* the search is told to end */
    assert_int_equal(chain.freed, 1);
}

static void secrets_lie_where_cores_leave_them_out(void **state)
{
    (void)state;
    struct secret *secret = secret_new();
    assert_non_null(secret);
    char line[512];
    FILE *maps = fopen("/proc/self/smaps", "r");
    int ours = 0, found = 0;
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = (uintptr_t)secret >= from && (uintptr_t)secret < to;
        if (ours && !strncmp(line, "VmFlags:", 8))
            found = strstr(line, " dd") != NULL;
    }
    if (maps)
        fclose(maps);
    assert_true(found);
    secret_free(secret);
    secret_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_search_is_enough_for_what_lasts),
        cmocka_unit_test(who_may_not_wait_is_told_so_and_the_search_begins),
        cmocka_unit_test(many_threads_wait_for_one_search),
        cmocka_unit_test(what_was_refused_is_looked_for_anew_once),
        cmocka_unit_test(the_old_one_is_used_while_a_new_one_is_fetched),
        cmocka_unit_test(what_is_over_is_waited_for),
        cmocka_unit_test(a_search_that_fails_says_why_and_may_be_tried_again),
        cmocka_unit_test(waiting_ends_with_the_callers_patience_and_freeing_with_the_search),
        cmocka_unit_test(secrets_lie_where_cores_leave_them_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
