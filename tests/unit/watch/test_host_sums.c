/* What the host did in all: of processes, as the run file tells it. */
#include "watch/watch_story.h"

static void use_tell(struct story *story, uint32_t pid, uint64_t at, const struct watch_use *use)
{
    story_take(story, &(struct watch_event){.type = EVENT_USE,
                                            .pid = pid,
                                            .start = BEGUN + at,
                                            .end = BEGUN + at + 50 * MS,
                                            .use = use});
}

static void finish(struct story *story)
{
    assert_int_equal(attribution_finish(story->attribution, &story->summary, NULL), STK_OK);
}

static void what_a_process_used_adds_up(void **state)
{
    (void)state;
    struct story *story = story_begin();
    struct watch_use use = {.told = USE_STAT | USE_IO,
                            .cpu_user_ns = 30,
                            .cpu_system_ns = 12,
                            .run_delay_ns = 5,
                            .read_calls_bytes = 100,
                            .write_calls_bytes = 200,
                            .read_bytes = 300,
                            .written_bytes = 400,
                            .minor_faults = 6,
                            .major_faults = 7,
                            .rss_bytes = 1000,
                            .most_rss_bytes = 5000};
    use_tell(story, MAIN, 0, &use);
    use.told = USE_BLOCK;
    use.block_ns = 8;
    use.most_rss_bytes = 500;
    use_tell(story, MAIN, 50 * MS, &use);
    story_process(story, WORKER, PROCESS_WORKER, 0);
    finish(story);
    assert_int_equal(story->summary.process_count, 2);
    const struct summary_process *process = &story->summary.processes[0];
    assert_int_equal(process->told, USE_STAT | USE_IO | USE_BLOCK);
    assert_int_equal(process->cpu_ns, 84);
    assert_int_equal(process->run_delay_ns, 10);
    assert_int_equal(process->block_ns, 8);
    assert_int_equal(process->read_calls_bytes, 200);
    assert_int_equal(process->write_calls_bytes, 400);
    assert_int_equal(process->read_bytes, 600);
    assert_int_equal(process->written_bytes, 800);
    assert_int_equal(process->minor_faults, 12);
    assert_int_equal(process->major_faults, 14);
    assert_int_equal(process->max_rss, 5000);
    assert_int_equal(story->summary.processes[1].told, 0); /* it was over before it was looked at */
    story_free(story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_process_used_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
