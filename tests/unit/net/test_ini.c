#include "base/testing.h"

#include "net/flat_json.h"
#include "net/ini.h"
#include "net/netrc.h"

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static struct ini ini_of(const char *text)
{
    struct ini ini = {0};
    text_write(path_in(folder, "config"), text);
    assert_int_equal(ini_read(&ini, path_in(folder, "config"), NULL), STK_OK);
    return ini;
}

static const char *value(const struct ini *ini, const char *section, const char *key)
{
    static char out[64];
    return ini_get(ini, section, key, out, sizeof(out)) ? out : "none";
}

static void keys_are_found_in_their_section(void **state)
{
    (void)state;
    struct ini ini = ini_of("# words\n[default]\nregion = eu-west-1\n; more\nkey=a=b # c\r\n"
                            "[profile  \"two words\" ]\nRegion: us-east-2\nempty =\n");
    assert_string_equal(value(&ini, "default", "region"), "eu-west-1");
    assert_string_equal(value(&ini, "default", "key"), "a=b # c");
    assert_string_equal(value(&ini, "profile two words", "region"), "us-east-2");
    assert_string_equal(value(&ini, "profile two words", "empty"), "none");
    assert_string_equal(value(&ini, "other", "region"), "none");
    assert_true(ini_has(&ini, "profile two words"));
    assert_false(ini_has(&ini, "two words"));
    ini_free(&ini);
}

static void indented_keys_belong_to_the_key_above(void **state)
{
    (void)state;
    struct ini ini = ini_of("[default]\ns3 =\n  addressing_style = path\n\tmax = 3\nregion = x\n"
                            "[profile b]\ns3 =\n  addressing_style = virtual\n");
    assert_string_equal(value(&ini, "default", "s3.addressing_style"), "path");
    assert_string_equal(value(&ini, "default", "s3.max"), "3");
    assert_string_equal(value(&ini, "default", "addressing_style"), "none");
    assert_string_equal(value(&ini, "profile b", "s3.addressing_style"), "virtual");
    assert_string_equal(value(&ini, "default", "region"), "x");
    ini_free(&ini);
}

static void the_last_of_several_counts(void **state)
{
    (void)state;
    struct ini ini = ini_of("[a]\nk=1\n[b]\nk=2\n[a]\nk=3");
    assert_string_equal(value(&ini, "a", "k"), "3");
    assert_string_equal(value(&ini, "b", "k"), "2");
    ini_free(&ini);
}

static void what_does_not_fit_is_not_there(void **state)
{
    (void)state;
    struct ini ini = ini_of("[a]\nk=0123456789\nno line of a key\n[unended\nk=5\n");
    char small[8];
    assert_int_equal(ini_get(&ini, "a", "k", small, sizeof(small)), 0);
    assert_string_equal(small, "");
    ini_free(&ini);
    assert_int_equal(ini_read(&ini, path_in(folder, "absent"), NULL), STK_NOT_FOUND);
    ini_free(&ini);
}

static const char *member(const char *json, const char *name)
{
    static char out[32];
    return flat_json_get(json, strlen(json), name, out, sizeof(out)) ? out : "none";
}

static void members_of_the_outermost_object_are_found(void **state)
{
    (void)state;
    static const char json[] = "{ \"a\" : 1, \"in\": {\"k\": \"no\", \"l\": [1, \"}\"]},\n"
                               "\"k\": \"a\\\"b\\\\\\/\\u0041\", \"t\": true, \"z\": null}";
    assert_string_equal(member(json, "a"), "1");
    assert_string_equal(member(json, "k"), "a\"b\\/A");
    assert_string_equal(member(json, "t"), "true");
    assert_string_equal(member(json, "z"), "null");
    assert_string_equal(member(json, "in"), "none");
    assert_string_equal(member(json, "l"), "none");
}

static void json_that_is_not_whole_gives_nothing(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "k",
                                      "{\"k\"",
                                      "{\"k\":",
                                      "{\"k\":\"x",
                                      "{\"a\":[1,\"k\":\"x\"}",
                                      "[\"k\"]",
                                      "{\"k\":\"\\q\"}",
                                      "{\"k\":\"\\u00\"}",
                                      "{\"k\":\"\\u0000\"}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_string_equal(member(bad[i], "k"), "none");
    assert_string_equal(member("{\"k\":\"0123456789012345678901234567890123456789\"}", "k"),
                        "none");
}

static const char *login(const char *text, const char *host)
{
    static char out[64];
    struct secret *secret = secret_new();
    int found = netrc_find(text, strlen(text), host, secret);
    assert_int_equal(secret->kind, found ? SECRET_BASIC : SECRET_NONE);
    snprintf(out, sizeof(out), "%.20s:%.20s", secret->id, secret->key);
    secret_free(secret);
    return found ? out : "none";
}

static void a_host_has_its_user_and_password(void **state)
{
    (void)state;
    static const char text[] = "# words\ndefault login d password e\n"
                               "machine a.org login u password \"p q\"\n"
                               "macdef init\nmachine evil login x password y\n\n"
                               "machine b.org\n\tlogin machine\n\tpassword password\n"
                               "machine c.org account z login v password w";
    assert_string_equal(login(text, "a.org"), "u:p q");
    assert_string_equal(login(text, "B.ORG"), "machine:password");
    assert_string_equal(login(text, "c.org"), "v:w");
    assert_string_equal(login(text, "evil"), "d:e");
    assert_string_equal(login(text + 39, "else"), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_found_in_their_section),
        cmocka_unit_test(indented_keys_belong_to_the_key_above),
        cmocka_unit_test(the_last_of_several_counts),
        cmocka_unit_test(what_does_not_fit_is_not_there),
        cmocka_unit_test(members_of_the_outermost_object_are_found),
        cmocka_unit_test(json_that_is_not_whole_gives_nothing),
        cmocka_unit_test(a_host_has_its_user_and_password),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
