#include "watch/ring_making.h"

#include <pthread.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "watch/collect.h"

static struct stk_error err;

struct fixture {
    char folder[PATH_MAX];
    int fd;
    struct attribution *attribution;
    uint64_t begun;
    uint64_t lines; /* told live */
};

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.begun = (uint64_t)clock_now()};
    struct attribution_options options = {.begun = fixture.begun, .cpus = 2};
    folder_new(fixture.folder);
    fixture.fd = open(fixture.folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(attribution_new(&fixture.attribution, &options, &err), STK_OK);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    attribution_free(fixture->attribution);
    close(fixture->fd);
    folder_remove(fixture->folder);
    return 0;
}

static void hear_live(void *user, const struct stk_watch_now *now)
{
    struct fixture *fixture = user;
    assert_true(now->seconds >= 0 && now->waits);
    fixture->lines++;
}

static struct collect *collector(struct fixture *fixture, uint64_t until)
{
    struct collect_options options = {.folder = fixture->fd,
                                      .root = (uint32_t)getpid(),
                                      .begun = fixture->begun,
                                      .until = until,
                                      .visible = "",
                                      .attribution = fixture->attribution,
                                      .live = hear_live,
                                      .user = fixture};
    struct collect *collect;
    assert_int_equal(collect_new(&collect, &options, &err), STK_OK);
    return collect;
}

static void records_and_processes_reach_the_summary(void **state)
{
    struct fixture *fixture = *state;
    struct collect *collect = collector(fixture, 0);
    struct collect_facts facts;
    struct summary summary = {0};
    struct ring_header *ring = ring_make(path_in(fixture->folder, "ring.1.py"), RING_PYTHON,
                                         (uint32_t)getpid(), SMALL_RING);
    ring_put_text(ring, RECORD_PROCESS,
                  "{\"role\":\"main\",\"python\":\"3.13.0\",\"torch\":\"2.13.0\"}");
    ring_put_mark(ring, fixture->begun + 1000, 0);
    ring->lost = 4;
    for (uint64_t i = 0; i < 25; i++)
        collect_round(collect, fixture->begun + i * 50000000);
    collect_stop(collect);
    collect_facts(collect, &facts);
    assert_int_equal(facts.records, 2);
    assert_int_equal(facts.lost, 4);
    assert_string_equal(facts.python, "3.13.0");
    assert_string_equal(facts.torch, "2.13.0");
    assert_null(facts.fault);
    assert_null(facts.notices[0]);
    assert_int_equal(attribution_finish(fixture->attribution, &summary, &err), STK_OK);
    assert_true(summary.process_count >= 1);
    assert_true(fixture->lines >= 4);
    summary_free(&summary);
    collect_free(collect);
    ring_unmake(ring);
}

static void the_thread_reads_what_was_written_last(void **state)
{
    struct fixture *fixture = *state;
    struct collect *collect = collector(fixture, 0);
    struct collect_facts facts;
    struct ring_header *ring = ring_make(path_in(fixture->folder, "ring.1.py"), RING_PYTHON,
                                         (uint32_t)getpid(), SMALL_RING);
    assert_int_equal(collect_start(collect, &err), STK_OK);
    for (uint64_t i = 0; i < 40; i++)
        ring_put_mark(ring, fixture->begun + i, 0);
    collect_stop(collect);
    collect_facts(collect, &facts);
    assert_int_equal(facts.records, 40);
    assert_true(facts.ended > fixture->begun && facts.cpu_ns > 0);
    collect_stop(collect); /* once more does nothing */
    collect_free(collect);
    ring_unmake(ring);
}

static void when_the_time_is_over_processes_are_told_and_later_events_left_out(void **state)
{
    struct fixture *fixture = *state;
    uint64_t second = 1000000000, until = fixture->begun + second;
    struct summary summary = {0};
    struct collect *collect = collector(fixture, until);
    struct collect_facts facts;
    for (uint64_t i = 0; i < 20; i++)
        collect_round(collect, fixture->begun + i * 50000000);
    assert_int_not_equal(access(path_in(fixture->folder, "stop"), F_OK), 0);
    collect_round(collect, until);
    assert_int_equal(access(path_in(fixture->folder, "stop"), F_OK), 0);
    uint64_t lines = fixture->lines;
    for (uint64_t i = 0; i < 20; i++)
        collect_round(collect, until + i * 50000000);
    assert_int_equal(fixture->lines, lines);
    collect_stop(collect);
    collect_facts(collect, &facts);
    assert_int_equal(facts.ended, until);
    assert_int_equal(attribution_finish(fixture->attribution, &summary, &err), STK_OK);
    assert_true(summary.machine_io.told & MACHINE_NETWORK); /* by a last look */
    summary_free(&summary);
    collect_free(collect);
}

static void a_broken_ring_is_a_notice(void **state)
{
    struct fixture *fixture = *state;
    struct collect *collect = collector(fixture, 0);
    struct collect_facts facts;
    text_write(path_in(fixture->folder, "ring.5.gpu"), "nonsense");
    text_write(path_in(fixture->folder, "ring.6.gpu"), "nonsense");
    collect_round(collect, fixture->begun);
    collect_stop(collect);
    collect_facts(collect, &facts);
    assert_non_null(facts.notices[0]);
    assert_non_null(facts.notices[1]);
    assert_null(facts.notices[2]);
    collect_free(collect);
}

#define COLLECT_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        COLLECT_TEST(records_and_processes_reach_the_summary),
        COLLECT_TEST(the_thread_reads_what_was_written_last),
        COLLECT_TEST(when_the_time_is_over_processes_are_told_and_later_events_left_out),
        COLLECT_TEST(a_broken_ring_is_a_notice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
