#include "work/cores.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

/* The cores this process may run on; the kernel refuses a set that is too small for the machine.
 * The caller frees it. NULL: memory, or no such call. */
static cpu_set_t *allowed_cores(size_t *size)
{
    for (int count = 1024; count <= 1 << 20; count *= 2) {
        *size = CPU_ALLOC_SIZE(count);
        cpu_set_t *set = memory_zero(1, *size);
        if (!set)
            return NULL;
        if (sched_getaffinity(0, *size, set) == 0)
            return set;
        memory_free(set);
        if (errno != EINVAL)
            return NULL;
    }
    return NULL;
}

/* Reads a small file of the kernel's; 0 when there is none. */
static int read_small(const char *path, char *buf, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, buf, cap - 1);
    close(fd);
    if (len < 0)
        return 0;
    buf[len] = '\0';
    return 1;
}

/* quota / period rounded up; 0: no limit. */
static uint64_t whole_cores(long long quota, long long period)
{
    return quota > 0 && period > 0 ? ((uint64_t)quota - 1) / (uint64_t)period + 1 : 0;
}

static uint64_t folder_quota_v2(const char *folder)
{
    char path[PATH_MAX + 32], text[64];
    long long quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!read_small(path, text, sizeof text) || sscanf(text, "%lld %lld", &quota, &period) != 2)
        return 0; /* "max 100000": no limit */
    return whole_cores(quota, period);
}

static uint64_t folder_quota_v1(const char *folder)
{
    char path[PATH_MAX + 32], quota[64], period[64];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!read_small(path, quota, sizeof quota)) /* "-1": no limit */
        return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!read_small(path, period, sizeof period))
        return 0;
    return whole_cores(strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

static void keep_least(uint64_t *least, uint64_t cores)
{
    if (cores && (!*least || cores < *least))
        *least = cores;
}

/* A group is bound by its own quota and by those of all groups above it, up to the mount. In a
 * container the path may lie outside what is mounted; the mount's own files count then. */
static void walk_up(const char *mount, const char *group, uint64_t (*quota)(const char *folder),
                    uint64_t *least)
{
    char folder[PATH_MAX];
    size_t mount_len = strlen(mount);
    int len = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (len < 0 || (size_t)len >= sizeof folder)
        return;
    for (;;) {
        keep_least(least, quota(folder));
        char *slash = strrchr(folder + mount_len, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static int names_cpu(char *controllers)
{
    for (char *rest, *name = strtok_r(controllers, ",", &rest); name;
         name = strtok_r(NULL, ",", &rest)) {
        if (strcmp(name, "cpu") == 0)
            return 1;
    }
    return 0;
}

/* One line of /proc/self/cgroup: "0::/group" is version 2, "3:cpu,cpuacct:/group" version 1. */
static void line_quota(const char *root, char *line, uint64_t *least)
{
    static const char *const v1_mounts[] = {"cpu,cpuacct", "cpu"};
    char mount[PATH_MAX];
    char *controllers = strchr(line, ':'),
         *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    *controllers++ = '\0';
    *group++ = '\0';
    if (!controllers[0]) {
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        walk_up(mount, group, folder_quota_v2, least);
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/unified", root);
        walk_up(mount, group, folder_quota_v2, least);
    } else if (names_cpu(controllers)) {
        for (size_t i = 0; i < sizeof v1_mounts / sizeof v1_mounts[0]; i++) {
            snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, v1_mounts[i]);
            walk_up(mount, group, folder_quota_v1, least);
        }
    }
}

uint32_t cores_quota(const char *root)
{
    char path[PATH_MAX], text[8192];
    uint64_t least = 0;
    root = root ? root : "";
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (!read_small(path, text, sizeof text))
        return 0;
    for (char *rest, *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        line_quota(root, line, &least);
    return least < UINT32_MAX ? (uint32_t)least : UINT32_MAX;
}

uint32_t cores_usable(void)
{
    size_t size;
    cpu_set_t *set = allowed_cores(&size);
    long count = set ? CPU_COUNT_S(size, set) : sysconf(_SC_NPROCESSORS_ONLN);
    memory_free(set);
    uint32_t cores = count > 0 ? (uint32_t)count : 1, quota = cores_quota(NULL);
    return quota && quota < cores ? quota : cores;
}

uint32_t cores_share(uint32_t ranks)
{
    uint32_t share = cores_usable() / (ranks ? ranks : 1);
    return share ? share : 1;
}

struct start {
    void *(*run)(void *user);
    void *user;
    struct cores_place place;
    char name[16]; /* what Linux keeps */
};

/* On the number-th of the cores that are allowed. Left alone, two readers often share one. */
static void pin_thread(uint32_t number)
{
    size_t size;
    cpu_set_t *set = allowed_cores(&size);
    uint32_t count = set ? (uint32_t)CPU_COUNT_S(size, set) : 0;
    if (count > 1) {
        uint32_t left = number % count;
        size_t core = 0;
        while (!CPU_ISSET_S(core, size, set) || left--)
            core++;
        CPU_ZERO_S(size, set);
        CPU_SET_S(core, size, set);
        sched_setaffinity(0, size, set); /* 0: this thread */
    }
    memory_free(set);
}

/* What is not granted here (a place, a priority, a name) is not needed to run. */
static void *start_thread(void *argument)
{
    struct start start = *(struct start *)argument;
    memory_free(argument);
    pthread_setname_np(pthread_self(), start.name);
    if (start.place.pin)
        pin_thread(start.place.number);
    if (start.place.nice) {
        id_t thread = (id_t)gettid(); /* on Linux a nice value belongs to a thread */
        setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + start.place.nice);
    }
    return start.run(start.user);
}

/* A thread inherits the mask of the one that starts it. */
static int create_masked(pthread_t *thread, struct start *start)
{
    sigset_t blocked, before;
    sigfillset(&blocked);
    sigdelset(&blocked, SIGBUS);
    sigdelset(&blocked, SIGSEGV);
    sigdelset(&blocked, SIGFPE);
    sigdelset(&blocked, SIGILL);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    int number = pthread_create(thread, NULL, start_thread, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return number;
}

stk_status cores_start(pthread_t *thread, void *(*run)(void *), void *user,
                       const struct cores_place *place, struct stk_error *err)
{
    struct start *start = memory_zero(1, sizeof *start);
    if (!start)
        return fail_memory(err, sizeof *start);
    start->run = run;
    start->user = user;
    start->place = *place;
    snprintf(start->name, sizeof start->name, "%s", place->name ? place->name : "stoker");
    start->place.name = NULL; /* it may be gone by the time the thread runs */
    int number = create_masked(thread, start);
    if (!number)
        return STK_OK;
    memory_free(start);
    fail_errno(err, number, "cannot start a thread");
    fail_remedy(err,
                "use fewer threads, or raise ulimit -u, the container's pids limit or ulimit -v");
    if (err)
        err->status = STK_RESOURCE;
    return STK_RESOURCE;
}
