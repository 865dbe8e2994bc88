#include "base/testing.h"

#include <sys/file.h>
#include <sys/wait.h>

#include "format/series_meta.h"
#include "pack/series_folder.h"

struct place {
    char folder[PATH_MAX], out[PATH_MAX + 8];
    struct stk_error err;
};

static void place_open(struct place *place)
{
    folder_new(place->folder);
    snprintf(place->out, sizeof(place->out), "%s/out", place->folder);
}

static int there(const struct place *place, const char *name)
{
    return access(path_in(place->folder, name), F_OK) == 0;
}

/* Writes a folder of two files through the module. */
static stk_status make(struct place *place, enum series_folder_mode mode, const char *text)
{
    struct series_folder *folder;
    stk_status status = series_folder_open(&folder, place->out, mode, &place->err);

    if (!status)
        status = series_folder_write(folder, SERIES_METADATA, text, strlen(text), &place->err);
    if (!status)
        status = series_folder_write(folder, SERIES_ARRAY, "rows", 4, &place->err);
    if (!status)
        status = series_folder_commit(folder, &place->err);
    series_folder_close(folder);
    assert_false(there(place, ".out.part"));
    return status;
}

static void check_text(const struct place *place, const char *want)
{
    char *text = file_read(path_in(place->folder, "out/" SERIES_METADATA), NULL);
    assert_string_equal(text, want);
    free(text);
}

static void a_folder_appears_whole(void **state)
{
    struct place place;
    struct series_folder *folder;

    (void)state;
    place_open(&place);
    assert_int_equal(series_folder_open(&folder, place.out, SERIES_FOLDER_NEW, &place.err), STK_OK);
    assert_int_equal(series_folder_write(folder, SERIES_METADATA, "x", 1, &place.err), STK_OK);
    assert_false(there(&place, "out"));
    assert_true(there(&place, ".out.part/" SERIES_METADATA));
    series_folder_close(folder); /* not committed */
    assert_false(there(&place, "out") || there(&place, ".out.part"));
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    check_text(&place, "one");
    folder_remove(place.folder);
}

static void folders_above_are_made_and_empty_ones_taken(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    assert_int_equal(mkdir(place.out, 0777), 0);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    check_text(&place, "one");
    snprintf(place.out, sizeof(place.out), "%.4000s/a/b/out//", place.folder);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "two"), STK_OK);
    assert_true(there(&place, "a/b/out/" SERIES_METADATA));
    assert_false(there(&place, "a/b/.out.part"));
    folder_remove(place.folder);
}

static void a_series_is_replaced_only_when_asked(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "two"), STK_USAGE);
    assert_non_null(strstr(place.err.remedy, "--force"));
    check_text(&place, "one");
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "two"), STK_OK);
    check_text(&place, "two");
    folder_remove(place.folder);
}

static void what_is_no_series_is_never_replaced(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    mkdir(place.out, 0777);
    text_write(path_in(place.out, "thesis.tex"), "five years of work");
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_USAGE);
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "one"), STK_USAGE);
    assert_int_equal(make(&place, SERIES_FOLDER_CHANGE, "one"), STK_USAGE);
    /* not even when a series lies beside it */
    text_write(path_in(place.out, SERIES_METADATA), "{}");
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "one"), STK_USAGE);
    assert_non_null(strstr(place.err.what, "thesis.tex"));
    assert_true(there(&place, "out/thesis.tex"));
    snprintf(place.out, sizeof(place.out), "%.4000s/out/thesis.tex", place.folder);
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "one"), STK_USAGE);
    strcpy(place.out, "/");
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "one"), STK_USAGE);
    folder_remove(place.folder);
}

static void a_link_to_a_folder_stays_a_link(void **state)
{
    struct place place;
    struct stat found;

    (void)state;
    place_open(&place);
    mkdir(path_in(place.folder, "disk"), 0777);
    mkdir(path_in(place.folder, "disk/real"), 0777);
    assert_int_equal(symlink("disk/real", place.out), 0);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "two"), STK_OK);
    assert_int_equal(lstat(place.out, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    check_text(&place, "two");
    assert_true(there(&place, "disk/real/" SERIES_METADATA));
    folder_remove(place.folder);
}

static void two_writers_do_not_meet(void **state)
{
    struct place place;
    struct series_folder *first, *second;

    (void)state;
    place_open(&place);
    assert_int_equal(series_folder_open(&first, place.out, SERIES_FOLDER_NEW, &place.err), STK_OK);
    assert_int_equal(series_folder_write(first, SERIES_METADATA, "1", 1, &place.err), STK_OK);
    assert_int_equal(series_folder_open(&second, place.out, SERIES_FOLDER_NEW, &place.err),
                     STK_BUSY);
    assert_null(second);
    assert_int_equal(series_folder_commit(first, &place.err), STK_OK);
    series_folder_close(first);
    check_text(&place, "1");
    folder_remove(place.folder);
}

static void what_two_renames_left_is_put_right(void **state)
{
    struct place place;

    (void)state;
    place_open(&place);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    /* killed between the renames: the old series comes back, and is told of */
    assert_int_equal(rename(place.out, path_in(place.folder, ".out.old")), 0);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "two"), STK_USAGE);
    check_text(&place, "one");
    assert_int_equal(rename(place.out, path_in(place.folder, ".out.old")), 0);
    assert_int_equal(make(&place, SERIES_FOLDER_CHANGE, "two"), STK_OK);
    check_text(&place, "two");
    /* killed after them: the old one is cleared away */
    mkdir(path_in(place.folder, ".out.old"), 0777);
    text_write(path_in(place.folder, ".out.old/" SERIES_ARRAY), "old");
    assert_int_equal(make(&place, SERIES_FOLDER_REPLACE, "three"), STK_OK);
    assert_false(there(&place, ".out.old"));
    check_text(&place, "three");
    folder_remove(place.folder);
}

static void links_are_never_written_through(void **state)
{
    struct place place;
    struct series_folder *folder;

    (void)state;
    place_open(&place);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    assert_int_equal(series_folder_open(&folder, place.out, SERIES_FOLDER_CHANGE, &place.err),
                     STK_OK);
    assert_int_equal(series_folder_inherit(folder, &place.err), STK_OK);
    assert_int_equal(series_folder_write(folder, SERIES_METADATA, "two", 3, &place.err), STK_OK);
    check_text(&place, "one");
    series_folder_close(folder);
    check_text(&place, "one");
    folder_remove(place.folder);
}

static void a_file_is_rewritten_at_once(void **state)
{
    struct place place;
    struct series_folder *folder;

    (void)state;
    place_open(&place);
    assert_int_equal(make(&place, SERIES_FOLDER_NEW, "one"), STK_OK);
    assert_int_equal(series_folder_open(&folder, place.out, SERIES_FOLDER_CHANGE, &place.err),
                     STK_OK);
    assert_int_equal(series_folder_rewrite(folder, SERIES_METADATA, "two", 3, &place.err), STK_OK);
    series_folder_close(folder);
    check_text(&place, "two");
    assert_true(there(&place, "out/" SERIES_ARRAY));
    folder_remove(place.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_appears_whole),
        cmocka_unit_test(folders_above_are_made_and_empty_ones_taken),
        cmocka_unit_test(a_series_is_replaced_only_when_asked),
        cmocka_unit_test(what_is_no_series_is_never_replaced),
        cmocka_unit_test(a_link_to_a_folder_stays_a_link),
        cmocka_unit_test(two_writers_do_not_meet),
        cmocka_unit_test(what_two_renames_left_is_put_right),
        cmocka_unit_test(links_are_never_written_through),
        cmocka_unit_test(a_file_is_rewritten_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
