#include "base/testing.h"

#include "store/list.h"
#include "store/scan.h"

static char folder[PATH_MAX];

static const char *under(const char *name)
{
    return path_in(folder, name);
}

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    mkdir(under("a"), 0700);
    mkdir(under("a/deep"), 0700);
    mkdir(under("ab"), 0700);
    mkdir(under(".hidden"), 0700);
    text_write(under("a/2.npy"), "22");
    text_write(under("a/10.npy"), "1010");
    text_write(under("a/deep/x.npy"), "");
    text_write(under("a/deep.npy"), "d");
    text_write(under("ab/y.npy"), "y");
    text_write(under("z.npy"), "z");
    text_write(under(".dot"), "");
    text_write(under(".hidden/file"), "");
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

/* The names of a list joined by spaces. */
static const char *names(const struct list *list)
{
    static char text[4096];
    text[0] = '\0';
    for (uint64_t i = 0; i < list->count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, list->items[i].name);
    }
    return text;
}

static void a_folder_is_listed_whole_and_sorted_bytewise(void **state)
{
    (void)state;
    struct list list = {0};
    assert_int_equal(list_add(&list, folder, NULL), STK_OK);
    assert_string_equal(list.root, folder);
    assert_string_equal(names(&list), "a/10.npy a/2.npy a/deep.npy a/deep/x.npy ab/y.npy z.npy");
    assert_int_equal(list.items[0].size, 4);
    assert_int_equal(list.items[3].size, 0);
    struct scan *scan;
    assert_int_equal(scan_open(&scan, list.root, list.items[0].name, NULL), STK_OK);
    assert_true(scan_version(scan) == list.items[0].version);
    scan_close(scan);
    list_free(&list);
    assert_null(list.root);
    list_free(&list);
}

static void a_file_lies_in_its_folder(void **state)
{
    (void)state;
    struct list list = {0};
    assert_int_equal(list_add(&list, under("a/2.npy"), NULL), STK_OK);
    assert_string_equal(list.root, under("a"));
    assert_string_equal(names(&list), "2.npy");
    list_free(&list);
}

static void several_paths_get_the_folder_they_share(void **state)
{
    (void)state;
    struct list list = {0};
    assert_int_equal(list_add(&list, under("a/deep"), NULL), STK_OK);
    assert_string_equal(list.root, under("a/deep"));
    assert_int_equal(list_add(&list, under("a/2.npy"), NULL), STK_OK);
    assert_string_equal(list.root, under("a"));
    assert_string_equal(names(&list), "deep/x.npy 2.npy");
    assert_int_equal(list_add(&list, under("ab/"), NULL), STK_OK); /* not under "a" */
    assert_string_equal(list.root, folder);
    assert_string_equal(names(&list), "a/deep/x.npy a/2.npy ab/y.npy");
    assert_int_equal(list_add(&list, under("a/deep/../deep.npy"), NULL), STK_OK);
    assert_string_equal(list.root, folder);
    assert_int_equal(list_add(&list, "/proc/self/status", NULL), STK_OK);
    assert_string_equal(list.root, "");
    assert_string_equal(list.items[3].name, under("a/deep.npy"));
    assert_int_equal(list.items[4].name[0], '/');
    assert_int_equal(list_add(&list, under("z.npy"), NULL), STK_OK);
    assert_string_equal(list.items[5].name, under("z.npy"));
    list_free(&list);
}

static void relative_paths_are_made_absolute(void **state)
{
    (void)state;
    struct list list = {0};
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(under("a")), 0);
    stk_status status = list_add(&list, "2.npy", NULL);
    if (!status)
        status = list_add(&list, "../z.npy", NULL);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(status, STK_OK);
    assert_string_equal(list.root, folder);
    assert_string_equal(names(&list), "a/2.npy z.npy");
    list_free(&list);
}

static void links_to_files_are_followed_and_the_rest_is_counted(void **state)
{
    (void)state;
    struct list list = {0};
    mkdir(under("links"), 0700);
    assert_int_equal(symlink(under("z.npy"), under("links/to-file")), 0);
    assert_int_equal(symlink(under("a"), under("links/to-folder")), 0);
    assert_int_equal(symlink("nowhere", under("links/dangling")), 0);
    assert_int_equal(symlink("circle", under("links/circle")), 0);
    assert_int_equal(mkfifo(under("links/pipe"), 0600), 0);
    assert_int_equal(list_add(&list, under("links"), NULL), STK_OK);
    assert_string_equal(names(&list), "to-file");
    assert_int_equal(list.items[0].size, 1);
    assert_int_equal(list.skipped, 4);
    assert_int_equal(list_add(&list, under("links/to-file"), NULL), STK_OK);
    assert_string_equal(names(&list), "to-file to-file");
    list_free(&list);
    struct stk_error err;
    assert_int_equal(list_add(&list, under("links/pipe"), &err), STK_UNSUPPORTED);
    list_free(&list);
    folder_remove(under("links"));
}

static void what_is_missing_or_forbidden_is_named(void **state)
{
    (void)state;
    struct list list = {0};
    struct stk_error err;
    assert_int_equal(list_add(&list, under("missing"), &err), STK_NOT_FOUND);
    assert_string_equal(err.object, under("missing"));
    assert_int_equal(list_add(&list, under("z.npy/"), &err), STK_NOT_FOUND);
    assert_int_equal(list_add(&list, "", &err), STK_NOT_FOUND);
    list_free(&list);
    if (geteuid() != 0) {
        mkdir(under("locked"), 0);
        assert_int_equal(list_add(&list, folder, &err), STK_DENIED);
        assert_string_equal(err.object, under("locked"));
        list_free(&list);
        rmdir(under("locked"));
    }
}

/* A silently shorter list would be a silently shorter epoch. */
static void a_link_into_a_locked_folder_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct list list = {0};
    struct stk_error err;
    uid_t user = geteuid();
    mkdir(under("locked"), 0700);
    text_write(under("locked/file"), "x");
    mkdir(under("links"), 0755);
    assert_int_equal(symlink(under("locked/file"), under("links/to-file")), 0);
    if (user == 0)
        assert_int_equal(chmod(folder, 0755) | seteuid(65534), 0);
    else
        assert_int_equal(chmod(under("locked"), 0), 0);
    stk_status status = list_add(&list, under("links"), &err);
    assert_int_equal(seteuid(user) | chmod(under("locked"), 0700) | chmod(folder, 0700), 0);
    assert_int_equal(status, STK_DENIED);
    assert_string_equal(err.object, under("links/to-file"));
    list_free(&list);
    folder_remove(under("links"));
    folder_remove(under("locked"));
}

static void a_deep_tree_needs_no_deep_stack_and_few_descriptors(void **state)
{
    (void)state;
    struct list list = {0};
    char path[PATH_MAX], before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    mkdir(under("tower"), 0700);
    assert_int_equal(chdir(under("tower")), 0);
    for (int i = 0; i < 500; i++) {
        assert_int_equal(mkdir("d", 0700), 0);
        assert_int_equal(chdir("d"), 0);
    }
    text_write("file", "x");
    assert_int_equal(chdir(before), 0);
    snprintf(path, sizeof path, "%s", under("tower"));
    assert_int_equal(list_add(&list, path, NULL), STK_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(strlen(list.items[0].name), 1004);
    list_free(&list);
    folder_remove(path);
}

static void many_names_share_few_blocks(void **state)
{
    (void)state;
    struct list list = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", under("many"));
    mkdir(path, 0700);
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%06d.cls", (i * 7919) % 3000);
        text_write(path_in(path, name), "");
    }
    assert_int_equal(list_add(&list, path, NULL), STK_OK);
    assert_int_equal(list.count, 3000);
    assert_true(list.block_count < 10);
    for (uint64_t i = 1; i < list.count; i++)
        assert_true(strcmp(list.items[i - 1].name, list.items[i].name) < 0);
    list_free(&list);
    folder_remove(path);
}

static int list_once(void *user)
{
    struct list list = {0};
    (void)user;
    stk_status status = list_add(&list, under("a/deep"), NULL);
    if (!status)
        status = list_add(&list, folder, NULL);
    list_free(&list);
    assert_true(status == STK_OK || status == STK_MEMORY);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(list_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_listed_whole_and_sorted_bytewise),
        cmocka_unit_test(a_file_lies_in_its_folder),
        cmocka_unit_test(several_paths_get_the_folder_they_share),
        cmocka_unit_test(relative_paths_are_made_absolute),
        cmocka_unit_test(links_to_files_are_followed_and_the_rest_is_counted),
        cmocka_unit_test(what_is_missing_or_forbidden_is_named),
        cmocka_unit_test(a_link_into_a_locked_folder_is_an_error_that_names_it),
        cmocka_unit_test(a_deep_tree_needs_no_deep_stack_and_few_descriptors),
        cmocka_unit_test(many_names_share_few_blocks),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
