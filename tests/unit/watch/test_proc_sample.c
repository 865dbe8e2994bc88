#include "base/testing.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "watch/machine_sample.h"
#include "watch/process_tree.h"

/* --- texts ------------------------------------------------------------------------------------ */

static void a_name_with_blanks_and_parentheses_does_not_shift_the_fields(void **state)
{
    static const char text[] =
        "42 (a) b (c)) S 7 42 42 0 -1 4194304 11 12 13 14 150 160 17 18 20 0 5 0 9000 1000000 77 "
        "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 33 0 0 0 0 0 0 0 0 0 0\n";
    struct proc_stat stat;
    (void)state;
    assert_true(proc_parse_stat(text, strlen(text), &stat));
    assert_string_equal(stat.name, "a) b (c)");
    assert_int_equal(stat.state, 'S');
    assert_int_equal(stat.parent, 7);
    assert_int_equal(stat.minor_faults, 11);
    assert_int_equal(stat.children_faults, 12);
    assert_int_equal(stat.major_faults, 13);
    assert_int_equal(stat.user, 150);
    assert_int_equal(stat.system, 160);
    assert_int_equal(stat.children, 35);
    assert_int_equal(stat.threads, 5);
    assert_int_equal(stat.started, 9000);
    assert_int_equal(stat.rss_pages, 77);
    assert_int_equal(stat.blocked, 33);
}

static void texts_that_are_cut_short_are_refused(void **state)
{
    struct proc_stat stat;
    struct proc_io io;
    uint64_t cpu, delay;
    (void)state;
    assert_false(proc_parse_stat("", 0, &stat));
    assert_false(proc_parse_stat("42 (a", 5, &stat));
    assert_false(proc_parse_stat("42 (a) S 1 2", 12, &stat));
    assert_false(proc_parse_schedstat("12", 2, &cpu, &delay));
    assert_false(proc_parse_io("rchar: 5\n", 9, &io));
}

static void io_tells_what_was_read_by_calls_and_from_the_disk(void **state)
{
    static const char text[] = "rchar: 10\nwchar: 20\nsyscr: 1\nsyscw: 2\nread_bytes: 30\n"
                               "write_bytes: 40\ncancelled_write_bytes: 50\n";
    struct proc_io io;
    (void)state;
    assert_true(proc_parse_io(text, strlen(text), &io));
    assert_int_equal(io.read_calls, 10);
    assert_int_equal(io.write_calls, 20);
    assert_int_equal(io.read, 30);
    assert_int_equal(io.written, 40);
}

static void only_whole_disks_count(void **state)
{
    static const char text[] = "   8       0 sda 1 0 10 0 1 0 20 0 0 0 0\n"
                               "   8       1 sda1 1 0 10 0 1 0 20 0 0 0 0\n"
                               " 259       0 nvme0n1 1 0 100 0 1 0 200 0 0 0 0\n"
                               " 259       1 nvme0n1p1 1 0 100 0 1 0 200 0 0 0 0\n"
                               "   7       0 loop0 1 0 1000 0 1 0 1000 0 0 0 0\n"
                               " 253       0 dm-0 1 0 1000 0 1 0 1000 0 0 0 0\n";
    uint64_t read, written;
    (void)state;
    assert_true(machine_parse_disks(text, strlen(text), &read, &written));
    assert_int_equal(read, 110 * 512);
    assert_int_equal(written, 220 * 512);
    static const char none[] = "   7       0 loop0 1 0 1000 0 1 0 1000 0 0 0 0\n";
    assert_false(machine_parse_disks(none, strlen(none), &read, &written));
    assert_false(machine_parse_disks("", 0, &read, &written));
}

static void the_loopback_is_no_network(void **state)
{
    static const char text[] = "Inter-|   Receive  |  Transmit\n"
                               " face |bytes packets errs drop fifo frame compressed multicast|"
                               "bytes packets\n"
                               "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
                               "  eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n"
                               "wlan0:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n";
    uint64_t in, out;
    (void)state;
    assert_true(machine_parse_network(text, strlen(text), &in, &out));
    assert_int_equal(in, 15);
    assert_int_equal(out, 26);
    static const char alone[] = "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n";
    assert_true(machine_parse_network(alone, strlen(alone), &in, &out));
    assert_int_equal(in + out, 0);
    assert_false(machine_parse_network("", 0, &in, &out));
}

static void a_long_text_is_read_to_its_end_in_whole_lines(void **state)
{
    static char text[65536], part[5000];
    (void)state;
    assert_true(proc_read("/proc/self/smaps", text, sizeof text) < 4096); /* a page of it */
    size_t len = proc_read_lines("/proc/self/smaps", text, sizeof text);
    assert_true(len > 8192 && text[len - 1] == '\n' && strlen(text) == len);
    len = proc_read_lines("/proc/self/smaps", part, sizeof part);
    assert_true(len > 4096 && len < sizeof part && part[len - 1] == '\n');
    assert_int_equal(proc_read_lines("/proc/no-such-file", part, sizeof part), 0);
}

/* Disks and network are told with the time that they took, and not in between. */
static void disks_and_network_are_told_once_a_second_and_at_the_end(void **state)
{
    struct machine_sample sample;
    struct watch_machine told;
    const uint64_t second = 1000000000;
    (void)state;
    machine_sample_open(&sample, second);
    unsigned known = sample.told;
    sample.disk_read = sample.network_in = 0; /* all since boot is new */
    machine_sample_take(&sample, second * 5 / 4, MACHINE_LOOK, &told);
    assert_true(!told.told && !told.disk_read_bytes && !told.network_in_bytes);
    machine_sample_take(&sample, second * 3 / 2, MACHINE_LOOK_LAST, &told);
    assert_int_equal(told.told, known);
    assert_int_equal(told.io_ns, second / 2);
    assert_true(!(known & MACHINE_NETWORK) || told.network_in_bytes == sample.network_in);
    sample.told = 0; /* a look that failed */
    machine_sample_take(&sample, second * 3, MACHINE_LOOK, &told);
    assert_true(!told.told && !told.disk_read_bytes && !told.network_in_bytes);
    machine_sample_take(&sample, second * 4, MACHINE_LOOK, &told);
    assert_true(told.told == known && told.io_ns == second);
}

static void busy_is_neither_idle_nor_waiting_nor_stolen(void **state)
{
    static const char text[] = "cpu  1 2 3 1000 50 4 5 600 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    uint64_t busy, iowait;
    (void)state;
    assert_true(machine_parse_cpu(text, strlen(text), &busy, &iowait));
    assert_int_equal(busy, 15);
    assert_int_equal(iowait, 50);
    assert_int_equal(machine_parse_memory("MemTotal:  8 kB\n", 16, "MemTotal:"), 8192);
    assert_true(machine_memory() > 1 << 20);
}

/* --- processes -------------------------------------------------------------------------------- */

struct seen {
    uint64_t cpu, calls;
    uint32_t threads;
};

static void take_thread(void *user, uint32_t pid, uint64_t start, uint64_t end,
                        const struct watch_thread *thread)
{
    struct seen *seen = user;
    assert_int_equal(pid, getpid());
    assert_true(start < end && thread->thread != 0);
    seen->cpu += thread->cpu_ns;
    seen->calls++;
}

static void work(int64_t ns)
{
    struct timespec from, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

static void *work_and_wait(void *user)
{
    work(60000000);
    pthread_barrier_wait(user);
    pthread_barrier_wait(user);
    return NULL;
}

static void threads_are_told_with_what_they_used(void **state)
{
    struct proc_sample sample;
    struct watch_use use;
    struct seen seen = {0};
    int budget = 3; /* less than it could keep open */
    uint64_t start;
    pthread_t thread;
    pthread_barrier_t barrier;
    (void)state;
    uint64_t begun = (uint64_t)clock_now();
    assert_true(proc_sample_open(&sample, (uint32_t)getpid(), begun, &budget));
    assert_int_equal(budget, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, work_and_wait, &barrier), 0);
    work(60000000);
    pthread_barrier_wait(&barrier);
    uint64_t now = (uint64_t)clock_now();
    proc_sample_list(&sample, begun);
    proc_sample_threads(&sample, now, take_thread, &seen);
    assert_int_equal(sample.thread_count, 2);
    assert_true(seen.calls >= 1);
    assert_true(seen.cpu >= 40000000); /* of the main thread; the other was found with its use */
    assert_true(proc_sample_use(&sample, now, &start, &use));
    assert_int_equal(start, begun);
    assert_int_equal(use.threads, 2);
    assert_true(use.cpu_user_ns + use.cpu_system_ns >= 60000000 && use.rss_bytes > 0);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    proc_sample_close(&sample);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(budget, 3);
}

struct named {
    struct watch_thread last[2]; /* of the main thread, of the other */
    uint64_t calls;
};

static void take_named(void *user, uint32_t pid, uint64_t start, uint64_t end,
                       const struct watch_thread *thread)
{
    struct named *named = user;
    (void)start;
    (void)end;
    named->last[thread->thread != pid] = *thread;
    named->calls++;
}

static void *work_twice(void *user)
{
    work(60000000);
    pthread_barrier_wait(user);
    pthread_barrier_wait(user);
    pthread_setname_np(pthread_self(), "named late");
    work(20000000);
    pthread_barrier_wait(user);
    pthread_barrier_wait(user);
    return NULL;
}

static void a_thread_is_told_from_its_birth_and_a_process_from_when_it_is_watched(void **state)
{
    struct proc_sample sample;
    struct named named = {0};
    int budget = 3;
    pthread_t thread;
    pthread_barrier_t barrier;
    (void)state;
    work(200000000);
    assert_true(proc_sample_open(&sample, (uint32_t)getpid(), 1, &budget));
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, work_twice, &barrier), 0);
    pthread_barrier_wait(&barrier);
    proc_sample_list(&sample, 2);
    proc_sample_threads(&sample, 3, take_named, &named);
    assert_int_equal(named.calls, 2); /* the other one does nothing any more, but is new */
    assert_true(named.last[0].cpu_sum_ns < 100000000);
    assert_true(named.last[1].cpu_sum_ns >= 60000000 && named.last[1].cpu_ns < 60000000);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    proc_sample_list(&sample, 4);
    for (uint64_t now = 5; now < 8; now++) /* one that did nothing is left out for a while */
        proc_sample_threads(&sample, now, take_named, &named);
    assert_true(named.last[1].cpu_sum_ns >= 80000000);
    assert_string_equal(named.last[1].name, "named late");
    proc_sample_from_birth(&sample);
    proc_sample_threads(&sample, 8, take_named, &named);
    assert_true(named.last[0].cpu_sum_ns >= 200000000);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    proc_sample_close(&sample);
    pthread_barrier_destroy(&barrier);
}

/* More than is in use at any look. */
static void the_most_memory_is_what_the_kernel_has_seen(void **state)
{
    struct proc_sample sample;
    struct watch_use use;
    const size_t size = (size_t)64 << 20;
    int budget = 3;
    uint64_t start;
    (void)state;
    assert_true(proc_sample_open(&sample, (uint32_t)getpid(), 1, &budget));
    char *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(bytes != MAP_FAILED);
    memset(bytes, 1, size);
    munmap(bytes, size);
    proc_sample_list(&sample, 2);
    assert_true(proc_sample_use(&sample, 3, &start, &use));
    assert_true(use.most_rss_bytes >= use.rss_bytes + size / 4 * 3);
    assert_true(use.minor_faults >= size / 4096 / 512); /* by pages of 2 MiB at the most */
    proc_sample_close(&sample);
}

static void what_a_process_does_not_tell_is_said(void **state)
{
    struct proc_sample sample;
    struct watch_use use;
    char text[8];
    int budget = 3;
    uint64_t start;
    (void)state;
    int counted = !proc_read("/proc/sys/kernel/task_delayacct", text, sizeof text) || *text != '0';
    assert_true(proc_sample_open(&sample, (uint32_t)getpid(), 1, &budget));
    assert_true(proc_sample_use(&sample, 2, &start, &use));
    assert_int_equal(use.told, counted ? (unsigned)USE_ALL : USE_ALL & ~(unsigned)USE_BLOCK);
    sample.told = USE_STAT;
    close(sample.io_fd);
    sample.io_fd = open("/dev/null", O_RDONLY); /* as of a process of another user */
    assert_true(proc_sample_use(&sample, 3, &start, &use));
    assert_int_equal(use.told, USE_STAT);
    assert_int_equal(use.read_calls_bytes, 0);
    proc_sample_close(&sample);
}

static void a_process_that_is_gone_is_told_as_gone(void **state)
{
    struct proc_sample sample;
    struct watch_use use;
    int budget = 10, status;
    uint64_t start;
    (void)state;
    pid_t child = fork();
    if (!child) {
        pause();
        _exit(0);
    }
    assert_true(proc_sample_open(&sample, (uint32_t)child, 1, &budget));
    assert_true(proc_sample_use(&sample, 2, &start, &use));
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(proc_sample_use(&sample, 3, &start, &use));
    proc_sample_close(&sample);
    assert_int_equal(budget, 10);
    assert_false(proc_sample_open(&sample, (uint32_t)child, 1, &budget));
}

static void children_and_theirs_are_found(void **state)
{
    struct process_tree tree;
    int ready[2], status;
    char byte;
    pid_t grandchild = 0;
    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (!child) {
        pid_t inner = fork();
        if (inner)
            assert_int_equal(write(ready[1], &inner, sizeof inner), sizeof inner);
        pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &grandchild, sizeof grandchild), sizeof grandchild);
    for (int listed = 0; listed < 2; listed++) { /* with the kernel's lists, and without */
        process_tree_init(&tree);
        tree.no_children |= listed;
        assert_non_null(process_tree_add(&tree, (uint32_t)child, 5));
        process_tree_scan(&tree, 6);
        assert_int_equal(tree.count, 2);
        const struct tree_process *found = process_tree_find(&tree, (uint32_t)grandchild);
        assert_non_null(found);
        assert_int_equal(found->about.parent, child);
        assert_true(strlen(found->about.name) > 0);
        process_tree_reset(&tree);
    }
    kill(grandchild, SIGKILL);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    (void)byte;
    close(ready[0]);
    close(ready[1]);
}

/* --- names ------------------------------------------------------------------------------------ */

#define NAME_OF(text) named(text, sizeof(text))
static const char *named(const char *cmdline, size_t len)
{
    static char name[PROCESS_NAME];
    process_name(cmdline, len, name);
    return name;
}

static void a_name_is_the_program_and_its_script_and_no_more(void **state)
{
    (void)state;
    assert_string_equal(NAME_OF("/usr/bin/python3.11\0-u\0/a/b/train.py\0--key\0secret"),
                        "python3.11 train.py");
    assert_string_equal(NAME_OF("python\0-m\0pkg.train\0--token=x"), "python -m pkg.train");
    assert_string_equal(NAME_OF("python\0-c\0print('secret')"), "python");
    assert_string_equal(NAME_OF("python\0-X\0dev\0t.py"), "python t.py");
    assert_string_equal(NAME_OF("mysql\0-psecret\0base"), "mysql");
    assert_string_equal(named("", 0), "");
}

#define FLAG_OF(text) process_python_flag(text, sizeof(text))
static void options_that_keep_the_hook_away_are_seen(void **state)
{
    (void)state;
    assert_int_equal(FLAG_OF("python\0-I\0t.py"), 'I');
    assert_int_equal(FLAG_OF("python\0-uS\0t.py"), 'S');
    assert_int_equal(FLAG_OF("python\0-X\0dev\0-E\0-m\0x"), 'E');
    assert_int_equal(FLAG_OF("python\0-u\0t.py\0-I"), 0);
    assert_int_equal(FLAG_OF("python\0-c\0x\0-S"), 0);
    assert_int_equal(FLAG_OF("python\0-X\0-I"), 0);
    assert_int_equal(FLAG_OF("python"), 0);
}

#define HOOKS(text) process_environment_hooks(text, sizeof(text) - 1)
static void an_environment_without_the_hooks_folder_is_seen(void **state)
{
    (void)state;
    assert_true(HOOKS("A=b\0STOKER_WATCH=/run/x\0PYTHONPATH=/run/x/site\0"));
    assert_true(HOOKS("PYTHONPATH=src:/run/x/site:lib\0STOKER_WATCH=/run/x\0"));
    assert_false(HOOKS("PYTHONPATH=src\0STOKER_WATCH=/run/x\0"));
    assert_false(HOOKS("STOKER_WATCH=/run/x\0MYPYTHONPATH=/run/x/site\0"));
    assert_false(HOOKS("PYTHONPATH=/run/x/site\0"));
    assert_false(HOOKS(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_with_blanks_and_parentheses_does_not_shift_the_fields),
        cmocka_unit_test(texts_that_are_cut_short_are_refused),
        cmocka_unit_test(io_tells_what_was_read_by_calls_and_from_the_disk),
        cmocka_unit_test(only_whole_disks_count),
        cmocka_unit_test(the_loopback_is_no_network),
        cmocka_unit_test(a_long_text_is_read_to_its_end_in_whole_lines),
        cmocka_unit_test(disks_and_network_are_told_once_a_second_and_at_the_end),
        cmocka_unit_test(busy_is_neither_idle_nor_waiting_nor_stolen),
        cmocka_unit_test(threads_are_told_with_what_they_used),
        cmocka_unit_test(a_thread_is_told_from_its_birth_and_a_process_from_when_it_is_watched),
        cmocka_unit_test(the_most_memory_is_what_the_kernel_has_seen),
        cmocka_unit_test(what_a_process_does_not_tell_is_said),
        cmocka_unit_test(a_process_that_is_gone_is_told_as_gone),
        cmocka_unit_test(children_and_theirs_are_found),
        cmocka_unit_test(a_name_is_the_program_and_its_script_and_no_more),
        cmocka_unit_test(options_that_keep_the_hook_away_are_seen),
        cmocka_unit_test(an_environment_without_the_hooks_folder_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
