#include "watch/child.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/memory.h"

/* The first ones are passed on; the next two are ignored, for what we write must not end us. */
static const int signals[CHILD_SIGNALS] = {SIGINT,  SIGQUIT, SIGTERM, SIGHUP, SIGUSR1,
                                           SIGUSR2, SIGPIPE, SIGXFSZ, SIGCHLD};
enum { PASSED_ON = 6, AT_PIPE = 6, AT_SIZE = 7 };

/* Whom the handler passes signals on to; 0: nobody. A handler has no other way to know. Written by
 * child_start and child_wait, while no handler of ours can read a pid that is not ours any more. */
static volatile sig_atomic_t receiver;

/* What the terminal sends goes to the whole group, so the command has it already. */
static void pass_on(int number, siginfo_t *about, void *context)
{
    int saved = errno;
    (void)context;
    if (receiver > 0 && about->si_code != SI_KERNEL)
        (void)kill((pid_t)receiver, number);
    errno = saved;
}

static void take_signals(struct child *child)
{
    for (int i = 0; i < CHILD_SIGNALS; i++) {
        struct sigaction action = {.sa_flags = SA_RESTART};
        (void)sigaction(signals[i], NULL, &child->before[i]);
        if (i < PASSED_ON && child->before[i].sa_handler == SIG_IGN)
            continue; /* nohup and its kin: so it is for the command */
        if (i < PASSED_ON) {
            action.sa_sigaction = pass_on;
            action.sa_flags |= SA_SIGINFO;
        } else {
            action.sa_handler = signals[i] == SIGCHLD ? SIG_DFL : SIG_IGN;
        }
        sigemptyset(&action.sa_mask);
        (void)sigaction(signals[i], &action, NULL);
    }
    child->kept = 1;
}

static void give_signals_back(struct child *child)
{
    for (int i = 0; i < CHILD_SIGNALS && child->kept; i++)
        (void)sigaction(signals[i], &child->before[i], NULL);
    child->kept = 0;
}

/* Signals that the command must find in their default action though they are ignored here. Handled
 * ones are reset by exec. Python ignores SIGPIPE and SIGXFSZ for itself: where both are ignored it
 * was Python, where one is, the user. */
static void default_signals(const struct child *child, sigset_t *out)
{
    int pipe_ignored = child->before[AT_PIPE].sa_handler == SIG_IGN;
    int size_ignored = child->before[AT_SIZE].sa_handler == SIG_IGN;
    sigemptyset(out);
    if (!pipe_ignored || size_ignored)
        sigaddset(out, SIGPIPE);
    if (!size_ignored || pipe_ignored)
        sigaddset(out, SIGXFSZ);
}

static int spawn(struct child *child, const char *const *command, char *const *environment)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    int result = posix_spawnattr_init(&attributes);
    if (result)
        return result;
    default_signals(child, &defaults);
    result = posix_spawnattr_setsigdefault(&attributes, &defaults);
    if (!result)
        result = posix_spawnattr_setsigmask(&attributes, &child->mask);
    if (!result)
        result =
            posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (!result) /* it changes no argument, whatever its type says */
        result = posix_spawnp(&child->pid, command[0], NULL, &attributes, (char *const *)command,
                              environment);
    posix_spawnattr_destroy(&attributes);
    return result;
}

/* The file that a name without a slash is found as. */
static const char *find_program(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    while (folders && !strchr(name, '/')) {
        int len = (int)strcspn(folders, ":");
        int size = snprintf(path, PATH_MAX, "%.*s%s/%s", len, folders, len ? "" : ".", name);
        if (size < PATH_MAX && !access(path, X_OK))
            return path;
        folders = folders[len] ? folders + len + 1 : NULL;
    }
    return name;
}

/* A script without its first line "#!": shells run it, so it runs here. */
static int spawn_script(struct child *child, const char *const *command, char *const *environment)
{
    char path[PATH_MAX];
    size_t count = 0;
    while (command[count])
        count++;
    const char **words = memory_zero(count + 2, sizeof *words);
    if (!words)
        return ENOMEM;
    words[0] = "/bin/sh";
    memcpy(words + 1, command, count * sizeof *words);
    words[1] = find_program(command[0], path);
    int result = spawn(child, words, environment);
    memory_free(words);
    return result;
}

static stk_status explain(const char *name, int number, struct stk_error *err)
{
    switch (number) {
    case ENOENT:
        if (strchr(name, '/'))
            return fail(err, STK_NOT_FOUND, "%s: no such file, or its interpreter is missing",
                        name);
        return fail(err, STK_NOT_FOUND, "%s: command not found", name);
    case EACCES:
    case EPERM:
    case ENOEXEC:
    case EISDIR:
    case ENOTDIR:
        return fail(err, STK_DENIED, "%s: it cannot be run: %s", name, strerror(number));
    default:
        return fail_errno(err, number, "starting %s", name);
    }
}

stk_status child_start(struct child *child, const char *const *command, char *const *environment,
                       struct stk_error *err)
{
    sigset_t passed_on;
    *child = (struct child){0};
    receiver = 0;
    /* One that comes while there is nobody to pass it on to has to wait. */
    sigemptyset(&passed_on);
    for (int i = 0; i < PASSED_ON; i++)
        sigaddset(&passed_on, signals[i]);
    (void)pthread_sigmask(SIG_BLOCK, &passed_on, &child->mask);
    take_signals(child);
    int result = spawn(child, command, environment);
    if (result == ENOEXEC)
        result = spawn_script(child, command, environment);
    if (result) {
        child->pid = 0;
        give_signals_back(child);
    }
    receiver = child->pid;
    (void)pthread_sigmask(SIG_SETMASK, &child->mask, NULL);
    return result ? explain(command[0], result, err) : STK_OK;
}

stk_status child_wait(struct child *child, struct stk_watch_exit *out, struct stk_error *err)
{
    siginfo_t about;
    int result;
    *out = (struct stk_watch_exit){0};
    do /* while it is a zombie its number is not another's */
        result = waitid(P_PID, (id_t)child->pid, &about, WEXITED | WNOWAIT);
    while (result && errno == EINTR);
    int number = errno;
    receiver = 0;
    give_signals_back(child);
    if (result)
        return fail_errno(err, number, "waiting for the command");
    if (about.si_code == CLD_EXITED)
        out->status = about.si_status;
    else
        out->signal = about.si_status;
    return STK_OK;
}

void child_close(struct child *child)
{
    while (child->pid > 0 && waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    child->pid = 0;
}
