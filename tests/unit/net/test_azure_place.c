#include "base/testing.h"

#include "net/azure_place.h"
#include "net/connection_string.h"

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("AZURE_STORAGE_CONNECTION_STRING");
    unsetenv("AZURE_STORAGE_SERVICE_ENDPOINT");
    unsetenv("AZURE_STORAGE_ACCOUNT");
    return 0;
}

static struct azure_place *open_place(const char *uri, size_t *length)
{
    struct azure_place *place;
    struct stk_error err;

    assert_int_equal(azure_place_new(&place, uri, length, &err), STK_OK);
    return place;
}

static void endpoint_is(const char *uri, const char *endpoint, const char *host)
{
    size_t length;
    struct azure_place *place = open_place(uri, &length);

    assert_string_equal(place->endpoint, endpoint);
    assert_string_equal(place->host, host);
    azure_place_free(place);
}

static void every_spelling_of_a_uri_names_account_and_container(void **state)
{
    static const struct {
        const char *uri, *site;
    } spellings[] = {
        {"az://acc1/train/a/b.tar", "az://acc1/train"},
        {"az://acc1/train", "az://acc1/train"},
        {"AZ://acc1/train/x", "AZ://acc1/train"},
        {"wasb://train@acc1.blob.core.windows.net/x", "wasb://train@acc1.blob.core.windows.net"},
        {"abfss://train@acc1.dfs.core.windows.net/a/b.tar",
         "abfss://train@acc1.dfs.core.windows.net"},
        {"abfs://train@acc1.dfs.core.windows.net/", "abfs://train@acc1.dfs.core.windows.net"},
        {"wasbs://train@acc1.blob.core.windows.net/x", "wasbs://train@acc1.blob.core.windows.net"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        size_t length;
        struct azure_place *place = open_place(spellings[i].uri, &length);
        assert_string_equal(place->account, "acc1");
        assert_string_equal(place->container, "train");
        assert_string_equal(place->endpoint, "https://acc1.blob.core.windows.net");
        assert_string_equal(place->host, "acc1.blob.core.windows.net:443");
        assert_string_equal(place->path, "");
        assert_int_equal(length, strlen(spellings[i].site));
        assert_int_equal(place->is_private, 1);
        assert_int_equal(place->is_known, 1);
        azure_place_free(place);
    }
}

static void other_clouds_are_known_by_the_host(void **state)
{
    (void)state;
    endpoint_is("abfss://c@acc.dfs.core.chinacloudapi.cn/x",
                "https://acc.blob.core.chinacloudapi.cn", "acc.blob.core.chinacloudapi.cn:443");
    endpoint_is("abfss://c@acc.z12.dfs.storage.azure.net/x",
                "https://acc.z12.blob.storage.azure.net", "acc.z12.blob.storage.azure.net:443");
}

static void what_names_no_container_is_refused(void **state)
{
    static const char *const uris[] = {"az://",        "az://acc",          "az://acc/",
                                       "az:///c/k",    "az://a.b/c",        "az://a@b/c",
                                       "abfss://c/",   "abfss://@a.dfs.x/", "abfss://c@/x",
                                       "az://a/c c/x", "abfss://c@a:80/x"};

    (void)state;
    for (size_t i = 0; i < sizeof(uris) / sizeof(uris[0]); i++) {
        struct azure_place *place;
        struct stk_error err;
        size_t length;
        assert_int_equal(azure_place_new(&place, uris[i], &length, &err), STK_USAGE);
        assert_null(place);
        assert_string_equal(err.object, uris[i]);
        assert_true(err.remedy[0]);
    }
}

static void a_connection_string_of_the_account_says_where_it_is(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_CONNECTION_STRING",
           "DefaultEndpointsProtocol=http;AccountName=acc;AccountKey=a2V5PT0=;"
           "EndpointSuffix=example.org",
           1);
    endpoint_is("az://acc/c/k", "http://acc.blob.example.org", "acc.blob.example.org:80");
    endpoint_is("az://other/c/k", "https://other.blob.core.windows.net",
                "other.blob.core.windows.net:443");
    setenv("AZURE_STORAGE_CONNECTION_STRING",
           "AccountName=acc;BlobEndpoint=http://127.0.0.1:10001/acc/;AccountKey=a2V5", 1);
    endpoint_is("abfss://c@acc.dfs.core.windows.net/k", "http://127.0.0.1:10001/acc",
                "127.0.0.1:10001");
    setenv("AZURE_STORAGE_CONNECTION_STRING", "usedevelopmentstorage = true ;", 1);
    endpoint_is("az://devstoreaccount1/c/k", "http://127.0.0.1:10000/devstoreaccount1",
                "127.0.0.1:10000");
    setenv("AZURE_STORAGE_CONNECTION_STRING",
           "BlobEndpoint=https://acc.blob.core.windows.net;SharedAccessSignature=sv=1&sig=x", 1);
    endpoint_is("az://acc/c/k", "https://acc.blob.core.windows.net",
                "acc.blob.core.windows.net:443");
}

static void a_token_is_not_sent_over_http_to_another_machine(void **state)
{
    size_t length;

    (void)state;
    setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acc;BlobEndpoint=http://example.org", 1);
    struct azure_place *place = open_place("az://acc/c/k", &length);
    assert_int_equal(place->is_private, 0);
    azure_place_free(place);
}

static void the_tools_own_endpoint_variable_is_read(void **state)
{
    (void)state;
    setenv("AZURE_STORAGE_SERVICE_ENDPOINT", "http://127.0.0.1:1234/acc/", 1);
    endpoint_is("az://acc/c/k", "http://127.0.0.1:1234/acc", "127.0.0.1:1234");
    endpoint_is("az://other/c/k", "https://other.blob.core.windows.net",
                "other.blob.core.windows.net:443");
}

static void a_string_without_an_account_and_an_endpoint_without_a_host_are_refused(void **state)
{
    static const char *const strings[] = {"AccountKey=c2VjcmV0", "nonsense",
                                          "AccountName=acc;BlobEndpoint=c2VjcmV0",
                                          "AccountName=acc;BlobEndpoint=https://u:c2VjcmV0@h",
                                          "AccountName=acc;BlobEndpoint=https://h/?c2VjcmV0"};

    (void)state;
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++) {
        struct azure_place *place;
        struct stk_error err;
        size_t length;
        setenv("AZURE_STORAGE_CONNECTION_STRING", strings[i], 1);
        assert_int_equal(azure_place_new(&place, "az://acc/c/k", &length, &err), STK_USAGE);
        assert_null(strstr(err.what, "c2VjcmV0"));
        assert_null(strstr(err.remedy, "c2VjcmV0"));
    }
}

static void values_of_a_connection_string_may_hold_equals_signs(void **state)
{
    size_t length;
    const char *value;

    (void)state;
    value = connection_string_find("A=1; AccountKey = ab== ;B=;C", "accountkey", &length);
    assert_int_equal(length, 4);
    assert_memory_equal(value, "ab==", 4);
    assert_null(connection_string_find("A=1;B=;C", "B", &length));
    assert_null(connection_string_find("A=1;B=;C", "C", &length));
    assert_null(connection_string_find("AB=1", "A", &length));
    assert_null(connection_string_find("", "A", &length));
}

static int open_once(void *user)
{
    struct azure_place *place;
    struct stk_error err;
    size_t length;
    stk_status status = azure_place_new(&place, "az://acc/container/key", &length, &err);

    (void)user;
    assert_true(status == STK_OK || status == STK_MEMORY);
    azure_place_free(place);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(open_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_spelling_of_a_uri_names_account_and_container,
                               clean_environment),
        cmocka_unit_test_setup(other_clouds_are_known_by_the_host, clean_environment),
        cmocka_unit_test_setup(what_names_no_container_is_refused, clean_environment),
        cmocka_unit_test_setup(a_connection_string_of_the_account_says_where_it_is,
                               clean_environment),
        cmocka_unit_test_setup(a_token_is_not_sent_over_http_to_another_machine, clean_environment),
        cmocka_unit_test_setup(the_tools_own_endpoint_variable_is_read, clean_environment),
        cmocka_unit_test_setup(
            a_string_without_an_account_and_an_endpoint_without_a_host_are_refused,
            clean_environment),
        cmocka_unit_test_setup(values_of_a_connection_string_may_hold_equals_signs,
                               clean_environment),
        cmocka_unit_test_setup(fault_85_a_failed_allocation_is_a_status, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
