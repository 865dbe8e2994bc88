#include "base/testing.h"

#include "store/remote_glob.h"

static void patterns_match_as_a_shell_would(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *key;
        int matches;
    } cases[] = {
        {"a/b.tar", "a/b.tar", 1},
        {"a/*.tar", "a/b.tar", 1},
        {"a/*.tar", "a/b/c.tar", 0},
        {"a/*.tar", "a/.tar", 0},
        {"*", "a", 1},
        {"*", ".a", 0},
        {"*", "a/b/c", 1}, /* a folder: all below it */
        {"*", "a/.b/c", 0},
        {"train-*", "train-1/a/b.tar", 1},
        {"train-*", "test-1/a.tar", 0},
        {"a/?.tar", "a/b.tar", 1},
        {"a/?.tar", "a/bb.tar", 0},
        {"a?b", "a/b", 0},
        {"a/[a-c].tar", "a/b.tar", 1},
        {"a/[!a-c].tar", "a/b.tar", 0},
        {"a/[!a-c].tar", "a/d.tar", 1},
        {"a/[]x].tar", "a/].tar", 1},
        {"a/[b.tar", "a/[b.tar", 1}, /* no set: it is not closed */
        {"**/*.tar", "x.tar", 1},
        {"**/*.tar", "a/b/x.tar", 1},
        {"**/*.tar", "a/b/x.zip", 0},
        {"a/**/x.tar", "a/x.tar", 1},
        {"a/**/x.tar", "a/b/c/x.tar", 1},
        {"a/**/x.tar", "a/b/cx.tar", 0},
        {"a/**", "a/b/c", 1},
        {"a/**.tar", "a/b/c.tar", 1},
        {"a/**", "a/.b/c", 0},
        {"a\\*b", "a*b", 1},
        {"a\\*b", "axb", 0},
        {"a/b", "a/bc", 0},
        {"a/b", "a", 0},
        {"a/b/", "a/b", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!remote_glob_matches(cases[i].pattern, cases[i].key) == !!cases[i].matches) {
            print_error("%s and %s\n", cases[i].pattern, cases[i].key);
            assert_true(!"it matches as it should");
        }
}

static void a_hostile_pattern_ends_soon(void **state)
{
    (void)state;
    char pattern[256], key[256];
    memset(key, 'a', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    size_t len = 0;
    for (int i = 0; i < 60; i++)
        len += (size_t)snprintf(pattern + len, sizeof pattern - len, "*a");
    snprintf(pattern + len, sizeof pattern - len, "b");
    assert_int_equal(remote_glob_matches(pattern, key), 0); /* the test's own limit is seconds */
}

static void the_part_before_the_first_wild_one_is_found(void **state)
{
    (void)state;
    assert_int_equal(remote_glob_literal("a/b-*.tar"), 4);
    assert_int_equal(remote_glob_literal("plain"), 5);
    assert_true(remote_glob_hides("a/.b") && remote_glob_hides(".a") &&
                !remote_glob_hides("a.b/c"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_match_as_a_shell_would),
        cmocka_unit_test(a_hostile_pattern_ends_soon),
        cmocka_unit_test(the_part_before_the_first_wild_one_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
