/* test_points_text.c -- numbers in text: the nearest float32, whatever the locale. */
#include <locale.h>
#include <math.h>

#include "base/random.h"
#include "base/testing.h"
#include "codec/points_text.h"

static void number_is(const char *text)
{
    struct text_span word = {text, text + strlen(text)};
    float found, expected = strtof(text, NULL);
    assert_true(span_float(&word, &found));
    if (memcmp(&found, &expected, sizeof found))
        fprintf(stderr, "%s: %a is not %a\n", text, found, expected);
    assert_memory_equal(&found, &expected, sizeof found);
}

static void numbers_are_the_nearest_floats(void **state)
{
    (void)state;
    static const char *const words[] = {
        "0",
        "-0",
        "1",
        "+1.5",
        ".5",
        "5.",
        "1e3",
        "1E-3",
        "16777217",
        "16777219",
        "1e39",
        "-1e39",
        "3.4028235e38",
        "3.4028236e38",
        "3.40282357e38",
        "1e-45",
        "7e-46",
        "1.17549435e-38",
        "0.1",
        "123456789012345678901234567890",
        "0.00000000000000000000000000000000000001",
        "9007199254740993",
        "1e22",
        "1e23",
        "1.00000005960464477539062500000000000001",
        "1.000000059604644775390625",
        "inf",
        "-Infinity",
        "1e999999999999",
        "1e-999999999",
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        number_is(words[i]);
    for (uint64_t i = 0; i < 200000; i++) {
        char text[64];
        uint32_t bits = (uint32_t)random_at(1, i);
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        snprintf(text, sizeof text, i % 2 ? "%.9g" : "%.17g",
                 i % 3 ? (double)value : (double)(int32_t)bits / 1e6);
        number_is(text);
    }
}

/* Doubles half-way between two floats, and the next ones above and below. */
static void numbers_near_half_way_are_rounded_rightly(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 30000; i++) {
        char text[64];
        double low = (double)(float)(random_unit(2, i) * 200 - 100);
        double middle = (low + (double)nextafterf((float)low, INFINITY)) / 2;
        double value = i % 3 == 0 ? middle : nextafter(middle, i % 3 == 1 ? INFINITY : -INFINITY);
        snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.18e", value);
        number_is(text);
    }
}

static void what_is_no_number_is_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"",     "-",     "+",      ".",  "e5",  "1e",
                                        "1e+",  "1.2.3", "1,5",    "x",  "--1", "1-",
                                        "0x10", "1p3",   "nan(3)", "1f", "1 2"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct text_span word = {words[i], words[i] + strlen(words[i])};
        float value;
        assert_false(span_float(&word, &value));
    }
}

static void numbers_do_not_hang_on_the_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (setlocale(LC_ALL, names[i]))
            break;
    struct text_span word = {"0.12345678901234567890123", NULL};
    float value = 0;
    word.end = word.at + strlen(word.at);
    assert_true(span_float(&word, &value));
    assert_true(value == 0.12345678901234567890123f);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_the_nearest_floats),
        cmocka_unit_test(numbers_near_half_way_are_rounded_rightly),
        cmocka_unit_test(what_is_no_number_is_refused),
        cmocka_unit_test(numbers_do_not_hang_on_the_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
