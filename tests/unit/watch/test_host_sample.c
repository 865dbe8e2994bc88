#include "base/testing.h"

#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "watch/host_sample.h"

#define SECOND UINT64_C(1000000000)

struct heard {
    struct watch_process last;
    char name[PROCESS_NAME];
    uint32_t ended;
    uint64_t processes, ends, threads, uses, machines, own_cpu, use_cpu, written;
    char notice[256];
};

static void hear(void *user, const struct watch_event *event)
{
    struct heard *heard = user;
    assert_true(event->start <= event->end);
    switch (event->type) {
    case EVENT_PROCESS:
        heard->processes++;
        heard->last = *event->process;
        snprintf(heard->name, sizeof heard->name, "%s", event->process->name);
        break;
    case EVENT_PROCESS_END:
        heard->ends++;
        heard->ended = event->pid;
        break;
    case EVENT_THREAD:
        heard->threads++;
        break;
    case EVENT_USE:
        heard->uses++;
        heard->use_cpu += event->use->cpu_user_ns + event->use->cpu_system_ns;
        heard->written += event->use->write_calls_bytes;
        break;
    case EVENT_MACHINE:
        heard->machines++;
        heard->own_cpu += event->machine->own_cpu_ns;
        assert_true(event->machine->cpus >= 1);
        break;
    default:
        assert_true(!"an event that is not the host's");
    }
}

static void hear_notice(void *user, const char *sentence)
{
    struct heard *heard = user;
    snprintf(heard->notice, sizeof heard->notice, "%s", sentence);
}

static void burn(double seconds)
{
    double end = (double)clock() / CLOCKS_PER_SEC + seconds;
    while ((double)clock() / CLOCKS_PER_SEC < end)
        ;
}

/* Runs body in a child that waits until it is told to go on, and goes on until it is killed. */
struct subject {
    pid_t pid;
    int go, done;
};

static int done_pipe; /* in the child */

static void start(struct subject *subject, void (*body)(void))
{
    int go[2], done[2];
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(done), 0);
    subject->pid = fork();
    if (subject->pid == 0) {
        char byte = 0;
        done_pipe = done[1];
        if (read(go[0], &byte, 1) == 1)
            body();
        if (write(done[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    subject->go = go[1];
    subject->done = done[0];
    close(go[0]);
    close(done[1]);
}

static void let_go(struct subject *subject)
{
    char byte = 1;
    assert_int_equal(write(subject->go, &byte, 1), 1);
    assert_int_equal(read(subject->done, &byte, 1), 1);
}

static void end(struct subject *subject)
{
    int status;
    kill(subject->pid, SIGKILL);
    assert_int_equal(waitpid(subject->pid, &status, 0), subject->pid);
    close(subject->go);
    close(subject->done);
}

static void host_start(struct host_sample *host, struct heard *heard, pid_t root)
{
    struct watch_sink sink = {.event = hear, .notice = hear_notice, .user = heard};
    *heard = (struct heard){0};
    host_sample_init(host, (uint32_t)root, SECOND, &sink);
}

static void burn_some(void)
{
    burn(0.3);
}

static void what_a_process_uses_is_its_own_and_the_runs(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, burn_some);
    host_start(&host, &heard, subject.pid);
    host_sample_use(&host, 2 * SECOND);
    let_go(&subject);
    host_sample_threads(&host, 3 * SECOND);
    host_sample_use(&host, 3 * SECOND);
    assert_int_equal(heard.processes, 1);
    assert_int_equal(heard.last.pid, subject.pid);
    assert_int_equal(heard.last.role, PROCESS_UNKNOWN);
    assert_int_equal(heard.last.worker, -1);
    assert_true(heard.threads >= 1 && heard.machines == 2);
    assert_true(heard.use_cpu >= 250000000 && heard.use_cpu <= 400000000);
    assert_true(heard.own_cpu >= heard.use_cpu);
    assert_true(host_sample_rss(&host) > 0);
    end(&subject);
    host_sample_reset(&host);
}

static void few_processes_are_looked_at_each_time_and_the_machine_seldom(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, burn_some);
    host_start(&host, &heard, subject.pid);
    for (uint64_t i = 1; i <= 20; i++)
        host_sample_use(&host, SECOND + i * SECOND / 20);
    assert_int_equal(heard.uses, 20);
    assert_int_equal(heard.machines, 4);
    end(&subject);
    host_sample_reset(&host);
}

static void burn_in_a_child(void)
{
    int status;
    pid_t child = fork();
    if (!child) {
        burn(0.3);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
}

static void cpu_time_of_processes_that_came_and_went_is_the_runs(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, burn_in_a_child);
    host_start(&host, &heard, subject.pid);
    host_sample_use(&host, 2 * SECOND);
    let_go(&subject);
    host_sample_use(&host, 3 * SECOND);
    assert_int_equal(heard.processes, 1); /* the child was never seen */
    assert_true(heard.own_cpu >= 250000000);
    end(&subject);
    host_sample_reset(&host);
}

static void a_child_that_was_seen_is_not_counted_again_when_it_is_reaped(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct tree_process *parent;
    struct subject subject;
    (void)state;
    start(&subject, burn_in_a_child);
    host_start(&host, &heard, subject.pid);
    host_sample_use(&host, 2 * SECOND);
    let_go(&subject);
    parent = process_tree_find(&host.tree, (uint32_t)subject.pid);
    parent->credit = 1000; /* a child that had used 10 s has ended */
    heard.own_cpu = 0;
    host_sample_use(&host, 3 * SECOND);
    assert_true(heard.own_cpu < 200000000);
    assert_true(process_tree_find(&host.tree, (uint32_t)subject.pid)->credit < 1000);
    end(&subject);
    host_sample_reset(&host);
}

/* As another program: this one, with arguments. main() runs what they say. */
static void become(const char *how)
{
    char done[16];
    snprintf(done, sizeof done, "%d", done_pipe);
    execl("/proc/self/exe", "another", how, done, NULL);
    _exit(1);
}

static void burn_as_another(void)
{
    become("burn");
}

static void burn_in_a_child_of_another(void)
{
    become("child");
}

static void another(const char *how, const char *done)
{
    char byte = 0;
    if (strcmp(how, "burn") == 0)
        burn_some();
    else
        burn_in_a_child();
    if (write(atoi(done), &byte, 1) == 1)
        pause();
}

#define WRITTEN 20000000u

/* A child that writes, is seen when it has, ends and is waited for. */
static int child_go[2], child_done[2];

static void write_in_a_child(void)
{
    static char bytes[WRITTEN];
    char byte = 1;
    int status;
    pid_t child = fork();
    if (!child) {
        int to = open("/dev/null", O_WRONLY);
        assert_int_equal(write(to, bytes, sizeof bytes), sizeof bytes);
        assert_int_equal(write(child_done[1], &byte, 1), 1);
        assert_int_equal(read(child_go[0], &byte, 1), 1);
        _exit(0);
    }
    (void)waitpid(child, &status, 0);
}

static void what_a_child_wrote_is_told_once(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    char byte = 1;
    (void)state;
    assert_int_equal(pipe(child_go), 0);
    assert_int_equal(pipe(child_done), 0);
    start(&subject, write_in_a_child);
    host_start(&host, &heard, subject.pid);
    host_sample_use(&host, 2 * SECOND);
    assert_int_equal(write(subject.go, &byte, 1), 1);
    assert_int_equal(read(child_done[0], &byte, 1), 1);
    host_sample_use(&host, 3 * SECOND); /* finds the child */
    host_sample_use(&host, 4 * SECOND);
    assert_int_equal(heard.processes, 2);
    assert_in_range(heard.written, WRITTEN, WRITTEN + 1000);
    assert_int_equal(write(child_go[1], &byte, 1), 1);
    assert_int_equal(read(subject.done, &byte, 1), 1); /* its parent has waited for it */
    host_sample_use(&host, 5 * SECOND);
    assert_int_equal(heard.ends, 1);
    assert_in_range(heard.written, WRITTEN, WRITTEN + 1000);
    end(&subject);
    host_sample_reset(&host);
    for (int i = 0; i < 2; i++) {
        close(child_go[i]);
        close(child_done[i]);
    }
}

/* A process without a ring below the one that trains, of which a worker is the parent or not. */
static uint64_t beside(const char *role, void (*body)(void), uint64_t looks_after)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    char text[96];
    start(&subject, body);
    host_start(&host, &heard, getpid());
    host_sample_use(&host, 2 * SECOND); /* finds the child */
    if (role) {
        snprintf(text, sizeof text, "{\"role\":\"%s\"}", role);
        host_sample_process(&host, (uint32_t)getpid(), text, strlen(text), 2 * SECOND);
    }
    let_go(&subject);
    heard.own_cpu = 0;
    host_sample_finish(&host, 2 * SECOND + looks_after);
    assert_non_null(process_tree_find(&host.tree, (uint32_t)subject.pid));
    end(&subject);
    host_sample_reset(&host);
    return heard.own_cpu;
}

static void a_program_that_serves_no_loop_is_another_one(void **state)
{
    (void)state;
    assert_true(beside("main", burn_as_another, SECOND) < 100000000);
    assert_true(beside("main", burn_in_a_child_of_another, SECOND) < 100000000);
    assert_true(beside("worker", burn_as_another, SECOND) >= 250000000);    /* it works for it */
    assert_true(beside("main", burn_as_another, SECOND / 10) >= 250000000); /* it may yet be one */
    assert_true(beside(NULL, burn_as_another, SECOND) >= 250000000); /* nobody tells who trains */
}

/* A pool of processes, say, that makes batches. */
static void a_fork_of_the_one_that_trains_serves_it(void **state)
{
    (void)state;
    assert_true(beside("main", burn_some, SECOND) >= 250000000);
    assert_true(beside("main", burn_in_a_child, SECOND) >= 250000000);
}

static void nothing_to_do(void)
{
}

static void what_a_process_tells_of_itself_makes_its_role(void **state)
{
    static const char text[] =
        "{\"pid\":1,\"ppid\":77,\"role\":\"worker\",\"worker\":3,\"main\":55,"
        "\"rank\":1,\"world\":2,\"python\":\"3.12.1\",\"torch\":null,"
        "\"name\":\"train.py\"}";
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, nothing_to_do);
    host_start(&host, &heard, subject.pid);
    host_sample_process(&host, (uint32_t)subject.pid, text, strlen(text), 2 * SECOND);
    assert_int_equal(heard.last.role, PROCESS_WORKER);
    assert_int_equal(heard.last.worker, 3);
    assert_int_equal(heard.last.main, 55);
    assert_int_equal(heard.last.rank, 1);
    assert_int_equal(heard.last.world, 2);
    assert_string_equal(host.python, "3.12.1");
    assert_string_equal(host.torch, "");
    /* what cannot be read changes nothing */
    uint64_t before = heard.processes;
    host_sample_process(&host, (uint32_t)subject.pid, "{\"role\":", 8, 2 * SECOND);
    host_sample_process(&host, (uint32_t)subject.pid, "[]", 2, 2 * SECOND);
    assert_int_equal(heard.processes, before);
    end(&subject);
    host_sample_reset(&host);
}

static void a_process_that_is_gone_still_says_what_it_was(void **state)
{
    static const char text[] = "{\"role\":\"main\",\"rank\":null,\"name\":\"train.py\"}";
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, nothing_to_do);
    end(&subject);
    host_start(&host, &heard, subject.pid);
    host_sample_process(&host, (uint32_t)subject.pid, text, strlen(text), 2 * SECOND);
    assert_int_equal(heard.last.role, PROCESS_MAIN);
    assert_int_equal(heard.last.rank, -1);
    assert_string_equal(heard.name, "train.py");
    assert_false(host_sample_alive(&host, (uint32_t)subject.pid));
    host_sample_reset(&host);
}

static void the_end_of_a_process_is_told_once(void **state)
{
    struct host_sample host;
    struct heard heard;
    struct subject subject;
    (void)state;
    start(&subject, nothing_to_do);
    host_start(&host, &heard, subject.pid);
    host_sample_use(&host, 2 * SECOND);
    assert_true(host_sample_alive(&host, (uint32_t)subject.pid));
    end(&subject);
    host_sample_use(&host, 3 * SECOND);
    host_sample_use(&host, 4 * SECOND);
    assert_int_equal(heard.ends, 1);
    assert_int_equal(heard.ended, subject.pid);
    host_sample_reset(&host);
}

int main(int count, char **words)
{
    if (count == 3) {
        another(words[1], words[2]);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_process_uses_is_its_own_and_the_runs),
        cmocka_unit_test(few_processes_are_looked_at_each_time_and_the_machine_seldom),
        cmocka_unit_test(cpu_time_of_processes_that_came_and_went_is_the_runs),
        cmocka_unit_test(a_child_that_was_seen_is_not_counted_again_when_it_is_reaped),
        cmocka_unit_test(a_program_that_serves_no_loop_is_another_one),
        cmocka_unit_test(a_fork_of_the_one_that_trains_serves_it),
        cmocka_unit_test(what_a_child_wrote_is_told_once),
        cmocka_unit_test(what_a_process_tells_of_itself_makes_its_role),
        cmocka_unit_test(a_process_that_is_gone_still_says_what_it_was),
        cmocka_unit_test(the_end_of_a_process_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
