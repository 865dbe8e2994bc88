#include "base/testing.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/sanitized.h"
#include "net/net.h"

static struct net *take(void)
{
    struct stk_error err;
    struct net *net;
    assert_int_equal(net_take(&net, &err), STK_OK);
    return net;
}

static void a_process_has_one_net(void **state)
{
    (void)state;
    struct net *first = take(), *second = take();
    assert_ptr_equal(first, second);
    assert_non_null(net_web(first));
    net_give(first);
    assert_int_equal(net_settings(second)->timeout_s, 60); /* it is still there */
    net_give(second);
    net_give(NULL);
}

static void a_child_of_fork_has_its_own(void **state)
{
    (void)state;
    if (!CAN_FORK)
        skip();
    struct net *ours = take();
    pid_t child = fork();
    if (child == 0) {
        struct net *net = NULL;
        int good = net_take(&net, NULL) == STK_OK && net != ours;
        net_give(ours); /* what the parent took: nothing happens */
        net_give(net);
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    net_give(ours);
}

static void settings_come_from_the_environment(void **state)
{
    (void)state;
    char folder[PATH_MAX];
    struct stk_error err;
    folder_new(folder);
    const char *ca = path_in(folder, "ca.pem");
    text_write(ca, "");
    unsetenv("REQUESTS_CA_BUNDLE");
    unsetenv("SSL_CERT_FILE");
    setenv("STOKER_TIMEOUT", "7", 1);
    setenv("CURL_CA_BUNDLE", "/no/such/file", 1);
    setenv("STOKER_CA", ca, 1);
    struct net *net = take();
    assert_int_equal(net_settings(net)->timeout_s, 7);
    assert_string_equal(net_settings(net)->ca, ca);
    net_give(net);
    unsetenv("STOKER_CA");
    setenv("AWS_CA_BUNDLE", ca, 1); /* botocore's, before the others' */
    net = take();
    assert_string_equal(net_settings(net)->ca, ca);
    net_give(net);
    unsetenv("AWS_CA_BUNDLE");
    assert_int_equal(net_take(&net, &err), STK_NOT_FOUND);
    assert_null(net);
    unsetenv("CURL_CA_BUNDLE");
    static const char *const wrong[] = {"0", "-1", "x", "1e3", "86401"};
    for (int i = 0; i < 5; i++) {
        setenv("STOKER_TIMEOUT", wrong[i], 1);
        assert_int_equal(net_take(&net, &err), STK_USAGE);
        assert_non_null(strstr(err.what, "STOKER_TIMEOUT"));
    }
    struct net_settings settings = {.timeout_s = 3};
    net_configure(&settings); /* wins over the environment */
    net = take();
    assert_int_equal(net_settings(net)->timeout_s, 3);
    net_give(net);
    net_configure(NULL);
    unsetenv("STOKER_TIMEOUT");
    folder_remove(folder);
}

static void etags_are_found_by_their_version(void **state)
{
    (void)state;
    struct net *net = take();
    char etag[64];
    assert_null(net_etag(net, 7));
    for (uint64_t i = 1; i <= 5000; i++) {
        snprintf(etag, sizeof etag, "\"%llx\"", (unsigned long long)(i * 77));
        net_etag_learn(net, i << 40, etag);
    }
    net_etag_learn(net, 9, "");
    net_etag_learn(net, 9, NULL);
    assert_null(net_etag(net, 9));
    const char *kept = net_etag(net, UINT64_C(3) << 40);
    for (uint64_t i = 1; i <= 5000; i++) {
        snprintf(etag, sizeof etag, "\"%llx\"", (unsigned long long)(i * 77));
        assert_string_equal(net_etag(net, i << 40), etag);
        net_etag_learn(net, i << 40, etag);
    }
    assert_ptr_equal(net_etag(net, UINT64_C(3) << 40), kept);
    net_give(net);
}

static int never_over(void *user)
{
    (void)user;
    return 0;
}

static void *other_thread(void *user)
{
    (void)user;
    return (void *)(uintptr_t)(net_patience().is_over != NULL);
}

static void patience_is_a_threads_own(void **state)
{
    (void)state;
    pthread_t thread;
    void *has = NULL;
    net_patience_set(&(struct net_patience){never_over, NULL});
    assert_ptr_equal(net_patience().is_over, never_over);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
    pthread_join(thread, &has);
    assert_null(has);
    net_patience_set(NULL);
    assert_null(net_patience().is_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_has_one_net),
        cmocka_unit_test(a_child_of_fork_has_its_own),
        cmocka_unit_test(settings_come_from_the_environment),
        cmocka_unit_test(etags_are_found_by_their_version),
        cmocka_unit_test(patience_is_a_threads_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
