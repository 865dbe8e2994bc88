#include "base/testing.h"

#include "base/plugin_load.h"
#include "base/random.h"

static char folder[PATH_MAX];  /* for files that are no plugins */
static char plugins[PATH_MAX]; /* where the build puts those of the tests */

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    ssize_t len = readlink("/proc/self/exe", plugins, sizeof plugins - 32);
    assert_true(len > 0);
    plugins[len] = 0;
    *strrchr(plugins, '/') = 0;
    strcat(plugins, "/../plugins");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

static void refused(const char *path, stk_status status, const char *words)
{
    struct plugin_library library;
    struct stk_error err;
    assert_int_equal(plugin_open(&library, path, &err), status);
    assert_int_equal(err.status, status);
    assert_non_null(strstr(err.what, words));
    assert_null(library.handle);
    if (path && path[0])
        assert_string_equal(err.object, path);
    assert_int_equal(plugin_open(&library, path, NULL), status);
}

static void a_plugin_is_opened_and_closed(void **state)
{
    (void)state;
    struct plugin_library library;
    assert_int_equal(plugin_open(&library, path_in(plugins, "solarize.so"), NULL), STK_OK);
    assert_string_equal(library.plugin.name, "example");
    assert_int_equal(library.plugin.transform_count, 2);
    plugin_close(&library);
    assert_null(library.handle);
    plugin_close(&library); /* once more is fine */
}

static void what_is_no_plugin_is_refused_with_path_and_reason(void **state)
{
    (void)state;
    refused(NULL, STK_USAGE, "path is needed");
    refused("", STK_USAGE, "path is needed");
    refused(path_in(folder, "none.so"), STK_NOT_FOUND, "cannot be read");
    text_write(path_in(folder, "text.so"), "not a library\n");
    refused(path_in(folder, "text.so"), STK_UNSUPPORTED, "does not load");
    refused("/proc/self/exe", STK_UNSUPPORTED, "does not load");
}

static void a_library_without_the_symbol_is_no_plugin(void **state)
{
    (void)state;
    static const char *const places[] = {"/lib/x86_64-linux-gnu/libz.so.1", "/lib64/libz.so.1",
                                         "/usr/lib/libz.so.1", "/lib/aarch64-linux-gnu/libz.so.1"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        if (access(places[i], R_OK))
            continue;
        refused(places[i], STK_USAGE, "exports no stoker_plugin");
        return;
    }
    skip(); /* no zlib where it usually is */
}

static void another_version_is_refused_with_both_numbers(void **state)
{
    (void)state;
    refused(path_in(plugins, "strange_plugin.so"), STK_UNSUPPORTED, "version 100, this Stoker");
}

static void a_name_without_a_slash_is_a_file_here(void **state)
{
    (void)state;
    char before[PATH_MAX];
    struct plugin_library library;
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(plugins), 0);
    assert_int_equal(plugin_open(&library, "solarize.so", NULL), STK_OK);
    plugin_close(&library);
    refused("libz.so.1", STK_NOT_FOUND, "cannot be read"); /* the system has one, we do not */
    assert_int_equal(chdir(before), 0);
}

static void a_plugin_draws_the_numbers_of_the_engine(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t key = random_key(7, i);
        assert_true(stk_plugin_random(key, i) == random_unit(key, i));
        assert_true(stk_plugin_random(i, key) == random_unit(i, key));
    }
}

static void results_that_are_no_status_count_as_misuse(void **state)
{
    (void)state;
    struct stk_error err;
    assert_int_equal(plugin_status("x", 0, "", &err), STK_OK);
    assert_int_equal(plugin_status("x", STK_CORRUPT, "bad", &err), STK_CORRUPT);
    assert_string_equal(err.what, "x: bad");
    assert_int_equal(plugin_status("x", -1, "", &err), STK_USAGE);
    assert_non_null(strstr(err.what, "did not say why"));
    assert_int_equal(plugin_status("x", STK_END, "", NULL), STK_USAGE);
    assert_int_equal(plugin_status("x", 1000, "", NULL), STK_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plugin_is_opened_and_closed),
        cmocka_unit_test(what_is_no_plugin_is_refused_with_path_and_reason),
        cmocka_unit_test(a_library_without_the_symbol_is_no_plugin),
        cmocka_unit_test(another_version_is_refused_with_both_numbers),
        cmocka_unit_test(a_name_without_a_slash_is_a_file_here),
        cmocka_unit_test(a_plugin_draws_the_numbers_of_the_engine),
        cmocka_unit_test(results_that_are_no_status_count_as_misuse),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
