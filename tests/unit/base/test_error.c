#include "base/testing.h"

#include <errno.h>

#include "stoker/version.h"

#include "base/fail.h"

static void every_status_has_a_name_and_words(void **state)
{
    (void)state;
    for (int i = 0; i < STK_STATUS_COUNT; i++) {
        assert_true(strlen(stk_status_name(i)) > 1);
        assert_true(strlen(stk_status_words(i)) > 3);
    }
    assert_string_equal(stk_status_name(STK_CORRUPT), "CORRUPT");
    assert_string_equal(stk_status_name(12345), "UNKNOWN");
    assert_non_null(stk_status_words(-1));
    assert_string_equal(stk_version(), "0.1.0");
}

static void an_error_is_told_in_one_line_and_a_remedy(void **state)
{
    (void)state;
    struct stk_error err;
    char buf[2048];
    assert_int_equal(fail(&err, STK_CORRUPT, "bad %d", 7), STK_CORRUPT);
    assert_int_equal(stk_error_format(&err, buf, sizeof buf), 5);
    assert_string_equal(buf, "bad 7");
    fail_at(&err, "/data/a.tar", 512);
    fail_sample(&err, 3, "000003xx", 6);
    fail_field(&err, "npy");
    fail_remedy(&err, "do %s", "this");
    size_t len = stk_error_format(&err, buf, sizeof buf);
    assert_string_equal(buf,
                        "bad 7 (object /data/a.tar, offset 512, sample 3, key 000003, field npy)\n"
                        "  do this");
    assert_int_equal(len, strlen(buf));
}

static void a_short_buffer_is_ended_and_the_whole_length_is_told(void **state)
{
    (void)state;
    struct stk_error err;
    char buf[8] = "xxxxxxx";
    fail(&err, STK_IO, "twenty characters xx");
    fail_at(&err, "o", STK_NOWHERE);
    assert_int_equal(stk_error_format(&err, buf, sizeof buf), 20 + 11);
    assert_string_equal(buf, "twenty ");
    assert_int_equal(stk_error_format(&err, NULL, 0), 31);
    assert_int_equal(stk_error_format(NULL, buf, sizeof buf), 0);
    assert_string_equal(buf, "");
}

static void a_new_failure_forgets_the_one_before(void **state)
{
    (void)state;
    struct stk_error err;
    fail(&err, STK_IO, "first");
    fail_at(&err, "object", 1);
    fail_sample(&err, 2, "key", 3);
    fail_remedy(&err, "remedy");
    fail(&err, STK_USAGE, "second");
    assert_string_equal(err.object, "");
    assert_string_equal(err.key, "");
    assert_string_equal(err.remedy, "");
    assert_true(err.offset == STK_NOWHERE && err.sample == STK_NOWHERE);
}

static void errno_becomes_a_status_with_a_remedy(void **state)
{
    (void)state;
    struct stk_error err;
    assert_int_equal(fail_errno(&err, ENOENT, "open"), STK_NOT_FOUND);
    assert_string_equal(err.what, "open: No such file or directory");
    assert_int_equal(fail_errno(&err, EACCES, "open"), STK_DENIED);
    assert_int_equal(fail_errno(&err, ENOMEM, "open"), STK_MEMORY);
    assert_int_equal(fail_errno(&err, EMFILE, "open"), STK_RESOURCE);
    assert_non_null(strstr(err.remedy, "ulimit -n"));
    assert_int_equal(fail_errno(&err, ENOSPC, "write"), STK_IO);
    assert_non_null(strstr(err.remedy, "full"));
    assert_int_equal(fail_errno(&err, EPIPE, "write"), STK_IO);
    assert_int_equal(fail_memory(&err, 64), STK_MEMORY);
    assert_string_equal(err.what, "out of memory (64 bytes)");
}

static void errors_may_be_ignored_with_null(void **state)
{
    (void)state;
    assert_int_equal(fail(NULL, STK_IO, "x"), STK_IO);
    assert_int_equal(fail_errno(NULL, ENOENT, "x"), STK_NOT_FOUND);
    assert_int_equal(fail_memory(NULL, 1), STK_MEMORY);
    fail_at(NULL, "x", 1);
    fail_sample(NULL, 1, "x", 1);
    fail_field(NULL, "x");
    fail_remedy(NULL, "x");
}

static void long_words_are_cut_between_characters_and_paths_keep_their_tail(void **state)
{
    (void)state;
    struct stk_error err;
    char longer[2000];
    for (size_t i = 0; i + 1 < sizeof longer; i += 2)
        memcpy(longer + i, "\xc3\xa9", 2);
    longer[1998] = '\0';
    fail(&err, STK_IO, "x%s", longer); /* 1 + 2 k bytes: the cut at 319 splits none, at 318 one */
    assert_int_equal(strlen(err.what), 319);
    fail(&err, STK_IO, "%s", longer);
    assert_int_equal(strlen(err.what), 318);
    fail_errno(&err, ENOENT, "%s", longer);
    assert_non_null(strstr(err.what, "No such file"));
    memset(longer, 'a', sizeof longer);
    strcpy(longer + 1900, "/the-end.tar");
    fail_at(&err, longer, 0);
    assert_int_equal(strlen(err.object), sizeof err.object - 1);
    assert_true(strncmp(err.object, "...a", 4) == 0);
    assert_non_null(strstr(err.object, "/the-end.tar"));
    fail_sample(&err, 1, longer, 1900);
    assert_int_equal(strlen(err.key), sizeof err.key - 1);
    fail_at(&err, NULL, 4);
    assert_string_equal(err.object, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_and_words),
        cmocka_unit_test(an_error_is_told_in_one_line_and_a_remedy),
        cmocka_unit_test(a_short_buffer_is_ended_and_the_whole_length_is_told),
        cmocka_unit_test(a_new_failure_forgets_the_one_before),
        cmocka_unit_test(errno_becomes_a_status_with_a_remedy),
        cmocka_unit_test(errors_may_be_ignored_with_null),
        cmocka_unit_test(long_words_are_cut_between_characters_and_paths_keep_their_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
