#include "base/testing.h"

#include "net/escape.h"

static const char *escaped(const char *from, int keep_slash)
{
    static char out[256];
    struct text text = {0};
    escape_add(&text, from, strlen(from), keep_slash);
    snprintf(out, sizeof(out), "%s", text.data ? text.data : "");
    text_free(&text);
    return out;
}

static const char *decoded(const char *from)
{
    static char out[256];
    struct text text = {0};
    int bad = escape_decode(&text, from, strlen(from));
    snprintf(out, sizeof(out), "%s", bad ? "bad" : text.data ? text.data : "");
    text_free(&text);
    return out;
}

static void all_but_plain_characters_are_escaped_in_upper_case(void **state)
{
    (void)state;
    assert_string_equal(escaped("AZaz09-._~", 0), "AZaz09-._~");
    assert_string_equal(escaped("a b/c?d&e=f+g%", 0), "a%20b%2Fc%3Fd%26e%3Df%2Bg%25");
    assert_string_equal(escaped("\xC3\xA9!*'()", 0), "%C3%A9%21%2A%27%28%29");
    assert_string_equal(escaped("", 0), "");
}

static void slashes_stay_where_they_are_to(void **state)
{
    (void)state;
    assert_string_equal(escaped("a//b/c d/", 1), "a//b/c%20d/");
}

static void what_was_escaped_reads_back(void **state)
{
    (void)state;
    assert_string_equal(decoded("a%20b%2fc%3F%C3%a9"), "a b/c?\xC3\xA9");
    assert_string_equal(decoded("a+b"), "a+b");
    assert_string_equal(decoded(escaped("50% \x01\x7F\xFF/~", 0)), "50% \x01\x7F\xFF/~");
}

static void half_an_escape_and_a_nul_are_bad(void **state)
{
    (void)state;
    assert_string_equal(decoded("a%"), "bad");
    assert_string_equal(decoded("a%2"), "bad");
    assert_string_equal(decoded("a%2g"), "bad");
    assert_string_equal(decoded("a%00b"), "bad");
    struct text text = {0};
    assert_int_equal(escape_decode(&text, "a\0b", 3), -1);
    text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_but_plain_characters_are_escaped_in_upper_case),
        cmocka_unit_test(slashes_stay_where_they_are_to),
        cmocka_unit_test(what_was_escaped_reads_back),
        cmocka_unit_test(half_an_escape_and_a_nul_are_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
