#include "net/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/credentials.h"
#include "net/net.h"

#define PRINTS_MOST 65536
#define POLL_MS 100

extern char **environ;

/* Its own group, so that whatever it starts ends with it. 0 or errno. */
static int start(char *const words[], int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    int number = posix_spawn_file_actions_init(&files);
    if (number)
        return number;
    number = posix_spawnattr_init(&how);
    if (number) {
        posix_spawn_file_actions_destroy(&files);
        return number;
    }
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setpgroup(&how, 0);
    number = posix_spawnp(pid, words[0], &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return number;
}

static int is_over(int64_t until_ns)
{
    struct net_patience patience = net_patience();
    return clock_now() > until_ns || (patience.is_over && patience.is_over(patience.user));
}

/* All that it prints, as long as it may take. 0: too long in bytes or in time. */
static int read_output(int fd, struct text *out, int64_t until_ns)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (is_over(until_ns) || out->cap - out->len < 2)
            return 0;
        if (poll(&ready, 1, POLL_MS) <= 0)
            continue;
        ssize_t got = read(fd, out->data + out->len, out->cap - out->len - 1);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got == 0;
        out->len += (size_t)got;
        out->data[out->len] = '\0';
    }
}

/* Waits for its end, which is forced where it is late. */
static struct program_result wait_for(pid_t pid, int64_t until_ns, int is_late)
{
    int status = 0;
    for (;;) {
        if (!is_late && is_over(until_ns))
            is_late = 1;
        if (is_late)
            kill(-pid, SIGKILL);
        pid_t got = waitpid(pid, &status, is_late ? 0 : WNOHANG);
        if (got == pid)
            break;
        if (got < 0 && errno != EINTR) /* the program takes no notice of its children */
            return (struct program_result){is_late ? PROGRAM_LATE : PROGRAM_ENDED, 0};
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    if (is_late)
        return (struct program_result){PROGRAM_LATE, 0};
    return (struct program_result){PROGRAM_ENDED, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

struct program_result program_run(char *const words[], int64_t limit_ns, struct text *out)
{
    int64_t until_ns = clock_now() + limit_ns;
    int ends[2];
    pid_t pid;
    if (!secret_text_reserve(out, PRINTS_MOST))
        return (struct program_result){PROGRAM_NO_MEMORY, 0};
    if (pipe2(ends, O_CLOEXEC))
        return (struct program_result){PROGRAM_NOT_RUN, errno};
    int number = start(words, ends[1], &pid);
    close(ends[1]);
    if (number) {
        close(ends[0]);
        return (struct program_result){PROGRAM_NOT_RUN, number};
    }
    int whole = read_output(ends[0], out, until_ns);
    close(ends[0]);
    return wait_for(pid, until_ns, !whole);
}
