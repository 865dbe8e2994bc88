/* The injected library with a simulated CUPTI: what it records, and how it gets on with others that
 * use CUPTI. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inject_fixture.h"

static void start(void)
{
    cupti_load();
    CHECK(InitializeInjection() == 1);
}

static struct sim_cupti_counts counts_now(void)
{
    struct sim_cupti_counts counts;
    test.counts(&counts);
    return counts;
}

/* --- records ---------------------------------------------------------------------------------- */

static void check_kernel(const struct seen *seen, uint64_t now)
{
    const struct record_text *name = next_of(seen, RECORD_NAME, NULL);
    const struct record_kernel *kernel = next_of(seen, RECORD_KERNEL, NULL);
    CHECK(name && kernel && (const void *)name < (const void *)kernel);
    CHECK(name->len == 4 && !memcmp(name->text, "gemm", 4));
    CHECK(kernel->start == now && kernel->end == now + 500);
    CHECK(kernel->device == 3 && kernel->stream == 21 && kernel->name == name->id);
    CHECK(kernel->graph == 0);
}

static void check_copies(const struct seen *seen, uint64_t now)
{
    const struct record_copy *copy = next_of(seen, RECORD_COPY, NULL);
    CHECK(copy && copy->start == now && copy->end == now + 9 && copy->bytes == 4096);
    CHECK(copy->device == 1 && copy->stream == 13);
    CHECK(copy->way == COPY_TO_DEVICE && copy->from == COPY_PAGEABLE && copy->to == COPY_DEVICE);
    copy = next_of(seen, RECORD_COPY, copy);
    CHECK(copy && copy->way == COPY_CLEAR && copy->to == COPY_DEVICE && copy->bytes == 77);
    copy = next_of(seen, RECORD_COPY, copy);
    CHECK(copy && copy->way == COPY_ON_DEVICE);
    CHECK(!next_of(seen, RECORD_COPY, copy));
}

/* A kernel, three copies, four synchronisations, two costs: some of them are not told. */
static void add_one_of_each(uint64_t now)
{
    struct cupti_kernel kernel = kernel_of("gemm", now, now + 500);
    kernel.device = 3;
    kernel.stream = 21;
    test.add(&kernel, sizeof kernel, 1);
    struct cupti_copy copy = {.kind = KIND_COPY, .way = 1, .from = 1, .to = 3, .bytes = 4096};
    copy.start = now;
    copy.end = now + 9;
    copy.device = 1;
    copy.stream = 13;
    test.add(&copy, sizeof copy, 1);
    struct cupti_copy clear = copy;
    clear.kind = KIND_CLEAR;
    clear.bytes = 77;
    test.add(&clear, sizeof clear, 1);
    struct cupti_copy between = copy;
    between.kind = KIND_COPY_BETWEEN;
    between.way = 10;
    test.add(&between, sizeof between, 1);
    for (uint32_t what = 1; what <= 4; what++) {
        struct cupti_sync sync = {KIND_SYNC, what, now, now + 5000, 0, 0, what + 100};
        test.add(&sync, sizeof sync, 1);
        sync.end = now + 300; /* a query */
        test.add(&sync, sizeof sync, 1);
    }
    struct cupti_overhead overhead = {.kind = KIND_OVERHEAD, .what = OVERHEAD_REQUEST};
    overhead.start = now;
    overhead.end = now + 40;
    test.add(&overhead, sizeof overhead, 1);
    overhead.what = 5 << 16; /* lazy loading is the program's own */
    test.add(&overhead, sizeof overhead, 1);
}

static void check_one_of_each(const struct seen *seen, uint64_t now)
{
    check_kernel(seen, now);
    check_copies(seen, now);
    CHECK(count_of(seen, RECORD_SYNC) == 3);
    const struct record_sync *sync = next_of(seen, RECORD_SYNC, NULL);
    CHECK(sync->what == SYNC_EVENT && sync->stream == 101);
    CHECK(sync->start == now && sync->end == now + 5000);
    CHECK(count_of(seen, RECORD_COST) == 1);
    const struct record_cost *cost = next_of(seen, RECORD_COST, NULL);
    CHECK(cost->start == now && cost->end == now + 40);
    CHECK(count_of(seen, RECORD_LOST) == 0);
}

static void fields_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    add_one_of_each(now);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(state_of(&seen, GPU_RECORDS));
    check_one_of_each(&seen, now);
    CHECK(counts_now().subscribes == 0);
    CHECK(!(counts_now().enabled & (1u << KIND_KERNEL_ALONE | 1u << KIND_DRIVER)));
}

static void records_arrive_with_their_fields(void **state)
{
    (void)state;
    SUCCEEDS(fields_body);
}

/* The sizes that records had from CUDA 12.0 on. */
static void layouts_body(void)
{
    static const size_t kernels[] = {200, 208, 216, 224, 232, 248};
    static const size_t copies[] = {88, 96, 112}, clears[] = {88, 104};
    static const size_t syncs[] = {40, 56}, overheads[] = {40, 48, 56};
    start();
    for (size_t i = 0; i < 6; i++) {
        test.layout(KIND_KERNEL, kernels[i]);
        test.layout(KIND_COPY, copies[i % 3]);
        test.layout(KIND_CLEAR, clears[i % 2]);
        test.layout(KIND_SYNC, syncs[i % 2]);
        test.layout(KIND_OVERHEAD, overheads[i % 3]);
        uint64_t now = inject_clock_now();
        add_one_of_each(now);
        stoker_inject_stop();
        struct seen seen = ring_copy(getpid());
        check_one_of_each(&seen, now);
        CHECK(InitializeInjection() == 1); /* a ring of the same name follows */
    }
}

static void records_of_all_versions_are_read(void **state)
{
    (void)state;
    SUCCEEDS(layouts_body);
}

static void names_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    char reused[] = "first", twin[] = "first", many[700];
    memset(many, 'x', sizeof many);
    many[699] = '\0';
    add_kernel(reused, now, now + 1);
    add_kernel(twin, now, now + 1); /* another pointer, the same name */
    add_kernel(many, now, now + 1);
    add_kernel(many, now, now + 1);
    add_kernel(NULL, now, now + 1);
    stoker_inject_flush();
    memcpy(reused, "other", 6); /* its module was unloaded */
    add_kernel(reused, now, now + 1);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_NAME) == 4 && count_of(&seen, RECORD_KERNEL) == 6);
    uint32_t ids[6];
    const struct record_kernel *kernel = NULL;
    for (int i = 0; i < 6; i++)
        ids[i] = (kernel = next_of(&seen, RECORD_KERNEL, kernel))->name;
    CHECK(ids[0] == ids[1] && ids[2] == ids[3] && ids[0] != ids[2] && ids[5] != ids[0]);
    const struct record_text *name = next_of(&seen, RECORD_NAME, NULL);
    CHECK(name->id == ids[0]);
    name = next_of(&seen, RECORD_NAME, name);
    CHECK(name->id == ids[2] && name->len == 512);
}

static void a_name_is_told_once_and_cut_at_512_bytes(void **state)
{
    (void)state;
    SUCCEEDS(names_body);
}

static void plain_names_body(void)
{
    static const char plain[] = "at::native::relu(float*, int)";
    CHECK(dlopen("libstdc++.so.6", RTLD_LAZY)); /* as PyTorch does */
    start();
    uint64_t now = inject_clock_now();
    add_kernel("_ZN2at6native4reluEPfi", now, now + 1);
    add_kernel("_Zno_name_of_cpp", now, now + 1);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    const struct record_text *name = next_of(&seen, RECORD_NAME, NULL);
    CHECK(name->len == sizeof plain - 1 && !memcmp(name->text, plain, name->len));
    name = next_of(&seen, RECORD_NAME, name);
    CHECK(name->len == 16 && !memcmp(name->text, "_Zno_name_of_cpp", 16));
}

static void names_of_cpp_are_told_as_they_were_written(void **state)
{
    (void)state;
    SUCCEEDS(plain_names_body);
}

/* --- what is missing -------------------------------------------------------------------------- */

static void missing_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    add_kernel("untimed", 0, 0);
    add_kernel("backwards", now, now - 5);
    add_kernel("of another clock", 12345, 12999);
    struct cupti_kernel in_graph = kernel_of("in a graph", 0, 0);
    in_graph.graph_node = 9;
    test.add(&in_graph, sizeof in_graph, 1);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(lost_of(&seen, 2) == 3 && lost_of(&seen, 3) == 1);
    CHECK(count_of(&seen, RECORD_KERNEL) == 0);
}

static void work_without_times_is_told_as_lost(void **state)
{
    (void)state;
    SUCCEEDS(missing_body);
}

/* So much under way that CUPTI gets no buffer any more. */
static void dropped_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    struct cupti_kernel kernel = kernel_of("gemm", now, now + 1);
    const int most = 64 << 20, each = 200; /* more than all buffers hold */
    for (int i = 0; i < most / each; i++)
        test.add(&kernel, sizeof kernel, 0);
    test.complete();
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(lost_of(&seen, 1) > 0);
    CHECK(counts_now().largest == 1 << 20);
}

static void what_cupti_dropped_is_told(void **state)
{
    (void)state;
    SUCCEEDS(dropped_body);
}

static void launch_graph(uint32_t correlation, int has_kernels)
{
    uint64_t now = inject_clock_now();
    stoker_inject_graph();
    for (int i = 0; has_kernels && i < 3; i++) {
        struct cupti_kernel kernel = kernel_of("node", now, now + 5);
        kernel.correlation = correlation;
        kernel.graph_node = 11;
        kernel.graph = 4;
        test.add(&kernel, sizeof kernel, 1);
    }
}

static void graphs_body(void)
{
    start();
    for (uint32_t i = 1; i <= 20; i++)
        launch_graph(i, 1);
    stoker_inject_yield();
    struct seen seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 60 && lost_of(&seen, 3) == 0);
    const struct record_kernel *kernel = next_of(&seen, RECORD_KERNEL, NULL);
    CHECK(kernel->graph == 4);
    stoker_inject_resume();
    for (uint32_t i = 21; i <= 40; i++)
        launch_graph(i, 0);
    stoker_inject_yield();
    seen = ring_copy(getpid());
    CHECK(lost_of(&seen, 3) == 20);
}

static void graphs_without_kernels_are_told(void **state)
{
    (void)state;
    SUCCEEDS(graphs_body);
}

/* As `stoker run --every-kernel` does: recording never rests. */
static void want_every_kernel(void)
{
    char path[sizeof test.folder + 16];
    snprintf(path, sizeof path, "%s/every-kernel", test.folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void full_body(void)
{
    want_every_kernel();
    start();
    enum { KERNELS = 250000 };
    uint64_t begun = inject_clock_now();
    for (int i = 0; i < KERNELS; i++) {
        add_kernel("tiny", begun + 1, begun + 2);
        if (i % 1000 == 0)
            stoker_inject_flush();
    }
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(seen.header.lost > 0);
    CHECK((uint64_t)count_of(&seen, RECORD_KERNEL) + seen.header.lost >= KERNELS);
    CHECK(seen.header.head <= seen.header.capacity);
}

static void a_full_ring_is_counted_and_never_waited_for(void **state)
{
    (void)state;
    SUCCEEDS(full_body);
}

/* The reader takes what is there, so the ring goes round many times. */
static void round_body(void)
{
    want_every_kernel();
    start();
    snprintf(test.ring_path, sizeof test.ring_path, "%s/ring.%d.gpu", test.folder, (int)getpid());
    int fd = open(test.ring_path, O_RDWR);
    struct ring_header *header =
        mmap(NULL, RING_HEADER + (8 << 20), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(header != MAP_FAILED && header->capacity == 8 << 20);
    const uint8_t *bytes = (const uint8_t *)header + RING_HEADER;
    uint64_t kernels = 0, offset = 0, now = inject_clock_now();
    for (uint64_t i = 0; i < 600000; i++) {
        add_kernel("tiny", now + i, now + i + 1);
        if (i % 5000 && i != 599999)
            continue;
        stoker_inject_flush();
        for (; offset < header->head;) {
            const struct record *record = (const void *)(bytes + (offset & (header->capacity - 1)));
            CHECK(record->size && record->size % 8 == 0);
            if (record->type == RECORD_KERNEL)
                CHECK(((const struct record_kernel *)record)->start == now + kernels++);
            offset += record->size;
        }
        __atomic_store_n(&header->tail, offset, __ATOMIC_RELEASE);
    }
    CHECK(kernels == 600000 && header->lost == 0 && offset > 2 * header->capacity);
}

static void a_ring_that_is_read_goes_round(void **state)
{
    (void)state;
    SUCCEEDS(round_body);
}

/* --- rests ------------------------------------------------------------------------------------ */

/* So many records, of which nothing is told (queries that did not wait), until recording rests. */
static int record_until_rest(void)
{
    int count = 0;
    for (; count < 200000 && counts_now().enabled; count++) {
        uint64_t now = inject_clock_now();
        struct cupti_sync query = {KIND_SYNC, 1, now, now + 300, 0, 0, 1};
        test.add(&query, sizeof query, 1);
        if (count % 1000 == 999)
            stoker_inject_flush();
    }
    return count;
}

static void rest_body(void)
{
    start();
    stoker_inject_flush();
    uint64_t now = inject_clock_now();
    struct cupti_kernel queued = kernel_of("queued", now, now + 1);
    test.add(&queued, sizeof queued, 0);
    int first = record_until_rest();
    CHECK(first >= 100000 && first < 110000);
    struct sim_cupti_counts counts = counts_now();
    CHECK(counts.enabled == 0 && counts.registers == 1);
    struct seen seen = ring_copy(getpid());
    CHECK(state_of(&seen, GPU_RESTS) && count_of(&seen, RECORD_KERNEL) == 0);
    test.complete(); /* what was launched before is still taken */
    stoker_inject_flush();
    seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 1 && count_of(&seen, RECORD_LOST) == 0);
    now = inject_clock_now();
    pause_ms(600);
    seen = ring_copy(getpid());
    CHECK(reached_of(&seen) > now + 200000000); /* nothing of this ring is missing */
    CHECK(counts_now().registers == 1 && counts_now().enabled == 0);
    CHECK(count_of(&seen, RECORD_GPU) == 2);
}

static void recording_rests_where_there_is_too_much_of_it(void **state)
{
    (void)state;
    SUCCEEDS(rest_body);
}

/* A device that is busy all the time: what a record costs the thread is not felt. */
static void hidden_body(void)
{
    start();
    stoker_inject_flush();
    uint64_t begun = inject_clock_now(), end = begun;
    for (int i = 0; i < 150000; i++) {
        uint64_t now = inject_clock_now();
        add_kernel("tiny", end, now);
        end = now;
        if (i % 1000 == 999)
            stoker_inject_flush();
    }
    CHECK(counts_now().enabled != 0);
}

static void recording_goes_on_where_it_is_not_felt(void **state)
{
    (void)state;
    SUCCEEDS(hidden_body);
}

static void rest_yield_body(void)
{
    start();
    stoker_inject_flush();
    record_until_rest();
    stoker_inject_yield();
    struct seen seen = ring_copy(getpid());
    CHECK(state_of(&seen, GPU_YIELDS));
    uint64_t calls = counts_now().calls;
    stoker_inject_flush();
    CHECK(counts_now().calls == calls); /* CUPTI is another's */
    stoker_inject_resume();
    stoker_inject_flush();
    CHECK(counts_now().enabled == 0 && counts_now().registers == 1);
    seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_GPU) == 4); /* it records, rests, yields, rests */
}

static void a_rest_goes_on_after_another_profiler(void **state)
{
    (void)state;
    SUCCEEDS(rest_yield_body);
}

static void late_rest_body(void)
{
    start();
    stoker_inject_yield();
    stoker_inject_resume();
    CHECK(record_until_rest() == 200000);
}

static void recording_that_began_late_does_not_rest(void **state)
{
    (void)state;
    SUCCEEDS(late_rest_body);
}

static void rest_graphs_body(void)
{
    start();
    stoker_inject_flush();
    record_until_rest();
    for (uint32_t i = 1; i <= 20; i++)
        launch_graph(i, 1);
    stoker_inject_yield();
    struct seen seen = ring_copy(getpid());
    CHECK(lost_of(&seen, 3) == 0);
}

static void graphs_that_are_launched_in_a_rest_are_not_missed(void **state)
{
    (void)state;
    SUCCEEDS(rest_graphs_body);
}

/* --- others that use CUPTI -------------------------------------------------------------------- */

static int others_buffers;

static void others_request(uint8_t **buffer, size_t *size, size_t *most_records)
{
    static uint8_t memory[1 << 16];
    others_buffers++;
    *buffer = memory;
    *size = sizeof memory;
    *most_records = 0;
}

static void others_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                            size_t valid)
{
    (void)context, (void)stream, (void)buffer, (void)size, (void)valid;
}

static uint64_t others_clock(void)
{
    return inject_clock_now() * 3; /* as ticks of a processor */
}

static void yield_body(void)
{
    start();
    uint64_t now = inject_clock_now();
    add_kernel("before", now, now + 1);
    stoker_inject_yield();
    stoker_inject_yield(); /* once more does no harm */
    struct sim_cupti_counts counts = counts_now();
    CHECK(counts.enabled == 0 && counts.all_syncs == 1);
    CHECK(counts.held == 0 && counts.forced == 1);
    test.register_callbacks(others_request, others_complete);
    test.register_clock(others_clock);
    uint64_t calls = counts_now().calls;
    pause_ms(600);
    stoker_inject_flush();
    CHECK(counts_now().calls == calls); /* CUPTI is theirs */
    struct seen seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 1 && state_of(&seen, GPU_YIELDS));
    CHECK(reached_of(&seen) > now + 200000000); /* nothing of this ring is missing */

    stoker_inject_resume();
    CHECK(counts_now().enabled & 1u << KIND_KERNEL);
    now = inject_clock_now();
    CHECK(test.time() - now < 1000000000); /* the clock is ours again */
    add_kernel("after", now, now + 1);
    stoker_inject_flush();
    seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 2 && count_of(&seen, RECORD_GPU) == 3);
    CHECK(others_buffers == 0 && counts_now().subscribes == 0);
}

static void it_yields_to_a_profiler_and_takes_over_again(void **state)
{
    (void)state;
    SUCCEEDS(yield_body);
}

static void many_yields_body(void)
{
    start();
    for (int i = 0; i < 100; i++) {
        uint64_t now = inject_clock_now();
        add_kernel("work", now, now + 1);
        stoker_inject_yield();
        test.register_callbacks(others_request, others_complete);
        stoker_inject_resume();
    }
    struct seen seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_KERNEL) == 100 && count_of(&seen, RECORD_LOST) == 0);
}

static void it_yields_many_times_and_loses_nothing(void **state)
{
    (void)state;
    SUCCEEDS(many_yields_body);
}

static void early_yield_body(void)
{
    stoker_inject_yield(); /* the profiler was started before CUDA was */
    start();
    CHECK(counts_now().registers == 0 && counts_now().enabled == 0);
    stoker_inject_resume();
    CHECK(counts_now().registers == 1 && counts_now().enabled);
}

static void a_yield_before_cuda_starts_is_remembered(void **state)
{
    (void)state;
    SUCCEEDS(early_yield_body);
}

static void taken_body(void)
{
    start();
    test.register_callbacks(others_request, others_complete); /* and nobody told us */
    test.register_clock(others_clock);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    const struct record_gpu *absent = state_of(&seen, GPU_ABSENT);
    CHECK(absent && memmem(absent->text, absent->len, "another profiler", 16));
    uint64_t calls = counts_now().calls;
    stoker_inject_flush();
    CHECK(counts_now().calls == calls);
}

static void a_profiler_that_takes_cupti_unasked_is_noticed(void **state)
{
    (void)state;
    SUCCEEDS(taken_body);
}

static void reset_body(void)
{
    start();
    test.finalize(); /* as PyTorch's profiler does where TEARDOWN_CUPTI is 1 */
    stoker_inject_flush();
    uint64_t now = inject_clock_now();
    add_kernel("after", now, now + 1);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(state_of(&seen, GPU_YIELDS) && count_of(&seen, RECORD_KERNEL) == 1);
}

static void it_takes_over_again_after_cupti_was_shut_down(void **state)
{
    (void)state;
    SUCCEEDS(reset_body);
}

static void refused_body(void)
{
    cupti_load();
    test.refuse("cuptiActivityEnable", CUPTI_OTHER_TOOL);
    InitializeInjection();
    for (int i = 0; i < 10; i++)
        stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(count_of(&seen, RECORD_GPU) == 1); /* told once, after some tries */
    const struct record_gpu *absent = state_of(&seen, GPU_ABSENT);
    CHECK(absent && memmem(absent->text, absent->len, "another profiler", 16));
    CHECK(!state_of(&seen, GPU_RECORDS));
    test.refuse(NULL, 0);
    stoker_inject_resume();
    CHECK(counts_now().enabled & 1u << KIND_KERNEL);
}

static void cupti_that_another_tool_holds_is_told(void **state)
{
    (void)state;
    SUCCEEDS(refused_body);
}

static void late_body(void)
{
    cupti_load();
    test.refuse("cuptiActivityEnable", CUPTI_NOT_INITIALIZED);
    InitializeInjection();
    test.refuse(NULL, 0);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    CHECK(state_of(&seen, GPU_RECORDS) && !state_of(&seen, GPU_ABSENT));
}

static void cupti_that_is_not_ready_is_tried_again(void **state)
{
    (void)state;
    SUCCEEDS(late_body);
}

static void no_clock_body(void)
{
    cupti_load();
    test.refuse("cuptiActivityRegisterTimestampCallback", 27);
    InitializeInjection();
    uint64_t now = inject_clock_now(), theirs = test.time(); /* CLOCK_REALTIME */
    add_kernel("work", theirs, theirs + 1000);
    stoker_inject_flush();
    struct seen seen = ring_copy(getpid());
    const struct record_kernel *kernel = next_of(&seen, RECORD_KERNEL, NULL);
    CHECK(kernel && kernel->end - kernel->start == 1000);
    CHECK(kernel->start > now - 5000000 && kernel->start < now + 5000000);
}

static void without_a_clock_of_ours_times_are_converted(void **state)
{
    (void)state;
    SUCCEEDS(no_clock_body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_arrive_with_their_fields),
        cmocka_unit_test(records_of_all_versions_are_read),
        cmocka_unit_test(a_name_is_told_once_and_cut_at_512_bytes),
        cmocka_unit_test(names_of_cpp_are_told_as_they_were_written),
        cmocka_unit_test(work_without_times_is_told_as_lost),
        cmocka_unit_test(what_cupti_dropped_is_told),
        cmocka_unit_test(graphs_without_kernels_are_told),
        cmocka_unit_test(a_full_ring_is_counted_and_never_waited_for),
        cmocka_unit_test(a_ring_that_is_read_goes_round),
        cmocka_unit_test(recording_rests_where_there_is_too_much_of_it),
        cmocka_unit_test(recording_goes_on_where_it_is_not_felt),
        cmocka_unit_test(a_rest_goes_on_after_another_profiler),
        cmocka_unit_test(recording_that_began_late_does_not_rest),
        cmocka_unit_test(graphs_that_are_launched_in_a_rest_are_not_missed),
        cmocka_unit_test(it_yields_to_a_profiler_and_takes_over_again),
        cmocka_unit_test(it_yields_many_times_and_loses_nothing),
        cmocka_unit_test(a_yield_before_cuda_starts_is_remembered),
        cmocka_unit_test(a_profiler_that_takes_cupti_unasked_is_noticed),
        cmocka_unit_test(it_takes_over_again_after_cupti_was_shut_down),
        cmocka_unit_test(cupti_that_another_tool_holds_is_told),
        cmocka_unit_test(cupti_that_is_not_ready_is_tried_again),
        cmocka_unit_test(without_a_clock_of_ours_times_are_converted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
