#include "net/azure_cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "net/credentials.h"

#define LIMIT_NS (INT64_C(20) * 1000000000)
#define MS INT64_C(1000000)
#define ANSWER_MOST (64u << 10)

extern char **environ;

/* Looks along PATH; folders that are not absolute are left out, as az itself is never in one. */
static int find_program(char path[PATH_MAX])
{
    const char *folders = getenv("PATH");

    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        if (folders[0] == '/' && length + 4 < PATH_MAX) {
            memcpy(path, folders, length);
            memcpy(path + length, "/az", 4);
            if (access(path, X_OK) == 0)
                return 1;
        }
        folders += length + (folders[length] == ':');
    }
    return 0;
}

/* Its own group, so that whatever az starts ends with it. 0 or errno. */
static int start(const char *path, char *const words[], int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int number = posix_spawn_file_actions_init(&actions);

    if (number)
        return number;
    number = posix_spawnattr_init(&attributes);
    if (number) {
        posix_spawn_file_actions_destroy(&actions);
        return number;
    }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    number = posix_spawn(pid, path, &actions, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return number;
}

/* 0: all of it came in time. */
static int collect(int fd, struct text *answer)
{
    int64_t end = clock_now() + LIMIT_NS;
    char buf[4096];
    ssize_t got = 1;

    while (got != 0 && answer->len <= ANSWER_MOST) {
        int64_t left = end - clock_now();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, (int)(left / MS) + 1) : 0;
        if (ready == 0)
            break;
        if (ready > 0)
            got = read(fd, buf, sizeof(buf));
        if (ready > 0 && got > 0)
            text_add(answer, buf, (size_t)got);
        else if ((ready < 0 || got < 0) && errno != EINTR)
            break;
    }
    secret_wipe(buf, sizeof(buf));
    return got == 0 && !answer->failed ? 0 : -1;
}

/* Waits for the end of a process that closed its output. Not 0: it failed. */
static int finish(pid_t pid, int is_late)
{
    int ended = 0;

    if (is_late)
        kill(-pid, SIGKILL);
    while (waitpid(pid, &ended, 0) < 0)
        if (errno != EINTR)
            return 0; /* somebody else takes the process's children: its output is all we know */
    return !WIFEXITED(ended) || WEXITSTATUS(ended) != 0;
}

stk_status azure_cli_token(const char *resource, struct text *answer, int *is_there,
                           struct stk_error *err)
{
    char path[PATH_MAX];
    char *const words[] = {"az",   "account",    "get-access-token", "--output",
                           "json", "--resource", (char *)resource,   NULL};
    int ends[2];
    pid_t pid;

    *is_there = find_program(path);
    if (!*is_there)
        return STK_OK;
    if (pipe2(ends, O_CLOEXEC))
        return fail_errno(err, errno, "cannot run az");
    int number = start(path, words, ends[1], &pid);
    close(ends[1]);
    if (number) {
        close(ends[0]);
        return fail_errno(err, number, "cannot run az");
    }
    int is_late = collect(ends[0], answer);
    close(ends[0]);
    int has_failed = finish(pid, is_late);
    if (!is_late && !has_failed && answer->len)
        return STK_OK;
    fail(err, STK_DENIED,
         is_late ? "az did not give a token in time" : "az is there and gave no token");
    fail_remedy(err, "run 'az login'; or set AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or "
                     "STOKER_AZURE_ANONYMOUS=1 for public data");
    return STK_DENIED;
}
