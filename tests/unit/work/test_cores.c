#include "base/testing.h"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "work/cores.h"

static char folder[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    folder_new(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

/* Writes text to a file under the false root, making the folders above it. */
static void put(const char *name, const char *text)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(path, 0700);
    }
    text_write(path, text);
}

static int start_root(void **state)
{
    (void)state;
    folder_remove(folder);
    return mkdir(folder, 0700);
}

static void without_a_cgroup_there_is_no_quota(void **state)
{
    (void)state;
    assert_int_equal(cores_quota(folder), 0);
    put("proc/self/cgroup", "0::/\n");
    assert_int_equal(cores_quota(folder), 0);
    put("sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_int_equal(cores_quota(folder), 0);
}

static void a_v2_quota_is_rounded_up(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/\n");
    put("sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_int_equal(cores_quota(folder), 3);
    put("sys/fs/cgroup/cpu.max", "1000 100000\n");
    assert_int_equal(cores_quota(folder), 1);
    put("sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(cores_quota(folder), 2);
}

static void the_least_quota_on_the_way_up_counts(void **state)
{
    (void)state;
    put("proc/self/cgroup", "0::/a/b/c\n");
    put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
    put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    put("sys/fs/cgroup/a/b/c/cpu.max", "800000 100000\n");
    assert_int_equal(cores_quota(folder), 2);
    put("proc/self/cgroup", "0::/not/mounted/here\n");
    put("sys/fs/cgroup/cpu.max", "500000 100000\n");
    assert_int_equal(cores_quota(folder), 5);
}

static void a_v1_quota_is_found(void **state)
{
    (void)state;
    put("proc/self/cgroup", "12:memory:/x\n4:cpu,cpuacct:/docker/x\n1:name=systemd:/\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cores_quota(folder), 0);
    put("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "350000\n");
    put("sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cores_quota(folder), 4);
}

static void strange_files_are_no_quota(void **state)
{
    (void)state;
    put("proc/self/cgroup", "nonsense\n::\n0:\n0::/\n");
    static const char *const strange[] = {"",         "x y",    "-5 100000",
                                          "100000 0", "100000", "99999999999999999999 1"};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        put("sys/fs/cgroup/cpu.max", strange[i]);
        uint32_t quota = cores_quota(folder);
        assert_true(quota == 0 || quota == UINT32_MAX);
    }
}

static void affinity_bounds_the_cores(void **state)
{
    (void)state;
    cpu_set_t before, one;
    uint32_t all = cores_usable();
    assert_true(all >= 1);
    assert_int_equal(cores_share(0), all);
    assert_int_equal(cores_share(1), all);
    assert_int_equal(cores_share(1000000), 1);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int core = 0;
    while (!CPU_ISSET(core, &before))
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(cores_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

struct seen {
    char name[16];
    int cores, nice, blocked_term, blocked_bus;
};

static void *look_around(void *user)
{
    struct seen *seen = user;
    cpu_set_t set;
    sigset_t mask;
    pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
    sched_getaffinity(0, sizeof set, &set);
    seen->cores = CPU_COUNT(&set);
    seen->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    seen->blocked_term = sigismember(&mask, SIGTERM);
    seen->blocked_bus = sigismember(&mask, SIGBUS) || sigismember(&mask, SIGSEGV);
    return user;
}

static void a_thread_is_named_placed_and_deaf_to_signals(void **state)
{
    (void)state;
    struct seen seen = {0};
    pthread_t thread;
    void *result;
    sigset_t mask;
    int nice_before = getpriority(PRIO_PROCESS, 0);
    struct cores_place place = {.number = 5, .pin = 1, .nice = 3, .name = "a-name-longer-than-15"};
    assert_int_equal(cores_start(&thread, look_around, &seen, &place, NULL), STK_OK);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, &seen);
    assert_string_equal(seen.name, "a-name-longer-t");
    assert_int_equal(seen.cores, 1);
    assert_int_equal(seen.nice, nice_before + 3 < 19 ? nice_before + 3 : 19);
    assert_true(seen.blocked_term && !seen.blocked_bus);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM)); /* ours is as it was */
    assert_int_equal(getpriority(PRIO_PROCESS, 0), nice_before);
}

static void fault_87_a_thread_that_cannot_be_started_is_a_status(void **state)
{
    (void)state;
    pthread_attr_t before, huge;
    struct seen seen;
    pthread_t thread;
    struct stk_error err;
    struct cores_place place = {.name = "x"};
    pthread_getattr_default_np(&before);
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, (size_t)1 << 46); /* more than there are addresses */
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    stk_status status = cores_start(&thread, look_around, &seen, &place, &err);
    pthread_setattr_default_np(&before);
    assert_int_equal(status, STK_RESOURCE);
    assert_int_equal(err.status, STK_RESOURCE);
    assert_non_null(strstr(err.remedy, "fewer threads"));
    pthread_attr_destroy(&before);
    pthread_attr_destroy(&huge);
}

static int start_once(void *user)
{
    struct seen seen;
    pthread_t thread;
    struct cores_place place = {.name = "x"};
    (void)user;
    stk_status status = cores_start(&thread, look_around, &seen, &place, NULL);
    if (!status)
        pthread_join(thread, NULL);
    return status == STK_OK;
}

static void fault_85_a_failed_allocation_is_a_status(void **state)
{
    (void)state;
    fail_each_allocation(start_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_cgroup_there_is_no_quota, start_root),
        cmocka_unit_test_setup(a_v2_quota_is_rounded_up, start_root),
        cmocka_unit_test_setup(the_least_quota_on_the_way_up_counts, start_root),
        cmocka_unit_test_setup(a_v1_quota_is_found, start_root),
        cmocka_unit_test_setup(strange_files_are_no_quota, start_root),
        cmocka_unit_test(affinity_bounds_the_cores),
        cmocka_unit_test(a_thread_is_named_placed_and_deaf_to_signals),
        cmocka_unit_test(fault_87_a_thread_that_cannot_be_started_is_a_status),
        cmocka_unit_test(fault_85_a_failed_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
