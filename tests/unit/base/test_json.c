#include "base/testing.h"

#include <math.h>

#include "base/json.h"

#define WORKS(call) assert_int_equal((call), STK_OK)

static stk_status parse(const char *text, struct json **json, struct stk_error *err)
{
    return json_parse(json, text, strlen(text), err);
}

static void members_are_found_by_name_and_type(void **state)
{
    (void)state;
    struct json *json;
    uint64_t number = 7;
    const char *text;
    assert_int_equal(
        parse("{\"a\": 9223372036854775807, \"b\": \"x\\u00e9\", \"c\": -1, \"d\": 1.5}", &json,
              NULL),
        STK_OK);
    assert_true(json_get_u64(json, "a", &number) && number == INT64_MAX);
    assert_true(json_get_text(json, "b", &text));
    assert_string_equal(text, "x\xc3\xa9");
    number = 7;
    assert_false(json_get_u64(json, "b", &number));
    assert_false(json_get_u64(json, "c", &number));
    assert_false(json_get_u64(json, "d", &number));
    assert_false(json_get_u64(json, "e", &number));
    assert_false(json_get_text(json, "a", &text));
    assert_false(json_get_text(json, "e", &text));
    assert_int_equal(number, 7);
    json_free(json);
    json_free(NULL);
}

static void what_is_no_object_or_no_json_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "[1]",
                                      "1",
                                      "{\"a\":1",
                                      "{\"a\":1,\"a\":2}",
                                      "{'a': 1}",
                                      "{}x",
                                      "{\"a\":18446744073709551616}",
                                      "null"};
    struct json *json;
    struct stk_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json = (struct json *)&err;
        assert_int_equal(parse(bad[i], &json, &err), STK_CORRUPT);
        assert_null(json);
        assert_true(strlen(err.what) > 5);
    }
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    struct json *json;
    size_t len = 200000;
    char *deep = malloc(len);
    memset(deep, '[', len);
    memcpy(deep, "{\"a\":", 5);
    assert_int_equal(json_parse(&json, deep, len, NULL), STK_CORRUPT);
    free(deep);
}

static void strings_are_escaped_and_bad_utf8_replaced(void **state)
{
    (void)state;
    static const char in[] =
        "a\"\\\n\t\x01\x7f\xc3\xa9\xff\xc3(\xed\xa0\x80\xf0\x9f\x98\x80\xe2\x82\0z";
    struct text text = {0};
    json_add_string(&text, in, sizeof in - 1);
    assert_string_equal(text.data, "\"a\\\"\\\\\\n\\t\\u0001\x7f\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd("
                                   "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xf0\x9f\x98\x80"
                                   "\xef\xbf\xbd\xef\xbf\xbd\\u0000z\"");
    text_free(&text);
    json_add_string(&text, "", 0);
    assert_string_equal(text.data, "\"\"");
    text_free(&text);
}

static void members_and_items_are_walked_in_order(void **state)
{
    (void)state;
    struct json *json;
    void *cursor = NULL;
    const char *name;
    char seen[64] = "";
    uint64_t number;
    WORKS(parse("{\"z\": [1, 2, 3], \"a\": {\"k\": 4}, \"m\": null}", &json, NULL));
    for (const struct json *item; (item = json_each(json, &cursor, &name));)
        snprintf(seen + strlen(seen), sizeof(seen) - strlen(seen), "%s%d%zu ", name,
                 (int)json_kind(item), json_count(item));
    assert_string_equal(seen, "z53 a61 m10 ");
    assert_null(cursor);
    const struct json *list = json_member(json, "z");
    assert_true(json_u64(json_item(list, 2), &number) && number == 3);
    assert_null(json_item(list, 3));
    assert_true(json_get_u64(json_member(json, "a"), "k", &number) && number == 4);
    json_free(json);
}

static void numbers_are_taken_only_as_what_they_are(void **state)
{
    (void)state;
    struct json *json;
    int64_t whole = 5;
    double real = 5;
    int flag = 5;
    uint64_t natural;
    const char *text;
    WORKS(parse("{\"i\": -3, \"r\": 1e300, \"t\": true, \"f\": false, \"s\": \"1\"}", &json, NULL));
    assert_true(json_i64(json_member(json, "i"), &whole) && whole == -3);
    assert_true(json_double(json_member(json, "i"), &real) && real == -3.0);
    assert_true(json_double(json_member(json, "r"), &real) && real == 1e300);
    assert_false(json_i64(json_member(json, "r"), &whole));
    assert_false(json_i64(json_member(json, "t"), &whole));
    assert_false(json_double(json_member(json, "s"), &real));
    assert_true(json_bool(json_member(json, "t"), &flag) && flag == 1);
    assert_true(json_bool(json_member(json, "f"), &flag) && flag == 0);
    assert_false(json_bool(json_member(json, "i"), &flag));
    assert_true(whole == -3 && real == 1e300 && flag == 0);
    json_free(json);
    void *cursor = NULL; /* what is not there is nothing */
    assert_int_equal(json_kind(NULL), JSON_KIND_NONE);
    assert_true(!json_member(NULL, "a") && !json_item(NULL, 0) && !json_count(NULL));
    assert_null(json_each(NULL, &cursor, &text));
    assert_false(json_u64(NULL, &natural) || json_i64(NULL, &whole) || json_double(NULL, &real) ||
                 json_bool(NULL, &flag) || json_text(NULL, &text));
}

static void doubles_are_written_short_and_read_back_the_same(void **state)
{
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0.1, "0.1"},      {1, "1"},       {-2.5, "-2.5"},
                 {1e300, "1e+300"}, {NAN, "null"},  {-INFINITY, "null"},
                 {1.0 / 3, NULL},   {5e-324, NULL}, {0.1 + 0.2, "0.30000000000000004"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct text text = {0};
        json_add_double(&text, cases[i].number);
        if (cases[i].text)
            assert_string_equal(text.data, cases[i].text);
        if (isfinite(cases[i].number))
            assert_true(strtod(text.data, NULL) == cases[i].number);
        text_free(&text);
    }
}

static int write_once(void *user)
{
    struct text text = {0};
    (void)user;
    json_add_string(&text, "abc", 3);
    json_add_double(&text, 0.5);
    int good = !text.failed;
    text_free(&text);
    return good;
}

static void fault_85_a_failed_allocation_is_told(void **state)
{
    (void)state;
    fail_each_allocation(write_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name_and_type),
        cmocka_unit_test(what_is_no_object_or_no_json_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(strings_are_escaped_and_bad_utf8_replaced),
        cmocka_unit_test(members_and_items_are_walked_in_order),
        cmocka_unit_test(numbers_are_taken_only_as_what_they_are),
        cmocka_unit_test(doubles_are_written_short_and_read_back_the_same),
        cmocka_unit_test(fault_85_a_failed_allocation_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
