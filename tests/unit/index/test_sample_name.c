#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "index/sample_name.h"

/* What WebDataset's own expression, ^((?:.*\/|)[^.]+)[.]([^/]*)$, makes of each name; NULL: no
 * match. */
static const struct {
    const char *name, *key, *field;
} cases[] = {
    {"a.jpg", "a", "jpg"},     {"a.seg.PNG", "a", "seg.PNG"},
    {"d/a.jpg", "d/a", "jpg"}, {"d.e/a.jpg", "d.e/a", "jpg"},
    {"/a.jpg", "/a", "jpg"},   {"../a.jpg", "../a", "jpg"},
    {"a.", "a", ""},           {"a..b", "a", ".b"},
    {"a/.b", "a/", "b"},       {"x/a/.b.c", "x/a/", "b.c"},
    {"/.b", "/", "b"},         {"./a/.b", "./a/", "b"},
    {"", NULL, NULL},          {"a", NULL, NULL},
    {"d.e/a", NULL, NULL},     {"a.b/", NULL, NULL},
    {".b", NULL, NULL},        {"./.b", NULL, NULL},
    {"a.b/.c", NULL, NULL},
};

static void names_split_as_webdatasets_expression_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t key_len = 99, len = strlen(cases[i].name);
        int is_sample = sample_name_split(cases[i].name, len, &key_len);
        assert_int_equal(is_sample, cases[i].key != NULL);
        if (!is_sample)
            continue;
        assert_int_equal(key_len, strlen(cases[i].key));
        assert_memory_equal(cases[i].name, cases[i].key, key_len);
        assert_string_equal(cases[i].name + key_len + 1, cases[i].field);
    }
}

static void only_names_between_double_underscores_are_metadata(void **state)
{
    (void)state;
    const char *meta[] = {"__x__", "____", "__a.b__", "__x__/a.jpg", "__x__/y/a.jpg"};
    const char *plain[] = {"__x__.jpg", "x__", "__x", "d/__x__", "_x_", ""};
    for (size_t i = 0; i < sizeof(meta) / sizeof(meta[0]); i++)
        assert_true(sample_name_is_meta(meta[i], strlen(meta[i])));
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        assert_false(sample_name_is_meta(plain[i], strlen(plain[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_split_as_webdatasets_expression_does),
        cmocka_unit_test(only_names_between_double_underscores_are_metadata),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
