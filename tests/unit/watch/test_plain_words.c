#include "base/testing.h"

#include "watch/plain_words.h"

static void numbers_read_as_people_write_them(void **state)
{
    (void)state;
    assert_string_equal(word_percent(0.414).text, "41 %");
    assert_string_equal(word_percent(0.0031).text, "0.3 %");
    assert_string_equal(word_percent(0.0001).text, "0 %");
    assert_string_equal(word_percent(1).text, "100 %");
    assert_string_equal(word_count(0).text, "0");
    assert_string_equal(word_count(999).text, "999");
    assert_string_equal(word_count(40000).text, "40,000");
    assert_string_equal(word_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(word_bytes(12).text, "12 bytes");
    assert_string_equal(word_bytes(51200).text, "51 KB");
    assert_string_equal(word_bytes(999600).text, "1.0 MB");
    assert_string_equal(word_bytes(1.24e9).text, "1.2 GB");
    assert_string_equal(word_seconds(38.2).text, "38 s");
    assert_string_equal(word_seconds(1.23).text, "1.2 s");
    assert_string_equal(word_seconds(0.9996).text, "1.0 s");
    assert_string_equal(word_seconds(0.35).text, "350 ms");
    assert_string_equal(word_seconds(12e-6).text, "12 us");
    assert_string_equal(word_gain(1.04).text, "1.04x");
    assert_string_equal(word_gain(2.31).text, "2.3x");
    assert_string_equal(word_gain(12.6).text, "13x");
}

static void places_are_short(void **state)
{
    (void)state;
    struct summary_function function = {.function = "blur", .file = "/src/a/train.py", .line = 31};
    struct summary_loader loader = {.class_name = "DataLoader", .file = "train.py", .line = 40};
    assert_string_equal(word_function(&function).text, "blur (train.py:31)");
    function.file = NULL;
    assert_string_equal(word_function(&function).text, "blur");
    assert_string_equal(word_loader(&loader).text, "the DataLoader (train.py:40)");
    loader.line = 0;
    assert_string_equal(word_loader(&loader).text, "the DataLoader");
}

static void what_does_not_fit_is_cut_at_a_character(void **state)
{
    (void)state;
    char words[10];
    words_put(words, sizeof words, "%s", "123456789");
    assert_string_equal(words, "123456789");
    words_put(words, sizeof words, "%s", "1234567890");
    assert_string_equal(words, "123456...");
    words_put(words, sizeof words, "%s", "12345\xc3\xa9\xc3\xa9\xc3\xa9");
    assert_string_equal(words, "12345...");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_read_as_people_write_them),
        cmocka_unit_test(places_are_short),
        cmocka_unit_test(what_does_not_fit_is_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
