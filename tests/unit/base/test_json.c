#include "base/testing.h"

#include "base/json.h"

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

static int parse_once(void *user)
{
    struct json *json;
    (void)user;
    stk_status status = parse("{\"a\":1}", &json, NULL);
    json_free(json);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(parse_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_by_name_and_type),
        cmocka_unit_test(what_is_no_object_or_no_json_is_refused),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(strings_are_escaped_and_bad_utf8_replaced),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
