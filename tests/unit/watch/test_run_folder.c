#include "base/testing.h"

#include <sys/file.h>
#include <time.h>

#include "watch/run_folder.h"
#include "watch/watch_environment.h"

static struct stk_error err;

static const struct run_file files[] = {
    {"site/sitecustomize.py", (const unsigned char *)"import x\n", 9},
    {"site/stoker_watch/__init__.py", (const unsigned char *)"", 0},
    {"libstoker_inject.so", (const unsigned char *)"ELF", 3},
    {0},
};

static struct run_folder *opened(void)
{
    struct run_folder *folder;
    assert_int_equal(run_folder_open(&folder, files, &err), STK_OK);
    return folder;
}

static void a_folder_holds_the_files_and_is_ours_alone(void **state)
{
    struct run_folder *folder = opened();
    struct stat about;
    size_t len;
    (void)state;
    assert_int_equal(stat(run_folder_path(folder), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    char *text = file_read(path_in(run_folder_site(folder), "sitecustomize.py"), &len);
    assert_string_equal(text, "import x\n");
    free(text);
    assert_int_equal(
        access(path_in(run_folder_path(folder), "site/stoker_watch/__init__.py"), R_OK), 0);
    assert_int_equal(run_folder_write(folder, "options.json", "{}", 2, &err), STK_OK);
    assert_int_equal(run_folder_write(folder, "options.json", "[]", 2, &err), STK_OK);
    text = file_read(path_in(run_folder_path(folder), "options.json"), &len);
    assert_string_equal(text, "[]");
    free(text);
    assert_non_null(run_folder_library(folder));
    text = file_read(run_folder_library(folder), &len);
    assert_string_equal(text, "ELF");
    free(text);
    run_folder_close(folder);
}

static void a_folder_is_gone_after_the_run_with_all_in_it(void **state)
{
    struct run_folder *folder = opened();
    char path[PATH_MAX];
    (void)state;
    snprintf(path, sizeof path, "%s", run_folder_path(folder));
    assert_int_equal(mkdir(path_in(path, "site/stoker_watch/__pycache__"), 0700), 0);
    text_write(path_in(path, "site/stoker_watch/__pycache__/x.pyc"), "x");
    text_write(path_in(path, "ring.1.py"), "x");
    run_folder_close(folder);
    assert_int_not_equal(access(path, F_OK), 0);
    run_folder_close(NULL);
}

/* A place of its own, and no other. */
static void use_place(char place[PATH_MAX])
{
    folder_new(place);
    setenv("XDG_RUNTIME_DIR", place, 1);
}

static void what_a_killed_run_left_is_removed_and_a_living_one_is_not(void **state)
{
    char place[PATH_MAX];
    (void)state;
    use_place(place);
    struct run_folder *living = opened();
    if (strncmp(run_folder_path(living), place, strlen(place))) {
        run_folder_close(living); /* too little room there */
        folder_remove(place);
        unsetenv("XDG_RUNTIME_DIR");
        skip();
    }
    char dead[2 * PATH_MAX];
    snprintf(dead, sizeof dead, "%s/stoker-run-dead00", place);
    const char *making = path_in(place, "stoker-run-making");
    assert_int_equal(mkdir(dead, 0700), 0);
    text_write(path_in(dead, "lock"), "");
    assert_int_equal(mkdir(making, 0700), 0);
    /* what a process wrote into a folder that was being removed */
    char late[2 * PATH_MAX];
    snprintf(late, sizeof late, "%s/stoker-run-late00", place);
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 90}, {.tv_sec = time(NULL) - 90}};
    assert_int_equal(mkdir(late, 0700), 0);
    text_write(path_in(late, "ring.1.py"), "x");
    assert_int_equal(utimensat(AT_FDCWD, late, old, 0), 0);
    struct run_folder *next = opened();
    assert_int_not_equal(access(dead, F_OK), 0);
    assert_int_equal(access(making, F_OK), 0);
    assert_int_not_equal(access(late, F_OK), 0);
    assert_int_equal(access(run_folder_path(living), F_OK), 0);
    run_folder_close(next);
    run_folder_close(living);
    folder_remove(place);
    unsetenv("XDG_RUNTIME_DIR");
}

static void a_place_that_cannot_be_used_is_passed_by(void **state)
{
    (void)state;
    setenv("XDG_RUNTIME_DIR", "/no/such/place", 1);
    struct run_folder *folder = opened();
    assert_null(strstr(run_folder_path(folder), "/no/such"));
    run_folder_close(folder);
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    folder = opened();
    assert_int_equal(run_folder_path(folder)[0], '/');
    run_folder_close(folder);
    unsetenv("XDG_RUNTIME_DIR");
}

/* --- variables -------------------------------------------------------------------------------- */

static const char *variable(char **environment, const char *name)
{
    const char *found = NULL;
    size_t len = strlen(name);
    for (; *environment; environment++)
        if (!strncmp(*environment, name, len) && (*environment)[len] == '=') {
            assert_null(found); /* only once */
            found = *environment + len + 1;
        }
    return found;
}

static void the_command_gets_three_variables_and_keeps_its_own(void **state)
{
    struct run_folder *folder = opened();
    char **environment, notice[512], wanted[2 * PATH_MAX];
    (void)state;
    setenv("PYTHONPATH", "/mine:/too", 1);
    setenv("STOKER_TEST_VALUE", "a=b", 1);
    unsetenv("CUDA_INJECTION64_PATH");
    assert_int_equal(environment_make(&environment, folder, notice, sizeof notice, &err), STK_OK);
    assert_string_equal(variable(environment, "STOKER_WATCH"), run_folder_path(folder));
    snprintf(wanted, sizeof wanted, "%s:/mine:/too", run_folder_site(folder));
    assert_string_equal(variable(environment, "PYTHONPATH"), wanted);
    assert_string_equal(variable(environment, "CUDA_INJECTION64_PATH"), run_folder_library(folder));
    assert_string_equal(variable(environment, "STOKER_TEST_VALUE"), "a=b");
    assert_string_equal(notice, "");
    memory_free(environment);
    unsetenv("PYTHONPATH");
    run_folder_close(folder);
}

static void an_injected_library_of_the_user_is_left_and_named(void **state)
{
    struct run_folder *folder = opened();
    char **environment, notice[512];
    (void)state;
    setenv("CUDA_INJECTION64_PATH", "/opt/nsight/lib.so", 1);
    assert_int_equal(environment_make(&environment, folder, notice, sizeof notice, &err), STK_OK);
    assert_string_equal(variable(environment, "CUDA_INJECTION64_PATH"), "/opt/nsight/lib.so");
    assert_non_null(strstr(notice, "/opt/nsight/lib.so"));
    memory_free(environment);
    unsetenv("CUDA_INJECTION64_PATH");
    run_folder_close(folder);
}

static void a_library_that_cannot_be_run_from_anywhere_is_told(void **state)
{
    const struct run_file files[] = {{NULL, NULL, 0}};
    struct run_folder *folder;
    char **environment, notice[512];
    (void)state;
    assert_int_equal(run_folder_open(&folder, files, &err), STK_OK);
    assert_int_equal(environment_make(&environment, folder, notice, sizeof notice, &err), STK_OK);
    assert_null(variable(environment, "CUDA_INJECTION64_PATH"));
    assert_non_null(strstr(notice, "set TMPDIR"));
    memory_free(environment);
    run_folder_close(folder);
}

static void options_tell_the_hook_what_to_do(void **state)
{
    struct stk_watch_options options = {0};
    struct text text = {0};
    (void)state;
    assert_int_equal(environment_options(&text, &options, 0, &err), STK_OK);
    assert_string_equal(text.data,
                        "{\"stack_hz\":100,\"until_s\":null,\"stages\":false,\"replay\":null}\n");
    text_free(&text);
    text = (struct text){0};
    options.stack_hz = UINT32_MAX;
    options.replay = "{\"loaders\":[{\"id\":3,\"file\":\"a\\\"b.py\",\"pin_memory\":true,"
                     "\"batches\":20,\"next_s\":1.5},"
                     "{\"id\":4,\"batches\":null,\"handed_out\":60,\"epochs\":2}]}";
    assert_int_equal(environment_options(&text, &options, 5000000001, &err), STK_OK);
    assert_non_null(strstr(text.data, "{\"stack_hz\":0,\"until_s\":5.000000001,"));
    assert_non_null(strstr(text.data, "{\"batches\":4,\"loaders\":[{\"id\":3,"));
    assert_non_null(strstr(text.data, "\"file\":\"a\\\"b.py\""));
    assert_non_null(strstr(text.data, "\"pin_memory\":true"));
    assert_non_null(strstr(text.data, "\"batches\":20"));
    assert_non_null(strstr(text.data, "\"batches_per_epoch\":20"));
    assert_non_null(strstr(text.data, "\"batches_per_epoch\":30"));
    assert_null(strstr(text.data, "next_s"));
    text_free(&text);
}

static void a_run_without_loaders_cannot_be_replayed(void **state)
{
    struct stk_watch_options options = {.replay = "{\"loaders\":[]}"};
    struct text text = {0};
    (void)state;
    assert_int_equal(environment_options(&text, &options, 0, &err), STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "no loader"));
    text_free(&text);
    text = (struct text){0};
    options.replay = "{\"loaders\":";
    assert_int_not_equal(environment_options(&text, &options, 0, &err), STK_OK);
    text_free(&text);
}

static int open_and_close(void *user)
{
    struct run_folder *folder;
    (void)user;
    if (run_folder_open(&folder, files, &err))
        return 0;
    run_folder_close(folder);
    return 1;
}

static void no_memory_leaves_nothing(void **state)
{
    (void)state;
    fail_each_allocation(open_and_close, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_holds_the_files_and_is_ours_alone),
        cmocka_unit_test(a_folder_is_gone_after_the_run_with_all_in_it),
        cmocka_unit_test(what_a_killed_run_left_is_removed_and_a_living_one_is_not),
        cmocka_unit_test(a_place_that_cannot_be_used_is_passed_by),
        cmocka_unit_test(the_command_gets_three_variables_and_keeps_its_own),
        cmocka_unit_test(an_injected_library_of_the_user_is_left_and_named),
        cmocka_unit_test(a_library_that_cannot_be_run_from_anywhere_is_told),
        cmocka_unit_test(options_tell_the_hook_what_to_do),
        cmocka_unit_test(a_run_without_loaders_cannot_be_replayed),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
