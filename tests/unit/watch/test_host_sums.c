/* What the host did in all: of processes, threads, disks and network, and PCIe, as the run
 * file tells it. */
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

static void thread_tell(struct story *story, uint32_t thread, uint64_t cpu)
{
    struct watch_thread told = {
        .thread = thread, .name = "busy", .cpu_sum_ns = cpu, .run_delay_sum_ns = cpu / 2};
    story_take(story, &(struct watch_event){.type = EVENT_THREAD, .pid = MAIN, .thread = &told});
}

/* Each grows a little at a time, so that all of them were the greatest once. */
static void of_all_threads_that_come_and_go_the_greatest_are_told(void **state)
{
    (void)state;
    struct story *story = story_begin();
    enum { MANY = 3000 };
    for (uint32_t i = 1; i <= MANY; i++)
        for (uint64_t part = 1; part <= 3; part++)
            thread_tell(story, i, part * (i * 7919 % MANY) * MS);
    finish(story);
    assert_int_equal(story->summary.thread_count, SUMMARY_THREADS);
    for (size_t i = 0; i < SUMMARY_THREADS; i++) {
        const struct summary_thread *thread = &story->summary.threads[i];
        assert_int_equal(thread->cpu_ns, 3 * (MANY - 1 - i) * MS);
        assert_int_equal(thread->run_delay_ns, thread->cpu_ns / 2);
        assert_int_equal(thread->thread * UINT64_C(7919) % MANY, MANY - 1 - i);
        assert_string_equal(thread->name, "busy");
    }
    story_free(story);
}

static void a_thread_with_the_number_of_one_that_ended_is_another(void **state)
{
    (void)state;
    struct story *story = story_begin();
    thread_tell(story, 7, 5 * MS);
    thread_tell(story, 7, 9 * MS);
    thread_tell(story, 7, 2 * MS);
    thread_tell(story, 7, 3 * MS);
    finish(story);
    assert_int_equal(story->summary.thread_count, 2);
    assert_int_equal(story->summary.threads[0].cpu_ns, 9 * MS);
    assert_int_equal(story->summary.threads[1].cpu_ns, 3 * MS);
    story_free(story);
}

static void what_the_machine_moved_adds_up_where_it_is_told(void **state)
{
    (void)state;
    struct story *story = story_begin();
    struct watch_machine machine = {
        .told = MACHINE_NETWORK, .io_ns = MS, .network_in_bytes = 5, .network_out_bytes = 6};
    struct watch_event event = {
        .type = EVENT_MACHINE, .start = BEGUN, .end = BEGUN + 4 * MS, .machine = &machine};
    story_take(story, &event);
    machine.told = 0;
    machine.network_in_bytes = 0;
    machine.network_out_bytes = 1;
    story_take(story, &event);
    finish(story);
    const struct summary_machine_io *io = &story->summary.machine_io;
    assert_int_equal(io->told, MACHINE_NETWORK);
    assert_int_equal(io->network_in, 5);
    assert_int_equal(io->network_out, 7);
    assert_int_equal(io->disk_read + io->disk_written, 0);
    story_free(story);
}

static void device_tell(struct story *story, uint32_t device, uint64_t at, uint64_t in)
{
    struct watch_device told = {
        .device = device, .pcie_in_bytes_s = in, .pcie_out_bytes_s = STK_DEVICE_UNKNOWN};
    story_take(story,
               &(struct watch_event){
                   .type = EVENT_DEVICE, .start = BEGUN + at, .end = BEGUN + at, .device = &told});
}

static void pcie_is_told_by_device_with_its_mean_and_its_most(void **state)
{
    (void)state;
    struct story *story = story_begin();
    device_tell(story, 0, 10 * MS, 100);
    device_tell(story, 0, 110 * MS, STK_DEVICE_UNKNOWN); /* not asked */
    device_tell(story, 0, 210 * MS, 500);
    device_tell(story, 2, 210 * MS, STK_DEVICE_UNKNOWN);
    finish(story);
    const struct summary *summary = &story->summary;
    assert_int_equal(summary->device_count, 2);
    assert_int_equal(summary->devices[0].pcie_in.mean, 300);
    assert_int_equal(summary->devices[0].pcie_in.most, 500);
    assert_true(summary->devices[0].pcie_in.told && !summary->devices[0].pcie_out.told);
    assert_int_equal(summary->devices[1].device, 2);
    assert_false(summary->devices[1].pcie_in.told);
    assert_true(summary->series[SERIES_PCIE_IN][0] == 100 &&
                summary->series[SERIES_PCIE_IN][2] == 500);
    assert_null(summary->series[SERIES_PCIE_OUT]);
    story_free(story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_process_used_adds_up),
        cmocka_unit_test(of_all_threads_that_come_and_go_the_greatest_are_told),
        cmocka_unit_test(a_thread_with_the_number_of_one_that_ended_is_another),
        cmocka_unit_test(what_the_machine_moved_adds_up_where_it_is_told),
        cmocka_unit_test(pcie_is_told_by_device_with_its_mean_and_its_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
