#include "base/testing.h"

#include "net/site.h"

static char folder[PATH_MAX];
static struct net *net;

static int begin(void **state)
{
    (void)state;
    folder_new(folder);
    setenv("HOME", folder, 1);
    unsetenv("NETRC");
    unsetenv("STOKER_HTTP_TOKEN");
    assert_int_equal(net_take(&net, NULL), STK_OK);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_give(net);
    folder_remove(folder);
    return 0;
}

static struct site *site_of(const char *uri, const char **key)
{
    struct site *site;
    struct stk_error err = {0};
    stk_status status = site_open(&site, net, uri, key, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return site;
}

static const char *header(const struct site_made *made, const char *name)
{
    for (uint32_t i = 0; i < made->request.header_count; i++)
        if (!strcmp(made->request.headers[i].name, name))
            return made->request.headers[i].value;
    return "none";
}

static void schemes_tell_what_is_remote(void **state)
{
    (void)state;
    assert_true(site_is_remote("https://a/b"));
    assert_true(site_is_remote("S3://bucket/key"));
    assert_false(site_is_remote("/a/b"));
    assert_false(site_is_remote("file:///a"));
    assert_false(site_is_remote("://a"));
    assert_false(site_is_remote(""));
    assert_false(site_is_remote(NULL));
}

static void one_origin_is_one_site_however_it_is_spelt(void **state)
{
    (void)state;
    const char *key;
    struct site *a = site_of("https://Host.org/a/b.tar", &key);
    assert_string_equal(key, "a/b.tar");
    assert_string_equal(a->uri, "https://host.org");
    assert_string_equal(a->host, "host.org:443");
    struct site *b = site_of("https://host.org:443/c", &key);
    assert_ptr_equal(a, b);
    assert_string_equal(key, "c");
    struct site *c = site_of("https://host.org", &key);
    assert_ptr_equal(a, c);
    assert_string_equal(key, "");
    struct site *d = site_of("https://host.org:8443/c", &key);
    assert_ptr_not_equal(a, d);
    struct site *e = site_of("http://[::1]:8000/x", &key);
    assert_string_equal(e->host, "[::1]:8000");
    assert_string_equal(key, "x");
    site_close(a), site_close(b), site_close(c), site_close(d), site_close(e);
    site_close(NULL);
}

static void urls_that_are_none_or_hold_secrets_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"http:///a",
                                      "http://a:0/",
                                      "http://a:70000/",
                                      "http://a b/",
                                      "http://user:hidden@host/a",
                                      "https://host/a?x=1&X-Amz-Signature=hidden",
                                      "https://host/a?sig=hidden",
                                      "https://host/a?x=1&Token=hidden",
                                      "s3://AKID:hidden@bucket/a",
                                      "s3://bucket/a?X-Amz-Signature=hidden",
                                      "gs://user:hidden@bucket/a",
                                      "az://account/container/a?sv=1&sig=hidden",
                                      "abfss://c@a.dfs.core.windows.net/a?sv=1&sig=hidden",
                                      "ftp://host/a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct site *site;
        const char *key;
        struct stk_error err = {0};
        assert_int_equal(site_open(&site, net, bad[i], &key, &err), STK_USAGE);
        char words[1024];
        stk_error_format(&err, words, sizeof(words));
        assert_null(strstr(words, "hidden"));
    }
}

static void a_key_of_http_is_a_urls_own_text(void **state)
{
    (void)state;
    const char *key;
    struct site *site = site_of("http://host.org/d", &key);
    static struct site_made made;
    struct site_call call = {.verb = SITE_READ, .key = "a%20b c\xC3\xA9#.tar?v=1&w"};
    assert_int_equal(site_make(site, &call, &made, NULL), STK_OK);
    assert_string_equal(made.request.url, "http://host.org/a%20b%20c%C3%A9%23.tar?v=1&w");
    assert_int_equal(made.request.method, WEB_GET);
    assert_string_equal(header(&made, "Authorization"), "none");
    assert_int_equal(made.mark, 0);
    site_made_reset(&made);
    call.verb = SITE_LIST;
    assert_int_equal(site_make(site, &call, &made, NULL), STK_UNSUPPORTED);
    site_made_reset(&made);
    call.verb = SITE_PUT;
    assert_int_equal(site_make(site, &call, &made, NULL), STK_UNSUPPORTED);
    site_made_reset(&made);
    site_close(site);
}

static void passwords_come_from_netrc(void **state)
{
    (void)state;
    const char *key;
    static struct site_made made;
    text_write(path_in(folder, ".netrc"),
               "machine secret.org login Aladdin password \"open sesame\"");
    struct site *site = site_of("https://secret.org/a", &key);
    struct site_call call = {.verb = SITE_STAT, .key = key};
    assert_int_equal(site_make(site, &call, &made, NULL), STK_OK);
    assert_int_equal(made.request.method, WEB_HEAD);
    assert_string_equal(header(&made, "Authorization"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    assert_true(made.mark);
    assert_non_null(strstr(made.where, ".netrc"));
    site_refused(site, made.mark);
    site_made_reset(&made);
    site_close(site);
    site = site_of("https://other.org/a", &key);
    assert_null(site->credentials);
    site_close(site);
    unlink(path_in(folder, ".netrc"));
}

static void a_token_goes_to_its_host_alone_and_never_in_the_clear(void **state)
{
    (void)state;
    const char *key;
    static struct site_made made;
    setenv("STOKER_HTTP_TOKEN", "t0ken", 1);
    setenv("STOKER_HTTP_TOKEN_HOST", "tokens.org", 1);
    struct site *site = site_of("https://tokens.org/a", &key);
    struct site_call call = {.verb = SITE_READ, .key = key};
    assert_int_equal(site_make(site, &call, &made, NULL), STK_OK);
    assert_string_equal(header(&made, "Authorization"), "Bearer t0ken");
    site_made_reset(&made);
    site_close(site);
    site = site_of("https://tokens.org.evil.org/a", &key);
    assert_null(site->credentials);
    site_close(site);
    site = site_of("http://tokens.org/a", &key);
    assert_null(site->credentials);
    site_close(site);
    setenv("STOKER_HTTP_TOKEN_HOST", "127.0.0.1.evil.org", 1);
    site = site_of("http://127.0.0.1.evil.org/a", &key); /* not this machine */
    assert_null(site->credentials);
    site_close(site);
    setenv("STOKER_HTTP_TOKEN_HOST", "127.0.0.1:8099", 1);
    site = site_of("http://127.0.0.1:8099/a", &key);
    assert_non_null(site->credentials);
    site_close(site);
    unsetenv("STOKER_HTTP_TOKEN");
}

static void a_status_alone_says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        int status;
        stk_status means;
        int passing, throttle, credentials;
    } rows[] = {
        {401, STK_DENIED, 0, 0, 1}, {403, STK_DENIED, 0, 0, 1}, {404, STK_NOT_FOUND, 0, 0, 0},
        {412, STK_STALE, 0, 0, 0},  {416, STK_STALE, 0, 0, 0},  {429, STK_LIMIT, 1, 1, 0},
        {503, STK_LIMIT, 1, 1, 0},  {500, STK_IO, 1, 0, 0},     {502, STK_IO, 1, 0, 0},
        {504, STK_IO, 1, 0, 0},     {501, STK_IO, 0, 0, 0},     {400, STK_USAGE, 0, 0, 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct site_trouble trouble = {0};
        site_trouble_by_status(rows[i].status, &trouble);
        assert_int_equal(trouble.status, rows[i].means);
        assert_int_equal(trouble.is_passing, rows[i].passing);
        assert_int_equal(trouble.is_throttle, rows[i].throttle);
        assert_int_equal(trouble.is_credentials, rows[i].credentials);
    }
}

static void a_page_keeps_its_names_as_it_grows(void **state)
{
    (void)state;
    struct site_page page = {0};
    char key[32], etag[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        snprintf(etag, sizeof(etag), "\"%d\"", i);
        struct site_entry entry = {.key = key, .etag = i % 2 ? etag : NULL, .size = (uint64_t)i};
        assert_int_equal(site_page_add(&page, &entry, NULL), STK_OK);
    }
    assert_int_equal(page.count, 5000);
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        snprintf(etag, sizeof(etag), "\"%d\"", i);
        assert_string_equal(page.entries[i].key, key);
        assert_string_equal(page.entries[i].etag, i % 2 ? etag : "");
        assert_int_equal(page.entries[i].size, i);
    }
    site_page_reset(&page);
    assert_null(page.entries);
}

static void a_version_follows_the_etag_and_is_never_0(void **state)
{
    (void)state;
    uint64_t a = site_version("\"a\"", 5, "x");
    assert_true(a == site_version("\"a\"", 6, "y"));
    assert_true(a != site_version("\"b\"", 5, "x"));
    uint64_t dated = site_version("", 5, "Mon");
    assert_true(dated == site_version(NULL, 5, "Mon"));
    assert_true(dated != site_version("", 6, "Mon"));
    assert_true(dated != site_version("", 5, "Tue"));
    assert_true(site_version(NULL, 0, NULL) != 0);
}

static void a_version_of_neither_etag_nor_date_tells_no_change(void **state)
{
    (void)state;
    assert_false(site_version_tells(site_version("", 5, NULL), 5));
    assert_true(site_version_tells(site_version("\"a\"", 5, NULL), 5));
    assert_true(site_version_tells(site_version("", 5, "Mon"), 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schemes_tell_what_is_remote),
        cmocka_unit_test(one_origin_is_one_site_however_it_is_spelt),
        cmocka_unit_test(urls_that_are_none_or_hold_secrets_are_refused),
        cmocka_unit_test(a_key_of_http_is_a_urls_own_text),
        cmocka_unit_test(passwords_come_from_netrc),
        cmocka_unit_test(a_token_goes_to_its_host_alone_and_never_in_the_clear),
        cmocka_unit_test(a_status_alone_says_what_is_wrong),
        cmocka_unit_test(a_page_keeps_its_names_as_it_grows),
        cmocka_unit_test(a_version_follows_the_etag_and_is_never_0),
        cmocka_unit_test(a_version_of_neither_etag_nor_date_tells_no_change),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
