#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "net/ask.h"
#include "net/aws_chain.h"
#include "net/flat_json.h"

#define MAX_WORDS 64
#define TIME_LIMIT_NS 60000000000LL
#define POLL_MS 100

extern char **environ;

/* Copies one word over itself without its quotes. Returns behind it; NULL: a quote does not end. */
static char *cut_word(char *from)
{
    char *to = from, quote = 0;
    for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
        if (quote && *from == quote)
            quote = 0;
        else if (!quote && (*from == '"' || *from == '\''))
            quote = *from;
        else if (*from == '\\' && quote != '\'' && from[1])
            *to++ = *++from;
        else
            *to++ = *from;
    }
    if (quote)
        return NULL;
    char *next = *from ? from + 1 : from;
    *to = '\0';
    return next;
}

int aws_process_split(char *command, char **words, int cap)
{
    int count = 0;
    for (;;) {
        while (*command && strchr(" \t\r\n", *command))
            command++;
        if (!*command)
            break;
        if (count + 1 >= cap)
            return -1;
        words[count++] = command;
        command = cut_word(command);
        if (!command)
            return -1;
    }
    words[count] = NULL;
    return count;
}

/* Starts it with its output in our pipe and nothing else of ours. */
static int spawn(char **words, int output, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    int number = posix_spawnp(pid, words[0], &files, &how, words, environ);
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

/* Its exit status; -1: it had to be ended, or its status went elsewhere. */
static int wait_for(pid_t pid, int64_t until_ns)
{
    int status = 0;
    for (;;) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (got < 0 && errno != EINTR)
            return errno == ECHILD ? 0 : -1; /* the program takes no notice of its children */
        if (is_over(until_ns)) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static stk_status run(char **words, struct text *out, struct stk_error *err)
{
    int64_t until_ns = clock_now() + TIME_LIMIT_NS;
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC))
        return fail_errno(err, errno, "no pipe for credential_process");
    int number = spawn(words, ends[1], &pid);
    close(ends[1]);
    if (number) {
        close(ends[0]);
        return fail_errno(err, number, "credential_process cannot be started: %.120s", words[0]);
    }
    int whole = read_output(ends[0], out, until_ns);
    close(ends[0]);
    int code = wait_for(pid, whole ? until_ns : 0);
    if (whole && !code)
        return STK_OK;
    fail(err, STK_DENIED,
         whole ? "credential_process %.120s ended with status %d"
               : "credential_process %.120s took longer than 60 s, or printed too much (%d)",
         words[0], code);
    fail_remedy(err, "run the profile's credential_process by hand");
    return STK_DENIED;
}

stk_status aws_process_find(const char *command, const char *profile, struct secret *out,
                            struct stk_error *err)
{
    char copy[4096], *words[MAX_WORDS], version[16];
    struct text printed = {0};
    if (!secret_set(copy, sizeof(copy), command, strlen(command)) ||
        aws_process_split(copy, words, MAX_WORDS) < 1)
        return fail(err, STK_DENIED, "credential_process of profile %.100s is no command line",
                    profile);
    if (!secret_text_reserve(&printed, ASK_MOST))
        return fail_memory(err, ASK_MOST);
    stk_status status = run(words, &printed, err);
    if (!status &&
        (!flat_json_get(printed.data, printed.len, "Version", version, sizeof(version)) ||
         strcmp(version, "1") ||
         !aws_secret_from_json(printed.data, printed.len, "SessionToken", out)))
        status = fail(err, STK_DENIED,
                      "credential_process of profile %.100s printed no credentials of version 1",
                      profile);
    secret_text_free(&printed);
    return aws_denied(status, err);
}
