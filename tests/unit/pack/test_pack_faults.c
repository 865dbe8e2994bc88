/* Kills and failures at every call that changes a file: whatever happens, the folder holds the old
 * series or the new one. The calls are replaced in this process by ones that count. */
#define FIXTURE_OWN_CALLS
#include "pack/series_fixture.h"

#include <sys/syscall.h>
#include <sys/wait.h>

static struct given before, added, all;

/* --- calls that count --------------------------------------------------------------------------
 */

enum fault { FAULT_NONE, FAULT_KILL, FAULT_FAIL };
static struct {
    enum fault kind;
    long left;  /* the call that brings it to 0 goes wrong */
    int number; /* errno of a call that fails */
    int hit;
    int no_exchange, no_links; /* a poorer file system */
} fault;

/* Not 0: this call goes wrong. A kill may come after half of the bytes were written. */
static int fault_now(void)
{
    if (fault.kind == FAULT_NONE || --fault.left)
        return 0;
    fault.hit = 1;
    if (fault.kind == FAULT_KILL)
        return 1;
    errno = fault.number;
    return 1;
}

static int fault_call(void)
{
    int wrong = fault_now();
    if (wrong && fault.kind == FAULT_KILL)
        _exit(9);
    return wrong;
}

ssize_t pwrite(int fd, const void *data, size_t len, off_t offset)
{
    if (fault_now()) {
        if (fault.kind == FAULT_FAIL)
            return -1;
        (void)!syscall(SYS_pwrite64, fd, data, len / 2, offset);
        _exit(9);
    }
    return syscall(SYS_pwrite64, fd, data, len, offset);
}

ssize_t write(int fd, const void *data, size_t len)
{
    if (fd > 2 && fault_now()) {
        if (fault.kind == FAULT_FAIL)
            return -1;
        (void)!syscall(SYS_write, fd, data, len / 2);
        _exit(9);
    }
    return syscall(SYS_write, fd, data, len);
}

int fsync(int fd)
{
    (void)fd; /* nothing is lost here: the machine stays up */
    return fault_call() ? -1 : 0;
}

int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
    (void)fd, (void)offset, (void)len, (void)flags; /* a hint, and the disk is slow */
    return 0;
}

int ftruncate(int fd, off_t len)
{
    return fault_call() ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

int renameat(int from, const char *name, int to, const char *other)
{
    return fault_call() ? -1 : (int)syscall(SYS_renameat2, from, name, to, other, 0);
}

int renameat2(int from, const char *name, int to, const char *other, unsigned flags)
{
    if (fault_call())
        return -1;
    if (fault.no_exchange) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_renameat2, from, name, to, other, flags);
}

int linkat(int from, const char *name, int to, const char *other, int flags)
{
    if (fault_call())
        return -1;
    if (fault.no_links) {
        errno = EPERM;
        return -1;
    }
    return (int)syscall(SYS_linkat, from, name, to, other, flags);
}

int unlinkat(int folder, const char *name, int flags)
{
    if (fault.kind == FAULT_KILL && fault_call())
        return -1;
    return (int)syscall(SYS_unlinkat, folder, name, flags);
}

/* --- what is done ------------------------------------------------------------------------------
 */

enum deed { DEED_PACK, DEED_REPLACE, DEED_APPEND, DEED_COMPACT, DEED_RESCALE };

static stk_status do_deed(struct series_test *test, enum deed deed)
{
    test->options.append = deed == DEED_APPEND || deed == DEED_COMPACT;
    test->options.force = deed == DEED_REPLACE;
    if (deed == DEED_RESCALE)
        return stk_series_rescale(NULL, test->out, STK_SCALER_MINMAX, NULL, &test->err);
    return series_pack(test, deed == DEED_REPLACE ? &all : deed == DEED_PACK ? &before : &added);
}

/* COMPACT: rows are added twice, so that more would be unused than used. */
static void make_given(enum deed deed)
{
    memset(&before, 0, sizeof(before));
    memset(&added, 0, sizeof(added));
    given_entities(&before, 0, 4, 30, 0, 0);
    if (deed == DEED_COMPACT)
        given_entities(&before, 0, 3, 1, 3000, 0);
    all = before;
    given_entities(&added, 0, 3, 5, 5000, 0);
    if (deed != DEED_COMPACT)
        given_entities(&added, 4, 6, 12, 0, 0);
    given_entities(&all, 0, 3, 5, 5000, 0);
    if (deed != DEED_COMPACT)
        given_entities(&all, 4, 6, 12, 0, 0);
}

/* The series before the deed. */
static void make_old(struct series_test *test, enum deed deed)
{
    series_begin(test);
    test->options.threads = 1;
    test->options.split = "0.7,0.3";
    test->options.scale = deed == DEED_RESCALE ? STK_SCALE_LATE : STK_SCALE_STORED;
    if (deed == DEED_PACK)
        return;
    if (deed == DEED_COMPACT) { /* rows moved once already: 90 of them are unused */
        struct given first = before, second = {0};
        first.rows = 120;
        given_entities(&second, 0, 3, 1, 3000, 0);
        series_good(test, series_pack(test, &first));
        test->options.append = 1;
        series_good(test, series_pack(test, &second));
    } else {
        series_good(test, series_pack(test, &before));
    }
    text_write(path_in(test->out, "scaler.joblib"), "joblib");
}

enum seen { SEEN_NONE, SEEN_OLD, SEEN_NEW };

static enum seen look(const struct series_test *test, enum deed deed)
{
    struct found found;
    enum seen seen;

    if (access(test->out, F_OK))
        return SEEN_NONE;
    found_load(&found, test);
    if (deed == DEED_RESCALE)
        seen = found.meta.scaler.kind == SCALER_MINMAX ? SEEN_NEW : SEEN_OLD;
    else
        seen = found.meta.rows - found.meta.unused_rows == before.rows ? SEEN_OLD : SEEN_NEW;
    int is_all = seen == SEEN_NEW && deed != DEED_RESCALE;
    found_check(&found, is_all ? &all : &before, is_all && deed != DEED_COMPACT ? 6 : 4);
    for (uint64_t i = 0; i < found.meta.entity_count; i++) { /* the split covers every row */
        const struct series_range *range = &found.meta.ranges[2 * i];
        assert_int_equal(range[0].start, found.meta.entities[i].start);
        assert_int_equal(range[0].end, range[1].start);
        assert_int_equal(range[1].end, found.meta.entities[i].end);
    }
    found_free(&found);
    return deed == DEED_PACK ? SEEN_NEW : seen;
}

/* --- kills ---------------------------------------------------------------------------------------
 */

/* Not 0: the deed was done before the call came. */
static int killed_at(struct series_test *test, enum deed deed, long call)
{
    int ended;
    pid_t child = fork();

    assert_true(child >= 0);
    if (!child) {
        fault.kind = FAULT_KILL;
        fault.left = call;
        _exit(do_deed(test, deed) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) != 1);
    return WEXITSTATUS(ended) == 0;
}

static void kill_at_every_call(enum deed deed)
{
    int done = 0, olds = 0, news = 0;

    make_given(deed);
    for (long call = 1; !done; call++) {
        struct series_test test;
        assert_true(call < 1000);
        make_old(&test, deed);
        done = killed_at(&test, deed, call);
        enum seen seen = look(&test, deed);
        if (fault.no_exchange && seen == SEEN_NONE && deed != DEED_PACK)
            assert_true(access(path_in(test.folder, ".out.old"), F_OK) == 0);
        else if (deed != DEED_PACK)
            assert_int_not_equal(seen, SEEN_NONE);
        if (done)
            assert_int_equal(seen, SEEN_NEW);
        olds += seen != SEEN_NEW;
        news += seen == SEEN_NEW;
        if (call % 2 && !done) { /* every other time is enough of what follows */
            series_end(&test);
            continue;
        }
        /* Whoever comes next finds nothing in the way, and clears away what is left. */
        stk_status status = do_deed(&test, deed);
        if (seen != SEEN_NEW || deed == DEED_REPLACE || deed == DEED_RESCALE)
            series_good(&test, status);
        else
            assert_int_not_equal(status, STK_OK); /* it is there; its rows are no newer ones */
        assert_int_equal(look(&test, deed), SEEN_NEW);
        assert_true(access(path_in(test.out, SERIES_JOURNAL), F_OK) != 0);
        folder_is_clean(&test);
        series_end(&test);
    }
    assert_true(olds > 5 && news > 0);
}

static void a_new_series_is_whole_or_not_there(void **state)
{
    (void)state;
    kill_at_every_call(DEED_PACK);
}

static void a_replaced_series_is_the_old_or_the_new_one(void **state)
{
    (void)state;
    kill_at_every_call(DEED_REPLACE);
}

static void a_series_added_to_is_the_old_or_the_new_one(void **state)
{
    (void)state;
    kill_at_every_call(DEED_APPEND);
}

static void a_series_written_anew_is_the_old_or_the_new_one(void **state)
{
    (void)state;
    kill_at_every_call(DEED_COMPACT);
}

static void a_series_scaled_anew_has_the_old_or_the_new_scaler(void **state)
{
    (void)state;
    kill_at_every_call(DEED_RESCALE);
}

static void without_exchange_the_old_series_comes_back(void **state)
{
    (void)state;
    fault.no_exchange = 1;
    kill_at_every_call(DEED_REPLACE);
    fault.no_exchange = 0;
}

static void without_links_the_array_is_written_anew(void **state)
{
    (void)state;
    fault.no_links = 1;
    kill_at_every_call(DEED_APPEND);
    fault.no_links = 0;
}

/* --- failures ------------------------------------------------------------------------------------
 */

static void fail_at_every_call(enum deed deed, int number)
{
    int hit = 1, failed = 0;

    make_given(deed);
    for (long call = 1; hit; call++) {
        struct series_test test;
        assert_true(call < 1000);
        make_old(&test, deed);
        fault.kind = FAULT_FAIL;
        fault.left = call;
        fault.number = number;
        fault.hit = 0;
        stk_status status = do_deed(&test, deed);
        fault.kind = FAULT_NONE;
        hit = fault.hit;
        enum seen seen = look(&test, deed);
        if (status) {
            assert_true(hit && test.err.what[0] && test.err.status == status);
            failed++;
        } else {
            assert_int_equal(seen, SEEN_NEW);
        }
        if (status && seen == SEEN_OLD)
            assert_true(access(path_in(test.out, SERIES_JOURNAL), F_OK) != 0);
        folder_is_clean(&test);
        series_end(&test);
    }
    assert_true(failed > 5);
}

static void a_full_disk_leaves_the_old_series(void **state)
{
    (void)state;
    for (enum deed deed = DEED_PACK; deed <= DEED_RESCALE; deed++)
        fail_at_every_call(deed, ENOSPC);
}

static void a_broken_disk_leaves_the_old_series(void **state)
{
    (void)state;
    fail_at_every_call(DEED_REPLACE, EIO);
    fail_at_every_call(DEED_APPEND, EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_series_is_whole_or_not_there),
        cmocka_unit_test(a_replaced_series_is_the_old_or_the_new_one),
        cmocka_unit_test(a_series_added_to_is_the_old_or_the_new_one),
        cmocka_unit_test(a_series_written_anew_is_the_old_or_the_new_one),
        cmocka_unit_test(a_series_scaled_anew_has_the_old_or_the_new_scaler),
        cmocka_unit_test(without_exchange_the_old_series_comes_back),
        cmocka_unit_test(without_links_the_array_is_written_anew),
        cmocka_unit_test(a_full_disk_leaves_the_old_series),
        cmocka_unit_test(a_broken_disk_leaves_the_old_series),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
