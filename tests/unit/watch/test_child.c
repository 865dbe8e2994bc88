#include "base/testing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "watch/child.h"

static struct stk_error err;

static struct stk_watch_exit ran(const char *const *command)
{
    struct child child;
    struct stk_watch_exit out;
    assert_int_equal(child_start(&child, command, environ, &err), STK_OK);
    assert_true(child.pid > 0);
    assert_int_equal(child_wait(&child, &out, &err), STK_OK);
    assert_int_equal(kill(child.pid, 0), 0); /* /proc still tells of it */
    pid_t pid = child.pid;
    child_close(&child);
    child_close(&child); /* once more does nothing */
    assert_int_equal(kill(pid, 0), -1);
    return out;
}

#define SHELL(script) ran((const char *const[]){"sh", "-c", script, NULL})

static void the_exit_status_and_the_signal_are_those_of_the_command(void **state)
{
    (void)state;
    assert_int_equal(SHELL("exit 0").status, 0);
    assert_int_equal(SHELL("exit 77").status, 77);
    struct stk_watch_exit killed = SHELL("kill -TERM $$");
    assert_int_equal(killed.signal, SIGTERM);
    assert_int_equal(killed.status, 0);
}

static void a_command_that_is_not_there_is_told_as_such(void **state)
{
    struct child child;
    const char *const none[] = {"no-such-command", NULL}, *const path[] = {"/no/such", NULL};
    (void)state;
    assert_int_equal(child_start(&child, none, environ, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.what, "no-such-command: command not found"));
    assert_int_equal(child_start(&child, path, environ, &err), STK_NOT_FOUND);
    assert_non_null(strstr(err.what, "/no/such"));
}

static void what_is_no_program_is_denied_and_a_plain_script_runs(void **state)
{
    struct child child;
    char folder[PATH_MAX];
    (void)state;
    folder_new(folder);
    const char *const command[] = {path_in(folder, "script"), "4", NULL};
    const char *const directory[] = {folder, NULL};
    text_write(command[0], "exit $1\n");
    assert_int_equal(child_start(&child, command, environ, &err), STK_DENIED);
    assert_int_equal(child_start(&child, directory, environ, &err), STK_DENIED);
    assert_int_equal(chmod(command[0], 0700), 0);
    assert_int_equal(ran(command).status, 4);
    folder_remove(folder);
}

static void signals_are_the_default_ones_in_the_command(void **state)
{
    (void)state;
    /* SigIgn of the command's own status: bits of INT (2), QUIT (4), PIPE (1000), TERM (4000),
     * XFSZ (1000000) */
    struct sigaction before, ignore = {.sa_handler = SIG_IGN};
    assert_int_equal(
        SHELL("while read a b; do [ $a = SigIgn: ] && exit $((0x$b & 0x1005007 ? 1 : 0));"
              " done < /proc/self/status")
            .status,
        0);
    /* what was ignored before stays so: nohup */
    sigaction(SIGHUP, &ignore, &before);
    assert_int_equal(SHELL("kill -HUP $$; exit 5").status, 5);
    sigaction(SIGHUP, &before, NULL);
    assert_int_equal(SHELL("kill -HUP $$; exit 5").signal, SIGHUP);
}

static void python_ignores_a_closed_pipe_for_itself_only(void **state)
{
    struct sigaction pipe_before, size_before, ignore = {.sa_handler = SIG_IGN};
    (void)state;
    sigaction(SIGPIPE, &ignore, &pipe_before);
    assert_int_equal(SHELL("kill -PIPE $$; exit 5").status, 5); /* the user's wish */
    sigaction(SIGXFSZ, &ignore, &size_before);
    assert_int_equal(SHELL("kill -PIPE $$; exit 5").signal, SIGPIPE); /* Python's */
    sigaction(SIGPIPE, &pipe_before, NULL);
    sigaction(SIGXFSZ, &size_before, NULL);
}

static void the_mask_of_the_caller_is_that_of_the_command(void **state)
{
    sigset_t none, before, after;
    (void)state;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    assert_int_equal(SHELL("while read a b; do [ $a = SigBlk: ] && exit $((0x$b ? 1 : 0)); done "
                           "< /proc/self/status")
                         .status,
                     0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_false(sigismember(&after, SIGTERM));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *send_soon(void *user)
{
    const int *number = user;
    usleep(100000);
    kill(getpid(), *number);
    return NULL;
}

static void a_signal_sent_to_us_alone_goes_to_the_command(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        pthread_t thread;
        int number = numbers[i];
        assert_int_equal(pthread_create(&thread, NULL, send_soon, &number), 0);
        assert_int_equal(SHELL("exec sleep 10").signal, numbers[i]);
        pthread_join(thread, NULL);
    }
}

static void actions_are_put_back_after_the_end(void **state)
{
    struct sigaction action;
    (void)state;
    (void)SHELL("exit 0");
    const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], NULL, &action);
        assert_true(action.sa_handler == SIG_DFL);
    }
}

static void a_command_that_closes_its_streams_is_awaited(void **state)
{
    (void)state;
    assert_int_equal(SHELL("exec 0<&- 1>&- 2>&-; exit 6").status, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_exit_status_and_the_signal_are_those_of_the_command),
        cmocka_unit_test(a_command_that_is_not_there_is_told_as_such),
        cmocka_unit_test(what_is_no_program_is_denied_and_a_plain_script_runs),
        cmocka_unit_test(signals_are_the_default_ones_in_the_command),
        cmocka_unit_test(python_ignores_a_closed_pipe_for_itself_only),
        cmocka_unit_test(the_mask_of_the_caller_is_that_of_the_command),
        cmocka_unit_test(a_signal_sent_to_us_alone_goes_to_the_command),
        cmocka_unit_test(actions_are_put_back_after_the_end),
        cmocka_unit_test(a_command_that_closes_its_streams_is_awaited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
