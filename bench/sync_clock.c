/* sync_clock.c -- put before a program by LD_PRELOAD: says how long it waited for the disk in fsync
 * and its kin, or leaves them out.
 *
 *     SYNC_CLOCK=count  they are called; the seconds in them are written to SYNC_CLOCK_FILE at exit
 *     SYNC_CLOCK=skip   they return at once
 *
 * Only measurements use it: what a program writes without them may not survive a power cut. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_llong waited_ns, calls;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int is_skipped(void)
{
    const char *mode = getenv("SYNC_CLOCK");
    atomic_fetch_add(&calls, 1);
    return mode && strcmp(mode, "skip") == 0;
}

static int timed_sync(const char *name, int fd)
{
    if (is_skipped())
        return 0;
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, name);
    long long begun = now_ns();
    int result = real(fd);
    atomic_fetch_add(&waited_ns, now_ns() - begun);
    return result;
}

int fsync(int fd)
{
    return timed_sync("fsync", fd);
}

int fdatasync(int fd)
{
    return timed_sync("fdatasync", fd);
}

int syncfs(int fd)
{
    return timed_sync("syncfs", fd);
}

/* Sends pages on their way early, and may wait for room in the disk's queue. */
int sync_file_range(int fd, off_t offset, off_t len, unsigned flags)
{
    if (is_skipped())
        return 0;
    int (*real)(int, off_t, off_t, unsigned);
    *(void **)&real = dlsym(RTLD_NEXT, "sync_file_range");
    long long begun = now_ns();
    int result = real(fd, offset, len, flags);
    atomic_fetch_add(&waited_ns, now_ns() - begun);
    return result;
}

__attribute__((destructor)) static void tell(void)
{
    const char *path = getenv("SYNC_CLOCK_FILE");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out)
        return;
    fprintf(out, "{\"sync_s\": %.6f, \"sync_calls\": %lld}\n", 1e-9 * (double)waited_ns,
            (long long)calls);
    fclose(out);
}
