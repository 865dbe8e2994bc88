#include "store/store_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"

/* The stand-in for a build without liburing, under another name. */
#define uring_queue_open uring_queue_open_absent
#include "store/uring_queue_absent.c"
#undef uring_queue_open

/* Asks again until the store looks at the file anew, which it does each tenth of a second. */
static stk_status read_until_it_changes(struct store_queue *queue, uint32_t object)
{
    stk_status status = STK_OK;
    for (int64_t start = clock_now(); !status && clock_now() - start < 10000000000;) {
        struct job job;
        job_init(&job, object, 0, 100, 1);
        status = read_one(queue, &job);
        free(job.data);
        usleep(5000);
    }
    return status;
}

static void fault_76_a_file_replaced_or_rewritten_is_stale(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct job job;
    struct stk_error err;
    char *other = calloc(1, size_of(5));
    file_write(path_in(folder, "new"), other, size_of(5)); /* never opened so far */
    assert_int_equal(rename(path_in(folder, "new"), path_in(folder, "5.bin")), 0);
    job_init(&job, 5, 0, 10, 1);
    assert_int_equal(read_one(queue, &job), STK_STALE);
    assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_STALE);
    assert_non_null(strstr(err.remedy, "indexed anew"));
    assert_non_null(strstr(err.object, "5.bin"));
    free(job.data);
    job_init(&job, 6, 0, 10, 1);
    assert_int_equal(read_one(queue, &job), STK_OK); /* open when another takes its name */
    free(job.data);
    file_write(path_in(folder, "new"), other, size_of(5));
    assert_int_equal(rename(path_in(folder, "new"), path_in(folder, "6.bin")), 0);
    assert_int_equal(read_until_it_changes(queue, 6), STK_STALE);
    job_init(&job, 7, 0, 10, 1);
    assert_int_equal(read_one(queue, &job), STK_OK); /* open when it is written over */
    free(job.data);
    file_write(path_in(folder, "7.bin"), other, size_of(7) < size_of(5) ? size_of(7) : size_of(5));
    assert_int_equal(read_until_it_changes(queue, 7), STK_STALE);
    free(other);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void a_file_cut_short_while_open_is_stale(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct job job;
    job_init(&job, 8, 0, 10, 1);
    assert_int_equal(read_one(queue, &job), STK_OK);
    free(job.data);
    assert_int_equal(truncate(path_in(folder, "8.bin"), 50), 0);
    job_init(&job, 8, 0, 200, 3);
    assert_int_equal(read_one(queue, &job), STK_STALE);
    free(job.data);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void what_is_gone_or_no_file_any_more_is_told(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    static const stk_status expected[] = {STK_NOT_FOUND, STK_STALE, STK_STALE, STK_NOT_FOUND};
    struct stk_error err;
    unlink(path_in(folder, "9.bin"));
    unlink(path_in(folder, "10.bin"));
    mkdir(path_in(folder, "10.bin"), 0700);
    unlink(path_in(folder, "11.bin"));
    assert_int_equal(mkfifo(path_in(folder, "11.bin"), 0600), 0); /* must not hang */
    for (uint32_t i = 0; i < 4; i++) {
        struct job job;
        job_init(&job, i < 3 ? 9 + i : OBJECTS, 0, 10, 1);
        assert_int_equal(read_one(queue, &job), expected[i]);
        assert_int_equal(store_explain(fixture->store, &job.read, &err), expected[i]);
        assert_int_equal(err.status, expected[i]);
        free(job.data);
    }
    store_queue_close(queue);
    fixture_free(fixture);
}

static void a_folder_exchanged_for_another_is_stale(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct job job;
    char old[PATH_MAX + 8];
    snprintf(old, sizeof old, "%s.old", folder);
    assert_int_equal(rename(folder, old), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    job_init(&job, 5, 0, 10, 1);
    assert_int_equal(read_one(queue, &job), STK_OK); /* the folder that we hold is still whole */
    free(job.data);
    folder_remove(old);
    job_init(&job, 6, 0, 10, 1); /* never opened so far */
    assert_int_equal(read_one(queue, &job), STK_STALE);
    free(job.data);
    store_queue_close(queue);
    fixture_free(fixture);
}

/* The system's answers, changed: what to do with the countdown-th one of a call. */
struct change {
    enum store_call call;
    int countdown, times;
    int64_t answer; /* > 0: at most so many bytes */
};

static int64_t change_answer(void *user, enum store_call call, int64_t result)
{
    struct change *change = user;
    if (call != change->call || change->countdown-- > 0 || change->times-- <= 0)
        return result;
    return change->answer > 0 && result < change->answer ? result : change->answer;
}

static stk_status read_changed(struct fixture *fixture, struct store_queue *queue,
                               struct change change, int *error_number)
{
    struct job job;
    job_init(&job, 12, 5, 900, 4);
    fixture->store->fault = (struct store_fault){change_answer, &change};
    stk_status status = read_one(queue, &job);
    fixture->store->fault = (struct store_fault){0};
    assert_true(status || job_is_right(&job));
    *error_number = job.read.error_number;
    free(job.data);
    return status;
}

static void fault_77_interrupted_and_short_reads_go_on_and_eio_does_not(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    int number;
    struct change change = {STORE_CALL_READ, 0, 3, -EINTR};
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_OK);
    change = (struct change){STORE_CALL_READ, 0, 100, 7}; /* seven bytes at a time */
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_OK);
    change = (struct change){STORE_CALL_READ, 0, 1, -EIO};
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_IO);
    assert_int_equal(number, EIO);
    change = (struct change){STORE_CALL_READ, 0, 1, 0}; /* an end where there is none */
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_TRUNCATED);
    change = (struct change){STORE_CALL_READ, 0, 1, -ENOMEM};
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_MEMORY);
    change = (struct change){STORE_CALL_READ, 100, 1, -EIO};
    assert_int_equal(read_changed(fixture, queue, change, &number), STK_OK);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void fault_86_without_free_descriptors_idle_files_are_closed_then_it_is_told(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct stk_error err;
    struct job job;
    struct change once = {STORE_CALL_OPEN, 0, 1, -EMFILE},
                  always = {STORE_CALL_OPEN, 0, 9, -EMFILE};
    job_init(&job, 13, 0, 10, 1);
    fixture->store->fault = (struct store_fault){change_answer, &once};
    assert_int_equal(read_one(queue, &job), STK_OK);
    free(job.data);
    job_init(&job, 14, 0, 10, 1);
    fixture->store->fault = (struct store_fault){change_answer, &always};
    assert_int_equal(read_one(queue, &job), STK_RESOURCE);
    assert_int_equal(store_explain(fixture->store, &job.read, &err), STK_RESOURCE);
    assert_non_null(strstr(err.remedy, "ulimit -n"));
    free(job.data);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void fault_86_a_real_limit_of_open_files_is_lived_with(void **state)
{
    struct fixture *fixture = fixture_new();
    struct store_queue *queue = queue_of(state, fixture, 4);
    struct rlimit before, tight;
    for (uint32_t i = 1; i < OBJECTS; i++) {
        struct job job;
        if (i == OBJECTS / 2) { /* no more from here on: only what is idle can make room */
            getrlimit(RLIMIT_NOFILE, &before);
            tight = (struct rlimit){(rlim_t)open_files(), before.rlim_max};
            assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
        }
        job_init(&job, i, 0, size_of(i), 1);
        assert_int_equal(read_one(queue, &job), STK_OK);
        assert_true(job_is_right(&job));
        free(job.data);
    }
    setrlimit(RLIMIT_NOFILE, &before);
    store_queue_close(queue);
    fixture_free(fixture);
}

static void fault_79_a_build_without_io_uring_says_so(void **state)
{
    (void)state;
    struct store_queue *queue;
    struct stk_error err;
    assert_int_equal(uring_queue_open_absent(NULL, 4, &queue, &err), STK_UNSUPPORTED);
    assert_null(queue);
    assert_non_null(strstr(err.remedy, "liburing"));
}

static void forbid_io_uring(int number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)number),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

static void fault_79_io_uring_blocked_by_seccomp_is_unsupported(void **state)
{
    (void)state;
    static const int numbers[] = {EPERM, ENOSYS, ENOMEM};
    struct fixture *fixture = fixture_new();
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct store_queue *queue;
            struct stk_error err = {0};
            forbid_io_uring(numbers[i]);
            stk_status status =
                store_queue_open(fixture->store, STORE_QUEUE_URING, 4, &queue, &err);
            _exit(status == STK_UNSUPPORTED && err.status == status && !queue ? 0 : 1);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result));
        assert_true(WEXITSTATUS(result) == 0 || WEXITSTATUS(result) == 77);
    }
    fixture_free(fixture);
}

struct attempt {
    struct fixture *fixture;
    enum store_queue_kind kind;
};

static int use_once(void *user)
{
    struct attempt *attempt = user;
    struct store *store;
    struct store_queue *queue = NULL;
    stk_status status = store_open(&store, &attempt->fixture->table, NULL, NULL);
    if (!status)
        status = store_queue_open(store, attempt->kind, 4, &queue, NULL);
    if (!status) {
        struct job job;
        job_init(&job, 17, 0, 100, 1);
        assert_int_equal(read_one(queue, &job), STK_OK);
        free(job.data);
        if (!store_map(store, 17))
            status = STK_MEMORY;
    }
    store_queue_close(queue);
    store_close(store);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    struct fixture *fixture = fixture_new();
    struct attempt attempt = {fixture, *(enum store_queue_kind *)*state};
    store_queue_close(queue_of(state, fixture, 4));
    fail_each_allocation(use_once, &attempt);
    fixture_free(fixture);
}

int main(void)
{
    enum store_queue_kind pread_kind = STORE_QUEUE_PREAD, uring_kind = STORE_QUEUE_URING;
    const struct CMUnitTest tests[] = {
        BOTH(fault_76_a_file_replaced_or_rewritten_is_stale),
        BOTH(a_file_cut_short_while_open_is_stale),
        BOTH(what_is_gone_or_no_file_any_more_is_told),
        BOTH(a_folder_exchanged_for_another_is_stale),
        BOTH(fault_77_interrupted_and_short_reads_go_on_and_eio_does_not),
        BOTH(fault_86_without_free_descriptors_idle_files_are_closed_then_it_is_told),
        BOTH(fault_86_a_real_limit_of_open_files_is_lived_with),
        BOTH(fault_85_a_failed_allocation_is_a_status),
        cmocka_unit_test(fault_79_a_build_without_io_uring_says_so),
        cmocka_unit_test(fault_79_io_uring_blocked_by_seccomp_is_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
