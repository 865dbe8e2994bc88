/* test_names.c -- sources: paths, folders, globs, braces, file://, and what is refused. */
#include "dataset/fixture.h"

#include "dataset/braces.h"
#include "dataset/names.h"
#include "dataset/remote_names.h"

/* ---- braces -------------------------------------------------------------------------------- */

struct gathered {
    char text[4096];
    uint64_t count, limit;
};

static stk_status gather(void *user, const char *name, struct stk_error *err)
{
    struct gathered *gathered = user;
    (void)err;
    gathered->count++;
    if (gathered->count <= 40) {
        strcat(gathered->text, gathered->count > 1 ? " " : "");
        strcat(gathered->text, name);
    }
    return gathered->limit && gathered->count == gathered->limit ? STK_CANCELLED : STK_OK;
}

static void braces_expand_as_in_a_shell(void **state)
{
    (void)state;
    static const struct {
        const char *text, *names;
    } cases[] = {
        {"plain", "plain"},
        {"a{1..3}", "a1 a2 a3"},
        {"a{08..11}.tar", "a08.tar a09.tar a10.tar a11.tar"},
        {"{0000..0002}", "0000 0001 0002"},
        {"{3..1}", "3 2 1"},
        {"{0..10..5}", "0 5 10"},
        {"{a,b}{1,2}", "a1 a2 b1 b2"},
        {"x{a,}", "xa x"},
        {"{a,{b,c}d}", "a bd cd"},
        {"{1..2}{x,y{3..4}}", "1x 1y3 1y4 2x 2y3 2y4"},
        {"{-1..1}", "-1 0 1"},
        {"{9..10}", "9 10"},
        {"{a}", "{a}"},
        {"{}", "{}"},
        {"{a", "{a"},
        {"a}", "a}"},
        {"{a..c}{C..A..2}", "aC aA bC bA cC cA"},
        {"{A..c}", "{A..c}"},
        {"{aa..cc}", "{aa..cc}"},
        {"{10..1..-4}", "10 6 2"},
        {"{x{1,2}}", "{x1} {x2}"},
        {"{1..}", "{1..}"},
        {"{1..3..0}", "{1..3..0}"},
        {"{01..3}", "01 02 03"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gathered gathered = {0};
        assert_int_equal(braces_expand(cases[i].text, gather, &gathered, NULL), STK_OK);
        assert_string_equal(gathered.text, cases[i].names);
    }
}

static void a_brace_list_of_too_many_names_is_refused(void **state)
{
    (void)state;
    struct gathered gathered = {0};
    assert_int_equal(braces_expand("{0..99999999999}", gather, &gathered, NULL), STK_LIMIT);
    assert_int_equal(
        braces_expand("{-9223372036854775808..9223372036854775807}", gather, &gathered, NULL),
        STK_LIMIT);
    assert_int_equal(gathered.count, 0);
}

static void a_walk_over_braces_ends_when_told(void **state)
{
    (void)state;
    struct gathered gathered = {.limit = 3};
    assert_int_equal(braces_expand("{1..9}", gather, &gathered, NULL), STK_CANCELLED);
    assert_int_equal(gathered.count, 3);
}

/* ---- names --------------------------------------------------------------------------------- */

static void touch(struct fixture *fixture, const char *name)
{
    make_file(path_of(fixture, name), "x", 1);
}

static void expand(struct names *names, const char *const *sources, uint32_t count)
{
    struct stk_error err = {0};
    if (names_expand(names, sources, count, &err))
        fail_msg("%s (%s)", err.what, err.object);
}

static void check_names(struct fixture *fixture, const char *source, const char *expected)
{
    struct names names = {0};
    char text[1024] = "";
    const char *path = strstr(source, "://") ? source : path_of(fixture, source);
    expand(&names, &path, 1);
    for (uint64_t i = 0; i < names.list.count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, names.list.items[i].name);
    }
    assert_string_equal(text, expected);
    names_free(&names);
}

static void each_kind_of_source_names_its_objects(void **state)
{
    touch(*state, "s-2.tar");
    touch(*state, "s-10.tar");
    touch(*state, "s-1.tar");
    touch(*state, "odd{1,2}.tar");
    touch(*state, "a b%.tar");
    check_names(*state, "s-1.tar", "s-1.tar");
    check_names(*state, "s-*.tar", "s-1.tar s-10.tar s-2.tar"); /* bytewise */
    check_names(*state, "s-{2,1}.tar", "s-2.tar s-1.tar");      /* as written */
    check_names(*state, "s-{1..2}.tar", "s-1.tar s-2.tar");
    check_names(*state, "s-{1*,2}.tar", "s-1.tar s-10.tar s-2.tar");
    check_names(*state, "odd{1,2}.tar", "odd{1,2}.tar"); /* it is there: no pattern */
    check_names(*state, ".//./s-1.tar", "s-1.tar");
    char uri[512];
    snprintf(uri, sizeof uri, "file://%s/a%%20b%%25.tar", ((struct fixture *)*state)->root);
    check_names(*state, uri, "a b%.tar");
    snprintf(uri, sizeof uri, "FILE://localhost%s/s-1.tar", ((struct fixture *)*state)->root);
    check_names(*state, uri, "s-1.tar");
}

static void relative_paths_are_taken_from_the_working_folder(void **state)
{
    struct fixture *fixture = *state;
    struct names names = {0};
    const char *source = "s-1.tar";
    char before[4096];
    touch(fixture, "s-1.tar");
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(fixture->root), 0);
    expand(&names, &source, 1);
    assert_int_equal(chdir(before), 0);
    assert_string_equal(names.list.root, fixture->root);
    names_free(&names);
}

static void a_list_of_sources_keeps_its_order_under_one_root(void **state)
{
    struct fixture *fixture = *state;
    make_folder(path_of(fixture, "b"));
    make_folder(path_of(fixture, "a"));
    touch(fixture, "b/1.tar");
    touch(fixture, "a/2.tar");
    const char *sources[] = {path_of(fixture, "b/1.tar"), path_of(fixture, "a/*.tar")};
    struct names names = {0};
    expand(&names, sources, 2);
    assert_string_equal(names.list.root, fixture->root);
    assert_string_equal(names.list.items[0].name, "b/1.tar");
    assert_string_equal(names.list.items[1].name, "a/2.tar");
    names_free(&names);
}

static void what_lies_beside_shards_in_a_folder_is_left_out(void **state)
{
    struct fixture *fixture = *state;
    touch(fixture, "00.tar");
    touch(fixture, "01.tar.gz");
    touch(fixture, "00_stats.json");
    touch(fixture, "metadata.parquet");
    touch(fixture, "README.md");
    touch(fixture, "_SUCCESS");
    touch(fixture, "00.idx");
    touch(fixture, ".hidden");
    check_names(fixture, "", "00.tar 01.tar.gz");
    check_names(fixture, "*", "00.tar 01.tar.gz");
    touch(fixture, "cat.jpg"); /* now it is a folder of files */
    check_names(fixture, "", "00.idx 00.tar 00_stats.json 01.tar.gz README.md _SUCCESS cat.jpg");
}

static void what_is_named_is_never_left_out(void **state)
{
    struct fixture *fixture = *state;
    touch(fixture, "00.tar");
    touch(fixture, "notes.json");
    check_names(fixture, "{00.tar,notes.json}", "00.tar notes.json");
}

static void check_refused(const char *source, stk_status status, const char *words)
{
    struct names names = {0};
    struct stk_error err = {0};
    assert_int_equal(names_expand(&names, &source, 1, &err), status);
    if (!strstr(err.what, words) && !strstr(err.object, words))
        fail_msg("\"%s\" (%s) lacks \"%s\"", err.what, err.object, words);
}

static void what_is_not_there_is_named(void **state)
{
    struct fixture *fixture = *state;
    touch(fixture, "s-1.tar");
    make_folder(path_of(fixture, "empty"));
    check_refused(path_of(fixture, "missing.tar"), STK_NOT_FOUND, "missing.tar");
    check_refused(path_of(fixture, "s-{1..2}.tar"), STK_NOT_FOUND, "s-2.tar");
    check_refused(path_of(fixture, "t-*.tar"), STK_NOT_FOUND, "t-*.tar");
    check_refused(path_of(fixture, "s-1.tar/x.tar"), STK_NOT_FOUND, "x.tar");
    check_refused(path_of(fixture, "empty"), STK_NOT_FOUND, "holds no samples");
    check_refused("", STK_USAGE, "empty");
}

static void other_schemes_are_refused(void **state)
{
    (void)state;
    check_refused("ftp://host/x.tar", STK_UNSUPPORTED, "ftp://");
    check_refused("file://otherhost/x.tar", STK_UNSUPPORTED, "another machine");
    check_refused("file:///x%2", STK_USAGE, "hexadecimal");
    check_refused("file:///x%00y", STK_USAGE, "%");
}

static void files_and_uris_do_not_mix(void **state)
{
    struct fixture *fixture = *state;
    struct names names = {0};
    struct stk_error err = {0};
    touch(fixture, "s-1.tar");
    const char *sources[] = {path_of(fixture, "s-1.tar"), "https://host/s-2.tar?sig=secret"};
    assert_int_equal(names_expand(&names, sources, 2, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "https://host/s-2.tar"));
    assert_null(strstr(err.what, "secret"));
    assert_true(*err.remedy);
}

static void shown_uris_hold_no_secret(void **state)
{
    (void)state;
    static const struct {
        const char *uri, *shown;
    } cases[] = {
        {"s3://bucket/a/b.tar", "s3://bucket/a/b.tar"},
        {"https://host/a.tar?X-Amz-Signature=abc", "https://host/a.tar"},
        {"https://user:pass@host/a.tar", "https://host/a.tar"},
        {"abfss://container@account.dfs.core.windows.net/a",
         "abfss://container@account.dfs.core.windows.net/a"},
        {"what?.tar", "what?.tar"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char shown[REMOTE_NAMES_SHOWN];
        assert_string_equal(remote_names_shown(cases[i].uri, shown), cases[i].shown);
    }
}

static void an_object_named_twice_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct names names = {0};
    struct stk_error err = {0};
    touch(fixture, "s-1.tar");
    const char *sources[] = {path_of(fixture, "s-1.tar"), path_of(fixture, "./s-*.tar")};
    assert_int_equal(names_expand(&names, sources, 2, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "s-1.tar"));
}

static void the_key_of_the_sources_moves_with_the_data(void **state)
{
    struct fixture *fixture = *state;
    struct names one, other, glob;
    make_folder(path_of(fixture, "here"));
    touch(fixture, "here/1.tar");
    const char *source = path_of(fixture, "here/{1,}.tar");
    touch(fixture, "here/.tar");
    expand(&one, &source, 1);
    const char *pattern = path_of(fixture, "here/*.tar");
    expand(&glob, &pattern, 1);
    assert_int_equal(rename(path_of(fixture, "here"), path_of(fixture, "there")), 0);
    const char *moved = path_of(fixture, "there/{1,}.tar");
    expand(&other, &moved, 1);
    assert_true(one.key == other.key);
    assert_true(one.key != glob.key);
    names_free(&one);
    names_free(&other);
    names_free(&glob);
}

static void check_series(struct fixture *fixture, enum names_series policy, const char *source,
                         const char *expected)
{
    struct names names = {.policy = policy};
    const char *path = path_of(fixture, source);
    expand(&names, &path, 1);
    if (expected)
        assert_string_equal(names.series, path_of(fixture, expected));
    else
        assert_null(names.series);
    assert_int_equal(names.list.count > 0, !expected);
    names_free(&names);
}

static void a_folder_with_an_array_of_rows_is_a_series(void **state)
{
    struct fixture *fixture = *state;
    make_folder(path_of(fixture, "series"));
    make_folder(path_of(fixture, "others"));
    touch(fixture, "series/metadata.json");
    touch(fixture, "others/metadata.json");
    check_series(fixture, NAMES_SERIES_FOUND, "series", NULL);
    touch(fixture, "series/all_features.mmap");
    check_series(fixture, NAMES_SERIES_FOUND, "series", "series");
    check_series(fixture, NAMES_SERIES_FOUND, "series//", "series");
    check_series(fixture, NAMES_SERIES_FOUND, "series/metadata.json", "series");
    check_series(fixture, NAMES_SERIES_FOUND, "s*s", "series");
    check_series(fixture, NAMES_SERIES_FOUND, "series/all_features.mmap", NULL);
    check_series(fixture, NAMES_SERIES_FOUND, "others", NULL);
    check_series(fixture, NAMES_SERIES_FOUND, "others/metadata.json", NULL);
    check_series(fixture, NAMES_SERIES_NONE, "series", NULL);
    check_series(fixture, NAMES_SERIES_WANTED, "others", "others");
    make_file(path_of(fixture, "others/metadata.json"), "{\"format\": \"stoker series\"}", 27);
    check_series(fixture, NAMES_SERIES_FOUND, "others", "others");
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(braces_expand_as_in_a_shell),
        cmocka_unit_test(a_brace_list_of_too_many_names_is_refused),
        cmocka_unit_test(a_walk_over_braces_ends_when_told),
        WITH_FOLDER(each_kind_of_source_names_its_objects),
        WITH_FOLDER(relative_paths_are_taken_from_the_working_folder),
        WITH_FOLDER(a_list_of_sources_keeps_its_order_under_one_root),
        WITH_FOLDER(what_lies_beside_shards_in_a_folder_is_left_out),
        WITH_FOLDER(what_is_named_is_never_left_out),
        WITH_FOLDER(what_is_not_there_is_named),
        cmocka_unit_test(other_schemes_are_refused),
        WITH_FOLDER(files_and_uris_do_not_mix),
        cmocka_unit_test(shown_uris_hold_no_secret),
        WITH_FOLDER(an_object_named_twice_is_refused),
        WITH_FOLDER(the_key_of_the_sources_moves_with_the_data),
        WITH_FOLDER(a_folder_with_an_array_of_rows_is_a_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
